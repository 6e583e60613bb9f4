//! Checks steps that are different for each key.

use super::*;
use crate::pipeline::Warning;
use std::panic::{AssertUnwindSafe, catch_unwind};

type Breakers = crate::KeyedCircuitBreaker<String>;

fn breakers(clock: &ManualClock) -> Breakers {
    CircuitBreaker::consecutive(2).open_for(HOUR).clock(clock).named("hosts").keyed(100)
}

#[test]
fn the_breaker_of_one_key_does_not_refuse_calls_of_another() {
    let clock = ManualClock::new();
    let breakers = breakers(&clock);
    let pipeline = Pipeline::keyed().retry(FIVE).circuit_breaker_keyed(&breakers).clock(&clock);
    let call = |key| {
        let call = pipeline.run(|_| std::future::ready(Err::<u32, _>(Failure::Busy)));
        let error = finish(clock.drive(call.key(key))).unwrap_err();
        (error.reason(), error.attempts())
    };
    assert_eq!(call("a"), (GiveUpReason::CircuitOpen, 2), "each attempt counts");
    assert_eq!(call("b"), (GiveUpReason::CircuitOpen, 2));
    let states = ["a", "b", "c"].map(|key| breakers.get(key).state());
    assert_eq!(states, [BreakerState::Open, BreakerState::Open, BreakerState::Closed]);

    let key = "c".to_owned();
    let blocking = pipeline.run_blocking(|_| Err::<u32, _>(Failure::Busy)).key(&key).call();
    assert_eq!(blocking.unwrap_err().reason(), GiveUpReason::CircuitOpen);
    assert_eq!(breakers.get("c").state(), BreakerState::Open);
    assert_eq!(pipeline.run_blocking(|_| Ok::<_, Failure>(1)).key("d").call(), Ok(1));
}

#[test]
fn the_probe_of_a_key_is_given_back_by_a_call_that_is_dropped_or_panics() {
    let clock = ManualClock::new();
    let breakers = breakers(&clock);
    let pipeline = Pipeline::keyed().circuit_breaker_keyed(&breakers).clock(&clock);
    let breaker = breakers.get("a");
    breaker.force_open();
    clock.advance(HOUR);
    let call = pipeline.run(|_| std::future::pending::<Result<u32, Failure>>());
    let mut call = Box::pin(call.key("a").into_future());
    assert!(poll(call.as_mut()).is_pending());
    assert_eq!(breaker.snapshot().probes, 1);
    drop(call);
    assert_eq!(breaker.snapshot().probes, 0);

    let panicking = AssertUnwindSafe(|| {
        let call = pipeline.run_blocking(|_| -> Result<u32, Failure> { panic!("an operation") });
        call.key("a").call()
    });
    assert!(catch_unwind(panicking).is_err());
    assert_eq!(breaker.snapshot().probes, 0);
    assert_eq!(breaker.state(), BreakerState::HalfOpen, "neither success nor failure");
    assert_eq!(pipeline.run_blocking(|_| Ok::<_, Failure>(1)).key("a").call(), Ok(1));
    assert_eq!(breaker.state(), BreakerState::Closed);
}

#[test]
fn a_key_at_its_limit_is_refused_and_inside_of_a_retry_comes_back_in_time() {
    let clock = ManualClock::new();
    let limiters = RateLimiter::per(1, seconds(3)).clock(&clock).keyed::<u64>(100);
    let bare = Pipeline::keyed().rate_limiter_keyed(&limiters).clock(&clock);
    let retried = Pipeline::keyed().retry(FIVE).rate_limiter_keyed(&limiters).clock(&clock);
    assert_eq!(bare.run_blocking(|_| Ok::<_, Failure>(1)).key(&7).call(), Ok(1));
    let error = bare.run_blocking(|_| Ok::<_, Failure>(1)).key(&7).call().unwrap_err();
    assert_eq!((error.reason(), error.attempts()), (GiveUpReason::RateLimited, 0));
    assert_eq!(error.retry_in(), Some(seconds(3)));
    assert_eq!(bare.run_blocking(|_| Ok::<_, Failure>(1)).key(&8).call(), Ok(1), "another key");

    let call = retried.run(|_| std::future::ready(Ok::<_, Failure>(1)));
    assert_eq!(finish(clock.drive(call.key(&7))), Ok(1));
    assert_eq!(clock.elapsed(), seconds(3));
}

#[test]
fn a_keyed_pipeline_fits_a_struct_and_shares_its_state() {
    struct Client {
        fetch: Pipeline<String>,
    }
    fn assert_send<T: Send>(value: T) -> T {
        value
    }
    let clock = ManualClock::new();
    let client = Client { fetch: Pipeline::keyed().circuit_breaker_keyed(&breakers(&clock)) };
    let clone = client.fetch.clone().timeout(seconds(1));
    for _ in 0..2 {
        let _ = clone.run_blocking(|_| Err::<u32, _>(Failure::Busy)).key("a").call();
    }
    let call = client.fetch.run(|_| async { Ok::<_, Failure>(1) }).key("a");
    let error = finish(assert_send(call.into_future())).unwrap_err();
    assert_eq!(error.reason(), GiveUpReason::CircuitOpen);
}

#[test]
fn keyed_steps_are_explained() {
    let clock = ManualClock::new();
    let limiters = RateLimiter::per_second(5).keyed::<String>(100);
    let right = Pipeline::keyed()
        .retry(FIVE)
        .circuit_breaker_keyed(&breakers(&clock))
        .rate_limiter_keyed(&limiters)
        .attempt_timeout(seconds(1));
    let steps = right.explain().steps;
    assert!(steps[1].starts_with("circuit breaker \"hosts\" for each key: "), "{}", steps[1]);
    assert_eq!(steps[2], "rate limiter for each key: 5 per 1s, burst 5");
    let wrong = Pipeline::keyed()
        .circuit_breaker_keyed(&breakers(&clock))
        .rate_limiter_keyed(&limiters)
        .retry(FIVE)
        .attempt_timeout(seconds(1));
    let warnings = wrong.explain().warnings;
    assert!(warnings.contains(&Warning::BreakerOutsideRetry));
    assert!(warnings.contains(&Warning::LimiterOutsideRetry));
}
