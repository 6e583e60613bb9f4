//! Builds limiters from values that may not be allowed.

use super::gcra::Bucket;
use super::sliding::Limit;
use super::{KeyedRateLimiter, RateLimiter, RateLimiterBuilder, Rule};
use crate::duration::{nanos, text};
use crate::keyed::checked_keys_max;
use crate::setting::{NotAllowed, SettingError, not_allowed};
use std::hash::Hash;
use std::time::Duration;

pub(super) const fn rate(calls: u32, period: Duration) -> Result<Rule, NotAllowed> {
    if calls == 0 {
        return Err(not_allowed!("rate", "use 1 call or more"));
    }
    if nanos(period) < calls as u64 {
        return Err(not_allowed!("rate", "use at most one call per nanosecond"));
    }
    // Rounded up: the limit is never exceeded, not even by a fraction.
    let interval = nanos(period).div_ceil(calls as u64);
    let bucket = Bucket::new(interval, calls as u64);
    if !fills(&bucket) {
        return Err(not_allowed!("rate", "use a period of at most a century"));
    }
    Ok(Rule::Bucket(bucket))
}

pub(super) const fn window(calls: u32, window: Duration) -> Result<Rule, NotAllowed> {
    if calls == 0 {
        return Err(not_allowed!("sliding_window", "use 1 call or more"));
    }
    if nanos(window) < 1_000 {
        return Err(not_allowed!("sliding_window", "use a window of a microsecond or longer"));
    }
    Ok(Rule::Window(Limit::new(calls as u64, nanos(window))))
}

pub(super) const fn burst(rule: Rule, calls: u32) -> Result<Rule, NotAllowed> {
    if calls == 0 {
        return Err(not_allowed!("burst", "use 1 or more"));
    }
    match rule {
        Rule::Bucket(bucket) => {
            let bucket = Bucket::new(bucket.interval(), calls as u64);
            if !fills(&bucket) {
                return Err(not_allowed!(
                    "burst",
                    "use a smaller burst or a higher rate; at this rate, the burst needs more than 100 years to refill"
                ));
            }
            Ok(Rule::Bucket(bucket))
        }
        Rule::Window(_) => Err(not_allowed!("burst", "a sliding window has no burst: remove it")),
    }
}

/// Returns whether an empty bucket is full again within a century: the sums that it does with
/// moments then stay far from overflowing.
const fn fills(bucket: &Bucket) -> bool {
    const FILL_MAX: u64 = 100 * 365 * 86_400 * 1_000_000_000;
    match bucket.interval().checked_mul(bucket.burst()) {
        Some(fill) => fill <= FILL_MAX,
        None => false,
    }
}

/// The forms for values that are known only at run time: from a config file, or from a user.
///
/// ```
/// use rewheel::{RateLimiter, seconds};
///
/// let limiter = RateLimiter::try_per(100, seconds(60))?.try_burst(10)?.build();
/// let error = RateLimiter::try_per(0, seconds(60)).unwrap_err();
/// assert_eq!(error.to_string(), "invalid rate `0 per 1m`: use 1 call or more");
/// # assert!(limiter.check().is_ok());
/// # Ok::<_, rewheel::SettingError>(())
/// ```
impl RateLimiter {
    /// As [`per_second`](RateLimiter::per_second), without the panic.
    ///
    /// # Errors
    /// Rejects a number outside of 1 to a thousand million.
    pub fn try_per_second(calls: u32) -> Result<RateLimiterBuilder, SettingError> {
        RateLimiter::try_per(calls, Duration::from_secs(1))
    }

    /// As [`per`](RateLimiter::per), without the panic.
    ///
    /// # Errors
    /// Rejects a rate of zero calls, a rate of more than one call per nanosecond, and a period above a century.
    pub fn try_per(calls: u32, period: Duration) -> Result<RateLimiterBuilder, SettingError> {
        let shown = format_args!("{calls} per {}", text(period));
        let rule = rate(calls, period).map_err(|rule| rule.with(shown))?;
        Ok(RateLimiterBuilder::new(rule, calls, period))
    }

    /// As [`sliding_window`](RateLimiter::sliding_window), without the panic.
    ///
    /// # Errors
    /// Rejects a window of zero calls, and a window below a microsecond.
    pub fn try_sliding_window(
        calls: u32,
        length: Duration,
    ) -> Result<RateLimiterBuilder, SettingError> {
        let shown = format_args!("{calls} in any {}", text(length));
        let rule = window(calls, length).map_err(|rule| rule.with(shown))?;
        Ok(RateLimiterBuilder::new(rule, calls, length))
    }
}

impl RateLimiterBuilder {
    /// As [`burst`](RateLimiterBuilder::burst), without the panic.
    ///
    /// # Errors
    /// Rejects a burst of zero, a burst that takes more than a century to refill, and any burst of a sliding window.
    pub fn try_burst(mut self, calls: u32) -> Result<RateLimiterBuilder, SettingError> {
        self.rule = burst(self.rule, calls).map_err(|rule| rule.with(calls))?;
        Ok(self)
    }

    /// As [`keyed`](RateLimiterBuilder::keyed), without the panic.
    ///
    /// # Errors
    /// Rejects a limit of zero keys.
    pub fn try_keyed<K: Hash + Eq + Clone>(
        self,
        keys_max: usize,
    ) -> Result<KeyedRateLimiter<K>, SettingError> {
        let keys_max = checked_keys_max(keys_max).map_err(|rule| rule.with(keys_max))?;
        Ok(KeyedRateLimiter::new(self, keys_max))
    }
}
