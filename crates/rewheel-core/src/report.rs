//! The result that a handler reports for an attempt.

use crate::decision::Report;
use crate::failure::Failure;
use rewheel::{Classify, Verdict};
use std::fmt::Display;
use std::time::Duration;

/// Constructors for handlers that return `Result<(), Report>`:
///
/// ```
/// use rewheel::{minutes, seconds};
/// use rewheel_core::Report;
/// use std::io;
///
/// fn charge(order: u64) -> Result<(), Report> {
///     match order {
///         0 => Err(Report::dead("no order has the number 0")),
///         1 => Err(Report::snooze(minutes(5))),
///         2 => Err(Report::retry_after(seconds(30), "the bank is closed")),
///         // An error that implements `Classify` only needs `?`.
///         3 => Err(io::Error::from(io::ErrorKind::TimedOut))?,
///         4 => Err(Report::fail_job("the customer withdrew the order")),
///         _ => Ok(()),
///     }
/// }
///
/// assert!(matches!(charge(0), Err(Report::Dead(_))));
/// // One attempt failed: the policy of the kind decides what follows.
/// assert!(matches!(charge(3), Err(Report::AttemptFailed { .. })));
/// // The job itself ends in state `failed`.
/// assert!(matches!(charge(4), Err(Report::FailJob(_))));
/// ```
impl Report {
    /// Reports a failed attempt after which another attempt may succeed. The rules and the policy of the kind decide.
    pub fn retry(failure: impl Into<Failure>) -> Report {
        Report::AttemptFailed { verdict: Verdict::Retry, failure: failure.into() }
    }

    /// Reports a failed attempt after which another attempt may succeed, but not before this time.
    /// The policy limits this time. As for every failed attempt, a rule of the kind can change what follows.
    pub fn retry_after(after: Duration, failure: impl Into<Failure>) -> Report {
        Report::AttemptFailed { verdict: Verdict::RetryAfter(after), failure: failure.into() }
    }

    /// Reports a failed attempt after which no other attempt can succeed. The job ends in the state
    /// that its kind sets with `on_give_up`, unless a rule of the kind matches the failure.
    pub fn stop(failure: impl Into<Failure>) -> Report {
        Report::AttemptFailed { verdict: Verdict::Stop, failure: failure.into() }
    }

    /// Ends the job in state `dead`, independent of the settings of its kind. An operator must handle the job.
    pub fn dead(failure: impl Into<Failure>) -> Report {
        Report::Dead(failure.into())
    }

    /// Ends the job in state `failed`, independent of the settings of its kind. No operator action
    /// is needed. If another attempt may follow, use [`Report::retry`].
    pub fn fail_job(failure: impl Into<Failure>) -> Report {
        Report::FailJob(failure.into())
    }

    /// Runs the job again after this time; the attempt does not count. Only the deadline of the job
    /// limits how often this can happen.
    pub const fn snooze(after: Duration) -> Report {
        Report::Snooze(after)
    }
}

/// Converts an error that implements `Classify`. A crate can write the same conversion for its own
/// error type: `impl From<BankError> for Report`.
impl<E: Classify + Display> From<E> for Report {
    fn from(error: E) -> Report {
        let class = error.classify();
        let failure = Failure::of(&class, &error.to_string());
        Report::AttemptFailed { verdict: class.verdict, failure }
    }
}

#[cfg(test)]
mod tests {
    use super::{Failure, Report, Verdict};
    use rewheel::{Category, Class, Classify, seconds};
    use std::fmt;

    /// An error that implements `Classify`.
    struct Busy;

    impl fmt::Display for Busy {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("busy")
        }
    }

    impl Classify for Busy {
        fn classify(&self) -> Class {
            Class::retry_after(Category::Throttled, seconds(3)).with_code(429_u16)
        }
    }

    /// An error that does not; it is routed by its type.
    enum BankError {
        Locked,
        Stolen,
    }

    impl From<BankError> for Report {
        fn from(error: BankError) -> Report {
            match error {
                BankError::Locked => Report::snooze(seconds(60)),
                BankError::Stolen => Report::dead("the card was stolen"),
            }
        }
    }

    #[track_caller]
    fn check(result: Result<(), Report>, expected: &Report) {
        assert_eq!(result.as_ref(), Err(expected));
    }

    #[test]
    fn an_error_becomes_what_it_means_or_what_its_type_is_routed_to() {
        let failure = Failure::new(Category::Throttled, Some("429"), "busy");
        let asked = Report::AttemptFailed { verdict: Verdict::RetryAfter(seconds(3)), failure };
        check((|| Err(Busy)?)(), &asked);
        check((|| Err(BankError::Locked)?)(), &Report::Snooze(seconds(60)));
        let stolen = Failure::new(Category::Unknown, None, "the card was stolen");
        check((|| Err(BankError::Stolen)?)(), &Report::Dead(stolen));
    }

    #[test]
    fn every_way_to_say_it_is_what_it_says() {
        let why = || Failure::new(Category::Unknown, None, "why");
        let judged = |verdict| Report::AttemptFailed { verdict, failure: why() };
        assert_eq!(Report::retry("why"), judged(Verdict::Retry));
        assert_eq!(Report::retry("why".to_owned()), judged(Verdict::Retry));
        assert_eq!(Report::stop(why()), judged(Verdict::Stop));
        let after = Report::retry_after(seconds(3), "why");
        assert_eq!(after, judged(Verdict::RetryAfter(seconds(3))));
        assert_eq!(Report::dead("why"), Report::Dead(why()));
        assert_eq!(Report::fail_job("why"), Report::FailJob(why()));
        assert_eq!(Report::snooze(seconds(3)), Report::Snooze(seconds(3)));
    }
}
