//! Checks that an open breaker respects what the called service asks for.

use crate::breaker::{BreakerState, CircuitBreaker, CircuitBreakerBuilder};
use crate::classify::{Category, Class, Classify};
use crate::clock::ManualClock;
use crate::duration::{millis, minutes, seconds};
use crate::pipeline::Pipeline;
use std::time::Duration;

/// A failure that asks for a delay.
#[derive(Clone, Copy, Debug)]
struct Busy(Option<Duration>);

impl Classify for Busy {
    fn classify(&self) -> Class {
        match self.0 {
            Some(delay) => Class::retry_after(Category::Throttled, delay),
            None => Class::retry(Category::Transient),
        }
    }
}

fn breaker(clock: &ManualClock) -> CircuitBreakerBuilder {
    CircuitBreaker::consecutive(2).open_for(seconds(10)).clock(clock)
}

fn fail(breaker: &CircuitBreaker, asked: Option<Duration>) {
    breaker.acquire().unwrap().record(&Err::<(), _>(Busy(asked)));
}

#[track_caller]
fn check(asked: [Option<Duration>; 2], open_for: Duration) {
    let clock = ManualClock::new();
    let breaker = breaker(&clock).open_for_retry_after(minutes(1)).build();
    asked.into_iter().for_each(|asked| fail(&breaker, asked));
    assert_eq!(breaker.snapshot().retry_in, Some(open_for));
    assert_eq!(breaker.acquire().unwrap_err().retry_in, Some(open_for));
    clock.advance(open_for - millis(1));
    assert!(breaker.acquire().is_err());
    clock.advance(millis(1));
    breaker.acquire().unwrap().success();
    assert_eq!(breaker.state(), BreakerState::Closed);
}

#[test]
fn stays_open_as_long_as_the_service_asks_but_not_longer_than_the_maximum() {
    check([None, Some(seconds(40))], seconds(40));
    check([Some(seconds(40)), None], seconds(40));
    check([Some(seconds(40)), Some(seconds(20))], seconds(40));
    check([None, Some(Duration::MAX)], seconds(60));
}

#[test]
fn never_opens_for_less_than_its_own_time() {
    check([None, Some(seconds(3))], seconds(10));
    check([None, Some(Duration::ZERO)], seconds(10));
    check([None, None], seconds(10));
}

#[test]
fn does_not_listen_unless_it_is_set() {
    let clock = ManualClock::new();
    let breaker = breaker(&clock).build();
    (0..2).for_each(|_| fail(&breaker, Some(minutes(5))));
    assert_eq!(breaker.snapshot().retry_in, Some(seconds(10)));
}

#[test]
fn a_probe_that_fails_may_ask_again_and_an_old_request_is_forgotten() {
    let clock = ManualClock::new();
    let breaker = breaker(&clock).open_for_retry_after(minutes(1)).build();
    (0..2).for_each(|_| fail(&breaker, Some(seconds(20))));
    clock.advance(seconds(20));
    fail(&breaker, Some(seconds(30)));
    assert_eq!(breaker.snapshot().retry_in, Some(seconds(30)));
    clock.advance(seconds(30));
    fail(&breaker, None);
    assert_eq!(breaker.snapshot().retry_in, Some(seconds(10)));
    breaker.reset();
    (0..2).for_each(|_| fail(&breaker, None));
    assert_eq!(breaker.snapshot().retry_in, Some(seconds(10)));
}

#[test]
fn a_refusal_of_another_policy_is_not_what_the_service_asks_for() {
    let clock = ManualClock::new();
    let breaker = breaker(&clock).open_for_retry_after(minutes(1)).build();
    let limiter = crate::RateLimiter::per(1, seconds(50)).clock(&clock).build();
    for _ in 0..5 {
        breaker.acquire().unwrap().record(&limiter.check());
    }
    assert_eq!(breaker.state(), BreakerState::Closed);
    (0..2).for_each(|_| fail(&breaker, None));
    assert_eq!(breaker.snapshot().retry_in, Some(seconds(10)));
}

#[test]
fn a_breaker_in_a_pipeline_listens_too() {
    let clock = ManualClock::new();
    let breaker = breaker(&clock).open_for_retry_after(minutes(1)).build();
    let pipeline = Pipeline::new().circuit_breaker(&breaker).clock(&clock);
    for _ in 0..2 {
        let busy = || Err::<(), _>(Busy(Some(seconds(45))));
        assert!(pipeline.run_blocking(|_| busy()).call().is_err());
    }
    assert_eq!(breaker.snapshot().retry_in, Some(seconds(45)));
    assert!(pipeline.explain().to_string().contains("for 10s, or as Retry-After says up to 1m"));
}
