//! Tests of defects that code reviews found.

#![expect(clippy::unwrap_used, clippy::wildcard_enum_match_arm, reason = "test code")]

use rewheel::{
    BreakerState, Category, CircuitBreaker, Class, Classify, Event, GiveUpReason, ManualClock,
    Observer, Pipeline, RateLimiter, Retry, Retryable, Statistics, millis, seconds,
};
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

fn timed_out() -> io::Error {
    io::ErrorKind::TimedOut.into()
}

async fn hang(_: rewheel::Attempt) -> io::Result<()> {
    std::future::pending().await
}

#[derive(Debug, Default)]
struct Failed(Mutex<Vec<u32>>);

impl Observer for Failed {
    fn observe(&self, event: &Event<'_>) {
        match event {
            Event::AttemptFailed { attempt, .. } => self.0.lock().unwrap().push(*attempt),
            Event::Succeeded { .. } => panic!("nothing succeeded here"),
            _ => {}
        }
    }
}

#[tokio::test]
async fn a_deadline_that_cuts_a_series_is_no_failure_to_the_breaker_inside() {
    let clock = ManualClock::new();
    let breaker = CircuitBreaker::consecutive(2).clock(&clock).build();
    let retry = Retry::fixed(seconds(1)).deadline(seconds(10));
    let pipeline = Pipeline::new().retry(retry).circuit_breaker(&breaker).clock(&clock);
    let second_hangs = |attempt: rewheel::Attempt| async move {
        if attempt.number() < 2 { Err(timed_out()) } else { hang(attempt).await }
    };

    let error = clock.drive(pipeline.run(second_hangs)).await.unwrap_err();

    assert_eq!((error.reason(), error.category()), (GiveUpReason::Deadline, Category::Timeout));
    assert_eq!(breaker.state(), BreakerState::Closed, "the second attempt may have just begun");
}

#[tokio::test]
async fn an_attempt_that_is_cut_from_outside_is_reported_by_its_number() {
    let (clock, failed) = (ManualClock::new(), Arc::new(Failed::default()));
    let pipeline = Pipeline::new()
        .timeout(seconds(10))
        .retry(Retry::fixed(seconds(1)).attempts_max(5))
        .observer(failed.clone())
        .clock(&clock);

    let third_hangs = |attempt: rewheel::Attempt| async move {
        if attempt.number() < 3 { Err(timed_out()) } else { hang(attempt).await }
    };
    clock.drive(pipeline.run(third_hangs)).await.unwrap_err();

    assert_eq!(*failed.0.lock().unwrap(), [1, 2, 3]);
}

#[test]
fn a_policy_of_one_attempt_leaves_the_repeating_to_the_one_around_it() {
    let mut calls = 0;
    let inner = || {
        calls += 1;
        (|| Err::<(), _>(timed_out())).retry(Retry::fixed(Duration::ZERO).attempts_max(1)).call()
    };
    let _ = inner.retry(Retry::fixed(Duration::ZERO).attempts_max(3)).call();
    assert_eq!(calls, 3);
}

#[test]
#[should_panic(expected = "a retry that is over was polled again")]
fn a_retry_that_is_over_is_not_begun_again() {
    let call = (|| async { Ok::<_, io::Error>(1) }).retry(Retry::fixed(seconds(1)));
    let mut call = std::pin::pin!(call.into_future());
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(call.as_mut().poll(&mut cx).is_ready());
    let _ = call.as_mut().poll(&mut cx);
}

#[tokio::test]
async fn an_error_that_a_judge_calls_done_is_no_success() {
    let (statistics, failed) = (Statistics::new(), Arc::new(Failed::default()));
    let pipeline = Pipeline::new().statistics(&statistics).observer(failed);
    let done = |_: &Result<(), &str>| Class::DONE;

    let error = pipeline.run(|_| async { Err("x") }).judge(done).await.unwrap_err();

    assert_eq!((error.reason(), statistics.summary().successes), (GiveUpReason::Stopped, 0));
}

#[tokio::test]
async fn a_failure_before_a_refusal_is_seen_by_the_breaker_around_the_retry() {
    let clock = ManualClock::new();
    let breaker = CircuitBreaker::consecutive(1).clock(&clock).build();
    let limiter =
        RateLimiter::per(1, seconds(1_000)).wait_max(Duration::ZERO).clock(&clock).build();
    let pipeline = Pipeline::new()
        .circuit_breaker(&breaker)
        .retry(Retry::fixed(seconds(1)).attempts_max(2))
        .rate_limiter(&limiter)
        .clock(&clock);

    let _ = clock.drive(pipeline.run(|_| async { Err::<(), _>(timed_out()) })).await;

    assert_eq!(breaker.state(), BreakerState::Open);
}

#[test]
fn an_error_is_classified_by_what_the_last_attempt_died_of() {
    let clock = ManualClock::new();
    let retry = Retry::fixed(millis(1)).attempts_max(2);
    let mut attempts = 0;
    let error = (|| {
        attempts += 1;
        if attempts == 1 { Err(Class::stop(Category::Io)) } else { Ok(()) }
    })
    .retry(retry)
    .judge(|result| match result {
        Ok(()) => Class::retry(Category::Throttled),
        Err(_) => Class::retry(Category::Io),
    })
    .clock(&clock)
    .call();
    assert!(error.is_ok(), "the best there is");

    struct Refused;
    impl Classify for Refused {
        fn classify(&self) -> Class {
            Class::retry(Category::Io).with_code("refused")
        }
    }
    let error = (|| Err::<(), _>(Refused)).retry(retry).clock(&clock).call().unwrap_err();
    assert_eq!(error.classify(), Class::stop(Category::Io).with_code("refused"));
}
