//! The action of a rule, as a value and as text.

use crate::limits::Limits;
use rewheel::duration;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// The action of a rule for a failure.
///
/// ```
/// use rewheel::minutes;
/// use rewheel_core::Action;
///
/// assert_eq!("snooze 5m".parse(), Ok(Action::Snooze(minutes(5))));
/// assert_eq!(Action::RetrySlower(4).to_string(), "retry x4");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Retries by the policy, even if the failure was judged permanent: `retry`.
    Retry,
    /// Retries after this delay instead of the backoff: `retry 30s`. A longer delay that the called
    /// service asked for still applies.
    RetryAfter(Duration),
    /// Retries after a multiple of the usual delay: `retry x4`.
    RetrySlower(u32),
    /// Runs the job again after this time; the attempt does not count: `snooze 5m`.
    Snooze(Duration),
    /// Gives up; the job becomes a dead letter: `dead`.
    Dead,
    /// Gives up; the job ends as failed and needs no operator action: `fail`.
    Fail,
    /// Pauses the job until an operator resumes it; the attempt does not count: `pause`.
    Pause,
    /// Cancels the job: `cancel`.
    Cancel,
}

impl Action {
    /// Returns whether an attempt that counts follows.
    pub const fn is_retry(self) -> bool {
        match self {
            Action::Retry | Action::RetryAfter(_) | Action::RetrySlower(_) => true,
            Action::Snooze(_) | Action::Dead | Action::Fail | Action::Pause | Action::Cancel => {
                false
            }
        }
    }

    /// Returns why the action cannot work.
    pub(super) fn check(self) -> Result<(), String> {
        match self {
            Action::RetrySlower(factor) if !(2..=Limits::BACKOFF_FACTOR_MAX).contains(&factor) => {
                Err(format!("`{self}`: must be x2 to x{}", Limits::BACKOFF_FACTOR_MAX))
            }
            Action::Snooze(after) if after < Limits::SNOOZE_MIN => {
                let least = duration::text(Limits::SNOOZE_MIN);
                Err(format!(
                    "`{self}`: must be {least} or longer, because a snooze does not count as an attempt"
                ))
            }
            Action::Snooze(after) if after > Limits::SNOOZE_MAX => {
                let most = duration::text(Limits::SNOOZE_MAX);
                Err(format!(
                    "`{self}`: must be {most} or shorter; use `pause` to wait for an operator"
                ))
            }
            Action::Retry
            | Action::RetryAfter(_)
            | Action::RetrySlower(_)
            | Action::Snooze(_)
            | Action::Dead
            | Action::Fail
            | Action::Pause
            | Action::Cancel => Ok(()),
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Action::Retry => f.write_str("retry"),
            Action::RetryAfter(after) => write!(f, "retry {}", duration::text(*after)),
            Action::RetrySlower(factor) => write!(f, "retry x{factor}"),
            Action::Snooze(after) => write!(f, "snooze {}", duration::text(*after)),
            Action::Dead => f.write_str("dead"),
            Action::Fail => f.write_str("fail"),
            Action::Pause => f.write_str("pause"),
            Action::Cancel => f.write_str("cancel"),
        }
    }
}

impl FromStr for Action {
    type Err = ActionError;

    fn from_str(text: &str) -> Result<Action, ActionError> {
        let wrong = |why: Option<String>| ActionError { text: text.to_owned(), why };
        let time =
            |time: &str| duration::parse(time).map_err(|error| wrong(Some(error.to_string())));
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        match words[..] {
            ["retry"] => Ok(Action::Retry),
            ["retry", how] => match how.strip_prefix('x') {
                Some(factor) => factor.parse().map(Action::RetrySlower).map_err(|_| {
                    wrong(Some(format!(
                        "`{how}` is not a factor: write x and a whole number, such as x4"
                    )))
                }),
                None => time(how).map(Action::RetryAfter),
            },
            ["snooze", after] => time(after).map(Action::Snooze),
            ["snooze"] => Err(wrong(Some("is missing a duration: write `snooze 5m`".to_owned()))),
            ["dead"] => Ok(Action::Dead),
            ["fail"] => Ok(Action::Fail),
            ["pause"] => Ok(Action::Pause),
            ["cancel"] => Ok(Action::Cancel),
            _ => Err(wrong(None)),
        }
    }
}

/// Error: the text is not an [`Action`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionError {
    text: String,
    why: Option<String>,
}

impl fmt::Display for ActionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.why {
            Some(why) => write!(f, "`{}`: {why}", self.text),
            None => write!(
                f,
                "`{}` is not one of retry, retry 30s, retry x4, snooze 5m, dead, fail, pause, cancel",
                self.text
            ),
        }
    }
}

impl std::error::Error for ActionError {}
