//! Builds breakers from values that may not be allowed.

use super::config::{Slow, Threshold, Trip, When};
use super::{CircuitBreaker, CircuitBreakerBuilder, KeyedCircuitBreaker};
use crate::backoff::Backoff;
use crate::duration::text;
use crate::keyed::checked_keys_max;
use crate::ratio::Ratio;
use crate::setting::{NotAllowed, SettingError, not_allowed, one_or_more};
use std::hash::Hash;
use std::time::Duration;

type Checked<T> = Result<T, NotAllowed>;

impl Trip {
    pub(super) const fn consecutive(failures: u32) -> Checked<Trip> {
        match one_or_more(failures, not_allowed!("consecutive", "use 1 failure or more")) {
            Ok(failures) => Ok(Trip::Consecutive { failures }),
            Err(rule) => Err(rule),
        }
    }

    pub(super) const fn count_window(size: u32) -> Checked<Trip> {
        if size == 0 || size > 1_000_000 {
            return Err(not_allowed!("count_window", "use 1 to 1000000 calls"));
        }
        let mut when = When::DEFAULT;
        if size < when.calls_min {
            when.calls_min = size;
        }
        Ok(Trip::Count { size, when })
    }

    pub(super) const fn time_window(length: Duration) -> Checked<Trip> {
        if length.as_millis() < 10 {
            return Err(not_allowed!("time_window", "use 10ms or longer"));
        }
        Ok(Trip::Time { length, when: When::DEFAULT })
    }

    pub(super) const fn failure_ratio(mut self, ratio: f64) -> Checked<Trip> {
        let Some(ratio) = positive(ratio) else {
            return Err(not_allowed!("failure_ratio", "use a ratio above 0, at most 1"));
        };
        match self.when() {
            Some(when) => when.failures = Threshold::Ratio(ratio),
            None => {
                return Err(not_allowed!(
                    "failure_ratio",
                    "only a breaker with a window has this setting"
                ));
            }
        }
        Ok(self)
    }

    pub(super) const fn failures(mut self, failures: u32) -> Checked<Trip> {
        if failures == 0 {
            return Err(not_allowed!("failures", "use 1 or more"));
        }
        if self.is_smaller_than(failures) {
            return Err(not_allowed!(
                "failures",
                "use a number that is not larger than the window"
            ));
        }
        match self.when() {
            Some(when) => when.failures = Threshold::Number(failures),
            None => {
                return Err(not_allowed!(
                    "failures",
                    "only a breaker with a window has this setting"
                ));
            }
        }
        Ok(self)
    }

    pub(super) const fn calls_min(mut self, calls: u32) -> Checked<Trip> {
        if calls == 0 {
            return Err(not_allowed!("calls_min", "use 1 or more"));
        }
        if self.is_smaller_than(calls) {
            return Err(not_allowed!(
                "calls_min",
                "use a number that is not larger than the window"
            ));
        }
        match self.when() {
            Some(when) => when.calls_min = calls,
            None => {
                return Err(not_allowed!(
                    "calls_min",
                    "only a breaker with a window has this setting"
                ));
            }
        }
        Ok(self)
    }

    pub(super) const fn slow_calls(mut self, over: Duration, ratio: f64) -> Checked<Trip> {
        let Some(ratio) = positive(ratio) else {
            return Err(not_allowed!("slow_calls", "use a ratio above 0, at most 1"));
        };
        if over.is_zero() {
            return Err(not_allowed!("slow_calls", "use a time above zero"));
        }
        match self.when() {
            Some(when) => when.slow = Some(Slow { over, ratio }),
            None => {
                return Err(not_allowed!(
                    "slow_calls",
                    "only a breaker with a window has this setting"
                ));
            }
        }
        Ok(self)
    }

    const fn when(&mut self) -> Option<&mut When> {
        match self {
            Trip::Count { when, .. } | Trip::Time { when, .. } => Some(when),
            Trip::Consecutive { .. } => None,
        }
    }

    /// Returns whether its window can never hold so many calls.
    const fn is_smaller_than(&self, calls: u32) -> bool {
        match self {
            Trip::Count { size, .. } => calls > *size,
            Trip::Time { .. } | Trip::Consecutive { .. } => false,
        }
    }
}

pub(super) const fn open_backoff(backoff: Backoff) -> Checked<Backoff> {
    if backoff.is_custom() {
        return Err(not_allowed!("open_backoff", "a breaker cannot use a custom backoff"));
    }
    Ok(backoff)
}

pub(super) const fn probes_max(probes: u32) -> Checked<u32> {
    if probes == 0 || probes > 1_000 {
        return Err(not_allowed!("probes_max", "use 1 to 1000"));
    }
    Ok(probes)
}

pub(super) const fn successes_to_close(successes: u32) -> Checked<u32> {
    one_or_more(successes, not_allowed!("successes_to_close", "use 1 or more"))
}

pub(super) const fn probe_timeout(timeout: Duration) -> Checked<Duration> {
    if timeout.is_zero() {
        return Err(not_allowed!("probe_timeout", "use a time above zero"));
    }
    Ok(timeout)
}

pub(super) const fn retry_after_max(time_max: Duration) -> Checked<Duration> {
    const DAY: u64 = 86_400;
    if time_max.is_zero() || time_max.as_secs() > DAY {
        return Err(not_allowed!("open_for_retry_after", "use a time above zero, at most 1d"));
    }
    Ok(time_max)
}

const fn positive(ratio: f64) -> Option<Ratio> {
    match Ratio::new(ratio) {
        // Finer than a ratio is kept: as little as there can be is still something.
        Some(least) if least.is_zero() && ratio > 0.0 => Some(Ratio::from_millionths(1)),
        Some(ratio) if !ratio.is_zero() => Some(ratio),
        _ => None,
    }
}

/// The forms for values that are known only at run time: from a config file, or from a user.
///
/// ```
/// use rewheel::{CircuitBreaker, seconds};
///
/// let breaker = CircuitBreaker::try_count_window(100)?.try_failure_ratio(0.3)?.build();
/// let error = CircuitBreaker::try_consecutive(5)?.try_failure_ratio(0.3).unwrap_err();
/// assert_eq!(error.setting(), "failure_ratio");
/// assert_eq!(error.allowed(), "only a breaker with a window has this setting");
/// # assert!(breaker.acquire().is_ok());
/// # Ok::<_, rewheel::SettingError>(())
/// ```
impl CircuitBreaker {
    /// As [`consecutive`](CircuitBreaker::consecutive), without the panic.
    ///
    /// # Errors
    /// Rejects zero.
    pub fn try_consecutive(failures: u32) -> Result<CircuitBreakerBuilder, SettingError> {
        let trip = Trip::consecutive(failures).map_err(|rule| rule.with(failures))?;
        Ok(CircuitBreakerBuilder::new(trip))
    }

    /// As [`count_window`](CircuitBreaker::count_window), without the panic.
    ///
    /// # Errors
    /// Rejects a number outside of 1 to a million.
    pub fn try_count_window(calls: u32) -> Result<CircuitBreakerBuilder, SettingError> {
        let trip = Trip::count_window(calls).map_err(|rule| rule.with(calls))?;
        Ok(CircuitBreakerBuilder::new(trip))
    }

    /// As [`time_window`](CircuitBreaker::time_window), without the panic.
    ///
    /// # Errors
    /// Rejects a window below ten milliseconds.
    pub fn try_time_window(length: Duration) -> Result<CircuitBreakerBuilder, SettingError> {
        let trip = Trip::time_window(length).map_err(|rule| rule.with(text(length)))?;
        Ok(CircuitBreakerBuilder::new(trip))
    }
}

/// The forms for values that are known only at run time.
impl CircuitBreakerBuilder {
    /// As [`failure_ratio`](CircuitBreakerBuilder::failure_ratio), without the panic.
    ///
    /// # Errors
    /// Rejects a ratio that is not above 0 and at most 1, and a breaker without a window.
    pub fn try_failure_ratio(mut self, ratio: f64) -> Result<CircuitBreakerBuilder, SettingError> {
        self.trip = self.trip.failure_ratio(ratio).map_err(|rule| rule.with(ratio))?;
        Ok(self)
    }

    /// As [`failures`](CircuitBreakerBuilder::failures), without the panic.
    ///
    /// # Errors
    /// Rejects zero, more than the window holds, and a breaker without a window.
    pub fn try_failures(mut self, failures: u32) -> Result<CircuitBreakerBuilder, SettingError> {
        self.trip = self.trip.failures(failures).map_err(|rule| rule.with(failures))?;
        Ok(self)
    }

    /// As [`calls_min`](CircuitBreakerBuilder::calls_min), without the panic.
    ///
    /// # Errors
    /// Rejects zero, more than the window holds, and a breaker without a window.
    pub fn try_calls_min(mut self, calls: u32) -> Result<CircuitBreakerBuilder, SettingError> {
        self.trip = self.trip.calls_min(calls).map_err(|rule| rule.with(calls))?;
        Ok(self)
    }

    /// As [`slow_calls`](CircuitBreakerBuilder::slow_calls), without the panic.
    ///
    /// # Errors
    /// Rejects a time of zero, a ratio that is not above 0 and at most 1, and a breaker without a
    /// window.
    pub fn try_slow_calls(
        mut self,
        over: Duration,
        ratio: f64,
    ) -> Result<CircuitBreakerBuilder, SettingError> {
        let shown = format_args!("{ratio} over {}", text(over));
        self.trip = self.trip.slow_calls(over, ratio).map_err(|rule| rule.with(shown))?;
        Ok(self)
    }

    /// As [`open_backoff`](CircuitBreakerBuilder::open_backoff), without the panic.
    ///
    /// # Errors
    /// Rejects a custom backoff.
    pub fn try_open_backoff(
        mut self,
        backoff: Backoff,
    ) -> Result<CircuitBreakerBuilder, SettingError> {
        self.open = open_backoff(backoff).map_err(|rule| rule.with(backoff))?;
        Ok(self)
    }

    /// As [`probes_max`](CircuitBreakerBuilder::probes_max), without the panic.
    ///
    /// # Errors
    /// Rejects a number outside of 1 to a thousand.
    pub fn try_probes_max(mut self, probes: u32) -> Result<CircuitBreakerBuilder, SettingError> {
        self.probes_max = probes_max(probes).map_err(|rule| rule.with(probes))?;
        Ok(self)
    }

    /// As [`successes_to_close`](CircuitBreakerBuilder::successes_to_close), without the panic.
    ///
    /// # Errors
    /// Rejects zero.
    pub fn try_successes_to_close(
        mut self,
        successes: u32,
    ) -> Result<CircuitBreakerBuilder, SettingError> {
        let checked = successes_to_close(successes);
        self.successes_to_close = checked.map_err(|rule| rule.with(successes))?;
        Ok(self)
    }

    /// As [`probe_timeout`](CircuitBreakerBuilder::probe_timeout), without the panic.
    ///
    /// # Errors
    /// Rejects a time of zero.
    pub fn try_probe_timeout(
        mut self,
        timeout: Duration,
    ) -> Result<CircuitBreakerBuilder, SettingError> {
        self.probe_timeout = probe_timeout(timeout).map_err(|rule| rule.with(text(timeout)))?;
        Ok(self)
    }

    /// As [`open_for_retry_after`](CircuitBreakerBuilder::open_for_retry_after), without the panic.
    ///
    /// # Errors
    /// Rejects a time of zero or above a day.
    pub fn try_open_for_retry_after(
        mut self,
        time_max: Duration,
    ) -> Result<CircuitBreakerBuilder, SettingError> {
        let checked = retry_after_max(time_max);
        self.retry_after_max = checked.map_err(|rule| rule.with(text(time_max)))?;
        Ok(self)
    }

    /// As [`keyed`](CircuitBreakerBuilder::keyed), without the panic.
    ///
    /// # Errors
    /// Rejects a limit of zero keys.
    pub fn try_keyed<K: Hash + Eq + Clone>(
        self,
        keys_max: usize,
    ) -> Result<KeyedCircuitBreaker<K>, SettingError> {
        let keys_max = checked_keys_max(keys_max).map_err(|rule| rule.with(keys_max))?;
        Ok(self.keyed(keys_max))
    }
}
