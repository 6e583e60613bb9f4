//! Tests of failure rules.

use super::{Action, FailureRule, FailureRules, Sticky};
use crate::decision::{Decision, DueReason, GiveUp, History, Policy, Report};
use crate::failure::Failure;
use crate::limits::Limits;
use proptest::prelude::*;
use rewheel::{Backoff, Category, Random, StatusSet, Verdict, millis, minutes, seconds};
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

fn conflict() -> Failure {
    Failure::new(Category::Rejected, Some("409"), "Order 17 is being EDITED")
}

fn stopped() -> Report {
    Report::AttemptFailed { verdict: Verdict::Stop, failure: conflict() }
}

fn retry(after: Duration, sticky: bool) -> Decision {
    Decision::Retry { after, sticky, because: DueReason::Backoff }
}

fn decided(router: &FailureRules, report: &Report, history: &History) -> Decision {
    router.route(report, &POLICY).decide(history, &Random::seeded(1))
}

/// Checks what a router with one rule for all failures decides about the first attempt.
#[track_caller]
fn check(action: Action, report: &Report, expected: &Decision) {
    let router = FailureRules::new().rule(FailureRule::new(action));
    assert_eq!(decided(&router, report, &History::of_attempt(1)), *expected, "{action}");
}

#[track_caller]
fn fits(rule: &FailureRule, failure: &Failure, expected: bool) {
    assert_eq!(rule.fits(failure), expected, "{rule:?} and {failure}");
}

#[test]
fn every_action_leads_to_its_decision() {
    let failure = conflict();
    let table = [
        (Action::Retry, retry(seconds(5), true)),
        (Action::RetryAfter(seconds(2)), retry(seconds(2), true)),
        (Action::RetryAfter(seconds(30)), retry(seconds(30), false)),
        (Action::RetrySlower(4), retry(seconds(20), false)),
        (
            Action::Snooze(minutes(5)),
            Decision::Snooze { after: minutes(5), because: DueReason::Snooze },
        ),
        (Action::Dead, Decision::Dead { failure: failure.clone() }),
        (Action::Fail, Decision::Fail { failure }),
        (Action::Pause, Decision::Pause),
        (Action::Cancel, Decision::Cancel),
    ];
    for (action, expected) in table {
        check(action, &stopped(), &expected);
    }
}

#[test]
fn what_no_rule_fits_goes_by_its_policy() {
    let router =
        FailureRules::new().rule(FailureRule::new(Action::Pause).on_category(Category::Timeout));
    let first = History::of_attempt(1);
    let dead = Decision::Dead { failure: conflict() };
    assert_eq!(decided(&router, &stopped(), &first), dead);
    let passing = Report::AttemptFailed { verdict: Verdict::Retry, failure: conflict() };
    assert_eq!(decided(&router, &passing, &first), retry(seconds(5), true));
    assert_eq!(decided(&router, &passing, &History::of_attempt(3)), dead);
    assert_eq!(router.route(&passing, &POLICY).rule, None);
}

#[test]
fn the_first_rule_that_fits_is_obeyed() {
    let router = FailureRules::new()
        .rule(FailureRule::new(Action::Pause).on_code("404"))
        .rule(FailureRule::new(Action::Fail).on_category(Category::Rejected))
        .rule(FailureRule::new(Action::Cancel));
    let report = stopped();
    let routed = router.route(&report, &POLICY);
    assert_eq!(routed.rule, Some(1));
    let expected = Decision::Fail { failure: conflict() };
    assert_eq!(routed.decide(&History::of_attempt(1), &Random::seeded(1)), expected);
}

#[test]
fn what_a_handler_says_outright_stands() {
    let said = [
        (Report::Done, Decision::Succeed),
        (Report::FailJob(conflict()), Decision::Fail { failure: conflict() }),
        (Report::Dead(conflict()), Decision::Dead { failure: conflict() }),
        (Report::Pause, Decision::Pause),
        (Report::Cancel, Decision::Cancel),
        (
            Report::Snooze(seconds(7)),
            Decision::Snooze { after: seconds(7), because: DueReason::Snooze },
        ),
    ];
    for action in [Action::Retry, Action::Dead, Action::Cancel, Action::Snooze(minutes(1))] {
        for (report, expected) in &said {
            check(action, report, expected);
        }
    }
}

#[test]
fn attempts_run_out_under_every_retry() {
    for action in [Action::Retry, Action::RetryAfter(seconds(1)), Action::RetrySlower(2)] {
        let router = FailureRules::new().rule(FailureRule::new(action));
        let last = decided(&router, &stopped(), &History::of_attempt(3));
        assert_eq!(last, Decision::Dead { failure: conflict() }, "{action}");
    }
    let router = FailureRules::new().rule(FailureRule::new(Action::Snooze(seconds(1))));
    let snoozed = decided(&router, &stopped(), &History::of_attempt(u32::MAX));
    assert_eq!(snoozed, Decision::Snooze { after: seconds(1), because: DueReason::Snooze });
}

#[test]
fn a_deadline_that_comes_first_ends_every_wait() {
    let left = |left| History { deadline_in: Some(left), ..History::of_attempt(1) };
    let waits = [
        (Action::Retry, 5),
        (Action::RetryAfter(seconds(9)), 9),
        (Action::RetrySlower(3), 15),
        (Action::Snooze(seconds(7)), 7),
    ];
    for (action, wait) in waits {
        let router = FailureRules::new().rule(FailureRule::new(action));
        let in_time = decided(&router, &stopped(), &left(millis(wait * 1_000 + 1)));
        assert_eq!(in_time.wait().map(|(after, _)| after), Some(seconds(wait)), "{action}");
        let late = decided(&router, &stopped(), &left(seconds(wait)));
        let category = late.failure().map(Failure::category);
        assert_eq!((late.as_str(), category), ("dead", Some(Category::Deadline)), "{action}");
    }
}

#[test]
fn no_rule_makes_a_retry_wait_longer_than_the_limit() {
    check(Action::RetryAfter(minutes(2)), &stopped(), &retry(seconds(60), false));
    check(Action::RetrySlower(1_000), &stopped(), &retry(seconds(60), false));
    // A longer backoff is not shortened.
    let slow = Policy { backoff: Backoff::fixed(minutes(10)), ..POLICY };
    let router = FailureRules::new().rule(FailureRule::new(Action::RetrySlower(3)));
    let report = stopped();
    let routed = router.route(&report, &slow);
    let decision = routed.decide(&History::of_attempt(1), &Random::seeded(1));
    assert_eq!(decision, retry(minutes(10), false));
}

#[test]
fn a_callee_that_asks_for_more_time_gets_it() {
    let asked =
        |time| Report::AttemptFailed { verdict: Verdict::RetryAfter(time), failure: conflict() };
    let wait = |after, sticky| Decision::Retry { after, sticky, because: DueReason::RetryAfter };
    check(Action::Retry, &asked(seconds(30)), &wait(seconds(30), false));
    check(Action::RetryAfter(seconds(2)), &asked(seconds(30)), &wait(seconds(30), false));
    check(Action::RetryAfter(seconds(9)), &asked(seconds(1)), &wait(seconds(9), true));
    check(Action::RetrySlower(2), &asked(seconds(8)), &wait(seconds(16), false));
}

#[test]
fn a_rule_says_whether_a_retry_stays_with_its_holder() {
    let table = [
        (Sticky::ByWait, 10, true),
        (Sticky::ByWait, 11, false),
        (Sticky::Yes, 60, true),
        (Sticky::No, 1, false),
        (Sticky::No, 0, false),
    ];
    for (sticky, wait, stays) in table {
        let rule = FailureRule::new(Action::RetryAfter(seconds(wait))).sticky(sticky);
        let decision =
            decided(&FailureRules::new().rule(rule), &stopped(), &History::of_attempt(1));
        assert_eq!(decision, retry(seconds(wait), stays), "{sticky:?} {wait}");
    }
}

#[test]
fn a_rule_looks_at_category_code_status_and_message() {
    let rule = || FailureRule::new(Action::Dead);
    let (busy, plain) = (
        Failure::new(Category::Transient, Some("503"), "busy"),
        Failure::new(Category::Io, None, "reset"),
    );
    fits(&rule(), &plain, true);
    let either = rule().on_category(Category::Io).on_category(Category::Rejected);
    fits(&either, &plain, true);
    fits(&either, &conflict(), true);
    fits(&either, &busy, false);
    fits(&rule().on_code("409"), &conflict(), true);
    fits(&rule().on_code("40"), &conflict(), false);
    fits(&rule().on_code("40*"), &conflict(), true);
    fits(&rule().on_code("409*"), &conflict(), true);
    fits(&rule().on_code("*"), &conflict(), true);
    fits(&rule().on_code("*"), &plain, false);
    fits(&rule().on_code("503").on_code("409"), &conflict(), true);
    fits(&rule().on_status(StatusSet::EMPTY.with(409)), &conflict(), true);
    fits(&rule().on_status(StatusSet::EMPTY.with_class(5)), &conflict(), false);
    fits(&rule().on_status(StatusSet::EMPTY.with_class(5)), &busy, true);
    fits(&rule().on_status(StatusSet::EMPTY.with_class(5)), &plain, false);
    let longer = Failure::new(Category::Io, Some("0503"), "");
    fits(&rule().on_status(StatusSet::EMPTY.with(503)), &longer, false);
    fits(&rule().on_message("being edited"), &conflict(), true);
    fits(&rule().on_message("ORDER 17"), &conflict(), true);
    fits(&rule().on_message("order 18"), &conflict(), false);
    // All conditions of a rule must match.
    fits(&rule().on_code("409").on_message("edited"), &conflict(), true);
    fits(&rule().on_code("409").on_message("deleted"), &conflict(), false);
    fits(&rule().on_code("409").on_category(Category::Io), &conflict(), false);
}

#[test]
fn actions_are_read_and_written() {
    let table = [
        ("retry", Action::Retry),
        ("retry 30s", Action::RetryAfter(seconds(30))),
        ("retry 1m30s", Action::RetryAfter(seconds(90))),
        ("retry x4", Action::RetrySlower(4)),
        ("snooze 5m", Action::Snooze(minutes(5))),
        ("dead", Action::Dead),
        ("fail", Action::Fail),
        ("pause", Action::Pause),
        ("cancel", Action::Cancel),
    ];
    for (text, action) in table {
        assert_eq!(text.parse(), Ok(action));
        assert_eq!(action.to_string(), text);
    }
    assert_eq!(" retry  30s ".parse(), Ok(Action::RetryAfter(seconds(30))));
}

#[test]
fn what_is_no_action_says_what_is() {
    let says = |text: &str| text.parse::<Action>().unwrap_err().to_string();
    for bad in ["", "snoze 5m", "Retry", "dead 5m", "retry 5m x4", "retry after 5m"] {
        assert!(says(bad).contains("is not one of retry, retry 30s"), "{}", says(bad));
    }
    assert!(says("retry 30").contains("`30` is not a duration"));
    assert!(says("snooze soon").contains("`soon` is not a duration"));
    assert!(says("snooze").contains("write `snooze 5m`"));
    assert!(
        says("retry x1.5")
            .contains("`x1.5` is not a factor: write x and a whole number, such as x4")
    );
    assert!(says("retry x-1").contains("`x-1` is not"));
}

#[test]
fn a_rule_that_makes_no_sense_is_named() {
    let good = || FailureRules::new().rule(FailureRule::new(Action::Retry).on_code("a"));
    assert_eq!(good().check(), Ok(()));
    let says = |rule: FailureRule| good().rule(rule).check().unwrap_err().to_string();
    let rule = FailureRule::new;
    let beside = says(rule(Action::Dead).on_code("a*b"));
    assert_eq!(beside, "rule 2: code: `a*b`: a `*` may only be the last character");
    assert_eq!(says(rule(Action::Dead).on_code("")), "rule 2: code: must be 1 to 64 bytes");
    assert_eq!(says(rule(Action::Dead).on_message("")), "rule 2: message: must be 1 to 256 bytes");
    let long = "m".repeat(Limits::ROUTE_MESSAGE_BYTES_MAX + 1);
    assert_eq!(
        says(rule(Action::Dead).on_message(&long)),
        "rule 2: message: must be 1 to 256 bytes"
    );
    for (factor, text) in [(0, "x0"), (1, "x1"), (1_001, "x1001")] {
        let expected = format!("rule 2: then: `retry {text}`: must be x2 to x1000");
        assert_eq!(says(rule(Action::RetrySlower(factor))), expected);
    }
    for (wait, text) in [(0, "0s"), (99, "99ms")] {
        let hasty = says(rule(Action::Snooze(millis(wait))));
        let expected = format!(
            "rule 2: then: `snooze {text}`: must be 100ms or longer, because a snooze does not count as an attempt"
        );
        assert_eq!(hasty, expected);
    }
    assert_eq!(good().rule(rule(Action::Snooze(millis(100)))).check(), Ok(()));
    let years = says(rule(Action::Snooze(Limits::SNOOZE_MAX + seconds(1))));
    assert!(years.contains("must be 30d or shorter"), "{years}");
    let stuck = says(rule(Action::Dead).sticky(Sticky::No));
    assert_eq!(stuck, "rule 2: sticky: applies only to retry, not to `dead`");
    let hidden = good().rule(rule(Action::Dead)).rule(rule(Action::Fail).on_code("b")).check();
    let hidden = hidden.unwrap_err().to_string();
    assert_eq!(hidden, "rule 3: is never reached: rule 2 matches every failure");
    let many = (0..=Limits::ROUTES_MAX)
        .fold(FailureRules::new(), |router, _| router.rule(rule(Action::Retry).on_code("a")));
    assert_eq!(
        many.check().unwrap_err().to_string(),
        "rule 65: is above the limit: there are 65 rules, and the limit is 64"
    );
}

#[test]
fn a_wait_that_would_be_cut_is_named() {
    let router = FailureRules::new().rule(FailureRule::new(Action::RetryAfter(seconds(61))));
    let error = router.check_waits(&POLICY).unwrap_err().to_string();
    assert_eq!(error, "rule 1: then: `retry 1m1s` is longer than retry_after_max (1m)");
    let router = FailureRules::new().rule(FailureRule::new(Action::RetryAfter(seconds(60))));
    assert_eq!(router.check_waits(&POLICY), Ok(()));
}

proptest! {
    #[test]
    fn no_rule_breaks_a_limit(
        attempt in 1..6_u32, wait in 0..200_u64, factor in 1..2_000_u32, left in 0..200_u64,
        which in 0..4_usize, asked in proptest::option::of(0..200_u64),
    ) {
        let actions = [
            Action::Retry,
            Action::RetryAfter(seconds(wait)),
            Action::RetrySlower(factor),
            Action::Snooze(seconds(wait)),
        ];
        let verdict = asked.map_or(Verdict::Retry, |asked| Verdict::RetryAfter(seconds(asked)));
        let report = Report::AttemptFailed { verdict, failure: conflict() };
        let history = History { deadline_in: Some(seconds(left)), ..History::of_attempt(attempt) };
        let router = FailureRules::new().rule(FailureRule::new(actions[which]));
        let decision = decided(&router, &report, &history);
        if let Some((after, _)) = decision.wait() {
            prop_assert!(after < seconds(left));
        }
        if let Decision::Retry { after, .. } = decision {
            prop_assert!(attempt < POLICY.attempts_max && after <= POLICY.retry_after_max);
        }
    }
}
