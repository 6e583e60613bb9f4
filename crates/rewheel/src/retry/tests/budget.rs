//! Tests of how a call uses the retry budget and the statistics.

use super::*;
use crate::{Refused, RetryBudget, Statistics};

fn budget_of(retries: u32) -> RetryBudget {
    RetryBudget::ratio(0.0).floor_per_second(0).burst(retries).build()
}

fn fail(budget: &RetryBudget, attempts_max: u32) -> Error<Failure> {
    let policy = Retry::fixed(seconds(1)).attempts_max(attempts_max);
    let call = (|| Err::<(), _>(Failure::Busy)).retry(policy).clock(ManualClock::new());
    call.retry_budget(budget).call().unwrap_err()
}

#[test]
fn an_empty_budget_ends_the_retries_but_not_the_first_attempts() {
    let budget = budget_of(3);
    assert_eq!(fail(&budget, 3).reason(), GiveUpReason::AttemptsExhausted);
    assert_eq!(budget.balance(), 1);
    let error = fail(&budget, 3);
    assert_eq!((error.reason(), error.attempts()), (GiveUpReason::BudgetExhausted, 2));
    assert_eq!((error.elapsed(), error.last()), (seconds(1), Some(&Failure::Busy)));
    for _ in 0..100 {
        let error = fail(&budget, 3);
        assert_eq!((error.reason(), error.attempts()), (GiveUpReason::BudgetExhausted, 1));
    }
    let call = (|| async { Ok::<_, Failure>(1) }).retry(EVERY_SECOND).retry_budget(&budget);
    assert_eq!(finish(call.into_future()), Ok(1));
}

#[test]
fn only_retries_that_happen_are_charged() {
    let budget = budget_of(5);
    let charged = |policy: Retry, turns: &[Turn]| {
        let before = budget.balance();
        let script = Script::new(turns);
        let call = (|attempt| script.patient(attempt)).retry(policy).clock(&script.clock);
        let _ = finish(script.clock.drive(call.retry_budget(&budget)));
        before - budget.balance()
    };
    assert_eq!(charged(EVERY_SECOND, &[DONE]), 0);
    assert_eq!(charged(EVERY_SECOND, &[GONE]), 0, "a failure that is not repeated");
    assert_eq!(charged(EVERY_SECOND.deadline(seconds(1)), &[BUSY]), 0, "no time was left");
    assert_eq!(charged(EVERY_SECOND.attempts_max(1), &[BUSY]), 0, "no attempt was left");
    assert_eq!(charged(EVERY_SECOND, &[BUSY, GONE]), 1);
    assert_eq!(charged(EVERY_SECOND, &[BUSY, BUSY, DONE]), 2);
}

#[test]
fn an_open_breaker_is_neither_retried_nor_charged() {
    let budget = budget_of(5);
    let breaker = crate::CircuitBreaker::consecutive(1).build();
    breaker.force_open();
    let call = (|| breaker.call_blocking(|| Ok::<_, Failure>(()))).retry(EVERY_SECOND);
    let error = call.retry_budget(&budget).call().unwrap_err();
    assert_eq!((error.attempts(), budget.balance()), (1, 5));
    assert_eq!(error.into_last().unwrap().reason(), GiveUpReason::CircuitOpen);

    let open = Refused::new(GiveUpReason::CircuitOpen, Some(seconds(1)));
    let call = (|| Err::<(), _>(open)).retry(EVERY_SECOND).retry_budget(&budget);
    assert_eq!((call.call().unwrap_err().attempts(), budget.balance()), (1, 5));
}

#[test]
fn a_retry_that_is_left_to_the_outer_one_is_charged_once() {
    let budget = budget_of(5);
    let clock = ManualClock::new();
    let inner = || {
        let call = (|| Err::<(), _>(Failure::Busy)).retry(EVERY_SECOND).clock(&clock);
        call.retry_budget(&budget).call()
    };
    inner.retry(Retry::fixed(seconds(1))).clock(&clock).retry_budget(&budget).call().unwrap_err();
    assert_eq!(budget.balance(), 3, "two retries, each charged by the one that made it");
}

#[test]
fn statistics_count_calls_attempts_and_waits() {
    let clock = ManualClock::new();
    let statistics = Statistics::with_clock(&clock);
    let run = |policy: Retry, turns: &[Turn]| {
        let script = Script { clock: clock.clone(), ..Script::new(turns) };
        let call = (|attempt| script.patient(attempt)).retry(policy).clock(&clock);
        let _ = finish(clock.drive(call.statistics(&statistics)));
    };
    assert_eq!(statistics.summary().last_failure, None);

    run(EVERY_SECOND, &[BUSY, BUSY, DONE]);
    clock.advance(seconds(10));
    run(EVERY_SECOND, &[GONE]);
    clock.advance(seconds(5));
    let summary = statistics.summary();
    assert_eq!((summary.calls, summary.successes), (2, 1));
    assert_eq!((summary.attempts, summary.retries), (4, 2));
    assert_eq!((summary.waited, summary.failure_ratio), (seconds(2), 0.75));
    assert_eq!(summary.last_success, Some(seconds(15)));
    assert_eq!(summary.last_failure, Some(seconds(5)));
    assert_eq!((summary.success_rate(), summary.retries_per_call()), (0.5, 1.0));
}

#[test]
fn statistics_count_an_attempt_however_it_was_cut() {
    for policy in [
        Retry::fixed(seconds(1)).attempts_max(1).attempt_timeout(seconds(2)),
        Retry::fixed(seconds(1)).attempts_max(1).deadline(seconds(2)),
    ] {
        let (script, statistics) = (Script::new(&[DONE.taking(seconds(9))]), Statistics::new());
        let call = (|attempt| script.patient(attempt)).retry(policy).clock(&script.clock);
        finish(script.clock.drive(call.statistics(&statistics))).unwrap_err();
        let summary = statistics.summary();
        assert_eq!((summary.calls, summary.attempts), (1, 1), "{policy}");
        assert_eq!(summary.failure_ratio, 1.0, "{policy}");
    }
}

#[test]
fn an_adaptive_backoff_goes_by_the_statistics_of_all_calls() {
    let policy = "3 attempts, adaptive 1s stretch x11 max 1h jitter none".parse().unwrap();
    let statistics = Statistics::new();
    for _ in 0..127 {
        (|| Ok::<_, Failure>(())).retry(EVERY_SECOND).statistics(&statistics).call().unwrap();
    }
    let wait = |statistics: &Statistics| {
        let script = Script::new(&[BUSY, DONE]);
        let call = (|attempt| script.blocking(attempt)).retry(policy).clock(&script.clock);
        call.statistics(statistics).call().unwrap();
        script.clock.elapsed()
    };
    let healthy = wait(&statistics);
    assert!((seconds(1)..millis(1_100)).contains(&healthy), "{healthy:?} for 1 of 128");
    assert_eq!(wait(&Statistics::new()), seconds(11), "all that is known has failed");
}
