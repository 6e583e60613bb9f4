//! Deterministic simulation: several real engines with random faults, reproducible from a seed.
//!
//! `REWHEEL_SEED=17 cargo xtask sim` replays one seed, `REWHEEL_SEEDS=1000 cargo xtask sim` runs that
//! many. A replay prints everything that happened.

#![expect(clippy::print_stdout, reason = "a simulation reports what it did")]

#[path = "simulation/duplicates.rs"]
mod duplicates;
#[path = "simulation/fleet.rs"]
mod fleet;
#[path = "simulation/groups.rs"]
mod groups;
#[path = "simulation/model.rs"]
mod model;
#[path = "simulation/node.rs"]
mod node;
#[path = "simulation/outages.rs"]
mod outages;
#[path = "simulation/schedules.rs"]
mod schedules;
#[path = "simulation/worker.rs"]
mod worker;
#[path = "simulation/world.rs"]
mod world;

use rewheel_stores::Weakness;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use world::{Outcome, Rules, simulate};

/// Fewer than `cargo xtask sim` runs, so that `cargo test` stays fast.
const SEEDS_DEFAULT: u64 = 40;

fn seeds() -> std::ops::Range<u64> {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    match number("REWHEEL_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("REWHEEL_SEEDS").unwrap_or(SEEDS_DEFAULT),
    }
}

#[track_caller]
fn hold(seed: u64, outcome: &Outcome) {
    assert!(
        outcome.violations.is_empty(),
        "seed {seed} breaks a promise; replay it with REWHEEL_SEED={seed} cargo xtask sim\n{}",
        outcome.violations.join("\n")
    );
}

#[expect(clippy::disallowed_methods, reason = "how fast a simulation is, is real time")]
#[test]
fn every_promise_holds_for_every_seed() {
    let started = std::time::Instant::now();
    let next = AtomicU64::new(seeds().start);
    let (mut simulated, mut jobs, mut count) = (0.0, 0, 0);
    let mut counts = BTreeMap::<_, u64>::new();
    std::thread::scope(|scope| {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let work = || {
            let mut outcomes = Vec::new();
            loop {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= seeds().end {
                    return outcomes;
                }
                let outcome = simulate(seed, &Rules::default());
                if seeds().count() == 1 {
                    println!("{}", outcome.story.join("\n"));
                }
                hold(seed, &outcome);
                outcomes.push((outcome.simulated.as_secs_f64(), outcome.jobs, outcome.counts));
            }
        };
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        for thread in threads {
            for (seconds, some, its) in thread.join().expect("a seed broke a promise, see above") {
                its.into_iter().for_each(|(what, many)| *counts.entry(what).or_default() += many);
                simulated += seconds;
                jobs += some;
                count += 1;
            }
        }
    });
    let took = started.elapsed().as_secs_f64();
    println!(
        "{count} seeds, {jobs} jobs, {:.1} simulated hours in {took:.1} s: {:.1} seeds/s, {:.2} h/s",
        simulated / 3_600.0,
        f64::from(count) / took,
        simulated / 3_600.0 / took,
    );
    println!("{counts:?}");
}

#[test]
fn a_seed_always_tells_the_same_story() {
    for seed in 0..3 {
        let once = simulate(seed, &Rules::default());
        let again = simulate(seed, &Rules::default());
        assert_eq!(once.story, again.story, "seed {seed} is not the same twice");
    }
}

/// Finds a seed that detects a removed guarantee.
fn is_noticed(rules: &Rules, what: &str) {
    is_noticed_as(rules, what, "");
}

/// Finds a seed that detects a removed guarantee with a complaint of this text.
fn is_noticed_as(rules: &Rules, what: &str, text: &str) {
    let noticed = (0..200).find_map(|seed| {
        let outcome = simulate(seed, rules);
        let mut meant = outcome.violations.into_iter().filter(|one| one.contains(text));
        meant.next().map(|first| (seed, first))
    });
    match noticed {
        Some((seed, first)) => println!("{what}: noticed by seed {seed}: {first}"),
        None => panic!("200 seeds do not notice: {what}"),
    }
}

#[test]
fn a_store_without_fences_is_noticed() {
    let rules = Rules { weakness: Some(Weakness::NoFence), ..Rules::default() };
    is_noticed(&rules, "no fence");
}

#[test]
fn a_store_that_lets_the_dead_claim_is_noticed() {
    let rules = Rules { weakness: Some(Weakness::NoLiveHolder), ..Rules::default() };
    is_noticed(&rules, "no live holder");
}

#[test]
fn a_store_that_leaves_forgotten_jobs_alone_is_noticed() {
    let forgetful = Rules { self_audit: false, ..Rules::default() };
    for seed in 0..10 {
        hold(seed, &simulate(seed, &forgetful));
    }
    let rules = Rules { weakness: Some(Weakness::NoOverdue), ..forgetful };
    is_noticed(&rules, "no overdue");
}

#[test]
fn a_store_that_submits_for_settles_that_do_not_count_is_noticed() {
    let rules = Rules { weakness: Some(Weakness::FollowUpsOfAnySettle), ..Rules::default() };
    is_noticed(&rules, "follow-ups of any settle");
}

#[test]
fn two_jobs_of_one_instant_are_noticed() {
    let rules = Rules { weakness: Some(Weakness::InstantTwice), ..Rules::default() };
    is_noticed_as(&rules, "two jobs of one instant", "jobs of the same instant");
}

#[test]
fn a_store_that_loses_follow_ups_is_noticed() {
    let rules = Rules { weakness: Some(Weakness::FollowUpsLost), ..Rules::default() };
    is_noticed_as(&rules, "a follow-up is lost", "counted true, exists false");
}

#[test]
fn a_store_that_loses_results_is_noticed() {
    let rules = Rules { weakness: Some(Weakness::ResultLost), ..Rules::default() };
    is_noticed_as(&rules, "a result is lost", "stored None");
}

#[test]
fn a_store_that_replaces_claimed_jobs_is_noticed() {
    let rules = Rules { weakness: Some(Weakness::ReplacesClaimed), ..Rules::default() };
    is_noticed(&rules, "claimed jobs are replaced");
}

#[test]
fn a_store_that_takes_the_keys_of_waiting_jobs_is_noticed() {
    let rules = Rules { weakness: Some(Weakness::TakesKeysOfWaiting), ..Rules::default() };
    is_noticed(&rules, "keys of waiting jobs are taken");
}

#[test]
fn a_store_that_gives_debounced_jobs_early_is_noticed() {
    let rules = Rules { weakness: Some(Weakness::DebouncedEarly), ..Rules::default() };
    is_noticed(&rules, "debounced jobs are claimed early");
}

#[test]
fn a_store_that_keeps_results_of_settles_that_do_not_count_is_noticed() {
    let rules = Rules { weakness: Some(Weakness::ResultOfAnySettle), ..Rules::default() };
    is_noticed(&rules, "results of any settle");
}

#[test]
fn a_store_that_forgets_the_instants_of_a_schedule_is_noticed() {
    let rules = Rules { weakness: Some(Weakness::NoSettledPayload), ..Rules::default() };
    is_noticed_as(&rules, "no payload in a settle", "of a schedule that counts");
}

#[test]
fn a_store_that_runs_a_group_at_once_is_noticed() {
    let rules = Rules { weakness: Some(Weakness::NoLine), ..Rules::default() };
    is_noticed(&rules, "no line");
}

#[test]
fn a_store_that_runs_a_group_out_of_order_is_noticed() {
    let rules = Rules { weakness: Some(Weakness::NoOrder), ..Rules::default() };
    is_noticed(&rules, "no order");
}

/// As if the process died after each end of a job and before the release of the next one.
#[test]
fn housekeeping_releases_what_no_other_call_did() {
    let rules = Rules { weakness: Some(Weakness::NoReleaseAtEnd), ..Rules::default() };
    for seed in 0..5 {
        hold(seed, &simulate(seed, &rules));
    }
    is_noticed(&Rules { housekeeps_groups: false, ..rules }, "no housekeeping of groups");
}
