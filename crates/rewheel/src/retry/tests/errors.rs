//! Tests of the error of a call that was given up.

use super::*;
use crate::Refused;
use std::error::Error as _;

fn error(why: GiveUpReason, attempts: u32, last: Option<Failure>) -> Error<Failure> {
    Error::new(Refused::new(why, None), attempts, Duration::new(1, 234_567_890), last)
}

#[track_caller]
fn check_line(error: &Error<Failure>, expected: &str) {
    assert_eq!(error.to_string(), expected);
}

#[test]
fn prints_as_one_line() {
    let busy = Some(Failure::Busy);
    check_line(
        &error(GiveUpReason::AttemptsExhausted, 3, busy),
        "gave up after 3 attempts in 1s234ms: no attempts are left: busy",
    );
    check_line(&error(GiveUpReason::Stopped, 1, busy), "failed: busy");
    check_line(
        &error(GiveUpReason::Deadline, 2, None),
        "gave up after 2 attempts in 1s234ms: no time is left before the deadline",
    );
    check_line(
        &error(GiveUpReason::Stopped, 2, busy),
        "gave up after 2 attempts in 1s234ms: the failure is not retryable: busy",
    );
    check_line(
        &error(GiveUpReason::CircuitOpen, 0, None),
        "not attempted: the circuit breaker is open",
    );
    check_line(&error(GiveUpReason::Cancelled, 0, None), "not attempted: the call was cancelled");
}

#[test]
fn its_source_is_the_last_error() {
    let exhausted = error(GiveUpReason::AttemptsExhausted, 3, Some(Failure::Busy));
    let source = exhausted.source().unwrap();
    assert_eq!(source.downcast_ref::<Failure>(), Some(&Failure::Busy));
    assert!(error(GiveUpReason::Timeout, 1, None).source().is_none());
    assert_eq!(exhausted.into_last(), Some(Failure::Busy));
}

#[track_caller]
fn check_class(why: GiveUpReason, last: Option<Failure>, expected: Class) {
    assert_eq!(error(why, 1, last).classify(), expected, "{why:?}, {last:?}");
}

#[test]
fn what_was_given_up_stays_given_up() {
    let busy = Some(Failure::Busy);
    let stop = Class::stop(Category::Transient);
    check_class(GiveUpReason::AttemptsExhausted, busy, stop.clone());
    check_class(GiveUpReason::Deadline, busy, stop.clone());
    check_class(GiveUpReason::BudgetExhausted, busy, stop);
    // Here the dependency did not end the call.
    let refused = |class: Class, why| class.of_refusal(why);
    let open = refused(Class::stop(Category::CircuitOpen), GiveUpReason::CircuitOpen);
    check_class(GiveUpReason::CircuitOpen, busy, open.clone());
    check_class(GiveUpReason::Cancelled, busy, Class::stop(Category::Cancelled));
    check_class(GiveUpReason::Deadline, None, Class::stop(Category::Deadline));
    check_class(GiveUpReason::Cancelled, None, Class::stop(Category::Cancelled));
    check_class(GiveUpReason::CircuitOpen, None, open);
    let above = refused(Class::stop(Category::Rejected), GiveUpReason::AboveBurst);
    check_class(GiveUpReason::AboveBurst, None, above);
    check_class(GiveUpReason::AttemptsExhausted, None, Class::stop(Category::Unknown));
}

#[test]
fn what_was_not_repeated_yet_speaks_for_itself() {
    check_class(GiveUpReason::Stopped, Some(Failure::Busy), Class::retry(Category::Transient));
    check_class(GiveUpReason::Stopped, Some(Failure::Gone), Class::stop(Category::Rejected));
    check_class(GiveUpReason::Nested, Some(Failure::Busy), Class::retry(Category::Transient));
    check_class(GiveUpReason::Nested, None, Class::retry(Category::Unknown));
    check_class(GiveUpReason::Timeout, None, Class::retry(Category::Timeout));
    let limited = Class::retry(Category::Throttled).of_refusal(GiveUpReason::RateLimited);
    check_class(GiveUpReason::RateLimited, None, limited);
    let full = Class::retry(Category::BulkheadFull).of_refusal(GiveUpReason::BulkheadFull);
    check_class(GiveUpReason::BulkheadFull, None, full);
    let wait = Refused::new(GiveUpReason::RateLimited, Some(seconds(3)));
    let class = Class::retry_after(Category::Throttled, seconds(3));
    assert_eq!(wait.classify(), class.of_refusal(GiveUpReason::RateLimited));
}

#[test]
fn an_exhausted_retry_is_not_multiplied_by_one_around_it() {
    // Not nested as far as the library can see: the work was passed to another thread.
    let inner = || {
        let work = || {
            let call = (|| Err::<(), _>(Failure::Busy)).retry(Retry::fixed(Duration::ZERO));
            call.call()
        };
        std::thread::spawn(work).join().unwrap()
    };
    let error = inner.retry(EVERY_SECOND).clock(ManualClock::new()).call().unwrap_err();
    assert_eq!((error.reason(), error.attempts()), (GiveUpReason::Stopped, 1));
    assert_eq!(error.last().unwrap().attempts(), 3);
}

#[test]
fn every_reason_has_a_name_of_its_own() {
    let all = [
        GiveUpReason::Stopped,
        GiveUpReason::AttemptsExhausted,
        GiveUpReason::Deadline,
        GiveUpReason::Timeout,
        GiveUpReason::BudgetExhausted,
        GiveUpReason::CircuitOpen,
        GiveUpReason::RateLimited,
        GiveUpReason::AboveBurst,
        GiveUpReason::BulkheadFull,
        GiveUpReason::Cancelled,
        GiveUpReason::Nested,
    ];
    let names: std::collections::HashSet<_> = all.iter().map(|why| why.as_str()).collect();
    let texts: std::collections::HashSet<_> = all.iter().map(GiveUpReason::to_string).collect();
    assert_eq!((names.len(), texts.len()), (all.len(), all.len()));
}
