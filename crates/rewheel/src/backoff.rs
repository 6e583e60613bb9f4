//! Backoff: how long to wait before the next attempt.

mod growth;
mod custom;
mod jitter;
mod registry;
mod text;
mod checked;

pub use self::custom::CustomBackoff;
pub use self::jitter::{Jitter, JitterError};
pub use self::registry::{Backoffs, NameError};
pub use self::text::BackoffError;

use self::custom::Custom;
use self::growth::Growth;
use crate::duration::nanos;
use crate::random::Random;
use crate::ratio::Ratio;
use crate::setting::{NotAllowed, not_allowed, valid};
use std::ops::RangeInclusive;
use std::time::Duration;

/// The delays between attempts: a shape, limits and jitter.
///
/// A small `Copy` value. Constants are checked at compile time:
///
/// ```
/// use rewheel::{Backoff, Jitter, Random, millis, seconds};
///
/// const GENTLE: Backoff =
///     Backoff::exponential(millis(100)).factor(1.5).max(seconds(30)).jitter(Jitter::EQUAL);
///
/// let delay = GENTLE.delay(3, &Random::thread());
/// assert!(GENTLE.delay_range(3).contains(&delay));
/// assert_eq!(GENTLE.to_string(), "exponential 100ms x1.5 max 30s jitter equal");
/// assert_eq!("exponential 100ms x1.5 max 30s jitter equal".parse(), Ok(GENTLE));
/// ```
/// ```compile_fail
/// use rewheel::{Backoff, millis, seconds};
/// const WRONG: Backoff = Backoff::exponential(seconds(10)).max(millis(1)); // max below the base
/// ```
///
/// Every shape except [`fixed`](Backoff::fixed) has jitter by default: without jitter, clients that
/// failed together retry together. Delays stay within their limits for every attempt up to
/// `u32::MAX`. A delay is drawn at random from a range that is already limited. So the delays
/// spread below the maximum, and not many of them are equal to the maximum. Delays above 584 years are cut to 584 years.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    growth: Growth,
    jitter: Jitter,
    // In nanoseconds, one word each, so that the whole policy is cheap to copy into a call.
    delay_min: u64,
    delay_max: u64,
}

/// The history that the next delay depends on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Past {
    /// The attempt that just failed, counted from 1.
    pub attempt: u32,
    /// The delay before that attempt, used by [`Backoff::decorrelated`].
    pub previous: Option<Duration>,
    /// The share of recent calls to the dependency that failed, 0 to 1, used by
    /// [`Backoff::adaptive`]. Without statistics use 1, because the only known call failed.
    pub failure_ratio: f64,
}

impl Past {
    fn of_attempt(attempt: u32) -> Past {
        Past { attempt: attempt.max(1), previous: None, failure_ratio: 1.0 }
    }
}

impl Backoff {
    /// Default maximum delay of a growing shape. A user does not wait longer, and a dependency that
    /// has recovered should get its traffic again soon.
    pub const DELAY_MAX: Duration = Duration::from_secs(30);

    /// Always the same delay, without jitter by default.
    pub const fn fixed(delay: Duration) -> Backoff {
        let delay = nanos(delay);
        Backoff {
            growth: Growth::Fixed { delay },
            jitter: Jitter::NONE,
            delay_min: 0,
            // No maximum, so that jitter can spread to both sides.
            delay_max: u64::MAX,
        }
    }

    /// Grows by `base` each time: 1, 2, 3, 4 … times `base`.
    ///
    /// # Panics
    /// Panics if `base` is zero; in a constant that is a compile error. The same applies to
    /// `exponential`, `fibonacci`, `decorrelated` and `adaptive`.
    #[track_caller]
    pub const fn linear(base: Duration) -> Backoff {
        valid(Backoff::checked_linear(base))
    }

    /// Doubles each time: 1, 2, 4, 8 … times `base`. See [`factor`](Backoff::factor).
    #[track_caller]
    pub const fn exponential(base: Duration) -> Backoff {
        valid(Backoff::checked_exponential(base))
    }

    /// Grows more slowly than doubling: 1, 1, 2, 3, 5, 8 … times `base`.
    #[track_caller]
    pub const fn fibonacci(base: Duration) -> Backoff {
        valid(Backoff::checked_fibonacci(base))
    }

    /// Draws a random delay between `base` and three times the previous delay. This shape needs no other jitter.
    #[track_caller]
    pub const fn decorrelated(base: Duration) -> Backoff {
        valid(Backoff::checked_decorrelated(base))
    }

    /// Exponential, and up to ten times longer while the dependency fails for all callers.
    ///
    /// The higher the recent failure ratio of the dependency, the longer the delay. The ratio
    /// comes from the [`Statistics`](crate::Statistics) that the call shares with other calls. A
    /// call without statistics assumes that all calls fail, and uses the longest delays.
    #[track_caller]
    pub const fn adaptive(base: Duration) -> Backoff {
        valid(Backoff::checked_adaptive(base))
    }

    /// Calls a function to get the delay after each attempt. For code that keeps state, see
    /// [`Backoffs::register_custom`].
    ///
    /// The defaults of all backoffs apply to what the function returns: a delay is at most
    /// [`DELAY_MAX`](Backoff::DELAY_MAX) (30 seconds), and full jitter makes it shorter. To wait exactly as long as the
    /// function says, set [`jitter`](Backoff::jitter) and [`max`](Backoff::max):
    ///
    /// ```
    /// use rewheel::{Backoff, Jitter, Random, minutes};
    ///
    /// const BY_THE_MINUTE: Backoff = Backoff::custom("by_the_minute", |attempt| minutes(u64::from(attempt)))
    ///     .jitter(Jitter::NONE)
    ///     .max(minutes(60));
    /// assert_eq!(BY_THE_MINUTE.delay(2, &Random::thread()), minutes(2));
    /// ```
    ///
    /// In text, the backoff is written as its name; [`Backoffs`] finds the backoff by this name.
    ///
    /// # Panics
    /// Panics if the name is not 1 to 64 of `a-z`, `0-9`, `_`, `-` and `.`; in a constant that is
    /// a compile error.
    #[track_caller]
    pub const fn custom(name: &'static str, delay: fn(attempt: u32) -> Duration) -> Backoff {
        valid(Backoff::checked_custom(name, delay))
    }

    /// Sets the growth per attempt of an exponential or adaptive shape, 1.001 to 1000.
    ///
    /// # Panics
    /// Panics for other shapes and factors; in a constant that is a compile error.
    #[must_use]
    #[track_caller]
    pub const fn factor(self, factor: f64) -> Backoff {
        valid(self.checked_factor(factor))
    }

    /// Sets the increment of a linear shape.
    ///
    /// # Panics
    /// Panics for other shapes and if `step` is zero; in a constant that is a compile error.
    #[must_use]
    #[track_caller]
    pub const fn step(self, step: Duration) -> Backoff {
        valid(self.checked_step(step))
    }

    /// Sets how many times longer an adaptive delay gets when every call fails, 1.001 to 1000.
    ///
    /// # Panics
    /// Panics for other shapes and values; in a constant that is a compile error.
    #[must_use]
    #[track_caller]
    pub const fn stretch(self, stretch: f64) -> Backoff {
        valid(self.checked_stretch(stretch))
    }

    /// Sets the minimum delay, which also applies after jitter.
    ///
    /// # Panics
    /// Panics if the value is above the maximum delay; in a constant that is a compile error.
    #[must_use]
    #[track_caller]
    pub const fn min(self, delay: Duration) -> Backoff {
        valid(self.checked_min(delay))
    }

    /// Sets the maximum delay, which also applies after jitter.
    ///
    /// # Panics
    /// Panics if the value is below the first or the minimum delay; in a constant that is a compile error.
    #[must_use]
    #[track_caller]
    pub const fn max(self, delay: Duration) -> Backoff {
        valid(self.checked_max(delay))
    }

    /// Sets the jitter.
    ///
    /// # Panics
    /// Panics for a decorrelated shape, which is already random; in a constant that is a compile
    /// error.
    #[must_use]
    #[track_caller]
    pub const fn jitter(self, jitter: Jitter) -> Backoff {
        valid(self.checked_jitter(jitter))
    }

    /// Returns the delay after a failed attempt, counted from 1.
    pub fn delay(&self, attempt: u32, random: &Random) -> Duration {
        Duration::from_nanos(self.draw(attempt, None, Ratio::ONE, random))
    }

    /// Returns the delay after a failed attempt, given the history.
    pub fn delay_after(&self, past: &Past, random: &Random) -> Duration {
        let ratio = Ratio::new(past.failure_ratio).unwrap_or(Ratio::ONE);
        Duration::from_nanos(self.draw(past.attempt, past.previous.map(nanos), ratio, random))
    }

    /// Returns the shortest and the longest delay possible after a failed attempt.
    pub fn delay_range(&self, attempt: u32) -> RangeInclusive<Duration> {
        let (low, high) = match self.growth {
            Growth::Custom(custom @ Custom::Function { .. }) => {
                self.spread(0, nanos(custom.delay(&Past::of_attempt(attempt))))
            }
            // It may count its calls, so it is asked for waits only.
            Growth::Custom(Custom::Object(_) | Custom::Unknown(_)) => {
                (self.spread(0, 0).0, self.spread(0, self.delay_max).1)
            }
            Growth::Adaptive { .. } => (
                self.range(attempt, Ratio::from_millionths(0)).0,
                self.range(attempt, Ratio::ONE).1,
            ),
            Growth::Fixed { .. }
            | Growth::Linear { .. }
            | Growth::Exponential { .. }
            | Growth::Fibonacci { .. }
            | Growth::Decorrelated { .. } => self.range(attempt, Ratio::ONE),
        };
        Duration::from_nanos(low)..=Duration::from_nanos(high)
    }

    /// Returns the maximum total time of this many delays.
    ///
    /// ```
    /// use rewheel::{Backoff, millis, seconds};
    ///
    /// const LONGEST: std::time::Duration =
    ///     Backoff::exponential(millis(100)).max(millis(400)).time_max(4);
    /// assert_eq!(LONGEST, millis(100 + 200 + 400 + 400));
    /// ```
    pub const fn time_max(&self, waits: u32) -> Duration {
        /// Delays are added one by one up to this number, when any sensible policy has reached its
        /// maximum delay; beyond it, each delay counts as the maximum.
        const EXACT_MAX: u32 = 10_000;
        if matches!(self.growth, Growth::Custom(_)) {
            return Duration::from_nanos(self.delay_max.saturating_mul(waits as u64));
        }
        let mut total = 0_u64;
        let mut attempt = 1;
        while attempt <= waits {
            let (_, longest) = self.range(attempt, Ratio::ONE);
            let constant = matches!(self.growth, Growth::Fixed { .. });
            if constant || longest == self.delay_max || attempt > EXACT_MAX {
                let each = if constant { longest } else { self.delay_max };
                let rest = each.saturating_mul((waits - attempt) as u64 + 1);
                return Duration::from_nanos(total.saturating_add(rest));
            }
            total = total.saturating_add(longest);
            attempt += 1;
        }
        Duration::from_nanos(total)
    }

    pub(crate) const fn is_adaptive(&self) -> bool {
        matches!(self.growth, Growth::Adaptive { .. })
    }

    /// Returns the delay, if it is always the same.
    pub(crate) const fn as_exactly(&self) -> Option<Duration> {
        match self.growth {
            Growth::Fixed { delay } if self.jitter.is_none() => Some(Duration::from_nanos(delay)),
            Growth::Fixed { .. }
            | Growth::Linear { .. }
            | Growth::Exponential { .. }
            | Growth::Fibonacci { .. }
            | Growth::Decorrelated { .. }
            | Growth::Adaptive { .. }
            | Growth::Custom(_) => None,
        }
    }

    /// Returns whether the backoff is code of the user. Only the name of such a backoff can be
    /// stored or sent to another process.
    pub const fn is_custom(&self) -> bool {
        self.custom_name().is_some()
    }

    /// Returns the name if only the name of the backoff is known. [`Backoffs::resolve`] finds its code. Until then, its
    /// delays start at 100 ms and double.
    pub const fn unknown_name(&self) -> Option<&'static str> {
        if let Growth::Custom(Custom::Unknown(name)) = self.growth { Some(name) } else { None }
    }

    /// Parses a text that was stored. As [`FromStr`](std::str::FromStr), but accepts the name of a custom backoff that this
    /// process may not know.
    ///
    /// ```
    /// use rewheel::Backoff;
    ///
    /// let stored = Backoff::from_stored("payday max 1h")?;
    /// assert_eq!(stored.unknown_name(), Some("payday"));
    /// assert!("payday max 1h".parse::<Backoff>().is_err());
    /// # Ok::<_, rewheel::BackoffError>(())
    /// ```
    ///
    /// # Errors
    /// Fails for a text that is neither a backoff nor a name with options.
    pub fn from_stored(text: &str) -> Result<Backoff, BackoffError> {
        Backoffs::new().parse_stored(text)
    }

    /// Returns the name of a custom backoff.
    pub const fn custom_name(&self) -> Option<&'static str> {
        match self.growth {
            Growth::Custom(custom) => Some(custom.name()),
            Growth::Fixed { .. }
            | Growth::Linear { .. }
            | Growth::Exponential { .. }
            | Growth::Fibonacci { .. }
            | Growth::Decorrelated { .. }
            | Growth::Adaptive { .. } => None,
        }
    }

    pub(crate) const fn is_jittered(&self) -> bool {
        matches!(self.growth, Growth::Decorrelated { .. }) || !self.jitter.is_none()
    }

    /// Returns the delay in nanoseconds after `attempt` failed.
    pub(crate) fn draw(
        &self,
        attempt: u32,
        previous: Option<u64>,
        failure_ratio: Ratio,
        random: &Random,
    ) -> u64 {
        let (low, high) = match (&self.growth, previous) {
            (Growth::Custom(custom), _) => {
                let past = Past {
                    attempt: attempt.max(1),
                    previous: previous.map(Duration::from_nanos),
                    failure_ratio: failure_ratio.as_f64(),
                };
                self.spread(0, nanos(custom.delay(&past)))
            }
            (Growth::Decorrelated { base }, Some(previous)) => {
                self.spread(*base, previous.saturating_mul(3))
            }
            _ => self.range(attempt, failure_ratio),
        };
        random.between(low, high)
    }

    /// Returns the longest delay after `attempt` failed, if it depends only on that.
    pub(crate) const fn longest(&self, attempt: u32, failure_ratio: Ratio) -> Option<u64> {
        match self.growth {
            Growth::Decorrelated { .. } | Growth::Custom(_) => None,
            Growth::Fixed { .. }
            | Growth::Linear { .. }
            | Growth::Exponential { .. }
            | Growth::Fibonacci { .. }
            | Growth::Adaptive { .. } => Some(self.range(attempt, failure_ratio).1),
        }
    }

    /// Returns the limits of the delay in nanoseconds, for every shape that is not a function.
    const fn range(&self, attempt: u32, failure_ratio: Ratio) -> (u64, u64) {
        let (low, high) = self.growth.after(attempt, failure_ratio, self.delay_max);
        self.spread(low, high)
    }

    /// Limits a range, then spreads it by the jitter. In this order, delays at the maximum stay
    /// spread out; sampling first would put all larger delays at exactly the maximum.
    const fn spread(&self, low: u64, high: u64) -> (u64, u64) {
        if matches!(self.growth, Growth::Decorrelated { .. }) {
            let (low, high) = (self.clamp(low), self.clamp(high));
            return (low, if low < high { high } else { low });
        }
        let (low, high) = self.jitter.range(self.clamp(high));
        (self.clamp(low), self.clamp(high))
    }

    const fn clamp(&self, delay: u64) -> u64 {
        if delay < self.delay_min {
            self.delay_min
        } else if delay > self.delay_max {
            self.delay_max
        } else {
            delay
        }
    }

    const fn of_custom(custom: Custom) -> Backoff {
        Backoff {
            growth: Growth::Custom(custom),
            jitter: Jitter::FULL,
            delay_min: 0,
            delay_max: nanos(Backoff::DELAY_MAX),
        }
    }

    const fn growing(base: u64, growth: Growth) -> Result<Backoff, NotAllowed> {
        if base == 0 {
            return Err(not_allowed!("base", "use a first delay above zero"));
        }
        let delay_max = nanos(Backoff::DELAY_MAX);
        Ok(Backoff {
            growth,
            jitter: Jitter::FULL,
            delay_min: 0,
            delay_max: if base > delay_max { base } else { delay_max },
        })
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
