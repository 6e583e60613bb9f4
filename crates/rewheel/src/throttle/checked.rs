//! Checks the settings of a client throttle.

use super::{ClientThrottle, ClientThrottleBuilder, FACTOR_ONE};
use crate::duration::text;
use crate::setting::{NotAllowed, SettingError, not_allowed};
use std::time::Duration;

pub(super) const fn factor(factor: f64) -> Result<u64, NotAllowed> {
    if factor >= 1.0 && factor <= 1_000.0 {
        Ok((factor * FACTOR_ONE as f64 + 0.5) as u64)
    } else {
        Err(not_allowed!("accepts_times", "use 1 to 1000"))
    }
}

pub(super) const fn window(length: Duration) -> Result<Duration, NotAllowed> {
    const DAY: u64 = 86_400;
    if length.as_secs() >= 1 && length.as_secs() <= DAY {
        Ok(length)
    } else {
        Err(not_allowed!("window", "use 1s to 1d"))
    }
}

pub(super) const fn floor(calls: u32) -> Result<u32, NotAllowed> {
    if calls <= 1_000_000 {
        Ok(calls)
    } else {
        Err(not_allowed!("floor_per_second", "use at most 1000000"))
    }
}

/// The forms for values that are known only at run time: from a config file, or from a user.
impl ClientThrottle {
    /// As [`accepts_times`](ClientThrottle::accepts_times), without the panic.
    ///
    /// ```
    /// let error = rewheel::ClientThrottle::try_accepts_times(0.5).unwrap_err();
    /// assert_eq!(error.to_string(), "invalid accepts_times `0.5`: use 1 to 1000");
    /// ```
    ///
    /// # Errors
    /// Rejects a factor that is not 1 to 1000.
    pub fn try_accepts_times(times: f64) -> Result<ClientThrottleBuilder, SettingError> {
        let factor = factor(times).map_err(|rule| rule.with(times))?;
        Ok(ClientThrottleBuilder::new(factor))
    }
}

impl ClientThrottleBuilder {
    /// As [`window`](ClientThrottleBuilder::window), without the panic.
    ///
    /// # Errors
    /// Rejects a period below a second or above a day.
    pub fn try_window(mut self, length: Duration) -> Result<ClientThrottleBuilder, SettingError> {
        self.window = window(length).map_err(|rule| rule.with(text(length)))?;
        Ok(self)
    }

    /// As [`floor_per_second`](ClientThrottleBuilder::floor_per_second), without the panic.
    ///
    /// # Errors
    /// Rejects more than a million.
    pub fn try_floor_per_second(
        mut self,
        calls: u32,
    ) -> Result<ClientThrottleBuilder, SettingError> {
        self.floor = floor(calls).map_err(|rule| rule.with(calls))?;
        Ok(self)
    }
}
