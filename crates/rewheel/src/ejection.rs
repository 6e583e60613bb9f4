//! Outlier ejection: leaves out a target that fails clearly more than the others.

mod machine;

pub(crate) use self::machine::Ejections;

use crate::duration::text;
use crate::ratio::Ratio;
use crate::setting::{NotAllowed, SettingError, not_allowed, one_or_more, valid};
use std::fmt;
use std::time::Duration;

/// When a [`Failover`](crate::Failover) leaves out a target: if it fails clearly more often than the other targets.
///
/// A circuit breaker opens when a target is down. It does not open for a target that fails one call in five, although the
/// others fail none. If all targets fail alike, the fault is elsewhere, and none is left out.
///
/// At most half of the targets are left out at a time. A target that is left out again stays out twice as long as before. Each
/// [`time`](OutlierEjection::time) without another ejection halves that again.
///
/// ```
/// use rewheel::{Failover, OutlierEjection, seconds};
///
/// const RULES: OutlierEjection = OutlierEjection::margin(0.2).calls_min(50).time(seconds(60));
///
/// let replicas = Failover::over(["a:5432", "b:5432", "c:5432"]).round_robin().ejection(RULES).build();
/// # let _ = replicas;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutlierEjection {
    margin: Ratio,
    calls_min: u32,
    window: Duration,
    time: Duration,
    time_max: Duration,
}

const fn checked_margin(margin: f64) -> Result<Ratio, NotAllowed> {
    match Ratio::new(margin) {
        Some(ratio) if !ratio.is_zero() => Ok(ratio),
        Some(_) | None => Err(not_allowed!("margin", "use a ratio above 0, at most 1")),
    }
}

impl OutlierEjection {
    /// Leaves out a target whose failure ratio is this much above the failure ratio of all other targets together: with 0.3, a
    /// target that fails 45 % of its calls while the others fail 15 %.
    ///
    /// Defaults: it counts the calls of the last 10 s; the target and the others must have at least 20 calls each; the target
    /// is left out for 30 s, at most for 5 min.
    ///
    /// # Panics
    /// Panics if the value is not above 0 and at most 1; in a constant that is a compile error.
    #[track_caller]
    pub const fn margin(margin: f64) -> OutlierEjection {
        OutlierEjection::of_margin(valid(checked_margin(margin)))
    }

    /// As [`margin`](OutlierEjection::margin), without the panic.
    ///
    /// # Errors
    /// Rejects a value that is not above 0 and at most 1.
    pub fn try_margin(margin: f64) -> Result<OutlierEjection, SettingError> {
        let margin = checked_margin(margin).map_err(|rule| rule.with(margin))?;
        Ok(OutlierEjection::of_margin(margin))
    }

    const fn of_margin(margin: Ratio) -> OutlierEjection {
        OutlierEjection {
            margin,
            calls_min: 20,
            window: Duration::from_secs(10),
            time: Duration::from_secs(30),
            time_max: Duration::from_secs(300),
        }
    }

    const fn checked(self) -> Result<OutlierEjection, NotAllowed> {
        if self.window.as_millis() < 10 {
            return Err(not_allowed!("window", "use 10ms or longer"));
        }
        // Otherwise a target would be left out again for the failures that it was left out for.
        if self.time.as_nanos() < self.window.as_nanos() {
            return Err(not_allowed!("time", "use at least the time of the window"));
        }
        if self.time_max.as_nanos() < self.time.as_nanos() {
            return Err(not_allowed!("time_max", "use at least the time of the first ejection"));
        }
        Ok(self)
    }

    /// Sets how many calls the target, and all others together, must have within the window.
    ///
    /// # Panics
    /// Panics if the number is zero; in a constant that is a compile error.
    #[must_use]
    #[track_caller]
    pub const fn calls_min(mut self, calls: u32) -> OutlierEjection {
        self.calls_min = valid(one_or_more(calls, not_allowed!("calls_min", "use 1 or more")));
        self
    }

    /// Sets the time within which calls count, and for how long a target is left out the first time and at most.
    ///
    /// # Errors
    /// Rejects a window of less than ten milliseconds, a time that is shorter than the window, and a maximum below the time.
    ///
    /// ```
    /// use rewheel::{OutlierEjection, minutes, seconds};
    ///
    /// let rules = OutlierEjection::margin(0.3).try_times(seconds(5), seconds(20), minutes(2))?;
    /// let error = rules.try_times(seconds(5), seconds(1), minutes(2)).unwrap_err();
    /// assert_eq!(error.to_string(), "invalid time `1s`: use at least the time of the window");
    /// # Ok::<_, rewheel::SettingError>(())
    /// ```
    pub fn try_times(
        mut self,
        window: Duration,
        time: Duration,
        time_max: Duration,
    ) -> Result<OutlierEjection, SettingError> {
        (self.window, self.time, self.time_max) = (window, time, time_max);
        self.checked().map_err(|rule| {
            let value = match rule.setting {
                "window" => window,
                "time" => time,
                _ => time_max,
            };
            rule.with(text(value))
        })
    }

    /// Sets the time within which calls count.
    ///
    /// # Panics
    /// Panics if it is less than ten milliseconds or longer than [`time`](OutlierEjection::time), which must be set before;
    /// in a constant that is a compile error.
    #[must_use]
    #[track_caller]
    pub const fn window(mut self, window: Duration) -> OutlierEjection {
        self.window = window;
        valid(self.checked())
    }

    /// Sets for how long a target is left out the first time.
    ///
    /// # Panics
    /// Panics if it is shorter than the window or longer than the maximum; in a constant that is a compile error.
    #[must_use]
    #[track_caller]
    pub const fn time(mut self, time: Duration) -> OutlierEjection {
        self.time = time;
        valid(self.checked())
    }

    /// Sets for how long a target is left out at most.
    ///
    /// # Panics
    /// Panics if it is shorter than the first time; in a constant that is a compile error.
    #[must_use]
    #[track_caller]
    pub const fn time_max(mut self, time: Duration) -> OutlierEjection {
        self.time_max = time;
        valid(self.checked())
    }
}

impl fmt::Display for OutlierEjection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OutlierEjection { margin, calls_min, window, time, time_max } = self;
        let [window, time, time_max] = [window, time, time_max].map(|time| text(*time));
        write!(f, "leaves out a target that fails {margin} more than the others ")?;
        write!(f, "in {window} ({calls_min} calls or more), for {time} to {time_max}")
    }
}

#[cfg(test)]
mod tests;
