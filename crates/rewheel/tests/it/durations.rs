//! Every setting that takes a duration, with extreme and random ones: it is refused with an error, or it works.

#![expect(clippy::unwrap_used, reason = "test code")]

use futures_util::FutureExt as _;
use proptest::prelude::*;
use rewheel::{
    Backoff, BreakerState, Bulkhead, Category, CircuitBreaker, Class, Clock, Jitter, ManualClock,
    Past, Pipeline, Random, RateLimiter, Retry, Retryable, Series, SettingError, Step, Timeout,
    Verdict, duration, seconds,
};
use std::future::{Future, IntoFuture};
use std::io;
use std::time::Duration;

/// Durations around the limits of the types that hold them.
const EXTREMES: [Duration; 14] = [
    Duration::ZERO,
    Duration::from_nanos(1),
    Duration::from_nanos(999_999),
    Duration::from_millis(1),
    Duration::from_secs(i32::MAX as u64),
    Duration::from_secs(100 * 366 * 86_400),
    Duration::from_nanos(i64::MAX as u64),
    Duration::from_nanos(u64::MAX - 1),
    Duration::from_nanos(u64::MAX),
    Duration::from_millis(i64::MAX as u64),
    Duration::from_millis(u64::MAX),
    Duration::from_secs(u64::MAX / 1_000 + 1),
    Duration::from_secs(u64::MAX),
    Duration::MAX,
];

/// Waiting for longer than this is like waiting for ever: a call that may do it is only begun.
const FOR_EVER: Duration = Duration::from_secs(100 * 366 * 86_400);

/// A failed case is printed, not stored: the seed is fixed.
fn config() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }
}

fn durations() -> impl Strategy<Value = Duration> {
    prop_oneof![
        4 => prop::sample::select(EXTREMES.to_vec()),
        2 => (0..100_000_u64).prop_map(Duration::from_millis),
        1 => any::<u64>().prop_map(Duration::from_nanos),
        1 => any::<u64>().prop_map(Duration::from_millis),
        1 => (any::<u64>(), 0..1_000_000_000_u32).prop_map(|(secs, nanos)| Duration::new(secs, nanos)),
    ]
}

/// Passes on what was accepted. What was refused says why.
fn accepted<T>(result: Result<T, SettingError>) -> Option<T> {
    result.map_err(|error| assert!(error.to_string().len() > 10, "{error}")).ok()
}

/// Runs a future to its end, with the time of `clock`.
fn run<F: IntoFuture>(clock: &ManualClock, call: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(clock.drive(call).into_future())
}

/// Lets a call fail that takes a second, three times at most.
fn retries(retry: Retry) {
    let clock = ManualClock::new();
    let failing = || async {
        Clock::from(&clock).sleep(seconds(1)).await;
        Err::<(), _>(io::Error::from(io::ErrorKind::ConnectionReset))
    };
    let call = failing.retry(retry.attempts_max(3)).clock(&clock);
    let error = run(&clock, call).unwrap_err();
    assert!((1..=3).contains(&error.attempts()), "{retry:?}: {error}");
    assert_eq!(retry.to_string().parse(), Ok(retry), "it survives as text");
}

fn backs_off(backoff: Backoff, previous: Duration) {
    let random = Random::seeded(17);
    for attempt in [1, 2, 3, 64, u32::MAX] {
        let range = backoff.delay_range(attempt);
        let delay = backoff.delay(attempt, &random);
        assert!(range.contains(&delay), "{backoff:?} after {attempt}: {delay:?} of {range:?}");
        let past = Past { attempt, previous: Some(previous), failure_ratio: 0.5 };
        backoff.delay_after(&past, &random);
        backoff.time_max(attempt);
    }
    assert_eq!(backoff.to_string().parse(), Ok(backoff), "it survives as text");
    retries(Retry::new(backoff));
}

/// Opens a breaker, waits, and probes.
fn breaks(breaker: rewheel::CircuitBreakerBuilder, passes: Duration) {
    let clock = ManualClock::new();
    let breaker = breaker.clock(&clock).build();
    for _ in 0..20 {
        if let Ok(permit) = breaker.acquire() {
            clock.advance(seconds(1));
            permit.failure();
        }
    }
    clock.advance(passes);
    let probe = breaker.acquire();
    clock.advance(passes);
    let _ = breaker.snapshot();
    if let Ok(probe) = probe {
        probe.success();
    }
    let state = breaker.state();
    assert!([BreakerState::Closed, BreakerState::Open, BreakerState::HalfOpen].contains(&state));
}

/// Runs a waiting call, or only begins it if it may wait for ever.
fn waits<F: Future>(clock: &ManualClock, wait_max: Duration, call: F) {
    if wait_max < FOR_EVER {
        run(clock, call);
    } else {
        drop(call.now_or_never());
    }
}

fn limits(limiter: rewheel::RateLimiterBuilder, wait_max: Duration, passes: Duration) {
    let clock = ManualClock::new();
    let limiter = limiter.wait_max(wait_max).clock(&clock).build();
    for _ in 0..3 {
        let started = (0..1_000).filter(|_| limiter.check().is_ok()).count();
        assert!(started <= 1_000);
        limiter.available();
        waits(&clock, wait_max, limiter.acquire());
        // Beyond the end of its clock a program does not wait.
        clock.advance(passes.min(FOR_EVER));
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn of_a_backoff(time in durations(), other in durations()) {
        backs_off(Backoff::fixed(time), other);
        let shapes = [
            Backoff::try_linear(time), Backoff::try_exponential(time), Backoff::try_fibonacci(time),
            Backoff::try_decorrelated(time), Backoff::try_adaptive(time),
        ];
        for shape in shapes.into_iter().filter_map(accepted) {
            backs_off(shape, other);
            for more in [shape.try_step(other), shape.try_min(other), shape.try_max(other)] {
                accepted(more).into_iter().for_each(|more| backs_off(more, time));
            }
            for jitter in [Jitter::NONE, Jitter::FULL, Jitter::EQUAL] {
                accepted(shape.try_jitter(jitter)).into_iter().for_each(|more| backs_off(more, time));
            }
        }
    }

    #[test]
    fn of_a_retry(time in durations(), other in durations()) {
        retries(Retry::fixed(time));
        let base = Retry::fixed(other);
        let all = [
            Retry::try_exponential(time), base.try_deadline(time), base.try_attempt_timeout(time),
            base.try_delay_max(time), Ok(base.retry_after_max(time)),
        ];
        for retry in all.into_iter().filter_map(accepted) {
            retries(retry);
            for verdict in [Verdict::Retry, Verdict::RetryAfter(time), Verdict::RetryAfter(other)] {
                let mut series = Series::new(retry);
                series.set_previous(other);
                if let Step::Wait(delay) = series.after(verdict, time, &Random::seeded(1)) {
                    series.after(verdict, time.saturating_add(delay), &Random::seeded(1));
                }
            }
        }
        let _ = Class::retry_after(Category::Throttled, time);
    }

    #[test]
    fn of_a_breaker(time in durations(), passes in durations()) {
        let plain = || CircuitBreaker::consecutive(3);
        breaks(plain().open_for(time), passes);
        let all = [
            CircuitBreaker::try_time_window(time),
            CircuitBreaker::count_window(10).try_slow_calls(time, 0.5),
            plain().try_open_backoff(Backoff::fixed(time)),
            plain().try_probe_timeout(time),
        ];
        all.into_iter().filter_map(accepted).for_each(|breaker| breaks(breaker, passes));
    }

    #[test]
    fn of_a_limiter_and_a_bulkhead(time in durations(), wait in durations(), calls in 1..100_u32) {
        for limiter in [RateLimiter::try_per(calls, time), RateLimiter::try_sliding_window(calls, time)] {
            accepted(limiter).into_iter().for_each(|limiter| limits(limiter, wait, time));
        }
        limits(RateLimiter::per_second(calls), time, wait);
        let clock = ManualClock::new();
        let bulkhead = Bulkhead::concurrency(1).wait_max(time).clock(&clock).build();
        let permit = bulkhead.try_acquire().unwrap();
        waits(&clock, time, bulkhead.acquire());
        drop(permit);
        prop_assert!(bulkhead.try_acquire().is_ok());
    }

    #[test]
    fn of_a_timeout_and_a_pipeline(time in durations(), other in durations()) {
        let clock = ManualClock::new();
        let work = || async {
            Clock::from(&clock).sleep(seconds(1)).await;
            Ok::<_, io::Error>(7)
        };
        if let Some(timeout) = accepted(Timeout::try_new(time)) {
            let ended = run(&clock, timeout.clock(&clock).call(work));
            prop_assert_eq!(ended.is_ok(), time > seconds(1), "{:?}", ended);
        }
        let retry = Retry::fixed(other).attempts_max(2);
        let whole = accepted(Pipeline::new().try_timeout(time));
        let each = accepted(Pipeline::new().retry(retry).try_attempt_timeout(time));
        for pipeline in whole.into_iter().chain(each) {
            drop(pipeline.explain().to_string());
            let ended = run(&clock, pipeline.clock(&clock).run(|_| work()));
            prop_assert_eq!(ended.is_ok(), time > seconds(1), "{:?}", ended);
        }
    }

    #[test]
    fn of_a_clock(time in durations(), other in durations()) {
        let clock = ManualClock::new();
        clock.advance(time);
        let then = Clock::from(&clock).now().plus(other).plus(time);
        prop_assert!(then >= Clock::from(&clock).now());
        then.since(Clock::from(&clock).now());
        let _ = Clock::from(&clock).sleep(other).now_or_never();
        // The real clocks, in a runtime and without one.
        let _ = Clock::system().sleep(time).now_or_never();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async { Clock::system().sleep(time).now_or_never() });
        prop_assert!(!duration::text(time).to_string().is_empty());
    }
}

#[cfg(feature = "idempotency")]
mod idempotency {
    use super::{ManualClock, durations, run};
    use proptest::prelude::*;
    use rewheel::idempotency::Fingerprint;
    use rewheel::{Idempotency, IdempotencyKey, MemoryIdempotency};

    proptest! {
        #![proptest_config(super::config())]

        #[test]
        fn of_idempotency(lease in durations(), keep in durations(), wait in durations()) {
            let clock = ManualClock::new();
            let store = MemoryIdempotency::new(10, 1_000);
            let idempotency =
                Idempotency::new(store).lease(lease).keep(keep).wait(wait).clock(&clock);
            let key = IdempotencyKey::new("acme", "order-17").unwrap();
            let what = Fingerprint::of(&[b"charge"]);
            for _ in 0..2 {
                let work = |_| async { Ok::<_, std::io::Error>(b"charged".to_vec()) };
                let ran = run(&clock, idempotency.run(key, what, work));
                prop_assert_eq!(ran.unwrap().bytes.to_vec(), b"charged".to_vec());
            }
        }
    }
}
