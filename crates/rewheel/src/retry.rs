//! Makes a failing call again until it succeeds or is given up.

mod text;
mod series;
mod judge;
mod hooks;
mod options;
mod call;
mod progress;
mod future;
mod blocking;
mod spill;

pub use self::call::{Call, Retryable, marker};
pub use self::future::RetryFuture;
pub use self::hooks::{Hooks, OnGiveUp, OnRetry, OnSuccess, Retrying};
pub use self::judge::{ByClassify, ByJudge, ByMatcher, ByWhen, Judge, OrWhenOk};
pub use self::options::{Extras, Options, Plain, Setup};
pub(crate) use self::series::Position;
pub use self::series::{Attempt, Series, Step};
pub use self::spill::{Blocks, Durably, FailedCall, Spill, SpillError};
pub use self::text::RetryError;

use crate::backoff::{Backoff, Jitter};
use crate::duration::nanos;
use std::time::Duration;

/// When to make a failing call again, and when to give up.
///
/// A small `Copy` value that holds no state: keep it in a constant, and hand it to any call.
/// Constants are checked when they are compiled.
///
/// ```
/// use rewheel::{Retry, Retryable, millis, seconds};
/// # use std::io;
/// # async fn fetch_page(number: u32) -> io::Result<String> { Ok(number.to_string()) }
///
/// const FETCH: Retry = Retry::exponential(millis(100)).attempts_max(4).deadline(seconds(10));
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), rewheel::Error<io::Error>> {
/// let page = (|| fetch_page(7)).retry(FETCH).await?;
/// # assert_eq!(page, "7");
/// # Ok(())
/// # }
/// ```
/// ```compile_fail
/// const NEVER: rewheel::Retry = rewheel::Retry::exponential(rewheel::millis(100)).attempts_max(0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    backoff: Backoff,
    attempts_max: u32,
    nested: Nested,
    // Nanoseconds; `u64::MAX` where there is no limit.
    deadline: u64,
    attempt_timeout: u64,
    retry_after_max: u64,
}

/// What a retry does when it finds itself inside an attempt of another retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Nested {
    /// Makes one attempt and leaves the repeating to the retry around it.
    #[default]
    Once,
    /// Retries all the same. The attempts multiply.
    Retry,
}

const UNLIMITED: u64 = u64::MAX;

impl Retry {
    /// What a policy that does not say otherwise makes: the third attempt catches most of what
    /// passes, the fourth mostly adds load.
    pub const ATTEMPTS_MAX: u32 = 3;

    /// How long a callee may make a call wait, unless the policy says otherwise: work that can
    /// wait longer should not sit in the memory of a process.
    pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);

    /// Three attempts, spaced by this backoff.
    pub const fn new(backoff: Backoff) -> Retry {
        Retry {
            backoff,
            attempts_max: Retry::ATTEMPTS_MAX,
            nested: Nested::Once,
            deadline: UNLIMITED,
            attempt_timeout: UNLIMITED,
            retry_after_max: nanos(Retry::RETRY_AFTER_MAX),
        }
    }

    /// Three attempts with the same delay between them, exactly; see [`Backoff::fixed`].
    pub const fn fixed(delay: Duration) -> Retry {
        Retry::new(Backoff::fixed(delay))
    }

    /// Three attempts with doubling delays and full jitter; see [`Backoff::exponential`].
    pub const fn exponential(base: Duration) -> Retry {
        Retry::new(Backoff::exponential(base))
    }

    /// Sets how many attempts are made at most, the first included.
    ///
    /// # Panics
    /// Panics if it is zero; in a constant that is a compile error.
    #[must_use]
    pub const fn attempts_max(mut self, attempts_max: u32) -> Retry {
        assert!(attempts_max > 0, "a call needs at least one attempt");
        self.attempts_max = attempts_max;
        self
    }

    /// Sets how long the whole call may take, waits included. A running attempt is cut at it, and
    /// a wait that would not fit is not begun.
    ///
    /// # Panics
    /// Panics if it is zero; in a constant that is a compile error.
    #[must_use]
    pub const fn deadline(mut self, deadline: Duration) -> Retry {
        assert!(!deadline.is_zero(), "no call fits a deadline of zero");
        self.deadline = nanos(deadline);
        self
    }

    /// Sets how long one attempt may take. An attempt that is cut counts as failed and is retried.
    ///
    /// A blocking attempt cannot be cut: there, only the time left for the next one is checked.
    ///
    /// # Panics
    /// Panics if it is zero; in a constant that is a compile error.
    #[must_use]
    pub const fn attempt_timeout(mut self, timeout: Duration) -> Retry {
        assert!(!timeout.is_zero(), "no attempt fits a timeout of zero");
        self.attempt_timeout = nanos(timeout);
        self
    }

    /// Sets how long a callee may ask to be left alone. What it asks beyond that is cut to it.
    #[must_use]
    pub const fn retry_after_max(mut self, delay: Duration) -> Retry {
        self.retry_after_max = nanos(delay);
        self
    }

    /// Sets what happens inside an attempt of another retry.
    #[must_use]
    pub const fn nested(mut self, nested: Nested) -> Retry {
        self.nested = nested;
        self
    }

    /// Sets the longest delay; see [`Backoff::max`].
    ///
    /// # Panics
    /// Panics if it is below the first delay; in a constant that is a compile error.
    #[must_use]
    pub const fn delay_max(mut self, delay: Duration) -> Retry {
        self.backoff = self.backoff.max(delay);
        self
    }

    /// Sets how delays are spread; see [`Backoff::jitter`].
    ///
    /// # Panics
    /// Panics on a decorrelated backoff; in a constant that is a compile error.
    #[must_use]
    pub const fn jitter(mut self, jitter: Jitter) -> Retry {
        self.backoff = self.backoff.jitter(jitter);
        self
    }

    /// Returns the schedule of waits.
    pub const fn backoff(&self) -> Backoff {
        self.backoff
    }

    /// Returns how many attempts are made at most, the first included.
    pub const fn attempts(&self) -> u32 {
        self.attempts_max
    }

    /// Returns the longest time that a call under this policy can take, if there is one.
    ///
    /// There is none without a deadline and without an attempt timeout. A callee's `Retry-After`
    /// may replace any wait and is counted at its cap.
    ///
    /// ```
    /// use rewheel::{Retry, millis, seconds};
    ///
    /// const POLICY: Retry = Retry::fixed(millis(500))
    ///     .attempts_max(3)
    ///     .attempt_timeout(seconds(2))
    ///     .retry_after_max(seconds(1));
    /// const _: () = assert!(POLICY.time_max().unwrap().as_secs() <= 9, "callers wait 9 seconds");
    /// assert_eq!(POLICY.time_max(), Some(seconds(3 * 2 + 2 + 1)));
    /// ```
    pub const fn time_max(&self) -> Option<Duration> {
        let bounded = if self.attempt_timeout == UNLIMITED {
            UNLIMITED
        } else {
            let waits = self.attempts_max - 1;
            // Jitter comes on top of what the callee asked for, hence the sum.
            let own = nanos(self.backoff.time_max(waits));
            let asked = self.retry_after_max.saturating_mul(waits as u64);
            let attempts = self.attempt_timeout.saturating_mul(self.attempts_max as u64);
            attempts.saturating_add(own).saturating_add(asked)
        };
        let longest = if bounded < self.deadline { bounded } else { self.deadline };
        if longest == UNLIMITED { None } else { Some(Duration::from_nanos(longest)) }
    }

    /// Whether the clock must be read before the first attempt.
    #[inline]
    pub(crate) const fn is_timed(&self) -> bool {
        self.deadline != UNLIMITED || self.attempt_timeout != UNLIMITED
    }

    /// Whether it may make a call again, so that a retry inside of it need not.
    #[inline]
    pub(crate) const fn repeats(&self) -> bool {
        self.attempts_max > 1
    }

    pub(crate) const fn attempt_timeout_limit(&self) -> Option<Duration> {
        if self.attempt_timeout == UNLIMITED {
            None
        } else {
            Some(Duration::from_nanos(self.attempt_timeout))
        }
    }

    pub(crate) const fn deadline_limit(&self) -> Option<Duration> {
        if self.deadline == UNLIMITED { None } else { Some(Duration::from_nanos(self.deadline)) }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
