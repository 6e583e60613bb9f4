//! Tests of the decision table.

use super::{Decision, DueReason, GiveUp, History, Policy, Report, decide};
use crate::failure::Failure;
use crate::failure_rules::Sticky;
use proptest::prelude::*;
use rewheel::{Backoff, Category, Random, Verdict, millis, seconds};
use std::time::Duration;

const POLICY: Policy = Policy {
    attempts_max: 3,
    backoff: Backoff::fixed(seconds(5)),
    retry_after_max: seconds(60),
    backoff_factor: 1,
    sticky_max: seconds(10),
    sticky: Sticky::ByWait,
    on_give_up: GiveUp::Dead,
};

fn busy() -> Failure {
    Failure::new(Category::Transient, Some("503"), "busy")
}

fn failed(verdict: Verdict) -> Report {
    Report::AttemptFailed { verdict, failure: busy() }
}

fn retry(after: Duration, sticky: bool, because: DueReason) -> Decision {
    Decision::Retry { after, sticky, because }
}

fn dead() -> Decision {
    Decision::Dead { failure: busy() }
}

#[track_caller]
fn check(report: &Report, policy: &Policy, history: &History, expected: &Decision) {
    assert_eq!(decide(report, policy, history, &Random::seeded(1)), *expected);
}

#[test]
fn what_the_runner_decides_outright_is_decided() {
    let first = History::of_attempt(1);
    check(&Report::Done, &POLICY, &first, &Decision::Succeed);
    check(&Report::FailJob(busy()), &POLICY, &first, &Decision::Fail { failure: busy() });
    let lenient = Policy { on_give_up: GiveUp::Fail, ..POLICY };
    check(&Report::Dead(busy()), &lenient, &first, &dead());
    check(&Report::Pause, &POLICY, &first, &Decision::Pause);
    check(&Report::Cancel, &POLICY, &first, &Decision::Cancel);
}

#[test]
fn a_snooze_never_runs_out_of_attempts() {
    let snoozed = Decision::Snooze { after: seconds(7), because: DueReason::Snooze };
    for attempt in [1, 3, u32::MAX] {
        check(&Report::Snooze(seconds(7)), &POLICY, &History::of_attempt(attempt), &snoozed);
    }
}

#[test]
fn a_failure_is_retried_until_the_attempts_run_out() {
    let report = failed(Verdict::Retry);
    for attempt in [1, 2] {
        let again = retry(seconds(5), true, DueReason::Backoff);
        check(&report, &POLICY, &History::of_attempt(attempt), &again);
    }
    check(&report, &POLICY, &History::of_attempt(3), &dead());
    check(&report, &POLICY, &History::of_attempt(u32::MAX), &dead());
    let none = Policy { attempts_max: 0, ..POLICY };
    check(&report, &none, &History::of_attempt(1), &dead());
}

#[test]
fn what_cannot_be_helped_is_not_retried() {
    check(&failed(Verdict::Stop), &POLICY, &History::of_attempt(1), &dead());
    let lenient = Policy { on_give_up: GiveUp::Fail, ..POLICY };
    let fail = Decision::Fail { failure: busy() };
    check(&failed(Verdict::Stop), &lenient, &History::of_attempt(1), &fail);
    check(&failed(Verdict::Retry), &lenient, &History::of_attempt(3), &fail);
}

#[test]
fn only_a_short_wait_stays_with_the_holder() {
    let wait = |delay| Policy { backoff: Backoff::fixed(delay), ..POLICY };
    let first = History::of_attempt(1);
    for (delay, sticky) in [(seconds(10), true), (millis(10_001), false)] {
        let expected = retry(delay, sticky, DueReason::Backoff);
        check(&failed(Verdict::Retry), &wait(delay), &first, &expected);
    }
}

#[test]
fn a_callee_may_ask_for_patience_within_bounds() {
    let first = History::of_attempt(1);
    let asked = |seconds_| failed(Verdict::RetryAfter(seconds(seconds_)));
    check(&asked(30), &POLICY, &first, &retry(seconds(30), false, DueReason::RetryAfter));
    check(&asked(999_999_999), &POLICY, &first, &retry(seconds(60), false, DueReason::RetryAfter));
    check(&asked(0), &POLICY, &first, &retry(seconds(5), true, DueReason::RetryAfter));
}

#[test]
fn a_wait_that_ends_after_the_deadline_is_not_begun() {
    let left = |left| History { deadline_in: Some(left), ..History::of_attempt(1) };
    let again = retry(seconds(5), true, DueReason::Backoff);
    check(&failed(Verdict::Retry), &POLICY, &left(millis(5_001)), &again);
    let lenient = Policy { on_give_up: GiveUp::Fail, ..POLICY };
    for report in [failed(Verdict::Retry), Report::Snooze(seconds(5))] {
        let decision = decide(&report, &lenient, &left(seconds(5)), &Random::seeded(1));
        let Decision::Dead { failure } = decision else { panic!("{decision:?}") };
        assert_eq!(failure.category(), Category::Deadline);
        assert!(
            failure.message().starts_with("the deadline passes before the next attempt, due in 5s")
        );
    }
}

proptest! {
    #[test]
    fn the_same_input_leads_to_the_same_decision(
        attempt: u32, seed: u64, attempts_max: u32, ratio in 0.0..=1.0_f64, left in 0..100_000_u64,
    ) {
        let policy = Policy { attempts_max, ..Policy::default() };
        let history = History {
            attempt,
            previous: Some(millis(left / 2)),
            deadline_in: Some(millis(left)),
            failure_ratio: ratio,
        };
        let decided = [(); 2].map(|()| {
            decide(&failed(Verdict::Retry), &policy, &history, &Random::seeded(seed))
        });
        prop_assert_eq!(&decided[0], &decided[1]);
        if let Decision::Retry { after, sticky, .. } = decided[0] {
            prop_assert!(after < millis(left) && attempt < attempts_max.max(1));
            prop_assert_eq!(sticky, after <= policy.sticky_max);
        }
    }
}
