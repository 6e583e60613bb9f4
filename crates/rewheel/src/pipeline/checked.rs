//! Builds pipelines from values that may not be allowed.

use super::{Pipeline, Step};
use crate::duration::text;
use crate::setting::{SettingError, not_allowed};
use std::time::Duration;

/// The forms for values that are known only at run time: from a config file, or from a user.
///
/// ```
/// use rewheel::{Pipeline, seconds};
///
/// let error = Pipeline::new().try_timeout(seconds(0)).unwrap_err();
/// assert_eq!(error.to_string(), "invalid timeout `0s`: use a time above zero");
/// ```
impl Pipeline {
    /// As [`timeout`](Pipeline::timeout), without the panic for a limit of zero.
    ///
    /// # Errors
    /// Rejects a limit of zero.
    ///
    /// # Panics
    /// Panics, like every policy, if there are [`Pipeline::STEPS_MAX`] already.
    pub fn try_timeout(self, limit: Duration) -> Result<Pipeline, SettingError> {
        if limit.is_zero() {
            return Err(not_allowed!("timeout", "use a time above zero").with(text(limit)));
        }
        Ok(self.step(Step::Timeout(limit)))
    }

    /// As [`attempt_timeout`](Pipeline::attempt_timeout), without the panic for a limit of zero.
    ///
    /// # Errors
    /// Rejects a limit of zero.
    ///
    /// # Panics
    /// Panics, like every policy, if there are [`Pipeline::STEPS_MAX`] already.
    pub fn try_attempt_timeout(self, limit: Duration) -> Result<Pipeline, SettingError> {
        if limit.is_zero() {
            let rule = not_allowed!("attempt_timeout", "use a time above zero");
            return Err(rule.with(text(limit)));
        }
        Ok(self.step(Step::AttemptTimeout(limit)))
    }
}
