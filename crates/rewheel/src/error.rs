//! Errors of calls that were given up or refused.

use crate::classify::{Category, Class, Classify, Verdict};
use crate::duration;
use std::fmt;
use std::time::Duration;

/// Why a policy gave up on a call, or refused to make it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GiveUpReason {
    /// The error says that the failure is not retryable.
    Stopped,
    /// All attempts were made.
    AttemptsExhausted,
    /// The time for the whole call is used up, or it would be used up before the next delay ends.
    Deadline,
    /// No response within the timeout.
    Timeout,
    /// The retry budget is empty: the share of retries in the traffic is already too large.
    BudgetExhausted,
    /// The circuit breaker is open.
    CircuitOpen,
    /// The rate limiter is out of tokens.
    RateLimited,
    /// The request is larger than the burst of the rate limiter, so it can never be admitted.
    AboveBurst,
    /// The bulkhead has no free slot, and its queue is full.
    BulkheadFull,
    /// The call was cancelled.
    Cancelled,
    /// An outer retry is running around this retry and will repeat the call.
    Nested,
    /// The called service asked for a longer delay than
    /// [`retry_after_max`](crate::Retry::retry_after_max) allows. An earlier attempt would fail.
    RetryAfterTooLong,
    /// All targets of a failover failed, or refused the call. A retry around the failover may start again with the first.
    TargetsExhausted,
    /// The adaptive limit is reached, and its queue is full.
    ConcurrencyLimited,
    /// The client throttle rejected the call: the dependency accepts too few of them.
    ClientThrottled,
    /// A chaos policy of a test made the call fail.
    Chaos,
}

impl GiveUpReason {
    /// Returns the name used in metrics and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            GiveUpReason::Stopped => "stopped",
            GiveUpReason::AttemptsExhausted => "attempts_exhausted",
            GiveUpReason::Deadline => "deadline",
            GiveUpReason::Timeout => "timeout",
            GiveUpReason::BudgetExhausted => "budget_exhausted",
            GiveUpReason::CircuitOpen => "circuit_open",
            GiveUpReason::RateLimited => "rate_limited",
            GiveUpReason::AboveBurst => "above_burst",
            GiveUpReason::BulkheadFull => "bulkhead_full",
            GiveUpReason::Cancelled => "cancelled",
            GiveUpReason::Nested => "nested",
            GiveUpReason::RetryAfterTooLong => "retry_after_too_long",
            GiveUpReason::TargetsExhausted => "targets_exhausted",
            GiveUpReason::ConcurrencyLimited => "concurrency_limited",
            GiveUpReason::ClientThrottled => "client_throttled",
            GiveUpReason::Chaos => "chaos",
        }
    }

    /// Returns whether a policy refused the call before it was made.
    const fn is_refusal(self) -> bool {
        match self {
            GiveUpReason::CircuitOpen
            | GiveUpReason::RateLimited
            | GiveUpReason::AboveBurst
            | GiveUpReason::BulkheadFull
            | GiveUpReason::ConcurrencyLimited
            | GiveUpReason::ClientThrottled => true,
            GiveUpReason::Stopped
            | GiveUpReason::AttemptsExhausted
            | GiveUpReason::Deadline
            | GiveUpReason::Timeout
            | GiveUpReason::BudgetExhausted
            | GiveUpReason::Cancelled
            | GiveUpReason::Nested
            | GiveUpReason::RetryAfterTooLong
            | GiveUpReason::TargetsExhausted
            // Like a failure of the dependency: the other policies must not see the difference.
            | GiveUpReason::Chaos => false,
        }
    }

    const fn text(self) -> &'static str {
        match self {
            GiveUpReason::Stopped => "the failure is not retryable",
            GiveUpReason::AttemptsExhausted => "no attempts are left",
            GiveUpReason::Deadline => "no time is left before the deadline",
            GiveUpReason::Timeout => "no response within the timeout",
            GiveUpReason::BudgetExhausted => "the retry budget is empty",
            GiveUpReason::CircuitOpen => "the circuit breaker is open",
            GiveUpReason::RateLimited => "the rate limit is reached",
            GiveUpReason::AboveBurst => "the request is larger than the rate limiter's burst",
            GiveUpReason::BulkheadFull => "the bulkhead is full",
            GiveUpReason::Cancelled => "the call was cancelled",
            GiveUpReason::Nested => "an outer retry repeats the call",
            GiveUpReason::RetryAfterTooLong => {
                "the called service asked for a longer delay than the policy allows"
            }
            GiveUpReason::TargetsExhausted => "no target is left",
            GiveUpReason::ConcurrencyLimited => "the adaptive limit is reached",
            GiveUpReason::ClientThrottled => "the client throttle rejected the call",
            GiveUpReason::Chaos => "a chaos policy made the call fail",
        }
    }
}

impl fmt::Display for GiveUpReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

/// Error: a policy refused a call before it was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a policy refused the call: {why}")]
#[non_exhaustive]
pub struct Refused {
    /// The reason, which names the policy that refused.
    pub why: GiveUpReason,
    /// The time after which another call may succeed, if it is known.
    pub retry_in: Option<Duration>,
}

impl Refused {
    pub(crate) const fn new(why: GiveUpReason, retry_in: Option<Duration>) -> Refused {
        Refused { why, retry_in }
    }
}

impl Classify for Refused {
    fn classify(&self) -> Class {
        let (category, may_pass) = match self.why {
            GiveUpReason::RateLimited => (Category::Throttled, true),
            GiveUpReason::BulkheadFull => (Category::BulkheadFull, true),
            GiveUpReason::Timeout => (Category::Timeout, true),
            // Retrying into an open breaker would cause the load that the breaker prevents.
            GiveUpReason::CircuitOpen => (Category::CircuitOpen, false),
            GiveUpReason::Deadline => (Category::Deadline, false),
            GiveUpReason::Cancelled => (Category::Cancelled, false),
            GiveUpReason::BudgetExhausted | GiveUpReason::RetryAfterTooLong => {
                (Category::Throttled, false)
            }
            GiveUpReason::AboveBurst => (Category::Rejected, false),
            GiveUpReason::ConcurrencyLimited => (Category::BulkheadFull, true),
            // Each retry counts as a request, and would make the throttle reject more.
            GiveUpReason::ClientThrottled => (Category::Throttled, false),
            GiveUpReason::Chaos => (Category::Transient, true),
            // The outer retry repeats the call, including an attempt that timed out.
            GiveUpReason::Nested | GiveUpReason::TargetsExhausted => (Category::Unknown, true),
            GiveUpReason::Stopped | GiveUpReason::AttemptsExhausted => (Category::Unknown, false),
        };
        let class = match (may_pass, self.retry_in) {
            (true, Some(delay)) => Class::retry_after(category, delay),
            (true, None) => Class::retry(category),
            (false, _) => Class::stop(category),
        };
        if self.why.is_refusal() { class.of_refusal(self.why) } else { class }
    }
}

/// Error of a call that was given up: the reason, the number of attempts, and the last error.
///
/// ```
/// use rewheel::{Retry, Retryable, GiveUpReason, millis};
/// use std::io;
///
/// let error = (|| Err::<(), _>(io::Error::from(io::ErrorKind::ConnectionRefused)))
///     .retry(Retry::fixed(millis(1)).attempts_max(2))
///     .call()
///     .unwrap_err();
///
/// assert_eq!((error.reason(), error.attempts()), (GiveUpReason::AttemptsExhausted, 2));
/// assert_eq!(error.last().unwrap().kind(), io::ErrorKind::ConnectionRefused);
/// assert!(error.to_string().ends_with("no attempts are left: connection refused"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error<E>(Box<GivenUp<E>>);

/// Boxed, so that a success takes no space for it: results that fit two registers are returned in
/// registers.
#[derive(Clone, Debug, PartialEq, Eq)]
struct GivenUp<E> {
    refused: Refused,
    attempts: u32,
    elapsed: Duration,
    /// Category of the last failure, unless `refused` already says it.
    category: Option<Category>,
    /// Whether another attempt may succeed, although no policy made one.
    repeatable: bool,
    last: Option<E>,
}

impl<E> Error<E> {
    #[cold]
    pub(crate) fn new(
        refused: Refused,
        attempts: u32,
        elapsed: Duration,
        last: Option<E>,
    ) -> Error<E> {
        let repeatable = false;
        Error(Box::new(GivenUp { refused, attempts, elapsed, category: None, repeatable, last }))
    }

    /// Makes the error of a call without a retry one of a call that was given up after its only attempt.
    #[cold]
    pub(crate) fn once(error: E) -> Error<E>
    where
        E: Classify,
    {
        let class = error.classify();
        Error::of_class(&class, error)
    }

    /// As [`once`](Error::once), for an error of this class.
    #[cold]
    pub(crate) fn of_class(class: &Class, error: E) -> Error<E> {
        let (repeatable, retry_in) = match class.verdict {
            Verdict::Retry => (true, None),
            Verdict::RetryAfter(delay) => (true, Some(delay)),
            // Another target has other policies around it.
            Verdict::Done | Verdict::Stop => (class.is_refusal(), None),
        };
        let attempts = u32::from(!class.is_refusal());
        let stopped = Refused::new(GiveUpReason::Stopped, retry_in);
        Error::new(stopped, attempts, Duration::ZERO, Some(error))
            .with_category(Some(class.category))
            .with_repeatable(repeatable)
    }

    /// Sets the time that the call took.
    #[must_use]
    pub(crate) fn with_elapsed(mut self, elapsed: Duration) -> Error<E> {
        self.0.elapsed = elapsed;
        self
    }

    /// Converts the last error.
    #[cfg(feature = "cache")]
    pub(crate) fn map<N>(self, convert: impl FnOnce(E) -> N) -> Error<N> {
        let GivenUp { refused, attempts, elapsed, category, repeatable, last } = *self.0;
        let last = last.map(convert);
        Error(Box::new(GivenUp { refused, attempts, elapsed, category, repeatable, last }))
    }

    #[must_use]
    pub(crate) fn with_category(mut self, category: Option<Category>) -> Error<E> {
        self.0.category = category;
        self
    }

    #[must_use]
    pub(crate) fn with_repeatable(mut self, repeatable: bool) -> Error<E> {
        self.0.repeatable = repeatable;
        self
    }

    /// Returns whether the same call may succeed later, for a durable job: not if the error is
    /// permanent, if the caller cancelled, or if an outer retry repeats the call anyway.
    pub(crate) const fn may_succeed_later(&self) -> bool {
        match self.0.refused.why {
            GiveUpReason::Stopped => self.0.repeatable,
            GiveUpReason::Cancelled | GiveUpReason::Nested | GiveUpReason::AboveBurst => false,
            GiveUpReason::AttemptsExhausted
            | GiveUpReason::Deadline
            | GiveUpReason::Timeout
            | GiveUpReason::BudgetExhausted
            | GiveUpReason::RetryAfterTooLong
            | GiveUpReason::TargetsExhausted
            | GiveUpReason::CircuitOpen
            | GiveUpReason::RateLimited
            | GiveUpReason::BulkheadFull
            | GiveUpReason::ConcurrencyLimited
            | GiveUpReason::ClientThrottled
            | GiveUpReason::Chaos => true,
        }
    }

    /// Returns whether asking elsewhere or once more is useless: the called service answered that it will not do it, or the caller
    /// cancelled.
    pub(crate) fn is_conclusive(&self) -> bool {
        match self.0.refused.why {
            GiveUpReason::Cancelled => true,
            GiveUpReason::Stopped | GiveUpReason::Nested => self.category() == Category::Rejected,
            GiveUpReason::AttemptsExhausted
            | GiveUpReason::Deadline
            | GiveUpReason::Timeout
            | GiveUpReason::BudgetExhausted
            | GiveUpReason::RetryAfterTooLong
            | GiveUpReason::TargetsExhausted
            | GiveUpReason::CircuitOpen
            | GiveUpReason::RateLimited
            | GiveUpReason::AboveBurst
            | GiveUpReason::BulkheadFull
            | GiveUpReason::ConcurrencyLimited
            | GiveUpReason::ClientThrottled
            | GiveUpReason::Chaos => false,
        }
    }

    /// Returns the category of the last failure.
    pub fn category(&self) -> Category {
        self.0.category.unwrap_or_else(|| self.0.refused.classify().category)
    }

    /// Returns why the call was given up.
    pub const fn reason(&self) -> GiveUpReason {
        self.0.refused.why
    }

    /// Returns the time after which another call may succeed, if the policy that refused the call knows it, or if the called service
    /// asked for it in answer to a call without a retry.
    pub const fn retry_in(&self) -> Option<Duration> {
        self.0.refused.retry_in
    }

    /// Returns the number of attempts, including those before
    /// [`starting_at`](crate::Call::starting_at).
    pub const fn attempts(&self) -> u32 {
        self.0.attempts
    }

    /// Returns the total time, including waits. A breaker or a bulkhead that is used alone returns
    /// zero, because it does not measure the time.
    pub const fn elapsed(&self) -> Duration {
        self.0.elapsed
    }

    /// Returns the last error of the call itself. `None` if the call was refused or cancelled
    /// before the first attempt, or if no attempt returned an error.
    pub const fn last(&self) -> Option<&E> {
        self.0.last.as_ref()
    }

    /// Returns the last error by value.
    pub fn into_last(self) -> Option<E> {
        self.0.last
    }
}

impl<E: fmt::Display> fmt::Display for Error<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = self.0.refused.why;
        match (self.0.attempts, why) {
            // A service that failed to become ready: its error is the only reason.
            (0, GiveUpReason::Stopped) => f.write_str("not attempted")?,
            (0, _) => write!(f, "not attempted: {why}")?,
            (1, GiveUpReason::Stopped) => f.write_str("failed")?,
            (attempts, _) => {
                let plural = if attempts == 1 { "" } else { "s" };
                // Log lines do not need nanoseconds.
                let elapsed = Duration::from_millis(duration::nanos(self.0.elapsed) / 1_000_000);
                let elapsed = duration::text(elapsed);
                write!(f, "gave up after {attempts} attempt{plural} in {elapsed}: {why}")?;
            }
        }
        // Include the cause in the message, although `source` returns it too: most programs log
        // only the message.
        match (&self.0.last, self.0.category) {
            (Some(last), _) => write!(f, ": {last}"),
            (None, Some(category)) => write!(f, ": {}", without_error(category)),
            (None, None) => Ok(()),
        }
    }
}

/// The text for a last failure without an error value.
const fn without_error(category: Category) -> &'static str {
    match category {
        Category::Timeout | Category::Deadline => "the last attempt timed out",
        Category::Throttled => GiveUpReason::RateLimited.text(),
        Category::BulkheadFull => GiveUpReason::BulkheadFull.text(),
        Category::CircuitOpen => GiveUpReason::CircuitOpen.text(),
        Category::Cancelled => GiveUpReason::Cancelled.text(),
        Category::Io
        | Category::Rejected
        | Category::Transient
        | Category::Panic
        | Category::NoHandler
        | Category::BadPayload
        | Category::Unknown => "the last result was classified as a failure",
    }
}

impl<E> From<Refused> for Error<E> {
    fn from(refused: Refused) -> Error<E> {
        Error::new(refused, 0, Duration::ZERO, None)
    }
}

impl<E: Into<Box<dyn std::error::Error + Send + Sync>>> Error<E> {
    /// Converts this error to a [`std::error::Error`], so that you can use the operator `?`. Use it
    /// if `E` does not implement that trait, such as `anyhow::Error` and `Box<dyn Error>`.
    ///
    /// ```
    /// use rewheel::{Error, Retry, Retryable, millis};
    ///
    /// fn sync() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    ///     let read = || Err::<(), Box<dyn std::error::Error + Send + Sync>>("busy".into());
    ///     read.retry(Retry::fixed(millis(1))).when(|_| true).call().map_err(Error::boxed)?;
    ///     Ok(())
    /// }
    /// assert!(sync().unwrap_err().to_string().ends_with("no attempts are left: busy"));
    /// ```
    pub fn boxed(self) -> Error<BoxedError> {
        let GivenUp { refused, attempts, elapsed, category, repeatable, last } = *self.0;
        let last = last.map(|last| BoxedError(last.into()));
        Error(Box::new(GivenUp { refused, attempts, elapsed, category, repeatable, last }))
    }
}

/// Wraps any boxed error as an error. Created by [`Error::boxed`].
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct BoxedError(Box<dyn std::error::Error + Send + Sync>);

impl<E: std::error::Error + 'static> std::error::Error for Error<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.last.as_ref().map(|last| last as _)
    }
}

impl<E: Classify> Classify for Error<E> {
    /// A call that was given up is not retried: an outer policy must not multiply the attempts. If
    /// nothing was repeated, the class of the last error applies; if a policy refused or cut the
    /// call, the class of the refusal.
    fn classify(&self) -> Class {
        match (self.0.refused.why, &self.0.last) {
            (
                GiveUpReason::Stopped | GiveUpReason::Nested | GiveUpReason::TargetsExhausted,
                Some(last),
            ) => last.classify(),
            (
                GiveUpReason::AttemptsExhausted
                | GiveUpReason::Deadline
                | GiveUpReason::BudgetExhausted
                | GiveUpReason::RetryAfterTooLong,
                Some(last),
            ) => {
                let class = last.classify();
                // The last failure may have no error value; then the code of an earlier error does
                // not apply.
                match self.0.category {
                    Some(category) if category != class.category => Class::stop(category),
                    Some(_) | None => Class { verdict: Verdict::Stop, ..class },
                }
            }
            (
                GiveUpReason::AttemptsExhausted
                | GiveUpReason::BudgetExhausted
                | GiveUpReason::RetryAfterTooLong,
                None,
            ) => Class::stop(self.category()),
            (GiveUpReason::Nested | GiveUpReason::TargetsExhausted, None) => {
                Class::retry(self.category())
            }
            (
                GiveUpReason::Stopped
                | GiveUpReason::Deadline
                | GiveUpReason::Timeout
                | GiveUpReason::CircuitOpen
                | GiveUpReason::RateLimited
                | GiveUpReason::AboveBurst
                | GiveUpReason::BulkheadFull
                | GiveUpReason::Cancelled
                | GiveUpReason::ConcurrencyLimited
                | GiveUpReason::ClientThrottled
                | GiveUpReason::Chaos,
                _,
            ) => self.0.refused.classify(),
        }
    }
}
