//! Calls that exceed their time limit, or harm other calls when they fail.

use super::refused;
use rewheel::{
    Bulkhead, CancelToken, Category, CircuitBreaker, Class, GiveUpReason, ManualClock, Pipeline,
    Retry, RetryBudget, Retryable, Statistics, Verdict, millis, seconds,
};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, SystemTime};

/// backon 1.6: the total delay counts only the sleeps, so slow attempts continue forever.
#[test]
fn total_deadline_counts_attempts_not_only_sleeps() {
    let clock = ManualClock::new();
    let policy = Retry::fixed(millis(10)).attempts_max(1_000).deadline(seconds(10));
    let slow = || {
        clock.advance(seconds(3));
        Err::<(), _>(refused())
    };
    let error = slow.retry(policy).clock(&clock).call().unwrap_err();
    assert_eq!((error.reason(), error.attempts()), (GiveUpReason::Deadline, 4));
    assert_eq!(error.elapsed(), millis(12_030));
}

/// throttle-net: one hostile header stopped a client for 31 years.
#[test]
fn retry_after_of_999999999_stops_no_other_call() {
    let clock = ManualClock::new();
    let class = Class::of_response(503, Some("999999999"), SystemTime::UNIX_EPOCH);
    assert!(matches!(class.verdict, Verdict::RetryAfter(_)));
    let mut results = [Err(class), Ok(())].into_iter();
    let call = (|| results.next().unwrap()).retry(Retry::fixed(seconds(1))).clock(&clock);
    let judged =
        call.judge(|result: &Result<(), Class>| result.clone().err().unwrap_or(Class::DONE));
    assert_eq!(judged.call().unwrap_err().reason(), GiveUpReason::RetryAfterTooLong);
    assert_eq!(clock.elapsed(), Duration::ZERO);
}

/// Several: a panic in a callback leaves a poisoned lock that disables the dependency permanently.
#[test]
fn panic_in_a_hook_poisons_nothing() {
    let (clock, token) = (ManualClock::new(), CancelToken::new());
    let budget = RetryBudget::ratio(0.5).clock(&clock).build();
    let statistics = Statistics::with_clock(&clock);
    let call = || {
        (|| Err::<(), _>(refused()))
            .retry(Retry::fixed(seconds(1)))
            .retry_budget(&budget)
            .statistics(&statistics)
            .cancel(&token)
            .clock(&clock)
    };
    for _ in 0..3 {
        let in_retry = AssertUnwindSafe(|| call().on_retry(|_| panic!("a hook")).call());
        assert!(catch_unwind(in_retry).is_err());
        let in_give_up = AssertUnwindSafe(|| call().on_give_up(|_| panic!("a hook")).call());
        assert!(catch_unwind(in_give_up).is_err());
    }
    let error = call().call().unwrap_err();
    assert_eq!((error.reason(), error.attempts()), (GiveUpReason::AttemptsExhausted, 3));
}

/// Several: a panic in the observer, which runs at a state change, leaves the breaker stuck.
#[test]
fn panic_in_an_observer_leaves_the_breaker_usable() {
    #[derive(Debug)]
    struct Clumsy;
    impl rewheel::Observer for Clumsy {
        fn observe(&self, event: &rewheel::Event<'_>) {
            let rewheel::Event::BreakerBuilt { .. } = event else { panic!("an observer") };
        }
    }
    let clock = ManualClock::new();
    let breaker = CircuitBreaker::consecutive(1)
        .open_for(seconds(1))
        .clock(&clock)
        .observer(std::sync::Arc::new(Clumsy))
        .build();
    let trip = AssertUnwindSafe(|| breaker.acquire().unwrap().failure());
    assert!(catch_unwind(trip).is_err());
    assert_eq!(breaker.state(), rewheel::BreakerState::Open);
    clock.advance(seconds(1));
    assert!(catch_unwind(AssertUnwindSafe(|| breaker.acquire().map(drop))).is_err());
    let probe = breaker.acquire().expect("the only probe is free");
    assert!(catch_unwind(AssertUnwindSafe(|| probe.success())).is_err());
    assert_eq!(breaker.state(), rewheel::BreakerState::Closed);
}

/// Three layers of four attempts each made 64 calls out of one, in the middle of an outage.
#[test]
fn three_layers_of_retries_make_four_calls_not_64() {
    let (clock, mut calls) = (ManualClock::new(), 0);
    let policy = Retry::fixed(seconds(1)).attempts_max(4);
    let mut innermost = || {
        calls += 1;
        Err::<(), _>(refused())
    };
    let mut middle = || (&mut innermost).retry(policy).clock(&clock).call();
    let outer = || (&mut middle).retry(policy).clock(&clock).call();
    assert!(outer.retry(policy).clock(&clock).call().is_err());
    assert_eq!(calls, 4);
}

/// virtrigaud: the refusal of an open breaker was itself retried.
#[test]
fn an_open_breaker_is_not_retried_and_costs_no_budget() {
    let clock = ManualClock::new();
    let breaker = CircuitBreaker::consecutive(1).open_for(seconds(1)).clock(&clock).build();
    let budget = RetryBudget::ratio(0.0).floor_per_second(0).burst(9).build();
    breaker.force_open();
    let pipeline = Pipeline::new()
        .retry(Retry::fixed(seconds(1)).attempts_max(9))
        .circuit_breaker(&breaker)
        .retry_budget(&budget)
        .clock(&clock);
    let error = pipeline.run_blocking(|_| Ok::<_, io::Error>(())).call().unwrap_err();
    assert_eq!((error.reason(), error.attempts()), (GiveUpReason::CircuitOpen, 0));
    assert_eq!((budget.balance(), clock.elapsed()), (9, Duration::ZERO));
}

/// turbopuffer-go: the timeout of one attempt looked like the caller's cancellation.
#[test]
fn timeout_of_an_attempt_is_not_taken_for_a_cancellation() {
    let (clock, token) = (ManualClock::new(), CancelToken::new());
    let hang = || std::future::pending::<io::Result<()>>();
    let mut categories = Vec::new();
    let call = hang
        .retry(Retry::fixed(seconds(1)).attempts_max(2).attempt_timeout(seconds(1)))
        .cancel(&token)
        .clock(&clock)
        .on_retry(|retrying| categories.push(retrying.category));
    let mut call = Box::pin(clock.drive(call));
    let error = loop {
        if let std::task::Poll::Ready(result) = super::poll(call.as_mut()) {
            break result.unwrap_err();
        }
    };
    drop(call);
    assert_eq!((error.reason(), error.attempts()), (GiveUpReason::AttemptsExhausted, 2));
    assert_eq!(categories, [Category::Timeout]);
}

/// failsafe-go: listeners were skipped on a panic, and the slot was never released.
#[test]
fn panicking_call_gives_back_its_place() {
    let bulkhead = Bulkhead::concurrency(1).build();
    let pipeline = Pipeline::new().bulkhead(&bulkhead);
    let call =
        AssertUnwindSafe(|| pipeline.run_blocking(|_| -> io::Result<()> { panic!("now") }).call());
    assert!(catch_unwind(call).is_err());
    assert_eq!(bulkhead.free(), 1);
}
