//! Reads the delay that a called service asked for (`Retry-After`).

use super::Verdict;
use std::time::{Duration, SystemTime};

/// The value of an HTTP `Retry-After` header.
///
/// ```
/// use rewheel::RetryAfter;
/// use std::time::{Duration, SystemTime};
///
/// let now = SystemTime::UNIX_EPOCH;
/// assert_eq!(RetryAfter::parse("120").unwrap().delay(now), Duration::from_secs(120));
/// assert_eq!(RetryAfter::parse("soon"), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RetryAfter {
    /// Wait for this long.
    Delay(Duration),
    /// Wait until this time, by the clock of the called service.
    At(SystemTime),
}

impl RetryAfter {
    /// The longest delay that a called service may ask for.
    ///
    /// The called service chooses the value of the header: 999999999 seconds, by mistake or on
    /// purpose, would stop the client for 31 years. Services normally ask for less than an hour,
    /// and users notice a wait of an hour. A policy's own limits may shorten the delay further.
    pub const DELAY_MAX: Duration = Duration::from_secs(60 * 60);

    /// Parses the header's value: whole seconds, or a date in any of the three HTTP formats.
    /// Surrounding space is ignored.
    ///
    /// Returns `None` for anything else (a negative number, a fraction, an empty text), so that
    /// the caller can use its own backoff instead. A number that is too large for a [`Duration`] becomes the largest one.
    pub fn parse(value: &str) -> Option<RetryAfter> {
        let value = value.trim_ascii();
        if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
            // A text of only digits fails to parse only if the number is too large.
            let seconds = value.parse().unwrap_or(u64::MAX);
            return Some(RetryAfter::Delay(Duration::from_secs(seconds)));
        }
        RetryAfter::parse_date(value).map(RetryAfter::At)
    }

    /// Parses an HTTP date, such as a response's `Date` header.
    ///
    /// Use the result as `now` for [`delay`](RetryAfter::delay) and
    /// [`Class::of_response`](crate::Class::of_response), because the same clock computed `Retry-After`.
    pub fn parse_date(value: &str) -> Option<SystemTime> {
        httpdate::parse_http_date(value.trim_ascii()).ok()
    }

    /// Returns the delay from `now`: zero for a date that has passed, and at most
    /// [`DELAY_MAX`](RetryAfter::DELAY_MAX).
    pub fn delay(self, now: SystemTime) -> Duration {
        let delay = match self {
            RetryAfter::Delay(delay) => delay,
            RetryAfter::At(at) => at.duration_since(now).unwrap_or(Duration::ZERO),
        };
        delay.min(RetryAfter::DELAY_MAX)
    }
}

/// Parses the value of gRPC's `grpc-retry-pushback-ms`.
///
/// The value is the delay in milliseconds, at most [`RetryAfter::DELAY_MAX`]. A negative value
/// means that the server does not want a retry; by the rules of gRPC, an invalid value also means this.
///
/// ```
/// use rewheel::{Verdict, grpc_pushback};
/// use std::time::Duration;
///
/// assert_eq!(grpc_pushback("250"), Verdict::RetryAfter(Duration::from_millis(250)));
/// assert_eq!(grpc_pushback("-1"), Verdict::Stop);
/// ```
pub fn grpc_pushback(value: &str) -> Verdict {
    let millis = value.trim_ascii().parse::<i32>().ok();
    match millis.and_then(|millis| u64::try_from(millis).ok()) {
        Some(millis) => {
            Verdict::RetryAfter(Duration::from_millis(millis).min(RetryAfter::DELAY_MAX))
        }
        None => Verdict::Stop,
    }
}
