//! Checks that the order of steps matters.

use super::*;
use crate::RetryBudget;

#[test]
fn a_breaker_inside_of_a_retry_ends_the_series() {
    let clock = ManualClock::new();
    let breaker = CircuitBreaker::consecutive(2).open_for(HOUR).clock(&clock).build();
    let pipeline = Pipeline::new().retry(FIVE).circuit_breaker(&breaker).clock(&clock);
    let (error, calls) = fail(&pipeline, &clock);
    assert_eq!((error.reason(), error.attempts(), calls), (GiveUpReason::CircuitOpen, 2, 2));
    assert_eq!((error.last(), breaker.state()), (Some(&Failure::Busy), BreakerState::Open));
    assert_eq!(error.retry_in(), Some(HOUR - seconds(1)));
}

#[test]
fn a_breaker_outside_of_a_retry_counts_a_series_as_one() {
    let clock = ManualClock::new();
    let breaker = CircuitBreaker::consecutive(2).clock(&clock).build();
    let pipeline = Pipeline::new().circuit_breaker(&breaker).retry(FIVE).clock(&clock);
    let (error, calls) = fail(&pipeline, &clock);
    assert_eq!((error.reason(), calls), (GiveUpReason::AttemptsExhausted, 5));
    assert_eq!((breaker.snapshot().failures, breaker.state()), (1, BreakerState::Closed));
}

#[test]
fn a_breaker_sees_an_attempt_that_had_its_time_wherever_that_was_limited() {
    let clock = ManualClock::new();
    let failures = |build: fn(Pipeline, &CircuitBreaker) -> Pipeline| {
        let breaker = CircuitBreaker::consecutive(9).clock(&clock).build();
        let pipeline = build(Pipeline::new().clock(&clock), &breaker);
        let (result, _) = run(&pipeline, &clock, HOUR, Ok(1));
        assert_eq!(result.unwrap_err().reason(), GiveUpReason::Timeout);
        breaker.snapshot().failures
    };
    let limit = seconds(2);
    assert_eq!(failures(|p, breaker| p.circuit_breaker(breaker).attempt_timeout(seconds(2))), 1);
    assert_eq!(failures(|p, breaker| p.circuit_breaker(breaker).timeout(seconds(2))), 1);
    assert_eq!(failures(|p, breaker| p.attempt_timeout(seconds(2)).circuit_breaker(breaker)), 1);
    assert_eq!(failures(|p, breaker| p.timeout(seconds(2)).circuit_breaker(breaker)), 1);
    assert_eq!(
        failures(|p, breaker| p.timeout(seconds(2)).retry(FIVE).circuit_breaker(breaker)),
        1
    );
    assert_eq!(clock.elapsed(), 5 * limit);
}

#[test]
fn a_breaker_sees_attempts_that_the_retry_itself_has_cut() {
    let clock = ManualClock::new();
    let breaker = CircuitBreaker::consecutive(3).clock(&clock).build();
    let retry = FIVE.attempt_timeout(seconds(1));
    let pipeline = Pipeline::new().retry(retry).circuit_breaker(&breaker).clock(&clock);
    let (result, calls) = run(&pipeline, &clock, HOUR, Ok(1));
    assert_eq!((result.unwrap_err().reason(), calls), (GiveUpReason::CircuitOpen, 3));
}

#[test]
fn what_was_refused_here_says_nothing_about_the_dependency() {
    let clock = ManualClock::new();
    let breaker = CircuitBreaker::consecutive(1).clock(&clock).build();
    let limiter = RateLimiter::per_second(1).wait_max(Duration::ZERO).clock(&clock).build();
    let full = Bulkhead::concurrency(1).queue_max(1).clock(&clock).build();
    let _place = full.try_acquire().unwrap();
    let limited = Pipeline::new().circuit_breaker(&breaker).rate_limiter(&limiter).clock(&clock);
    let crowded = Pipeline::new().circuit_breaker(&breaker).attempt_timeout(seconds(1));
    let crowded = crowded.bulkhead(&full).clock(&clock);
    limiter.check().unwrap();
    let whys = [limited, crowded]
        .map(|pipeline| run(&pipeline, &clock, Duration::ZERO, Ok(1)).0.unwrap_err().reason());
    assert_eq!(whys, [GiveUpReason::RateLimited, GiveUpReason::Timeout]);
    assert_eq!((breaker.state(), breaker.snapshot().failures), (BreakerState::Closed, 0));
}

#[test]
fn an_error_says_what_the_last_attempt_died_of() {
    let clock = ManualClock::new();
    let full = Bulkhead::concurrency(1).clock(&clock).build();
    let _place = full.try_acquire().unwrap();
    let retry = Retry::fixed(seconds(1)).attempts_max(2);
    let crowded = Pipeline::new().retry(retry).bulkhead(&full).clock(&clock);
    let slow = Pipeline::new().retry(retry).attempt_timeout(seconds(1)).clock(&clock);
    let said = [crowded, slow]
        .map(|pipeline| run(&pipeline, &clock, HOUR, Ok(1)).0.unwrap_err().to_string());
    assert_eq!(
        said,
        [
            "not attempted: no attempts are left: the bulkhead is full",
            "gave up after 2 attempts in 3s: no attempts are left: the last attempt timed out",
        ]
    );
}

#[test]
fn a_timeout_outside_of_a_retry_ends_all_of_it() {
    let clock = ManualClock::new();
    let slow = seconds(3);
    let outside = Pipeline::new().timeout(seconds(5)).retry(FIVE).clock(&clock);
    let (result, calls) = run(&outside, &clock, slow, Err(Failure::Busy));
    let error = result.unwrap_err();
    assert_eq!((error.reason(), error.attempts(), calls), (GiveUpReason::Timeout, 2, 2));
    assert_eq!((error.elapsed(), error.last()), (seconds(5), Some(&Failure::Busy)));

    let inside = Pipeline::new().retry(FIVE).timeout(seconds(2)).clock(&clock);
    let (result, calls) = run(&inside, &clock, slow, Ok(1));
    let error = result.unwrap_err();
    assert_eq!((error.reason(), calls), (GiveUpReason::AttemptsExhausted, 5));
    assert_eq!((error.elapsed(), error.last()), (seconds(5 * 2 + 4), None));
}

#[test]
fn a_wait_that_does_not_fit_the_timeout_is_not_begun() {
    let clock = ManualClock::new();
    let patient = Retry::fixed(seconds(5)).attempts_max(5);
    let pipeline = Pipeline::new().timeout(seconds(5)).retry(patient).clock(&clock);
    let (error, calls) = fail(&pipeline, &clock);
    assert_eq!((error.reason(), calls), (GiveUpReason::Deadline, 1));
    assert_eq!(error.elapsed(), Duration::ZERO);
}

#[test]
fn a_bulkhead_outside_of_a_retry_keeps_its_place_between_attempts() {
    let free_between_attempts = |outside: bool| {
        let (clock, bulkhead) = (ManualClock::new(), Bulkhead::concurrency(1).build());
        let pipeline = Pipeline::new().clock(&clock);
        let pipeline = if outside {
            pipeline.bulkhead(&bulkhead).retry(FIVE)
        } else {
            pipeline.retry(FIVE).bulkhead(&bulkhead)
        };
        let mut call = pin!(pipeline.run(|_| async { Err::<(), _>(Failure::Busy) }).into_future());
        assert!(poll(call.as_mut()).is_pending());
        bulkhead.free()
    };
    assert_eq!((free_between_attempts(true), free_between_attempts(false)), (0, 1));
}

#[test]
fn a_limiter_inside_of_a_retry_counts_every_attempt() {
    let tokens_used = |outside: bool| {
        let clock = ManualClock::new();
        let limiter = RateLimiter::per(100, HOUR).clock(&clock).build();
        let pipeline = Pipeline::new().clock(&clock);
        let pipeline = if outside {
            pipeline.rate_limiter(&limiter).retry(FIVE)
        } else {
            pipeline.retry(FIVE).rate_limiter(&limiter)
        };
        fail(&pipeline, &clock);
        100 - (0..).take_while(|_| limiter.check().is_ok()).count()
    };
    assert_eq!((tokens_used(true), tokens_used(false)), (1, 5));
}

#[test]
fn an_open_breaker_is_neither_retried_nor_charged() {
    let clock = ManualClock::new();
    let budget = RetryBudget::ratio(0.0).floor_per_second(0).burst(10).build();
    let breaker = CircuitBreaker::consecutive(1).open_for(seconds(9)).clock(&clock).build();
    breaker.force_open();
    let pipeline = Pipeline::new().retry(FIVE).circuit_breaker(&breaker).clock(&clock);
    let pipeline = pipeline.retry_budget(&budget);
    let (error, calls) = fail(&pipeline, &clock);
    assert_eq!((error.reason(), error.attempts(), calls), (GiveUpReason::CircuitOpen, 0, 0));
    assert_eq!((error.retry_in(), error.elapsed()), (Some(seconds(9)), Duration::ZERO));
    assert_eq!((budget.balance(), clock.elapsed()), (10, Duration::ZERO));
}

#[test]
fn a_refusal_by_a_policy_is_retried_free_of_charge() {
    let clock = ManualClock::new();
    let budget = RetryBudget::ratio(0.0).floor_per_second(0).burst(10).build();
    let limiter = RateLimiter::per_second(1).wait_max(Duration::ZERO).clock(&clock).build();
    limiter.check().unwrap();
    let pipeline = Pipeline::new().retry(FIVE).rate_limiter(&limiter).clock(&clock);
    let pipeline = pipeline.retry_budget(&budget);
    let (result, calls) = run(&pipeline, &clock, Duration::ZERO, Ok(1));
    assert_eq!((result, calls), (Ok(1), 1), "the second try was admitted");
    assert_eq!((clock.elapsed(), budget.balance()), (seconds(1), 10));
}

#[test]
fn a_rejection_shows_a_breaker_that_the_dependency_is_alive() {
    let clock = ManualClock::new();
    let breaker = CircuitBreaker::consecutive(2).clock(&clock).build();
    let pipeline = Pipeline::new().retry(FIVE).circuit_breaker(&breaker).clock(&clock);
    breaker.acquire().unwrap().failure();
    let (result, calls) = run(&pipeline, &clock, Duration::ZERO, Err(Failure::Gone));
    assert_eq!((result.unwrap_err().reason(), calls), (GiveUpReason::Stopped, 1));
    assert_eq!(breaker.snapshot().failures, 0);
}

#[test]
fn a_retry_that_is_exhausted_is_not_begun_again_by_one_around_it() {
    let clock = ManualClock::new();
    let pipeline = Pipeline::new().retry(FIVE).retry(FIVE.attempts_max(2)).clock(&clock);
    let (error, calls) = fail(&pipeline, &clock);
    assert_eq!((error.reason(), calls), (GiveUpReason::AttemptsExhausted, 2));
    assert!(u64::from(calls) <= pipeline.explain().amplification_max);
}

#[test]
fn retries_multiply_when_a_timeout_between_them_cuts_the_inner_one() {
    let clock = ManualClock::new();
    let pipeline = Pipeline::new()
        .retry(FIVE.attempts_max(3))
        .timeout(seconds(5))
        .retry(FIVE.attempts_max(2).attempt_timeout(seconds(3)))
        .clock(&clock);
    let (result, calls) = run(&pipeline, &clock, HOUR, Ok(1));
    assert_eq!((result.unwrap_err().reason(), calls), (GiveUpReason::AttemptsExhausted, 6));
    assert_eq!(pipeline.explain().amplification_max, 6);
}
