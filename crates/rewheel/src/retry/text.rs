//! The short text form of a retry policy.

use super::{Inner, Nested, Retry, UNLIMITED};
use crate::backoff::{Backoff, Backoffs};
use crate::duration::{self, nanos};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Error: the text is not a retry policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a retry policy: {why}")]
pub struct RetryError {
    text: String,
    why: String,
}

impl fmt::Display for Retry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |nanos| duration::text(Duration::from_nanos(nanos));
        let plural = if self.attempts_max == 1 { "" } else { "s" };
        write!(f, "{} attempt{plural}, {}", self.attempts_max, self.backoff)?;
        if self.deadline != UNLIMITED {
            write!(f, ", deadline {}", text(self.deadline))?;
        }
        if self.attempt_timeout != UNLIMITED {
            write!(f, ", attempt_timeout {}", text(self.attempt_timeout))?;
        }
        if self.retry_after_max != nanos(Retry::RETRY_AFTER_MAX) {
            write!(f, ", retry_after_max {}", text(self.retry_after_max))?;
        }
        match self.nested {
            Nested::Once => {}
            Nested::Retry => f.write_str(", nested retry")?,
        }
        match self.inner {
            Inner::Suppress => Ok(()),
            Inner::Allow => f.write_str(", inner allow"),
        }
    }
}

impl FromStr for Retry {
    type Err = RetryError;

    /// Parses the name of a preset, or parts separated by commas: the number of attempts, a
    /// backoff, and any of `deadline`, `attempt_timeout`, `retry_after_max`, `nested
    /// retry|once` and `inner suppress|allow`.
    ///
    /// ```
    /// use rewheel::{Retry, millis, seconds};
    ///
    /// let text = "4 attempts, fixed 50ms jitter none, deadline 2s";
    /// let retry: Retry = text.parse().unwrap();
    /// assert_eq!(retry, Retry::fixed(millis(50)).attempts_max(4).deadline(seconds(2)));
    /// assert_eq!(retry.to_string(), text);
    /// assert_eq!("external_api".parse(), Ok(Retry::EXTERNAL_API));
    /// ```
    fn from_str(text: &str) -> Result<Retry, RetryError> {
        Backoffs::new().parse_retry(text)
    }
}

impl Backoffs {
    /// Parses a retry policy whose backoff may be one of these, by name.
    ///
    /// ```
    /// use rewheel::{Backoff, Backoffs, Retry, seconds};
    ///
    /// let mut backoffs = Backoffs::new();
    /// backoffs.register("payday", Backoff::fixed(seconds(86_400))).unwrap();
    /// let retry = backoffs.parse_retry("3 attempts, payday").unwrap();
    /// assert_eq!(retry, Retry::fixed(seconds(86_400)));
    /// ```
    ///
    /// # Errors
    /// Fails with the reason why the text is not a policy.
    pub fn parse_retry(&self, text: &str) -> Result<Retry, RetryError> {
        if let Some(preset) = Retry::preset(text.trim()) {
            return Ok(preset);
        }
        parse(text, self).map_err(|why| RetryError { text: text.to_owned(), why })
    }
}

fn parse(text: &str, backoffs: &Backoffs) -> Result<Retry, String> {
    let mut retry = Retry::new(Backoff::fixed(Duration::ZERO));
    let mut backoff = None;
    let mut seen = Vec::new();
    for part in text.split(',').map(str::trim) {
        let (word, rest) = part.split_once(' ').unwrap_or((part, ""));
        let setting = setting_of(word, rest);
        if seen.contains(&setting) {
            return Err(format!("{setting} is given twice"));
        }
        seen.push(setting);
        match word {
            "deadline" => retry.deadline = length(word, rest)?,
            "attempt_timeout" => retry.attempt_timeout = length(word, rest)?,
            "retry_after_max" => retry.retry_after_max = length(word, rest)?,
            "nested" if rest == "retry" => retry.nested = Nested::Retry,
            "nested" if rest == "once" => retry.nested = Nested::Once,
            "nested" => return Err("`nested` must be followed by `retry` or `once`".to_owned()),
            "inner" if rest == "allow" => retry.inner = Inner::Allow,
            "inner" if rest == "suppress" => retry.inner = Inner::Suppress,
            "inner" => return Err("`inner` must be followed by `suppress` or `allow`".to_owned()),
            _ if matches!(rest, "attempt" | "attempts") => {
                let wrong = || format!("`{word}` is not a number of attempts: use 1 or more");
                retry.attempts_max = word.parse().ok().filter(|n| *n > 0).ok_or_else(wrong)?;
            }
            _ => backoff = Some(backoffs.parse(part).map_err(|error| error.to_string())?),
        }
    }
    if retry.deadline == 0 || retry.attempt_timeout == 0 {
        return Err("deadline and attempt_timeout must be longer than 0s".to_owned());
    }
    retry.backoff =
        backoff.ok_or("the backoff is missing: add one, such as `exponential 100ms`")?;
    Ok(retry)
}

/// Returns the setting that a part of the text sets.
fn setting_of<'a>(word: &'a str, rest: &str) -> &'a str {
    match (word, rest) {
        ("deadline" | "attempt_timeout" | "retry_after_max" | "nested" | "inner", _) => word,
        (_, "attempt" | "attempts") => "the number of attempts",
        _ => "the backoff",
    }
}

fn length(word: &str, text: &str) -> Result<u64, String> {
    let parsed = duration::parse(text);
    parsed.map(nanos).map_err(|error| format!("{word}: {error}"))
}

#[cfg(feature = "serde")]
impl serde::Serialize for Retry {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for Retry {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Retry, D::Error> {
        crate::text::deserialize(from, str::parse)
    }
}
