//! The action of a rule, as a value and as text.

use crate::limits::Limits;
use rewheel::duration;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// What is done about a failure.
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
    /// It is retried by its policy, also if it was judged hopeless: `retry`.
    Retry,
    /// It is retried after this time instead of what its backoff says: `retry 30s`. A callee that
    /// asked for more time gets it.
    RetryAfter(Duration),
    /// It is retried after so many times the wait that it would have: `retry x4`.
    RetrySlower(u32),
    /// It runs again after this time, as if this attempt had not been: `snooze 5m`.
    Snooze(Duration),
    /// It is given up, and asks for a person: `dead`.
    Dead,
    /// It is given up, and nobody is waiting: `fail`.
    Fail,
    /// It waits for a person, and the attempt does not count: `pause`.
    Pause,
    /// It is stopped: `cancel`.
    Cancel,
}

impl Action {
    /// Returns whether another attempt follows that counts.
    pub const fn is_retry(self) -> bool {
        match self {
            Action::Retry | Action::RetryAfter(_) | Action::RetrySlower(_) => true,
            Action::Snooze(_) | Action::Dead | Action::Fail | Action::Pause | Action::Cancel => {
                false
            }
        }
    }

    /// Says why it cannot work.
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
                    wrong(Some(format!("`{how}` is not a whole number of times, such as x4")))
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

/// The text is not an [`Action`].
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
