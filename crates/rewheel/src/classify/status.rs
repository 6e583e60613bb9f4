//! Classifies HTTP responses by status.

use super::{Category, Class, RetryAfter, Verdict};
use crate::setting::{NotAllowed, SettingError, not_allowed, valid};
use std::fmt;
use std::str::FromStr;
use std::time::SystemTime;

const STATUS_MIN: u16 = 100;
const STATUS_MAX: u16 = 599;
const CLASS_LEN: u16 = 100;
const WORD_BITS: u16 = u64::BITS as u16;
const WORDS: usize = (STATUS_MAX - STATUS_MIN + 1).div_ceil(WORD_BITS) as usize;

/// The text of the empty set, because an empty text is more often a forgotten setting.
const NONE: &str = "none";

/// A set of HTTP statuses from 100 to 599.
///
/// The text form is a list of statuses, classes and ranges, separated by spaces or commas:
///
/// ```
/// use rewheel::StatusSet;
///
/// const TRY_AGAIN: StatusSet = StatusSet::EMPTY.with(429).with_range(502, 504);
///
/// assert!(TRY_AGAIN.contains(503));
/// assert_eq!(TRY_AGAIN, "429, 502-504".parse()?);
/// assert_eq!(StatusSet::RETRYABLE.to_string(), "408 425 429 500 502-504 506-599");
/// # Ok::<(), rewheel::StatusSetError>(())
/// ```
///
/// An invalid constant does not compile:
///
/// ```compile_fail,E0080
/// const WRONG: rewheel::StatusSet = rewheel::StatusSet::EMPTY.with(1000);
/// assert!(WRONG.contains(1000));
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct StatusSet {
    // Bit 0 of the first word is status 100.
    words: [u64; WORDS],
}

impl StatusSet {
    /// The empty set.
    pub const EMPTY: StatusSet = StatusSet { words: [0; WORDS] };

    /// The statuses of success: 2xx.
    pub const SUCCESS: StatusSet = StatusSet::EMPTY.with_class(2);

    /// The statuses that are usually temporary: 408, 425, 429, and 5xx except 501 and 505.
    pub const RETRYABLE: StatusSet = StatusSet::EMPTY
        .with(408)
        .with(425)
        .with(429)
        .with(500)
        .with_range(502, 504)
        .with_range(506, 599);

    /// Adds one status.
    ///
    /// # Panics
    ///
    /// Panics if the value is not within 100 to 599; in a constant that is a compile error.
    #[must_use]
    #[track_caller]
    pub const fn with(self, status: u16) -> StatusSet {
        self.with_range(status, status)
    }

    /// As [`with`](StatusSet::with), without the panic.
    ///
    /// ```
    /// use rewheel::StatusSet;
    ///
    /// let error = StatusSet::RETRYABLE.try_with(700).unwrap_err();
    /// assert_eq!(error.to_string(), "invalid status `700`: use 100 to 599");
    /// ```
    ///
    /// # Errors
    /// Rejects a number outside of 100 to 599.
    pub fn try_with(self, status: u16) -> Result<StatusSet, SettingError> {
        self.checked_range(status, status).map_err(|rule| rule.with(status))
    }

    /// Adds every status from the first to the last, both included.
    ///
    /// # Panics
    ///
    /// Panics if one is not within 100 to 599, or the first is larger than the last; in a constant that is a compile error.
    #[must_use]
    #[track_caller]
    pub const fn with_range(self, first: u16, last: u16) -> StatusSet {
        valid(self.checked_range(first, last))
    }

    /// As [`with_range`](StatusSet::with_range), without the panic.
    ///
    /// # Errors
    /// Rejects numbers outside of 100 to 599, and a first that is larger than the last.
    pub fn try_with_range(self, first: u16, last: u16) -> Result<StatusSet, SettingError> {
        self.checked_range(first, last).map_err(|rule| rule.with(format_args!("{first}-{last}")))
    }

    const fn checked_range(mut self, first: u16, last: u16) -> Result<StatusSet, NotAllowed> {
        if first < STATUS_MIN || STATUS_MAX < last {
            return Err(not_allowed!("status", "use 100 to 599"));
        }
        if first > last {
            return Err(not_allowed!("status", "the start of a range must not be above its end"));
        }
        let mut status = first;
        while status <= last {
            let (word, bit) = position(status);
            self.words[word] |= bit;
            status += 1;
        }
        Ok(self)
    }

    /// Adds a whole class: 5 adds 500 to 599.
    ///
    /// # Panics
    ///
    /// Panics if the value is not within 1 to 5; in a constant that is a compile error.
    #[must_use]
    #[track_caller]
    pub const fn with_class(self, class: u16) -> StatusSet {
        valid(self.checked_class(class))
    }

    /// As [`with_class`](StatusSet::with_class), without the panic.
    ///
    /// # Errors
    /// Rejects a class outside of 1 to 5.
    pub fn try_with_class(self, class: u16) -> Result<StatusSet, SettingError> {
        self.checked_class(class).map_err(|rule| rule.with(class))
    }

    const fn checked_class(self, class: u16) -> Result<StatusSet, NotAllowed> {
        if class < 1 || 5 < class {
            return Err(not_allowed!("class", "use 1 to 5"));
        }
        self.checked_range(class * CLASS_LEN, class * CLASS_LEN + CLASS_LEN - 1)
    }

    /// Returns the statuses that are in either set.
    #[must_use]
    pub const fn union(mut self, other: StatusSet) -> StatusSet {
        let mut word = 0;
        while word < WORDS {
            self.words[word] |= other.words[word];
            word += 1;
        }
        self
    }

    /// Returns whether the status is in the set; false for any number that is not a status.
    pub const fn contains(self, status: u16) -> bool {
        if status < STATUS_MIN || STATUS_MAX < status {
            return false;
        }
        let (word, bit) = position(status);
        self.words[word] & bit != 0
    }

    /// Returns whether the set has no status.
    pub fn is_empty(self) -> bool {
        self == StatusSet::EMPTY
    }

    /// Returns the longest runs of consecutive statuses, as first and last.
    fn runs(self) -> impl Iterator<Item = (u16, u16)> {
        let mut next = STATUS_MIN;
        std::iter::from_fn(move || {
            let first = (next..=STATUS_MAX).find(|&status| self.contains(status))?;
            let last = (first..=STATUS_MAX).take_while(|&status| self.contains(status)).last()?;
            next = last + 1;
            Some((first, last))
        })
    }
}

const fn position(status: u16) -> (usize, u64) {
    let index = status - STATUS_MIN;
    ((index / WORD_BITS) as usize, 1 << (index % WORD_BITS))
}

/// Prints the shortest list of statuses, classes and ranges; `none` for the empty set.
impl fmt::Display for StatusSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str(NONE);
        }
        for (index, (first, last)) in self.runs().enumerate() {
            if index > 0 {
                f.write_str(" ")?;
            }
            if first == last {
                write!(f, "{first}")?;
            } else if first % CLASS_LEN == 0 && last - first + 1 == CLASS_LEN {
                write!(f, "{}xx", first / CLASS_LEN)?;
            } else {
                write!(f, "{first}-{last}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for StatusSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StatusSet({self})")
    }
}

impl FromStr for StatusSet {
    type Err = StatusSetError;

    fn from_str(text: &str) -> Result<StatusSet, StatusSetError> {
        if text.trim_ascii() == NONE {
            return Ok(StatusSet::EMPTY);
        }
        let separator = |character: char| character == ',' || character.is_ascii_whitespace();
        let mut set = StatusSet::EMPTY;
        for part in text.split(separator).filter(|part| !part.is_empty()) {
            let (first, last) =
                parse_part(part).ok_or_else(|| StatusSetError { part: part.to_owned() })?;
            set = set.with_range(first, last);
        }
        if set.is_empty() { Err(StatusSetError { part: text.to_owned() }) } else { Ok(set) }
    }
}

fn parse_part(part: &str) -> Option<(u16, u16)> {
    if let Some((first, last)) = part.split_once('-') {
        let (first, last) = (parse_status(first)?, parse_status(last)?);
        return (first <= last).then_some((first, last));
    }
    match part.as_bytes() {
        [class @ b'1'..=b'5', b'x' | b'X', b'x' | b'X'] => {
            let first = u16::from(class - b'0') * CLASS_LEN;
            Some((first, first + CLASS_LEN - 1))
        }
        _ => parse_status(part).map(|status| (status, status)),
    }
}

fn parse_status(text: &str) -> Option<u16> {
    // `u16::from_str` alone would also accept `+404` and `0404`.
    if text.len() != 3 || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok().filter(|status| (STATUS_MIN..=STATUS_MAX).contains(status))
}

/// Error: the text is not a [`StatusSet`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{part}` is not a set of HTTP statuses: use a status from 100 to 599 (`404`), a class \
     (`5xx`), a range (`500-504`), a list of these, or `none`"
)]
pub struct StatusSetError {
    part: String,
}

impl StatusSetError {
    /// Returns the invalid part of the text.
    pub fn part(&self) -> &str {
        &self.part
    }
}

impl Class {
    /// Classifies an HTTP response by its status.
    ///
    /// | status | verdict | category |
    /// |---|---|---|
    /// | 1xx, 2xx, 3xx | done | |
    /// | 408, 504 | retry | `timeout` |
    /// | 429 | retry | `throttled` |
    /// | 425, any other 5xx | retry | `transient` |
    /// | any other 4xx, 501, 505 | stop | `rejected` |
    /// | no HTTP status | retry | `unknown` |
    ///
    /// Every failure has the status as its code.
    ///
    /// ```
    /// use rewheel::{Category, Class};
    ///
    /// assert_eq!(Class::of_status(204), Class::DONE);
    /// assert_eq!(Class::of_status(404), Class::stop(Category::Rejected).with_code(404_u16));
    /// ```
    pub fn of_status(status: u16) -> Class {
        let class = match status {
            100..=399 => return Class::DONE,
            408 | 504 => Class::retry(Category::Timeout),
            429 => Class::retry(Category::Throttled),
            // The service does not know the method or the version: it never will.
            501 | 505 => Class::stop(Category::Rejected),
            425 | 500..=599 => Class::retry(Category::Transient),
            400..=499 => Class::stop(Category::Rejected),
            0..=99 | 600.. => Class::retry(Category::Unknown),
        };
        class.with_code(status)
    }

    /// Classifies an HTTP response by its status and its `Retry-After` header.
    ///
    /// A valid header turns `Retry` into `RetryAfter` of at most [`RetryAfter::DELAY_MAX`]; an invalid header is ignored. A
    /// valid header also makes a 409 retryable: a service sends this response while the same request is still in progress (an
    /// idempotency layer does this). The header does not change other permanent failures.
    ///
    /// `now` matters only for a header that contains a date. Pass the `Date` header of the response if there is one: then both
    /// dates come from the same clock, and it does not matter if this clock is wrong.
    ///
    /// ```
    /// use rewheel::{Class, RetryAfter, Verdict};
    /// use std::time::{Duration, SystemTime};
    ///
    /// let our_clock = SystemTime::UNIX_EPOCH; // completely wrong
    /// let date = Some("Sun, 06 Nov 1994 08:49:37 GMT");
    /// let retry_after = Some("Sun, 06 Nov 1994 08:50:07 GMT");
    ///
    /// let now = date.and_then(RetryAfter::parse_date).unwrap_or(our_clock);
    /// let class = Class::of_response(503, retry_after, now);
    /// assert_eq!(class.verdict, Verdict::RetryAfter(Duration::from_secs(30)));
    /// ```
    pub fn of_response(status: u16, retry_after: Option<&str>, now: SystemTime) -> Class {
        let class = Class::of_status(status);
        let comes_again = class.verdict == Verdict::Retry || status == 409;
        match retry_after.and_then(RetryAfter::parse).filter(|_| comes_again) {
            Some(retry_after) => {
                Class { verdict: Verdict::RetryAfter(retry_after.delay(now)), ..class }
            }
            None => class,
        }
    }
}
