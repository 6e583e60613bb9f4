//! The error for a setting whose value is not allowed.

use std::fmt;

/// A setting of a policy has a value that is not allowed.
///
/// Every function that panics on a bad value has a second form that returns this error instead. Its
/// name starts with `try_`. Use it for values that come from a config file or from a user; a bad
/// value in a constant is a compile error already.
///
/// ```
/// use rewheel::{CircuitBreaker, RateLimiter, SettingError};
///
/// fn limiter(calls: u32, burst: u32) -> Result<RateLimiter, SettingError> {
///     Ok(RateLimiter::try_per_second(calls)?.try_burst(burst)?.build())
/// }
///
/// let error = limiter(100, 0).unwrap_err();
/// assert_eq!((error.setting(), error.value()), ("burst", "0"));
/// assert_eq!(error.to_string(), "invalid burst `0`: use 1 or more");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid {} `{value}`: {}", .rule.setting, .rule.allowed)]
pub struct SettingError {
    rule: NotAllowed,
    value: String,
}

impl SettingError {
    /// Returns the name of the setting.
    pub const fn setting(&self) -> &'static str {
        self.rule.setting
    }

    /// Returns the value that was given.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// Returns which values are allowed, or why the setting does not apply.
    pub const fn allowed(&self) -> &'static str {
        self.rule.allowed
    }
}

/// The part of a [`SettingError`] that a constant can make. See [`not_allowed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotAllowed {
    pub(crate) setting: &'static str,
    pub(crate) allowed: &'static str,
    /// Both in one text, because a constant cannot join texts when it panics.
    pub(crate) message: &'static str,
}

impl NotAllowed {
    /// Adds the value that is not allowed.
    #[cold]
    pub(crate) fn with(self, value: impl fmt::Display) -> SettingError {
        SettingError { rule: self, value: value.to_string() }
    }
}

/// Names a setting and what it allows.
macro_rules! not_allowed {
    ($setting:literal, $allowed:literal) => {
        $crate::setting::NotAllowed {
            setting: $setting,
            allowed: $allowed,
            message: concat!($setting, ": ", $allowed),
        }
    };
}
pub(crate) use not_allowed;

/// Returns a checked value.
///
/// # Panics
/// Panics if the value is not allowed; in a constant that is a compile error.
#[track_caller]
pub(crate) const fn valid<T: Copy>(checked: Result<T, NotAllowed>) -> T {
    match checked {
        Ok(value) => value,
        Err(rule) => panic!("{}", rule.message),
    }
}

/// Takes a count of at least one.
pub(crate) const fn one_or_more(count: u32, otherwise: NotAllowed) -> Result<u32, NotAllowed> {
    if count > 0 { Ok(count) } else { Err(otherwise) }
}

#[cfg(all(test, not(loom)))]
mod tests;
