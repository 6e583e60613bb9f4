//! Builds a hedge.

use super::latency::Latencies;
use super::{Delay, Hedge, Shared};
use crate::budget::RetryBudget;
use crate::clock::Clock;
use crate::duration::text;
use crate::observer::Observer;
use crate::ratio::Ratio;
use crate::setting::{NotAllowed, SettingError, not_allowed, valid};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

/// When an extra attempt starts.
#[derive(Clone, Copy, Debug)]
pub(super) enum When {
    After(Duration),
    SlowerThan { percentile: Ratio, window: u32, delay_min: Duration },
}

/// Builder of a [`Hedge`].
///
/// Defaults: one extra attempt; a budget of its own, which allows extra attempts for 10 % of the calls, and one per second at
/// any traffic; at a percentile, the latest 1,000 calls count, and no extra attempt starts within the first millisecond.
#[derive(Clone, Debug)]
pub struct HedgeBuilder {
    when: When,
    extra_max: u32,
    budget: Option<RetryBudget>,
    clock: Clock,
    name: Cow<'static, str>,
    observer: Option<Arc<dyn Observer>>,
}

/// Fewer calls say little about any percentile.
const SAMPLES_MIN: u32 = 20;

/// Enough for the slowest percent, few enough to follow a change of the load within seconds.
const WINDOW: u32 = 1_000;

/// Returns how many calls the slowest share of them needs to contain one call.
const fn samples_needed(percentile: Ratio) -> u32 {
    let slowest = Ratio::WHOLE - percentile.millionths();
    let needed = Ratio::WHOLE.div_ceil(slowest) as u32;
    if needed < SAMPLES_MIN { SAMPLES_MIN } else { needed }
}

pub(super) const fn checked_delay(delay: Duration) -> Result<Duration, NotAllowed> {
    if delay.is_zero() {
        return Err(not_allowed!("delay of a hedge", "use a time above zero"));
    }
    Ok(delay)
}

pub(super) const fn checked_percentile(percentile: f64) -> Result<When, NotAllowed> {
    const RULE: NotAllowed = not_allowed!("percentile", "use more than 0 and at most 0.99999");
    let Some(percentile) = Ratio::new(percentile) else { return Err(RULE) };
    if percentile.is_zero() || percentile.millionths() == Ratio::WHOLE {
        return Err(RULE);
    }
    let needed = samples_needed(percentile);
    if needed > Hedge::WINDOW_MAX {
        return Err(RULE);
    }
    let window = if needed > WINDOW { needed } else { WINDOW };
    Ok(When::SlowerThan { percentile, window, delay_min: Duration::from_millis(1) })
}

const fn checked_extra(extra_max: u32) -> Result<u32, NotAllowed> {
    if 0 < extra_max && extra_max <= Hedge::EXTRA_MAX {
        Ok(extra_max)
    } else {
        Err(not_allowed!("extra_max", "use 1 to 4"))
    }
}

const ONLY_TRACKED: &str = "only a hedge at a percentile has this setting";

impl When {
    const fn with_window(self, calls: u32) -> Result<When, NotAllowed> {
        match self {
            When::After(_) => Err(NotAllowed {
                setting: "window",
                allowed: ONLY_TRACKED,
                message: "window: only a hedge at a percentile has this setting",
            }),
            When::SlowerThan { percentile, delay_min, .. } => {
                if calls < samples_needed(percentile) || calls > Hedge::WINDOW_MAX {
                    return Err(not_allowed!(
                        "window",
                        "use at most 100000 calls, and enough that one of them is above the percentile, at least 20"
                    ));
                }
                Ok(When::SlowerThan { percentile, window: calls, delay_min })
            }
        }
    }

    const fn with_delay_min(self, delay_min: Duration) -> Result<When, NotAllowed> {
        match self {
            When::After(_) => Err(NotAllowed {
                setting: "delay_min",
                allowed: ONLY_TRACKED,
                message: "delay_min: only a hedge at a percentile has this setting",
            }),
            When::SlowerThan { percentile, window, .. } => {
                if delay_min.is_zero() {
                    return Err(not_allowed!("delay_min", "use a time above zero"));
                }
                Ok(When::SlowerThan { percentile, window, delay_min })
            }
        }
    }
}

impl HedgeBuilder {
    pub(super) const fn new(when: When) -> HedgeBuilder {
        HedgeBuilder {
            when,
            extra_max: 1,
            budget: None,
            clock: Clock::system(),
            name: Cow::Borrowed(""),
            observer: None,
        }
    }

    /// Sets the maximum number of extra attempts of a call. Each starts when the delay has passed since the last start.
    ///
    /// # Panics
    /// Panics if the number is not 1 to [`Hedge::EXTRA_MAX`]; in a constant that is a compile error.
    #[must_use]
    #[track_caller]
    pub const fn extra_max(mut self, attempts: u32) -> HedgeBuilder {
        self.extra_max = valid(checked_extra(attempts));
        self
    }

    /// As [`extra_max`](HedgeBuilder::extra_max), without the panic.
    ///
    /// # Errors
    /// Rejects a number outside of 1 to [`Hedge::EXTRA_MAX`].
    pub fn try_extra_max(mut self, attempts: u32) -> Result<HedgeBuilder, SettingError> {
        self.extra_max = checked_extra(attempts).map_err(|rule| rule.with(attempts))?;
        Ok(self)
    }

    /// Sets how many of the latest calls count for the percentile.
    ///
    /// # Panics
    /// Panics if the slowest part of so few calls is less than one call, if the number is less than 20 or more than
    /// [`Hedge::WINDOW_MAX`], and for a hedge after a fixed delay. In a constant that is a compile error.
    #[must_use]
    #[track_caller]
    pub const fn window(mut self, calls: u32) -> HedgeBuilder {
        self.when = valid(self.when.with_window(calls));
        self
    }

    /// As [`window`](HedgeBuilder::window), without the panic.
    ///
    /// ```
    /// use rewheel::Hedge;
    ///
    /// let error = Hedge::percentile(0.99).try_window(99).unwrap_err();
    /// assert_eq!((error.setting(), error.value()), ("window", "99"));
    /// ```
    ///
    /// # Errors
    /// Rejects what `window` panics at.
    pub fn try_window(mut self, calls: u32) -> Result<HedgeBuilder, SettingError> {
        self.when = self.when.with_window(calls).map_err(|rule| rule.with(calls))?;
        Ok(self)
    }

    /// Sets the shortest delay of a hedge at a percentile: if nearly all calls are very fast, an extra attempt for each that
    /// takes a little longer would be wasted work.
    ///
    /// # Panics
    /// Panics if the time is zero, and for a hedge after a fixed delay; in a constant that is a compile error.
    #[must_use]
    #[track_caller]
    pub const fn delay_min(mut self, delay: Duration) -> HedgeBuilder {
        self.when = valid(self.when.with_delay_min(delay));
        self
    }

    /// As [`delay_min`](HedgeBuilder::delay_min), without the panic.
    ///
    /// # Errors
    /// Rejects what `delay_min` panics at.
    pub fn try_delay_min(mut self, delay: Duration) -> Result<HedgeBuilder, SettingError> {
        self.when = self.when.with_delay_min(delay).map_err(|rule| rule.with(text(delay)))?;
        Ok(self)
    }

    /// Pays extra attempts from this budget. Use the budget of the retries around the same calls, so that retries and
    /// hedges together stay within its share.
    #[must_use]
    pub fn retry_budget(mut self, budget: &RetryBudget) -> HedgeBuilder {
        self.budget = Some(budget.clone());
        self
    }

    /// Uses another clock.
    #[must_use]
    pub fn clock(mut self, clock: impl Into<Clock>) -> HedgeBuilder {
        self.clock = clock.into();
        self
    }

    /// Sets the name, for logs and telemetry.
    #[must_use]
    pub fn named(mut self, name: impl Into<Cow<'static, str>>) -> HedgeBuilder {
        self.name = name.into();
        self
    }

    /// Reports events to an observer.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> HedgeBuilder {
        self.observer = Some(observer);
        self
    }

    /// Creates the hedge.
    pub fn build(self) -> Hedge {
        let budget = self.budget.unwrap_or_else(|| {
            let budget = RetryBudget::ratio(0.1).floor_per_second(1).clock(self.clock.clone());
            budget.named(self.name.clone()).build()
        });
        let delay = match self.when {
            When::After(delay) => Delay::Fixed(delay),
            When::SlowerThan { percentile, window, delay_min } => {
                let samples_min = samples_needed(percentile);
                Delay::Tracked(Box::new(Latencies::new(percentile, window, samples_min, delay_min)))
            }
        };
        Hedge {
            shared: Arc::new(Shared {
                delay,
                extra_max: self.extra_max,
                budget,
                clock: self.clock,
                name: self.name,
                observer: self.observer,
            }),
        }
    }
}
