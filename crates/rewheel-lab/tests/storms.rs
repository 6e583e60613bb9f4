//! Properties that every simulated storm must have.

#![expect(clippy::unwrap_used, reason = "test code")]

use rewheel::{Pipeline, millis, seconds};
use rewheel_lab::{Dependency, Fault, Outcome, Policy, Storm, StormError};

/// A dependency that serves 1,000 requests per second and is called 500 times per second.
fn storm() -> Storm {
    Storm::new(Dependency::new(1_000, millis(20)), 500).clients(50).lasts(seconds(90)).seed(17)
}

fn hung() -> Storm {
    storm().outage(seconds(20)..seconds(40), Fault::Hangs).unwrap()
}

fn run(storm: &Storm, policy: &str) -> Outcome {
    let policy: Policy = policy.parse().unwrap();
    storm.run(|client| policy.pipeline(client, seconds(1)))
}

#[test]
fn where_nothing_is_wrong_each_call_is_one_request() {
    let calm = run(&storm(), "5 attempts, exponential 100ms");
    assert_eq!((calm.succeeded(), calm.amplification()), (calm.offered(), 1.0));
    assert_eq!((calm.wasted(), calm.refused(), calm.recovered_after()), (0, 0, None));
    let rate = calm.offered() as f64 / 90.0;
    assert!((480.0..520.0).contains(&rate), "{rate}");
}

#[test]
fn the_same_seed_is_the_same_storm() {
    let policy = "5 attempts, exponential 100ms, budget 10%, breaker";
    assert_eq!(run(&hung(), policy), run(&hung(), policy));
    assert_ne!(run(&hung(), policy), run(&hung().seed(18), policy));
}

/// After the outage, retries of clients whose requests are served too late keep the overload going.
#[test]
fn eager_retries_outlive_the_outage() {
    let eager = run(&hung(), "10 attempts, fixed 100ms");
    assert_eq!(eager.recovered_after(), None);
    assert!(eager.amplification() > 3.0 && eager.peak() > 5.0, "{}", eager.amplification());
    assert!(eager.wasted() * 10 > eager.served() * 7, "most of its work is wasted");
    assert!(eager.served() <= 90 * 1_050, "it cannot do more than it can: {}", eager.served());
}

#[test]
fn a_budget_ends_the_storm_and_a_breaker_ends_it_sooner() {
    let plain = run(&hung(), "none");
    let budget = run(&hung(), "10 attempts, fixed 100ms, budget 10% floor 1");
    let both = run(&hung(), "10 attempts, fixed 100ms, budget 10% floor 1, breaker");
    assert!(budget.amplification() < 1.3, "{}", budget.amplification());
    assert!(both.recovered_after().unwrap() < budget.recovered_after().unwrap());
    assert!(both.recovered_after().unwrap() < plain.recovered_after().unwrap());
    assert!(both.refused() > 0 && both.wasted() < plain.wasted());
}

#[test]
fn a_storm_of_few_calls_is_over_too() {
    let rare = Storm::new(Dependency::new(10, millis(20)), 1).clients(2).lasts(seconds(60));
    let rare = rare.outage(seconds(10)..seconds(20), Fault::Fails).unwrap();
    assert!(run(&rare, "none").recovered_after().unwrap() < seconds(5));
}

#[test]
fn who_is_asked_for_more_than_it_can_do_does_what_it_can() {
    let overload = Storm::new(Dependency::new(500, millis(20)).sheds_after(millis(200)), 1_000);
    let outcome = overload.lasts(seconds(60)).run(|_| Pipeline::new().attempt_timeout(seconds(1)));
    let good = outcome.succeeded() as f64 / 60.0;
    assert!((480.0..520.0).contains(&good), "{good}");
}

#[test]
fn retries_without_a_pause_are_cut_before_they_fill_the_machine() {
    let down = storm().lasts(seconds(1_000)).outage(seconds(1)..seconds(900), Fault::Fails);
    let mad = run(&down.unwrap().requests_max(100_000), "1000 attempts, fixed 1ns");
    assert!(mad.cut_at().is_some() && mad.attempts() < 102_000, "{}", mad.attempts());
}

#[test]
fn what_cannot_be_is_refused() {
    let why = |storm: Result<Storm, StormError>| storm.unwrap_err().to_string();
    let outage = |from, to, fault| storm().outage(seconds(from)..seconds(to), fault);
    assert!(why(outage(5, 5, Fault::Hangs)).contains("must end after it starts"));
    assert!(why(outage(1, 2, Fault::Slow(0.5))).contains("a factor of 1 to 1000"));
    let twice = outage(1, 5, Fault::Fails).unwrap().outage(seconds(4)..seconds(6), Fault::Hangs);
    assert!(why(twice).contains("two outages overlap"));
    assert!(why(outage(1, 100_000, Fault::Hangs)).contains("within 24h"));
    let short = outage(20, 89, Fault::Hangs).unwrap().check().unwrap_err();
    assert!(short.to_string().contains("5s after the outage ends"), "{short}");
    for clients in [0, 100_001] {
        assert!(storm().clients(clients).check().is_err(), "{clients}");
    }
    let all = Storm::new(Dependency::new(u32::MAX, seconds(3_600)), 1).check().unwrap_err();
    assert!(all.to_string().contains("at most 100000 requests"), "{all}");
    assert!(
        storm()
            .lasts(seconds(10_000))
            .check()
            .unwrap_err()
            .to_string()
            .contains("1 to 1000000 calls")
    );
    assert!(Storm::new(Dependency::new(0, millis(1)), 1).check().is_err());
}
