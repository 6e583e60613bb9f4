//! Builds backoffs from values that may not be allowed.

use super::custom::Custom;
use super::growth::{Factor, Growth};
use super::{Backoff, Jitter, registry};
use crate::duration::{nanos, text};
use crate::setting::{NotAllowed, SettingError, not_allowed};
use std::time::Duration;

type Checked = Result<Backoff, NotAllowed>;

impl Backoff {
    pub(super) const fn checked_linear(base: Duration) -> Checked {
        let base = nanos(base);
        Backoff::growing(base, Growth::Linear { base, step: base })
    }

    pub(super) const fn checked_exponential(base: Duration) -> Checked {
        let base = nanos(base);
        Backoff::growing(base, Growth::Exponential { base, factor: Factor::TWO })
    }

    pub(super) const fn checked_fibonacci(base: Duration) -> Checked {
        let base = nanos(base);
        Backoff::growing(base, Growth::Fibonacci { base })
    }

    pub(super) const fn checked_decorrelated(base: Duration) -> Checked {
        let base = nanos(base);
        match Backoff::growing(base, Growth::Decorrelated { base }) {
            Ok(backoff) => Ok(Backoff { jitter: Jitter::NONE, ..backoff }),
            Err(rule) => Err(rule),
        }
    }

    pub(super) const fn checked_adaptive(base: Duration) -> Checked {
        let base = nanos(base);
        let growth = Growth::Adaptive { base, factor: Factor::TWO, stretch: Factor::TEN };
        Backoff::growing(base, growth)
    }

    pub(super) const fn checked_custom(
        name: &'static str,
        delay: fn(attempt: u32) -> Duration,
    ) -> Checked {
        if !registry::is_name(name) {
            return Err(not_allowed!("name", "use 1 to 64 characters (a-z, 0-9, `_`, `-`, `.`)"));
        }
        Ok(Backoff::of_custom(Custom::Function { name, delay }))
    }

    pub(super) const fn checked_factor(mut self, factor: f64) -> Checked {
        let Some(new) = Factor::new(factor) else {
            return Err(not_allowed!("factor", "use 1.001 to 1000"));
        };
        match &mut self.growth {
            Growth::Exponential { factor, .. } | Growth::Adaptive { factor, .. } => *factor = new,
            Growth::Fixed { .. }
            | Growth::Linear { .. }
            | Growth::Fibonacci { .. }
            | Growth::Decorrelated { .. }
            | Growth::Custom(_) => {
                let rule =
                    not_allowed!("factor", "only exponential and adaptive backoff have a factor");
                return Err(rule);
            }
        }
        Ok(self)
    }

    pub(super) const fn checked_step(mut self, step: Duration) -> Checked {
        if step.is_zero() {
            return Err(not_allowed!("step", "use a step above zero, or a fixed backoff"));
        }
        match &mut self.growth {
            Growth::Linear { step: old, .. } => *old = nanos(step),
            Growth::Fixed { .. }
            | Growth::Exponential { .. }
            | Growth::Fibonacci { .. }
            | Growth::Decorrelated { .. }
            | Growth::Adaptive { .. }
            | Growth::Custom(_) => {
                return Err(not_allowed!("step", "only linear backoff has a step"));
            }
        }
        Ok(self)
    }

    pub(super) const fn checked_stretch(mut self, stretch: f64) -> Checked {
        let Some(new) = Factor::new(stretch) else {
            return Err(not_allowed!("stretch", "use 1.001 to 1000"));
        };
        match &mut self.growth {
            Growth::Adaptive { stretch, .. } => *stretch = new,
            Growth::Fixed { .. }
            | Growth::Linear { .. }
            | Growth::Exponential { .. }
            | Growth::Fibonacci { .. }
            | Growth::Decorrelated { .. }
            | Growth::Custom(_) => {
                return Err(not_allowed!("stretch", "only adaptive backoff has a stretch"));
            }
        }
        Ok(self)
    }

    pub(super) const fn checked_min(mut self, delay: Duration) -> Checked {
        self.delay_min = nanos(delay);
        if self.delay_min > self.delay_max {
            return Err(not_allowed!("min", "use at most the longest delay"));
        }
        Ok(self)
    }

    pub(crate) const fn checked_max(mut self, delay: Duration) -> Checked {
        self.delay_max = nanos(delay);
        if self.delay_max < self.growth.base() {
            return Err(not_allowed!("max", "use at least the first delay"));
        }
        if self.delay_max < self.delay_min {
            return Err(not_allowed!("max", "use at least the shortest delay"));
        }
        Ok(self)
    }

    pub(crate) const fn checked_jitter(mut self, jitter: Jitter) -> Checked {
        if matches!(self.growth, Growth::Decorrelated { .. }) {
            return Err(not_allowed!(
                "jitter",
                "decorrelated backoff is already random: remove the jitter"
            ));
        }
        self.jitter = jitter;
        Ok(self)
    }
}

/// The forms for values that are known only at run time: from a config file, or from a user. A text
/// such as `exponential 100ms max 30s` is read by [`FromStr`](std::str::FromStr) instead.
///
/// ```
/// use rewheel::{Backoff, millis, seconds};
///
/// let backoff = Backoff::try_exponential(millis(100))?.try_factor(1.5)?;
/// let error = backoff.try_max(millis(1)).unwrap_err();
/// assert_eq!(error.to_string(), "invalid max `1ms`: use at least the first delay");
/// # Ok::<_, rewheel::SettingError>(())
/// ```
impl Backoff {
    /// As [`linear`](Backoff::linear), without the panic.
    ///
    /// # Errors
    /// Rejects a `base` of zero.
    pub fn try_linear(base: Duration) -> Result<Backoff, SettingError> {
        Backoff::checked_linear(base).map_err(|rule| rule.with(text(base)))
    }

    /// As [`exponential`](Backoff::exponential), without the panic.
    ///
    /// # Errors
    /// Rejects a `base` of zero.
    pub fn try_exponential(base: Duration) -> Result<Backoff, SettingError> {
        Backoff::checked_exponential(base).map_err(|rule| rule.with(text(base)))
    }

    /// As [`fibonacci`](Backoff::fibonacci), without the panic.
    ///
    /// # Errors
    /// Rejects a `base` of zero.
    pub fn try_fibonacci(base: Duration) -> Result<Backoff, SettingError> {
        Backoff::checked_fibonacci(base).map_err(|rule| rule.with(text(base)))
    }

    /// As [`decorrelated`](Backoff::decorrelated), without the panic.
    ///
    /// # Errors
    /// Rejects a `base` of zero.
    pub fn try_decorrelated(base: Duration) -> Result<Backoff, SettingError> {
        Backoff::checked_decorrelated(base).map_err(|rule| rule.with(text(base)))
    }

    /// As [`adaptive`](Backoff::adaptive), without the panic.
    ///
    /// # Errors
    /// Rejects a `base` of zero.
    pub fn try_adaptive(base: Duration) -> Result<Backoff, SettingError> {
        Backoff::checked_adaptive(base).map_err(|rule| rule.with(text(base)))
    }

    /// As [`custom`](Backoff::custom), without the panic.
    ///
    /// # Errors
    /// Rejects a name that is not 1 to 64 of `a-z`, `0-9`, `_`, `-` and `.`.
    pub fn try_custom(
        name: &'static str,
        delay: fn(attempt: u32) -> Duration,
    ) -> Result<Backoff, SettingError> {
        Backoff::checked_custom(name, delay).map_err(|rule| rule.with(name))
    }

    /// As [`factor`](Backoff::factor), without the panic.
    ///
    /// # Errors
    /// Rejects a factor outside of 1.001 to 1000, and shapes without this setting.
    pub fn try_factor(self, factor: f64) -> Result<Backoff, SettingError> {
        self.checked_factor(factor).map_err(|rule| rule.with(factor))
    }

    /// As [`step`](Backoff::step), without the panic.
    ///
    /// # Errors
    /// Rejects a step of zero, and shapes without this setting.
    pub fn try_step(self, step: Duration) -> Result<Backoff, SettingError> {
        self.checked_step(step).map_err(|rule| rule.with(text(step)))
    }

    /// As [`stretch`](Backoff::stretch), without the panic.
    ///
    /// # Errors
    /// Rejects a value outside of 1.001 to 1000, and shapes without this setting.
    pub fn try_stretch(self, stretch: f64) -> Result<Backoff, SettingError> {
        self.checked_stretch(stretch).map_err(|rule| rule.with(stretch))
    }

    /// As [`min`](Backoff::min), without the panic.
    ///
    /// # Errors
    /// Rejects a delay above the longest delay.
    pub fn try_min(self, delay: Duration) -> Result<Backoff, SettingError> {
        self.checked_min(delay).map_err(|rule| rule.with(text(delay)))
    }

    /// As [`max`](Backoff::max), without the panic.
    ///
    /// # Errors
    /// Rejects a delay below the first or the shortest delay.
    pub fn try_max(self, delay: Duration) -> Result<Backoff, SettingError> {
        self.checked_max(delay).map_err(|rule| rule.with(text(delay)))
    }

    /// As [`jitter`](Backoff::jitter), without the panic.
    ///
    /// # Errors
    /// Rejects any jitter on a decorrelated shape.
    pub fn try_jitter(self, jitter: Jitter) -> Result<Backoff, SettingError> {
        self.checked_jitter(jitter).map_err(|rule| rule.with(jitter))
    }
}
