//! Builds retry policies from values that may not be allowed.

use super::Retry;
use crate::backoff::{Backoff, Jitter};
use crate::duration::{nanos, text};
use crate::setting::{SettingError, not_allowed};
use std::time::Duration;

/// The forms for values that are known only at run time: from a config file, or from a user. A text
/// such as `3 attempts, fixed 1s` is read by [`FromStr`](std::str::FromStr) instead.
///
/// ```
/// use rewheel::{Retry, millis};
///
/// let retry = Retry::try_exponential(millis(100))?.try_attempts_max(5)?;
/// let error = retry.try_attempts_max(0).unwrap_err();
/// assert_eq!(error.to_string(), "invalid attempts_max `0`: use 1 or more");
/// # Ok::<_, rewheel::SettingError>(())
/// ```
impl Retry {
    /// As [`exponential`](Retry::exponential), without the panic.
    ///
    /// # Errors
    /// Rejects a `base` of zero.
    pub fn try_exponential(base: Duration) -> Result<Retry, SettingError> {
        Backoff::try_exponential(base).map(Retry::new)
    }

    /// As [`attempts_max`](Retry::attempts_max), without the panic.
    ///
    /// # Errors
    /// Rejects zero.
    pub fn try_attempts_max(self, attempts_max: u32) -> Result<Retry, SettingError> {
        if attempts_max == 0 {
            return Err(not_allowed!("attempts_max", "use 1 or more").with(attempts_max));
        }
        Ok(Retry { attempts_max, ..self })
    }

    /// As [`deadline`](Retry::deadline), without the panic.
    ///
    /// # Errors
    /// Rejects a deadline of zero.
    pub fn try_deadline(self, deadline: Duration) -> Result<Retry, SettingError> {
        if deadline.is_zero() {
            return Err(not_allowed!("deadline", "use a time above zero").with(text(deadline)));
        }
        Ok(Retry { deadline: nanos(deadline), ..self })
    }

    /// As [`attempt_timeout`](Retry::attempt_timeout), without the panic.
    ///
    /// # Errors
    /// Rejects a timeout of zero.
    pub fn try_attempt_timeout(self, timeout: Duration) -> Result<Retry, SettingError> {
        if timeout.is_zero() {
            let rule = not_allowed!("attempt_timeout", "use a time above zero");
            return Err(rule.with(text(timeout)));
        }
        Ok(Retry { attempt_timeout: nanos(timeout), ..self })
    }

    /// As [`delay_max`](Retry::delay_max), without the panic.
    ///
    /// # Errors
    /// Rejects a delay below the first delay.
    pub fn try_delay_max(self, delay: Duration) -> Result<Retry, SettingError> {
        Ok(Retry { backoff: self.backoff.try_max(delay)?, ..self })
    }

    /// As [`jitter`](Retry::jitter), without the panic.
    ///
    /// # Errors
    /// Rejects any jitter on a decorrelated backoff.
    pub fn try_jitter(self, jitter: Jitter) -> Result<Retry, SettingError> {
        Ok(Retry { backoff: self.backoff.try_jitter(jitter)?, ..self })
    }
}
