//! Retry: repeats a failing call until it succeeds or the policy gives up.

mod text;
mod checked;
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
#[cfg(feature = "cache")]
pub(crate) use self::spill::block_on;
pub use self::spill::{Blocks, FailedCall, HasHooks, NoteGiveUp, Spill, SpillError, SpillOutcome};
pub use self::text::RetryError;

use crate::backoff::{Backoff, Jitter};
use crate::duration::nanos;
use std::time::Duration;

/// A retry policy: when to repeat a failing call, and when to give up.
///
/// A small `Copy` value without state: keep it in a constant, and use it for any call. Constants
/// are checked at compile time.
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
    inner: Inner,
    // Nanoseconds; `u64::MAX` where there is no limit.
    deadline: u64,
    attempt_timeout: u64,
    retry_after_max: u64,
}

/// What a retry does inside an attempt of another retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Nested {
    /// Makes one attempt and leaves the retrying to the outer retry.
    #[default]
    Once,
    /// Retries as well. The attempts multiply.
    Retry,
}

/// What retries inside an attempt of this retry do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Inner {
    /// They make one attempt, because this retry repeats the call.
    #[default]
    Suppress,
    /// They retry as if they were alone.
    Allow,
}

const UNLIMITED: u64 = u64::MAX;

impl Retry {
    /// Default number of attempts: most temporary failures are over at the third attempt, and a
    /// fourth attempt mostly adds load.
    pub const ATTEMPTS_MAX: u32 = 3;

    /// Default maximum delay that a called service may ask for: work that can wait longer should
    /// not stay in the memory of a process.
    pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);

    /// Three attempts with this backoff.
    pub const fn new(backoff: Backoff) -> Retry {
        Retry {
            backoff,
            attempts_max: Retry::ATTEMPTS_MAX,
            nested: Nested::Once,
            inner: Inner::Suppress,
            deadline: UNLIMITED,
            attempt_timeout: UNLIMITED,
            retry_after_max: nanos(Retry::RETRY_AFTER_MAX),
        }
    }

    /// Three attempts with the same delay between them, without jitter; see [`Backoff::fixed`].
    pub const fn fixed(delay: Duration) -> Retry {
        Retry::new(Backoff::fixed(delay))
    }

    /// Three attempts with doubling delays and full jitter; see [`Backoff::exponential`].
    pub const fn exponential(base: Duration) -> Retry {
        Retry::new(Backoff::exponential(base))
    }

    /// Sets the maximum number of attempts, including the first.
    ///
    /// # Panics
    /// Panics if the value is zero; in a constant that is a compile error.
    #[must_use]
    pub const fn attempts_max(mut self, attempts_max: u32) -> Retry {
        assert!(attempts_max > 0, "attempts_max must be 1 or more");
        self.attempts_max = attempts_max;
        self
    }

    /// Sets the total time limit of the call, including waits. A running attempt is stopped at
    /// the deadline. If a delay would end after the deadline, the call gives up at once.
    ///
    /// # Panics
    /// Panics if the value is zero; in a constant that is a compile error.
    #[must_use]
    pub const fn deadline(mut self, deadline: Duration) -> Retry {
        assert!(!deadline.is_zero(), "the deadline must be longer than zero");
        self.deadline = nanos(deadline);
        self
    }

    /// Sets the timeout of one attempt. An attempt that exceeds it has failed and is retried.
    ///
    /// A blocking attempt cannot be interrupted: only the time left for the next attempt is
    /// checked.
    ///
    /// # Panics
    /// Panics if the value is zero; in a constant that is a compile error.
    #[must_use]
    pub const fn attempt_timeout(mut self, timeout: Duration) -> Retry {
        assert!(!timeout.is_zero(), "the attempt timeout must be longer than zero");
        self.attempt_timeout = nanos(timeout);
        self
    }

    /// Sets the maximum delay that a called service may ask for. If it asks for more, the call is given
    /// up at once ([`RetryAfterTooLong`](crate::GiveUpReason::RetryAfterTooLong)): an earlier attempt
    /// would load a service that asked for a pause.
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

    /// Sets what retries inside an attempt of this retry do. By default they make one attempt, so that
    /// attempts do not multiply. Use [`Inner::Allow`] for a supervisor: a retry that restarts a loop
    /// or a consumer, whose own calls should be retried on their own.
    ///
    /// ```
    /// use rewheel::{Inner, Retry, seconds};
    ///
    /// const SUPERVISE: Retry = Retry::exponential(seconds(1)).attempts_max(u32::MAX).inner(Inner::Allow);
    /// assert!(SUPERVISE.to_string().ends_with(", inner allow"));
    /// ```
    #[must_use]
    pub const fn inner(mut self, inner: Inner) -> Retry {
        self.inner = inner;
        self
    }

    /// Sets the maximum delay; see [`Backoff::max`].
    ///
    /// # Panics
    /// Panics if the value is below the first delay; in a constant that is a compile error.
    #[must_use]
    pub const fn delay_max(mut self, delay: Duration) -> Retry {
        self.backoff = self.backoff.max(delay);
        self
    }

    /// Sets the jitter; see [`Backoff::jitter`].
    ///
    /// # Panics
    /// Panics for a decorrelated backoff; in a constant that is a compile error.
    #[must_use]
    pub const fn jitter(mut self, jitter: Jitter) -> Retry {
        self.backoff = self.backoff.jitter(jitter);
        self
    }

    /// Returns the backoff.
    pub const fn backoff(&self) -> Backoff {
        self.backoff
    }

    /// Returns the maximum number of attempts, including the first.
    pub const fn attempts(&self) -> u32 {
        self.attempts_max
    }

    /// Returns the maximum time of a call under this policy, if it is limited.
    ///
    /// The time is not limited if the policy has neither a deadline nor an attempt timeout. The
    /// `Retry-After` of a called service may replace any delay, so its maximum is included.
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
            // Jitter is added to the delay that the callee asked for, hence the sum.
            let own = nanos(self.backoff.time_max(waits));
            let asked = self.retry_after_max.saturating_mul(waits as u64);
            let attempts = self.attempt_timeout.saturating_mul(self.attempts_max as u64);
            attempts.saturating_add(own).saturating_add(asked)
        };
        let longest = if bounded < self.deadline { bounded } else { self.deadline };
        if longest == UNLIMITED { None } else { Some(Duration::from_nanos(longest)) }
    }

    /// Returns whether the clock must be read before the first attempt.
    #[inline]
    pub(crate) const fn is_timed(&self) -> bool {
        self.deadline != UNLIMITED || self.attempt_timeout != UNLIMITED
    }

    /// Returns whether it may repeat a call.
    #[inline]
    pub(crate) const fn repeats(&self) -> bool {
        self.attempts_max > 1
    }

    /// Returns whether retries inside of it leave the repeating to it.
    #[inline]
    pub(crate) const fn suppresses(&self) -> bool {
        self.attempts_max > 1 && matches!(self.inner, Inner::Suppress)
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
