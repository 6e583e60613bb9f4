//! Tests of single guarantees of admission.

use super::world::{ME, World, lane};
use crate::admission::{Admit, Ask, Fact, HeldReason, Round, Suspect, Ticket};
use crate::settings::{Hold, KindSettings};
use crate::tenant_settings::TenantSettings;
use rewheel::{millis, seconds};
use rewheel_core::{KindName, Tenant};

fn world(slots: usize) -> (World, KindName) {
    let mut world = World::new(slots, &[]);
    world.put("mail", KindSettings::default());
    (world, KindName::parse("mail").unwrap())
}

fn run(admit: Admit) -> Box<Ticket> {
    match admit {
        Admit::Run(ticket) => ticket,
        Admit::Wait(held) | Admit::Return(held) | Admit::PutOff(held) => panic!("{held:?}"),
    }
}

fn waits(admit: &Admit) -> Option<HeldReason> {
    match admit {
        Admit::Wait(held) => Some(held.because),
        Admit::Run(_) | Admit::Return(_) | Admit::PutOff(_) => None,
    }
}

fn returns(admit: &Admit) -> Option<HeldReason> {
    match admit {
        Admit::Return(held) => Some(held.because),
        Admit::Run(_) | Admit::Wait(_) | Admit::PutOff(_) => None,
    }
}

#[test]
fn a_job_in_hand_of_a_kind_that_is_paused_goes_back() {
    let (mut world, mail) = world(4);
    world.change(&mail, |kind| kind.paused = true);
    assert_eq!(returns(&world.admit(&mail, None)), Some(HeldReason::Paused));
    world.change(&mail, |kind| kind.paused = false);
    drop(run(world.admit(&mail, None)));
}

#[test]
fn a_kind_that_does_not_exist_has_no_runner() {
    let (world, mail) = world(4);
    let other = KindName::parse("other").unwrap();
    assert_eq!(returns(&world.admit(&other, None)), Some(HeldReason::NoRunner));
    world.admission.apply(Fact::KindGone { kind: mail.clone() });
    assert_eq!(returns(&world.admit(&mail, None)), Some(HeldReason::NoRunner));
}

#[test]
fn two_claims_under_way_do_not_count_on_the_same_room() {
    let mut world = World::new(10, &[]);
    world.put("mail", KindSettings { concurrency_max: Some(3), ..KindSettings::default() });
    let mail = KindName::parse("mail").unwrap();
    let lane = lane(&mail, None);
    let (mut one, mut other) = (world.admission.plan(), world.admission.plan());
    assert_eq!((one.reserve(&lane, 2).jobs, other.reserve(&lane, 2).jobs), (2, 1));
    drop(one);
    assert_eq!(other.reserve(&lane, 9).jobs, 2, "what did not come is free again");
}

#[test]
fn a_pass_of_a_kind_is_not_taken_where_a_tenant_refuses() {
    let limited = TenantSettings { concurrency_max: Some(1), ..TenantSettings::default() };
    let mut world = World::new(10, &[("acme", limited)]);
    world.put("mail", KindSettings { rate: "2/s".parse().ok(), ..KindSettings::default() });
    let (mail, acme) = (KindName::parse("mail").unwrap(), Tenant::parse("acme").unwrap());
    world.clock.advance(seconds(1));
    let _running = run(world.admit(&mail, Some(&acme)));
    world.clock.advance(millis(500));
    assert_eq!(waits(&world.admit(&mail, Some(&acme))), Some(HeldReason::TenantLimit));
    drop(run(world.admit(&mail, None)));
    assert_eq!(waits(&world.admit(&mail, None)), Some(HeldReason::RateLimit));
}

#[test]
fn an_attempt_that_was_not_made_gives_its_pass_back_and_one_that_panicked_does_not() {
    let mut world = World::new(10, &[]);
    world.put("mail", KindSettings { rate: "2/s".parse().ok(), ..KindSettings::default() });
    let mail = KindName::parse("mail").unwrap();
    world.clock.advance(seconds(1));
    run(world.admit(&mail, None)).unused();
    drop(run(world.admit(&mail, None)));
    assert_eq!(waits(&world.admit(&mail, None)), Some(HeldReason::RateLimit));
    assert_eq!(world.admission.running(), 0);
}

#[test]
fn a_direct_submit_waits_behind_jobs_that_a_rate_holds_up() {
    let mut world = World::new(10, &[]);
    world.put("mail", KindSettings { rate: "2/s".parse().ok(), ..KindSettings::default() });
    let mail = KindName::parse("mail").unwrap();
    world.clock.advance(seconds(1));
    let waiting = world.claim(&mail, None);
    assert!(waiting.is_some() && world.admission.admit_direct(&mail, None).is_none());
    drop(waiting);
    assert!(world.admission.admit_direct(&mail, None).is_some());
}

#[test]
fn limits_over_the_fleet_are_kept_by_claims_alone() {
    let mut world = World::new(10, &[]);
    let fleet_concurrency_max = Some(1);
    world.put("mail", KindSettings { fleet_concurrency_max, ..KindSettings::default() });
    let mail = KindName::parse("mail").unwrap();
    assert!(world.admission.admit_direct(&mail, None).is_none());
    let (tenant, is_retry, suspect) = (None, false, Suspect::No);
    let ask = Ask { kind: &mail, tenant, is_retry, suspect, is_within_fleet: false };
    // It was leased before the limit was set.
    assert_eq!(returns(&world.ask(&ask)), Some(HeldReason::Concurrency));
    drop(run(world.ask(&Ask { is_within_fleet: true, ..ask })));
}

#[test]
fn a_probe_runs_beside_old_attempts_that_hang_in_all_slots() {
    let (mut world, mail) = world(2);
    let _hung = [run(world.admit(&mail, None)), run(world.admit(&mail, None))];
    assert_eq!(waits(&world.admit(&mail, None)), Some(HeldReason::Concurrency));
    world.park(&mail, Some(ME));
    assert!(world.admission.may_start());
    let probe = world.claim(&mail, None);
    assert!(probe.is_some() && world.claim(&mail, None).is_none(), "one probe");
    let _probe = run(world.admit(&mail, None));
    assert_eq!(waits(&world.admit(&mail, None)), Some(HeldReason::Parked));
}

#[test]
fn one_that_must_run_alone_is_not_overtaken_by_other_suspects() {
    let (world, mail) = world(10);
    let ask = |suspect| Ask {
        kind: &mail,
        tenant: None,
        is_retry: false,
        suspect,
        is_within_fleet: false,
    };
    let beside = run(world.ask(&ask(Suspect::Together)));
    let mut round = Round::default();
    let alone = world.admission.admit(&ask(Suspect::Alone), &mut round);
    assert_eq!(waits(&alone), Some(HeldReason::Concurrency));
    let next = world.admission.admit(&ask(Suspect::Together), &mut round);
    assert_eq!(waits(&next), Some(HeldReason::Concurrency), "it would overtake");
    drop(run(world.admission.admit(&ask(Suspect::No), &mut round)));
    drop(beside);
    let _alone = run(world.ask(&ask(Suspect::Alone)));
    assert_eq!(waits(&world.ask(&ask(Suspect::Together))), Some(HeldReason::Concurrency));
}

#[test]
fn one_that_waits_for_its_kind_holds_up_no_suspects_of_others() {
    let (mut world, mail) = world(10);
    world.put("pay", KindSettings { concurrency_max: Some(1), ..KindSettings::default() });
    let pay = KindName::parse("pay").unwrap();
    let _running = run(world.admit(&pay, None));
    let mut round = Round::default();
    let (is_retry, is_within_fleet, tenant) = (false, false, None);
    let alone = Ask { kind: &pay, tenant, is_retry, suspect: Suspect::Alone, is_within_fleet };
    assert!(waits(&world.admission.admit(&alone, &mut round)).is_some());
    let other = Ask { kind: &mail, suspect: Suspect::Together, ..alone };
    drop(run(world.admission.admit(&other, &mut round)));
}

#[test]
fn a_kind_whose_jobs_went_back_is_not_claimed_until_a_slot_is_free() {
    let (world, mail) = world(2);
    let running = run(world.admit(&mail, None));
    let until = world.now().plus(seconds(15));
    world.admission.apply(Fact::ReturnedLate { kind: mail.clone(), until });
    assert!(world.claim(&mail, None).is_none());
    drop(running);
    assert!(world.claim(&mail, None).is_some());
    world.admission.apply(Fact::ReturnedLate { kind: mail.clone(), until });
    world.clock.advance(seconds(15));
    assert!(world.claim(&mail, None).is_some(), "nor for ever");
}

#[test]
fn a_changed_limit_counts_what_runs() {
    let (mut world, mail) = world(10);
    let running: Vec<_> = (0..3).map(|_| run(world.admit(&mail, None))).collect();
    world.put("mail", KindSettings { concurrency_max: Some(3), ..KindSettings::default() });
    assert_eq!(waits(&world.admit(&mail, None)), Some(HeldReason::Concurrency));
    drop(running);
    drop(run(world.admit(&mail, None)));
}

#[test]
fn a_kind_that_was_parked_comes_back_slowly() {
    let (mut world, mail) = world(10);
    world.park(&mail, None);
    assert_eq!(returns(&world.admit(&mail, None)), Some(HeldReason::Parked));
    world.change(&mail, |kind| kind.parked = None);
    let mut first = run(world.admit(&mail, None));
    assert_eq!(waits(&world.admit(&mail, None)), Some(HeldReason::Parked));
    first.speaks(Some(&Ok(())), false);
    drop(first.ran(true));
    let _two = [run(world.admit(&mail, None)), run(world.admit(&mail, None))];
    assert_eq!(waits(&world.admit(&mail, None)), Some(HeldReason::Parked));
}

/// A start of a slow rate is taken in the store, and cannot be returned.
#[test]
fn a_busy_engine_takes_no_start_of_a_slow_rate_without_a_slot() {
    let (mut world, mail) = world(2);
    world.put("hourly", KindSettings { rate: "1/h".parse().ok(), ..KindSettings::default() });
    world.put("daily", KindSettings { rate: "1/d".parse().ok(), ..KindSettings::default() });
    let [hourly, daily] = ["hourly", "daily"].map(|name| KindName::parse(name).unwrap());
    let plain = |world: &World| {
        let (kind, tenant, is_retry, suspect) = (&mail, None, false, Suspect::No);
        world.ask(&Ask { kind, tenant, is_retry, suspect, is_within_fleet: false })
    };
    let (one, other) = (run(plain(&world)), run(plain(&world)));
    assert!(world.claim(&hourly, None).is_none(), "both slots are taken");
    drop(one);
    assert_eq!(waits(&plain(&world)), Some(HeldReason::Concurrency), "the next one is kept");
    let claimed = world.claim(&hourly, None);
    assert!(claimed.is_some() && world.claim(&daily, None).is_none(), "one slot, one start");
    world.clock.advance(seconds(10));
    assert_eq!(waits(&plain(&world)), Some(HeldReason::Concurrency), "while the job waits here");
    let hourly = run(world.admit(&hourly, None));
    drop((claimed, hourly, other));
    drop(run(plain(&world)));
}

#[test]
fn a_slot_is_not_kept_for_ever_for_a_slow_rate() {
    let (mut world, mail) = world(2);
    world.put("hourly", KindSettings { rate: "1/h".parse().ok(), ..KindSettings::default() });
    let hourly = KindName::parse("hourly").unwrap();
    let (one, _other) = (run(world.admit(&mail, None)), run(world.admit(&mail, None)));
    assert!(world.claim(&hourly, None).is_none());
    drop(one);
    assert_eq!(waits(&world.admit(&mail, None)), Some(HeldReason::Concurrency));
    world.clock.advance(seconds(2));
    drop(run(world.admit(&mail, None)));
    // A claim that brings nothing frees the slot at once.
    let mut claim = world.admission.plan();
    assert_eq!(claim.reserve(&lane(&hourly, None), 1).jobs, 1);
    assert_eq!(waits(&world.admit(&mail, None)), Some(HeldReason::Concurrency));
    drop(claim);
    drop(run(world.admit(&mail, None)));
}

fn calls(world: &mut World, name: &str, host: &str, hold: Hold) -> KindName {
    let kind = KindName::parse(name).unwrap();
    world.hosts.insert(kind.clone(), host.to_owned());
    world.put(name, KindSettings { hold, ..KindSettings::default() });
    kind
}

#[test]
fn a_host_that_asks_to_wait_is_called_by_no_kind_until_then_and_slowly_at_first() {
    let mut world = World::new(10, &[]);
    let mail = calls(&mut world, "mail", "bank", Hold::Host);
    let other = calls(&mut world, "other", "bank", Hold::Host);
    let elsewhere = calls(&mut world, "elsewhere", "shop", Hold::Host);
    let free = calls(&mut world, "free", "bank", Hold::Off);
    let until = world.hold("bank", &mail, seconds(10));
    world.hold("bank", &mail, seconds(3));
    for kind in [&mail, &other] {
        match world.admit(kind, None) {
            Admit::Return(held) => {
                assert_eq!((held.because, held.until), (HeldReason::Hold, Some(until)));
            }
            admit @ (Admit::Run(_) | Admit::Wait(_) | Admit::PutOff(_)) => panic!("{admit:?}"),
        }
        assert!(world.claim(kind, None).is_none(), "none is claimed only to be returned");
        assert!(world.admission.is_down(kind));
    }
    drop((run(world.admit(&elsewhere, None)), run(world.admit(&free, None))));
    // A kind that is learned later calls the same host.
    let late = calls(&mut world, "late", "bank", Hold::Host);
    assert_eq!(returns(&world.admit(&late, None)), Some(HeldReason::Hold));

    world.clock.advance(seconds(10));
    let mut first = run(world.admit(&mail, None));
    assert_eq!(waits(&world.admit(&mail, None)), Some(HeldReason::Parked), "one at first");
    first.speaks(Some(&Ok(())), false);
    drop(first);
    let _two = [run(world.admit(&mail, None)), run(world.admit(&mail, None))];
    assert_eq!(waits(&world.admit(&mail, None)), Some(HeldReason::Parked), "then two");
}

#[test]
fn a_person_ends_a_hold_of_every_kind_that_calls_the_host() {
    let mut world = World::new(10, &[]);
    let mail = calls(&mut world, "mail", "bank", Hold::Host);
    let other = calls(&mut world, "other", "bank", Hold::Host);
    world.hold("bank", &mail, seconds(100));
    world.set(&other, |kind| kind.paused = true);
    world.set(&other, |kind| kind.paused = false);
    assert_eq!(returns(&world.admit(&other, None)), Some(HeldReason::Hold), "that is not a reset");
    world.change(&other, |_| {});
    drop((run(world.admit(&other, None)), run(world.admit(&mail, None))));
    // An operator who closes the breaker of a kind wants it to run.
    world.change(&mail, |kind| kind.forced = true);
    world.hold("bank", &mail, seconds(100));
    drop(run(world.admit(&mail, None)));
    assert_eq!(returns(&world.admit(&other, None)), Some(HeldReason::Hold));
}

#[test]
fn a_kind_that_is_held_for_all_waits_here_at_once_and_the_store_is_told_the_longest() {
    let mut world = World::new(10, &[]);
    let mail = calls(&mut world, "mail", "bank", Hold::Kind);
    world.hold("bank", &mail, seconds(5));
    drop(run(world.admit(&mail, None)));
    let told = |lasts| {
        let (kind, until) = (mail.clone(), world.now().plus(lasts));
        world.admission.apply(Fact::KindHeld { kind, until, why: String::new() });
    };
    told(seconds(5));
    let first = world.admission.first_told().unwrap();
    told(seconds(9));
    world.admission.forget_told(&first);
    assert_eq!(world.admission.first_told().unwrap().until, world.now().plus(seconds(9)));
    assert_eq!(returns(&world.admit(&mail, None)), Some(HeldReason::Hold));
    // From here on the store knows it, and decides.
    world.park(&mail, None);
    assert_eq!(returns(&world.admit(&mail, None)), Some(HeldReason::Parked));
    world.change(&mail, |kind| kind.parked = None);
    drop(run(world.admit(&mail, None)));
}

#[test]
fn a_job_calls_the_targets_that_are_not_held() {
    let mut world = World::new(10, &[]);
    world.put("hook", KindSettings::default());
    let hook = KindName::parse("hook").unwrap();
    let targets = ["a", "b"].map(str::to_owned);
    let open = |targets: &[String]| world.admission.open_targets(&hook, targets, || 7);
    assert_eq!(open(&targets), Ok(vec![0, 1]));
    world.hold("a", &hook, seconds(10));
    assert_eq!(open(&targets), Ok(vec![1]));
    let wait = open(&targets[..1]).unwrap_err();
    assert!(wait >= seconds(10) && wait < seconds(20), "{wait:?}");
    world.hold("b", &hook, seconds(4));
    let wait = open(&targets).unwrap_err();
    assert!(wait >= seconds(4) && wait < seconds(8), "the first that is open again: {wait:?}");
    drop(run(world.admit(&hook, None)));
}
