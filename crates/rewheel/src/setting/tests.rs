//! Every setting refuses the same values in both forms, with the same words.

#![expect(clippy::unwrap_used, reason = "test code")]

use crate::{
    Backoff, Bulkhead, CircuitBreaker, Pipeline, RateLimiter, Retry, RetryBudget, SettingError,
    StatusSet, Timeout, millis, seconds,
};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

#[track_caller]
fn check_error<T>(fallible: Result<T, SettingError>, expected: &str) -> SettingError {
    let Err(error) = fallible else { panic!("accepted, but expected: {expected}") };
    assert_eq!(error.to_string(), expected);
    error
}

#[track_caller]
fn check<T>(fallible: Result<T, SettingError>, panicking: impl FnOnce() -> T, expected: &str) {
    let error = check_error(fallible, expected);
    let Err(panic) = catch_unwind(AssertUnwindSafe(panicking)) else { panic!("{expected}") };
    assert_eq!(message(&*panic), format!("{}: {}", error.setting(), error.allowed()));
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap()
}

/// Checks a function and its `try_` form with the same arguments.
macro_rules! refuses {
    ($from:expr, $plain:ident / $fallible:ident ($($value:expr),*), $expected:literal) => {
        check($from.$fallible($($value),*), || $from.$plain($($value),*), $expected)
    };
    ($on:ident :: $plain:ident / $fallible:ident ($($value:expr),*), $expected:literal) => {
        check($on::$fallible($($value),*), || $on::$plain($($value),*), $expected)
    };
}

const ZERO: Duration = Duration::ZERO;

#[test]
fn a_breaker_refuses_the_same_values_in_both_forms() {
    let count = || CircuitBreaker::count_window(20);
    let consecutive = || CircuitBreaker::consecutive(5);
    refuses!(
        CircuitBreaker::consecutive / try_consecutive(0),
        "invalid consecutive `0`: use 1 failure or more"
    );
    refuses!(
        CircuitBreaker::count_window / try_count_window(0),
        "invalid count_window `0`: use 1 to 1000000 calls"
    );
    refuses!(
        CircuitBreaker::count_window / try_count_window(1_000_001),
        "invalid count_window `1000001`: use 1 to 1000000 calls"
    );
    refuses!(
        CircuitBreaker::time_window / try_time_window(millis(9)),
        "invalid time_window `9ms`: use 10ms or longer"
    );
    for ratio in [0.0, -0.5, 1.5, f64::NAN] {
        let error = count().try_failure_ratio(ratio).unwrap_err();
        assert_eq!((error.setting(), error.value()), ("failure_ratio", &*ratio.to_string()));
        assert!(count().try_slow_calls(seconds(1), ratio).is_err());
    }
    refuses!(
        consecutive(),
        failure_ratio / try_failure_ratio(0.5),
        "invalid failure_ratio `0.5`: only a breaker with a window has this setting"
    );
    refuses!(count(), failures / try_failures(0), "invalid failures `0`: use 1 or more");
    refuses!(
        count(),
        failures / try_failures(21),
        "invalid failures `21`: use a number that is not larger than the window"
    );
    refuses!(
        consecutive(),
        failures / try_failures(2),
        "invalid failures `2`: only a breaker with a window has this setting"
    );
    refuses!(count(), calls_min / try_calls_min(0), "invalid calls_min `0`: use 1 or more");
    refuses!(
        count(),
        calls_min / try_calls_min(21),
        "invalid calls_min `21`: use a number that is not larger than the window"
    );
    refuses!(
        consecutive(),
        calls_min / try_calls_min(1),
        "invalid calls_min `1`: only a breaker with a window has this setting"
    );
    refuses!(
        count(),
        slow_calls / try_slow_calls(ZERO, 0.5),
        "invalid slow_calls `0.5 over 0s`: use a time above zero"
    );
    refuses!(
        consecutive(),
        slow_calls / try_slow_calls(seconds(1), 0.5),
        "invalid slow_calls `0.5 over 1s`: only a breaker with a window has this setting"
    );
}

#[test]
fn a_breaker_refuses_the_same_times_and_probes_in_both_forms() {
    let consecutive = || CircuitBreaker::consecutive(5);
    let custom = Backoff::custom("own", |_| seconds(1));
    refuses!(
        consecutive(),
        open_backoff / try_open_backoff(custom),
        "invalid open_backoff `own max 30s jitter full`: a breaker cannot use a custom backoff"
    );
    refuses!(
        consecutive(),
        probes_max / try_probes_max(0),
        "invalid probes_max `0`: use 1 to 1000"
    );
    refuses!(
        consecutive(),
        probes_max / try_probes_max(1_001),
        "invalid probes_max `1001`: use 1 to 1000"
    );
    refuses!(
        consecutive(),
        successes_to_close / try_successes_to_close(0),
        "invalid successes_to_close `0`: use 1 or more"
    );
    refuses!(
        consecutive(),
        probe_timeout / try_probe_timeout(ZERO),
        "invalid probe_timeout `0s`: use a time above zero"
    );
    check(
        consecutive().try_keyed::<u32>(0),
        || consecutive().keyed::<u32>(0),
        "invalid keys_max `0`: use 1 or more",
    );
}

#[test]
fn a_limiter_refuses_the_same_values_in_both_forms() {
    let century = seconds(100 * 365 * 86_400);
    refuses!(
        RateLimiter::per_second / try_per_second(0),
        "invalid rate `0 per 1s`: use 1 call or more"
    );
    refuses!(
        RateLimiter::per_second / try_per_second(1_000_000_001),
        "invalid rate `1000000001 per 1s`: use at most one call per nanosecond"
    );
    refuses!(
        RateLimiter::per / try_per(1, century + seconds(1)),
        "invalid rate `1 per 36500d1s`: use a period of at most a century"
    );
    assert!(RateLimiter::try_per(1, century).is_ok());
    refuses!(
        RateLimiter::sliding_window / try_sliding_window(0, seconds(1)),
        "invalid sliding_window `0 in any 1s`: use 1 call or more"
    );
    refuses!(
        RateLimiter::sliding_window / try_sliding_window(1, Duration::from_nanos(999)),
        "invalid sliding_window `1 in any 999ns`: use a window of a microsecond or longer"
    );
    let bucket = || RateLimiter::per(1, seconds(86_400));
    refuses!(bucket(), burst / try_burst(0), "invalid burst `0`: use 1 or more");
    refuses!(
        bucket(),
        burst / try_burst(36_501),
        "invalid burst `36501`: use a smaller burst or a higher rate; at this rate, the burst needs more than 100 years to refill"
    );
    let window = || RateLimiter::sliding_window(1, seconds(1));
    refuses!(
        window(),
        burst / try_burst(1),
        "invalid burst `1`: a sliding window has no burst: remove it"
    );
    check(
        bucket().try_keyed::<u32>(0),
        || bucket().keyed::<u32>(0),
        "invalid keys_max `0`: use 1 or more",
    );
}

#[test]
fn budgets_bulkheads_timeouts_and_statuses_refuse_the_same_values_in_both_forms() {
    let budget = || RetryBudget::ratio(0.2);
    refuses!(RetryBudget::ratio / try_ratio(1.1), "invalid ratio `1.1`: use 0 to 1");
    refuses!(
        RetryBudget::per_second / try_per_second(0),
        "invalid per_second `0`: use 1 to 1000000"
    );
    refuses!(
        RetryBudget::per_second / try_per_second(1_000_001),
        "invalid per_second `1000001`: use 1 to 1000000"
    );
    refuses!(
        budget(),
        floor_per_second / try_floor_per_second(1_000_001),
        "invalid floor_per_second `1000001`: use at most 1000000"
    );
    refuses!(budget(), burst / try_burst(0), "invalid burst `0`: use 1 to 1000000");
    refuses!(Bulkhead::concurrency / try_concurrency(0), "invalid concurrency `0`: use 1 or more");
    refuses!(Timeout::new / try_new(ZERO), "invalid timeout `0s`: use a time above zero");
    let set = StatusSet::EMPTY;
    refuses!(set, with / try_with(99), "invalid status `99`: use 100 to 599");
    refuses!(set, with / try_with(600), "invalid status `600`: use 100 to 599");
    refuses!(
        set,
        with_range / try_with_range(504, 500),
        "invalid status `504-500`: the start of a range must not be above its end"
    );
    refuses!(set, with_class / try_with_class(0), "invalid class `0`: use 1 to 5");
    refuses!(set, with_class / try_with_class(6), "invalid class `6`: use 1 to 5");
}

#[test]
fn retries_and_pipelines_have_forms_without_a_panic() {
    let retry = Retry::exponential(seconds(1));
    check_error(Retry::try_exponential(ZERO), "invalid base `0s`: use a first delay above zero");
    check_error(retry.try_attempts_max(0), "invalid attempts_max `0`: use 1 or more");
    check_error(retry.try_deadline(ZERO), "invalid deadline `0s`: use a time above zero");
    check_error(
        retry.try_attempt_timeout(ZERO),
        "invalid attempt_timeout `0s`: use a time above zero",
    );
    check_error(retry.try_delay_max(millis(1)), "invalid max `1ms`: use at least the first delay");
    let decorrelated = Retry::new(Backoff::decorrelated(seconds(1)));
    check_error(
        decorrelated.try_jitter(crate::Jitter::FULL),
        "invalid jitter `full`: decorrelated backoff is already random: remove the jitter",
    );
    check_error(Pipeline::new().try_timeout(ZERO), "invalid timeout `0s`: use a time above zero");
    check_error(
        Pipeline::new().try_attempt_timeout(ZERO),
        "invalid attempt_timeout `0s`: use a time above zero",
    );
    let built = retry
        .try_attempts_max(7)
        .and_then(|retry| retry.try_deadline(seconds(9))?.try_attempt_timeout(seconds(2)))
        .and_then(|retry| retry.try_delay_max(seconds(3)));
    let plain = retry.attempts_max(7).deadline(seconds(9)).attempt_timeout(seconds(2));
    assert_eq!(built, Ok(plain.delay_max(seconds(3))));
}

#[test]
fn what_is_allowed_is_built() -> Result<(), SettingError> {
    let window = CircuitBreaker::try_time_window(millis(10))?
        .try_failures(3)?
        .try_calls_min(4)?
        .try_slow_calls(seconds(1), 0.5)?
        .try_open_backoff(Backoff::fixed(seconds(1)))?
        .try_probes_max(2)?
        .try_successes_to_close(2)?
        .try_probe_timeout(seconds(1))?;
    let plain = CircuitBreaker::time_window(millis(10))
        .failures(3)
        .calls_min(4)
        .slow_calls(seconds(1), 0.5)
        .open_backoff(Backoff::fixed(seconds(1)))
        .probes_max(2)
        .successes_to_close(2)
        .probe_timeout(seconds(1));
    assert_eq!(format!("{window:?}"), format!("{plain:?}"));
    assert!(window.try_keyed::<u32>(1)?.is_empty());

    let limiter = RateLimiter::try_per_second(10)?.try_burst(3)?;
    assert_eq!(format!("{limiter:?}"), format!("{:?}", RateLimiter::per_second(10).burst(3)));
    let budget = RetryBudget::try_per_second(5)?.try_burst(3)?.try_floor_per_second(2)?;
    let plain = RetryBudget::per_second(5).burst(3).floor_per_second(2);
    assert_eq!(format!("{budget:?}"), format!("{plain:?}"));
    assert_eq!(StatusSet::EMPTY.try_with_class(4)?, StatusSet::EMPTY.with_class(4));
    Ok(())
}
