//! Tests of pipelines around blocking operations.

use super::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;

#[test]
fn retries_and_waits_as_the_async_form_does() {
    let clock = ManualClock::new();
    let limiter = RateLimiter::per(1, seconds(3)).clock(&clock).build();
    let pipeline = Pipeline::new().retry(FIVE).rate_limiter(&limiter).clock(&clock);
    let starts = RefCell::new(Vec::new());
    let error = pipeline
        .run_blocking(|attempt| {
            starts.borrow_mut().push((attempt.number(), clock.elapsed().as_secs()));
            Err::<u32, _>(Failure::Busy)
        })
        .call()
        .unwrap_err();
    assert_eq!((error.reason(), error.attempts()), (GiveUpReason::AttemptsExhausted, 5));
    assert_eq!(*starts.borrow(), [(1, 0), (2, 3), (3, 6), (4, 9), (5, 12)]);
    assert_eq!(error.elapsed(), seconds(12));
}

#[test]
fn a_timeout_bounds_the_waits_and_the_next_attempt() {
    let clock = ManualClock::new();
    let pipeline = Pipeline::new().timeout(seconds(5)).retry(FIVE).clock(&clock);
    let late = pipeline
        .run_blocking(|_| {
            clock.advance(seconds(9));
            Ok::<_, Failure>(1)
        })
        .call();
    assert_eq!(late, Ok(1), "what returns too late has still returned");
    let mut calls = 0;
    let error = pipeline
        .run_blocking(|attempt| {
            calls += 1;
            assert_eq!(attempt.time_left(), Some(seconds(5 - 3 * (calls - 1))));
            clock.advance(seconds(2));
            Err::<u32, _>(Failure::Busy)
        })
        .call()
        .unwrap_err();
    assert_eq!((error.reason(), error.attempts()), (GiveUpReason::Deadline, 2));
    assert_eq!(error.elapsed(), seconds(5));

    let limiter = RateLimiter::per(1, HOUR).clock(&clock).build();
    limiter.check().unwrap();
    let pipeline = Pipeline::new().timeout(seconds(5)).rate_limiter(&limiter).clock(&clock);
    let error = pipeline.run_blocking(|_| Ok::<_, Failure>(1)).call().unwrap_err();
    assert_eq!(
        (error.reason(), error.attempts(), error.elapsed()),
        (GiveUpReason::Timeout, 0, seconds(5))
    );
    clock.advance(HOUR);
    limiter.check().expect("a ghost waits in the limiter's line");
}

#[test]
fn a_panic_gives_everything_back() {
    let clock = ManualClock::new();
    let bulkhead = Bulkhead::concurrency(1).build();
    let breaker = CircuitBreaker::consecutive(1).open_for(seconds(1)).clock(&clock).build();
    breaker.force_open();
    clock.advance(seconds(1));
    let pipeline = Pipeline::new().bulkhead(&bulkhead).retry(FIVE).circuit_breaker(&breaker);
    let panicking = AssertUnwindSafe(|| {
        pipeline.run_blocking(|_| -> Result<u32, Failure> { panic!("an operation") }).call()
    });
    assert!(catch_unwind(panicking).is_err());
    assert_eq!((bulkhead.free(), breaker.snapshot().probes), (1, 0));
    assert_eq!(breaker.state(), BreakerState::HalfOpen, "neither success nor failure");
    assert_eq!(pipeline.run_blocking(|_| Ok::<_, Failure>(1)).call(), Ok(1));
    let clocked = pipeline.clone().clock(&clock);
    let error = clocked.run_blocking(|_| Err::<u32, _>(Failure::Busy)).call().unwrap_err();
    assert_eq!(error.attempts(), 5, "the panic left its mark, which suppresses retries");
}

#[test]
fn a_nested_pipeline_is_suppressed() {
    let clock = ManualClock::new();
    let pipeline = Pipeline::new().retry(FIVE).clock(&clock);
    let mut calls = 0;
    let error = pipeline
        .run_blocking(|_| {
            pipeline
                .run_blocking(|_| {
                    calls += 1;
                    Err::<u32, _>(Failure::Busy)
                })
                .call()
        })
        .call()
        .unwrap_err();
    assert_eq!((error.attempts(), calls), (5, 5));
    assert_eq!(error.into_last().unwrap().reason(), GiveUpReason::Nested);
}

#[test]
fn a_thread_that_waits_for_a_place_is_woken_when_there_is_one() {
    let bulkhead = Bulkhead::concurrency(1).queue_max(1).build();
    let pipeline = Pipeline::new().bulkhead(&bulkhead);
    let place = bulkhead.try_acquire().unwrap();
    let (done, finished) = mpsc::channel();
    let thread = std::thread::spawn({
        let pipeline = pipeline.clone();
        move || done.send(pipeline.run_blocking(|_| Ok::<_, Failure>(1)).call()).unwrap()
    });
    while bulkhead.waiting() == 0 {
        std::thread::yield_now();
    }
    assert!(finished.try_recv().is_err());
    drop(place);
    assert_eq!(finished.recv().unwrap(), Ok(1));
    thread.join().unwrap();
    assert_eq!((bulkhead.free(), bulkhead.waiting()), (1, 0));
}

/// A paused runtime cannot move its time on while its only thread is blocked: the waits of the call take real time.
#[cfg(feature = "tokio")]
#[tokio::test(start_paused = true)]
async fn waits_end_in_a_runtime_whose_time_is_paused() {
    let began = crate::Clock::system().now();
    let retry = Pipeline::new().retry(Retry::fixed(millis(2)).attempts_max(3));
    let mut calls = 0;
    let result = retry.run_blocking(|_| {
        calls += 1;
        if calls < 3 { Err(Failure::Busy) } else { Ok(7) }
    });
    assert_eq!(result.call(), Ok(7));

    let limiter = RateLimiter::per(1, millis(2)).burst(1).build();
    limiter.check().unwrap();
    let limited = Pipeline::new().rate_limiter(&limiter);
    assert_eq!(limited.run_blocking(|_| Ok::<_, Failure>(7)).call(), Ok(7));

    let bulkhead = Bulkhead::concurrency(1).queue_max(1).build();
    let _place = bulkhead.try_acquire().unwrap();
    let cut = Pipeline::new().timeout(millis(2)).bulkhead(&bulkhead);
    let error = cut.run_blocking(|_| Ok::<_, Failure>(7)).call().unwrap_err();
    assert_eq!((error.reason(), error.attempts()), (GiveUpReason::Timeout, 0));
    assert_eq!(
        crate::Clock::system().now(),
        began,
        "after the calls, the time is that of the runtime"
    );
}
