//! Tests of the scenarios.

use super::{Scenario, compare, recovery};
use crate::contention::Contention;
use crate::report::{Recovered, Report, Row};
use rewheel::seconds;

#[track_caller]
fn row<'a>(report: &'a Report, policy: &str) -> &'a Row {
    let mut rows = report.rows.iter().filter(|row| row.policy == policy);
    rows.next().unwrap_or_else(|| panic!("{policy} is none of {:?}", report.rows.len()))
}

#[test]
fn metastable_retries_hold_the_dependency_down_and_a_budget_lets_it_up() {
    let report = Scenario::metastable().run().unwrap();
    let stuck = row(&report, "10 attempts, fixed 100ms");
    assert_eq!(stuck.recovered, Recovered::Never);
    let after: u64 = stuck.seconds[100..120].iter().map(|second| second.succeeded).sum();
    let offered: u64 = stuck.seconds[100..120].iter().map(|second| second.offered).sum();
    assert!(after * 10 < offered, "75 s after the trigger {after} of {offered} succeed");
    let budget = row(&report, "4 attempts, exponential 100ms max 10s, budget 10% floor 1");
    assert!(budget.recovered.after().is_some() && budget.amplification < 1.5, "{budget:?}");
    assert!(report.findings[0].contains("keeps the dependency down"), "{:?}", report.findings);
}

#[test]
fn overload_is_survived_by_limits_of_the_clients() {
    let report = Scenario::overload().run().unwrap();
    let (none, bulkhead) = (row(&report, "none"), row(&report, "none, bulkhead 2"));
    let limited = row(&report, "none, limit 48/s");
    for spared in [bulkhead, limited] {
        assert!(spared.success > none.success, "{}: {}", spared.policy, spared.success);
        assert!(spared.wasted < 0.01, "{}: {}", spared.policy, spared.wasted);
    }
}

#[test]
fn more_attempts_help_against_independent_failures() {
    let report = Scenario::flaky().run().unwrap();
    assert!(report.rows[..4].is_sorted_by(|a, b| a.success < b.success));
    assert!(report.rows[..4].is_sorted_by(|a, b| a.amplification < b.amplification));
    assert!(report.rows.iter().all(|row| row.recovered == Recovered::NoTrouble));
    assert!(report.findings[0].contains("has the most successes"), "{:?}", report.findings);
}

/// What each policy of the library is for shows in one of the scenarios.
#[test]
fn hedge_throttle_and_adaptive_limit_have_their_effect() {
    let policies = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
    let slow = Scenario {
        failure_ratio: 0.0,
        policies: policies(&["none", "none, hedge 60ms"]),
        ..Scenario::flaky()
    };
    let report = slow.run().unwrap();
    let (none, hedge) = (row(&report, "none"), row(&report, "none, hedge 60ms"));
    assert!(hedge.p99.unwrap() < none.p99.unwrap().mul_f64(0.8), "{:?} {:?}", hedge.p99, none.p99);
    assert!((1.02..1.15).contains(&hedge.amplification), "{}", hedge.amplification);

    let report = Scenario::overload().run().unwrap();
    let (none, adaptive) = (row(&report, "none"), row(&report, "none, adaptive 1..50"));
    assert!(adaptive.success > none.success && adaptive.wasted < none.wasted / 2.0, "{adaptive:?}");

    let report = Scenario::metastable().run().unwrap();
    let stuck = row(&report, "4 attempts, exponential 100ms max 10s");
    let throttled = row(&report, "4 attempts, exponential 100ms max 10s, throttle 2");
    assert!(throttled.amplification < stuck.amplification, "{}", throttled.amplification);
    assert!(throttled.recovered.after().is_some(), "{:?}", throttled.recovered);
}

/// A hedge in each of three services: the calls end, and the requests do not multiply without a limit.
#[test]
fn services_in_a_chain_can_hedge() {
    let policies = vec!["none, hedge 60ms".parse().unwrap()];
    let fleet = Scenario { outage: None, lasts: seconds(10), policies, ..Scenario::fleet() };
    let latency = Scenario::flaky().latency;
    let report = Scenario { latency, ..fleet }.run().unwrap();
    assert!(report.rows[0].success > 0.99, "{}", report.rows[0].success);
    assert!((1.0..1.6).contains(&report.rows[0].amplification), "{}", report.rows[0].amplification);
}

#[test]
fn three_layers_of_retries_multiply_without_the_guard() {
    let scenario = Scenario {
        outage: None,
        failure_ratio: 1.0,
        capacity: 10_000,
        lasts: seconds(10),
        ..Scenario::fleet()
    };
    let report = scenario.run().unwrap();
    let policy = "3 attempts, exponential 100ms max 10s";
    let with = row(&report, &format!("{policy}; with guard"));
    let without = row(&report, &format!("{policy}; without guard"));
    assert_eq!(with.amplification, 3.0);
    assert_eq!(without.amplification, 27.0);
    assert_eq!(row(&report, "none").amplification, 1.0);
}

#[test]
fn the_guard_helps_a_fleet_to_recover() {
    let report = Scenario::fleet().run().unwrap();
    let policy = "3 attempts, exponential 100ms max 10s";
    let with = row(&report, &format!("{policy}; with guard"));
    let without = row(&report, &format!("{policy}; without guard"));
    assert!(with.peak() < without.peak(), "{} and {}", with.peak(), without.peak());
    assert!(with.wasted < without.wasted, "{} and {}", with.wasted, without.wasted);
}

#[test]
fn a_comparison_says_which_is_which() {
    let report = compare(0).unwrap();
    let of = |failures: &str, policy: &str| row(&report, &format!("{failures}: {policy}"));
    let calm = "independent failures";
    assert!(of(calm, "no retry").success < 0.96 && of(calm, "retry").success > 0.999);
    assert!(of(calm, "retry + budget + breaker").success > 0.995);
    assert!(of("outage", "retry").success < of("outage", "no retry").success);
    assert!(of("outage", "retry + budget + breaker").success > of("outage", "no retry").success);
    assert!(report.findings[0].starts_with("Independent failures: "), "{:?}", report.findings);
    assert!(report.findings[1].starts_with("Outage: "), "{:?}", report.findings);
}

#[test]
fn contention_has_the_rows_of_the_issue_in_their_order() {
    let report = Contention::new(10, 20, 0).unwrap().report();
    let names: Vec<_> = report.rows.iter().map(|row| row.policy.as_str()).collect();
    assert_eq!(
        names,
        ["no backoff", "exponential without jitter", "equal", "full", "decorrelated"]
    );
    assert!(report.rows.iter().all(|row| row.success == 1.0 && row.completed.is_some()));
}

#[test]
fn recovery_compares_three_ways_of_parking() {
    let report = recovery().report().unwrap();
    assert_eq!((report.rows.len(), report.findings.len()), (3, 3));
    assert!(report.rows.iter().all(|row| row.calls > 40_000.0));
}

#[test]
fn what_cannot_be_is_refused() {
    let why = |scenario: Scenario| scenario.run().unwrap_err().to_string();
    assert!(why(Scenario { failure_ratio: 1.5, ..Scenario::flaky() }).contains("must be 0 to 1"));
    assert!(why(Scenario { timeout: seconds(0), ..Scenario::flaky() }).contains("longer than 0s"));
    let surge = Some((seconds(20)..seconds(10), 2.0));
    assert!(why(Scenario { surge, ..Scenario::overload() }).contains("the surge must end after"));
    let surge = Some((seconds(20)..seconds(30), -1.0));
    assert!(why(Scenario { surge, ..Scenario::overload() }).contains("a factor of 0 to 1000"));
}
