//! Tests of the time limits of a retry inside a pipeline.

use super::*;

#[test]
fn the_deadline_of_a_retry_ends_what_is_inside() {
    let clock = ManualClock::new();
    let pipeline = Pipeline::new().retry(FIVE.deadline(seconds(5))).clock(&clock);
    let (result, calls) = run(&pipeline, &clock, seconds(3), Err(Failure::Busy));
    let error = result.unwrap_err();
    assert_eq!((error.reason(), error.attempts(), calls), (GiveUpReason::Deadline, 2, 2));
    assert_eq!((error.elapsed(), error.last()), (seconds(5), Some(&Failure::Busy)));

    let (error, calls) = fail(
        &Pipeline::new().retry(Retry::fixed(seconds(5)).deadline(seconds(5))).clock(&clock),
        &clock,
    );
    assert_eq!(
        (error.reason(), calls, error.elapsed()),
        (GiveUpReason::Deadline, 1, Duration::ZERO)
    );
}

#[test]
fn a_deadline_is_not_retried_by_a_retry_around_it() {
    let clock = ManualClock::new();
    let inner = FIVE.deadline(seconds(3));
    let pipeline = Pipeline::new().retry(FIVE).retry(inner).clock(&clock);
    let (result, calls) = run(&pipeline, &clock, HOUR, Ok(1));
    assert_eq!((result.unwrap_err().reason(), calls), (GiveUpReason::Deadline, 1));
}

#[test]
fn the_attempt_timeout_of_a_retry_ends_each_attempt() {
    let clock = ManualClock::new();
    let policy = FIVE.attempts_max(3).attempt_timeout(seconds(2));
    let pipeline = Pipeline::new().retry(policy).clock(&clock);
    let (result, calls) = run(&pipeline, &clock, HOUR, Ok(1));
    let error = result.unwrap_err();
    assert_eq!((error.reason(), error.attempts(), calls), (GiveUpReason::AttemptsExhausted, 3, 3));
    assert_eq!((error.elapsed(), error.last()), (seconds(3 * 2 + 2), None));

    // An attempt that ends in time leaves no limit that would cut the wait or the next attempt.
    let policy = Retry::fixed(seconds(5)).attempts_max(3).attempt_timeout(seconds(2));
    let pipeline = Pipeline::new().retry(policy).clock(&clock);
    let (result, calls) = run(&pipeline, &clock, seconds(1), Err(Failure::Busy));
    assert_eq!((result.unwrap_err().elapsed(), calls), (seconds(3 + 10), 3));
}

#[test]
fn an_operation_that_is_ready_is_not_cut_however_late() {
    let clock = ManualClock::new();
    let pipeline = Pipeline::new().timeout(seconds(1)).clock(&clock);
    let stubborn = finish(clock.drive(pipeline.run(|_| async {
        clock.advance(HOUR);
        Ok::<_, Failure>(1)
    })));
    assert_eq!(stubborn, Ok(1));
    let late = finish(clock.drive(pipeline.run(|_| async {
        clock.advance(HOUR);
        std::future::pending::<Result<u32, Failure>>().await
    })));
    let error = late.unwrap_err();
    assert_eq!(
        (error.reason(), error.elapsed()),
        (GiveUpReason::Timeout, HOUR),
        "it is cut at once"
    );
}

#[test]
fn no_attempt_starts_after_a_limit_that_passed_during_the_rest() {
    let clock = ManualClock::new();
    for pipeline in [
        Pipeline::new().timeout(seconds(5)).retry(FIVE),
        Pipeline::new().retry(FIVE.deadline(seconds(5))),
    ] {
        let (pipeline, calls) = (pipeline.clock(&clock), Cell::new(0));
        let mut call = pin!(
            pipeline
                .run(|_| {
                    calls.set(calls.get() + 1);
                    std::future::ready(Err::<u32, _>(Failure::Busy))
                })
                .into_future()
        );
        assert!(poll(call.as_mut()).is_pending());
        clock.advance(HOUR);
        assert!(poll(call.as_mut()).is_ready());
        assert_eq!(calls.get(), 1);
    }
}

#[track_caller]
fn check_time_left(pipeline: Pipeline, expected_seconds: &[Option<u64>]) {
    let clock = ManualClock::new();
    let seen = RefCell::new(Vec::new());
    let pipeline = pipeline.clock(&clock);
    let call = pipeline.run(|attempt| {
        seen.borrow_mut().push(attempt.time_left().map(|left| left.as_secs()));
        async {
            Clock::from(&clock).sleep(seconds(1)).await;
            Err::<u32, _>(Failure::Busy)
        }
    });
    let _ = finish(clock.drive(call));
    assert_eq!(*seen.borrow(), expected_seconds);
}

#[test]
fn an_attempt_is_told_how_much_time_is_left_by_the_nearest_limit() {
    let three = FIVE.attempts_max(3);
    check_time_left(Pipeline::new().retry(three), &[None, None, None]);
    let stack = Pipeline::new().timeout(seconds(10)).retry(three);
    check_time_left(stack.clone(), &[Some(10), Some(8), Some(6)]);
    check_time_left(stack.clone().attempt_timeout(seconds(7)), &[Some(7), Some(7), Some(6)]);
    check_time_left(
        Pipeline::new().retry(three.deadline(seconds(9))),
        &[Some(9), Some(7), Some(5)],
    );
    let both = three.deadline(seconds(9)).attempt_timeout(seconds(6));
    check_time_left(Pipeline::new().retry(both), &[Some(6), Some(6), Some(5)]);
}

/// A breaker that never sees a hanging call cannot open.
#[test]
fn a_limit_that_cuts_the_only_attempt_counts_as_a_failure_of_the_dependency() {
    let failures = |pipeline: fn(&CircuitBreaker) -> Pipeline, takes| {
        let clock = ManualClock::new();
        let breaker = CircuitBreaker::consecutive(9).clock(&clock).build();
        let (result, _) = run(&pipeline(&breaker).clock(&clock), &clock, takes, Err(Failure::Busy));
        assert!(result.is_err());
        breaker.snapshot().failures
    };
    let deadline: fn(&CircuitBreaker) -> Pipeline =
        |breaker| Pipeline::new().retry(FIVE.deadline(seconds(5))).circuit_breaker(breaker);
    let total: fn(&CircuitBreaker) -> Pipeline =
        |breaker| Pipeline::new().timeout(seconds(5)).retry(FIVE).circuit_breaker(breaker);
    for limit in [deadline, total] {
        assert_eq!(failures(limit, HOUR), 1, "the attempt had all the time there was");
        // The first attempt fails after 3 s; the second is cut after 1 s, which says nothing.
        assert_eq!(failures(limit, seconds(3)), 1);
    }
}

#[test]
fn an_attempt_that_waited_in_a_queue_is_not_blamed_on_the_dependency() {
    let clock = ManualClock::new();
    let breaker = CircuitBreaker::consecutive(9).clock(&clock).build();
    let limiter = RateLimiter::per(1, seconds(4)).burst(1).clock(&clock).build();
    let inside = Pipeline::new().timeout(seconds(5)).rate_limiter(&limiter);
    let pipeline = inside.circuit_breaker(&breaker).clock(&clock);
    limiter.check().unwrap();
    let (result, calls) = run(&pipeline, &clock, HOUR, Ok(1));
    assert_eq!((result.unwrap_err().reason(), calls), (GiveUpReason::Timeout, 1));
    assert_eq!(breaker.snapshot().failures, 0, "it had one of the five seconds");
}
