//! Decides after each attempt whether to wait and retry, or to stop.

use super::{Nested, Retry, UNLIMITED};
use crate::classify::Verdict;
use crate::duration::nanos;
use crate::error::GiveUpReason;
use crate::random::Random;
use crate::ratio::Ratio;
use std::time::Duration;

/// The current attempt, as the operation sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    number: u32,
    attempts_max: u32,
    time_left: u64,
}

impl Attempt {
    pub(crate) const ONLY: Attempt = Attempt { number: 1, attempts_max: 1, time_left: UNLIMITED };

    #[inline]
    pub(super) const fn first(retry: &Retry) -> Attempt {
        Attempt { number: 1, attempts_max: retry.attempts_max, time_left: UNLIMITED }
    }

    /// Returns its number, counted from 1.
    pub const fn number(self) -> u32 {
        self.number
    }

    /// Returns whether an earlier attempt was made: if `true`, the called service may have received this request before.
    pub const fn is_retry(self) -> bool {
        self.number > 1
    }

    /// Returns whether no other attempt follows if this attempt fails.
    pub const fn is_last(self) -> bool {
        self.number >= self.attempts_max
    }

    /// Returns how much time was left for this attempt when it started. Pass it to the called
    /// service, so that the service does not work for a caller that no longer waits.
    pub const fn time_left(self) -> Option<Duration> {
        if self.time_left == UNLIMITED { None } else { Some(Duration::from_nanos(self.time_left)) }
    }

    #[must_use]
    pub(crate) const fn with_time_left(mut self, time_left: Option<Duration>) -> Attempt {
        if let Some(time_left) = time_left {
            let time_left = nanos(time_left);
            if time_left < self.time_left {
                self.time_left = time_left;
            }
        }
        self
    }
}

/// What to do after an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Return the result.
    Return,
    /// Wait this long, then make the next attempt.
    Wait(Duration),
    /// Return the failure.
    GiveUp(GiveUpReason),
}

/// The attempts of one call, without clock, timer or I/O: it takes results and returns steps.
///
/// All retries in Rewheel use this type; use it to retry with your own executor or event loop.
///
/// ```
/// use rewheel::{Random, Retry, Series, Step, Verdict, GiveUpReason, millis};
/// use std::time::Duration;
///
/// let random = Random::thread();
/// let mut series = Series::new(Retry::fixed(millis(100)).attempts_max(2));
/// assert_eq!(series.after(Verdict::Retry, Duration::ZERO, &random), Step::Wait(millis(100)));
/// assert_eq!(series.attempt().number(), 2);
/// assert_eq!(
///     series.after(Verdict::Retry, millis(100), &random),
///     Step::GiveUp(GiveUpReason::AttemptsExhausted),
/// );
/// ```
#[derive(Clone, Debug)]
pub struct Series {
    retry: Retry,
    position: Position,
}

impl Series {
    /// Starts with the first attempt.
    #[inline]
    pub const fn new(retry: Retry) -> Series {
        Series::starting_at(retry, 1)
    }

    /// Continues with a later attempt, where an earlier process stopped. The attempts before it
    /// count.
    #[inline]
    pub const fn starting_at(retry: Retry, attempt: u32) -> Series {
        Series { retry, position: Position::starting_at(attempt) }
    }

    /// Returns the current or next attempt.
    #[inline]
    pub const fn attempt(&self) -> Attempt {
        self.position.attempt(&self.retry)
    }

    /// Returns the policy.
    pub const fn retry(&self) -> &Retry {
        &self.retry
    }

    /// Returns the sum of the delays so far.
    pub const fn waited(&self) -> Duration {
        Duration::from_nanos(self.position.waited)
    }

    /// Sets the recent failure ratio of the dependency, 0 to 1, for an adaptive backoff.
    pub fn set_failure_ratio(&mut self, ratio: f64) {
        self.position.set_failure_ratio(ratio);
    }

    /// Sets the previous delay for a decorrelated backoff, if an earlier process made this delay.
    pub fn set_previous(&mut self, delay: Duration) {
        self.position.previous = nanos(delay);
    }

    /// Decides what follows a classified attempt, `elapsed` after the call began.
    pub fn after(&mut self, verdict: Verdict, elapsed: Duration, random: &Random) -> Step {
        self.position.after(&self.retry, verdict, elapsed, random)
    }
}

/// The position in a series, without its policy.
#[derive(Clone, Debug)]
pub(crate) struct Position {
    attempt: u32,
    /// The attempt that the backoff counts from; a long delay that the callee asks for restarts the
    /// backoff.
    restarted_at: u32,
    /// In nanoseconds; zero before the first delay.
    previous: u64,
    waited: u64,
    failure_ratio: Ratio,
    suppressed: bool,
}

impl Position {
    #[inline]
    pub(crate) const fn starting_at(attempt: u32) -> Position {
        Position {
            attempt: if attempt == 0 { 1 } else { attempt },
            restarted_at: 0,
            previous: 0,
            waited: 0,
            failure_ratio: Ratio::ONE,
            suppressed: false,
        }
    }

    #[inline]
    pub(crate) const fn attempt(&self, retry: &Retry) -> Attempt {
        let attempts_max = if self.suppressed { self.attempt } else { retry.attempts_max };
        Attempt { number: self.attempt, attempts_max, time_left: UNLIMITED }
    }

    pub(crate) fn set_failure_ratio(&mut self, ratio: f64) {
        self.failure_ratio = Ratio::new(ratio).unwrap_or(Ratio::ONE);
    }

    /// Leaves the retrying to the outer retry, if the policy allows it.
    #[inline]
    pub(crate) const fn suppress_if_nested(&mut self, retry: &Retry, nested: bool) {
        self.suppressed = nested && matches!(retry.nested, Nested::Once);
    }

    pub(crate) fn after(
        &mut self,
        retry: &Retry,
        verdict: Verdict,
        elapsed: Duration,
        random: &Random,
    ) -> Step {
        let asked = match verdict {
            Verdict::Done => return Step::Return,
            Verdict::Stop => return Step::GiveUp(GiveUpReason::Stopped),
            Verdict::Retry => None,
            Verdict::RetryAfter(delay) => Some(delay),
        };
        if self.suppressed {
            return Step::GiveUp(GiveUpReason::Nested);
        }
        if self.attempt >= retry.attempts_max {
            return Step::GiveUp(GiveUpReason::AttemptsExhausted);
        }
        let own = self.own_delay(retry, random);
        let (delay, restarts) = match asked {
            None => (own, false),
            // Coming back earlier would only add load to a service that asked for a pause.
            Some(asked) if nanos(asked) > retry.retry_after_max => {
                return Step::GiveUp(GiveUpReason::RetryAfterTooLong);
            }
            Some(asked) => self.asked_delay(retry, nanos(asked), own),
        };
        // A delay that ends after the deadline would only postpone the failure.
        if nanos(elapsed).saturating_add(delay) >= retry.deadline {
            return Step::GiveUp(GiveUpReason::Deadline);
        }
        // A decorrelated backoff grows from its own delays, not from those that were asked for.
        self.previous = own;
        self.waited = self.waited.saturating_add(delay);
        if restarts {
            self.restarted_at = self.attempt;
            self.previous = 0;
        }
        self.attempt = self.attempt.saturating_add(1);
        Step::Wait(Duration::from_nanos(delay))
    }

    /// Returns the next delay of the backoff, in nanoseconds.
    fn own_delay(&self, retry: &Retry, random: &Random) -> u64 {
        let previous = (self.previous > 0).then_some(self.previous);
        retry.backoff.draw(self.step(), previous, self.failure_ratio, random)
    }

    /// Returns the delay if the called service asked for one, and whether the backoff starts again
    /// from its first delay. It does so only after a delay that is at least as long as its own:
    /// otherwise a service that always asks for zero would stop the growth.
    fn asked_delay(&self, retry: &Retry, asked: u64, own: u64) -> (u64, bool) {
        let longest = retry.backoff.longest(self.step(), self.failure_ratio).unwrap_or(own);
        let restarts = asked > 0 && asked >= longest;
        let delay = if retry.backoff.is_jittered() {
            // All clients that received `Retry-After: 10` would retry at the same time: jitter is
            // added to it, never subtracted.
            asked.saturating_add(own)
        } else {
            // A callee may ask for a longer delay, not for a shorter one.
            asked.max(own)
        };
        (delay, restarts)
    }

    const fn step(&self) -> u32 {
        self.attempt - self.restarted_at
    }

    /// Returns why a call is given up: a call that an outer retry repeats is not over at its own
    /// deadline.
    pub(crate) const fn reason(&self, why: GiveUpReason) -> GiveUpReason {
        if self.suppressed && matches!(why, GiveUpReason::Deadline) {
            GiveUpReason::Nested
        } else {
            why
        }
    }

    pub(crate) const fn is_suppressed(&self) -> bool {
        self.suppressed
    }
}
