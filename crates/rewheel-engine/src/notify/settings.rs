//! Settings of notifiers: rate limits and timeouts.

use crate::settings::SettingError;
use std::time::Duration;

/// Maximum queue length of one notifier: each notice takes a few kilobytes.
const QUEUE_MAX: usize = 100_000;

/// The settings of all notifiers of an engine.
///
/// ```
/// use rewheel_engine::notify::NotifySettings;
///
/// let none = NotifySettings { window_max: 0, ..NotifySettings::default() };
/// assert_eq!(none.check().unwrap_err().to_string(), "window_max: must be 1 or more");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotifySettings {
    /// Length of a window. In one window a notifier gets at most `window_max` notices; at the end
    /// of the window it gets a summary of the others.
    pub window: Duration,
    /// Maximum number of notices per window.
    pub window_max: u32,
    /// Maximum number of notices that wait for one notifier. Further notices are only counted in a summary.
    pub queue_max: usize,
    /// Timeout of one delivery attempt.
    pub timeout: Duration,
}

impl Default for NotifySettings {
    fn default() -> NotifySettings {
        NotifySettings {
            window: Duration::from_secs(30),
            window_max: 50,
            queue_max: 1_000,
            timeout: Duration::from_secs(10),
        }
    }
}

impl NotifySettings {
    /// Checks the settings.
    ///
    /// # Errors
    /// Fails with the first invalid setting.
    pub fn check(&self) -> Result<(), SettingError> {
        let wrong = |name, why: &'static str| Err(SettingError { name, why: why.into() });
        if self.window < Duration::from_secs(1) {
            return wrong("window", "must be 1s or longer");
        }
        if self.window > Duration::from_secs(3_600) {
            return wrong(
                "window",
                "must be 1h or shorter, because a summary is sent only at the end of the window",
            );
        }
        if self.window_max == 0 {
            return wrong("window_max", "must be 1 or more");
        }
        if self.queue_max == 0 || self.queue_max > QUEUE_MAX {
            return wrong("queue_max", "must be 1 to 100000");
        }
        if self.timeout < Duration::from_millis(1) {
            return wrong("timeout", "must be 1ms or longer");
        }
        if self.timeout > Duration::from_secs(300) {
            return wrong("timeout", "must be 5m or shorter");
        }
        Ok(())
    }
}
