//! Durations as text: `250ms`, `30s`, `1h30m`.
//!
//! ```
//! use rewheel::duration;
//! use std::time::Duration;
//!
//! assert_eq!(duration::parse("1h30m").unwrap(), Duration::from_secs(5400));
//! assert_eq!(duration::text(Duration::from_millis(1_250)).to_string(), "1s250ms");
//! assert_eq!(
//!     duration::parse("30").unwrap_err().to_string(),
//!     "`30` is not a duration: a number needs a unit, one of ns us ms s m h d",
//! );
//! ```

use std::fmt;
use std::time::Duration;

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// Every unit with its length in nanoseconds, longest first.
const UNITS: [(&str, u64); 7] = [
    ("d", 86_400 * NANOS_PER_SECOND),
    ("h", 3_600 * NANOS_PER_SECOND),
    ("m", 60 * NANOS_PER_SECOND),
    ("s", NANOS_PER_SECOND),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

/// Short for [`Duration::from_millis`].
pub const fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// Short for [`Duration::from_secs`].
pub const fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// Returns a duration of `count` minutes.
///
/// # Panics
/// Panics above `u64::MAX` seconds; in a constant that is a compile error.
pub const fn minutes(count: u64) -> Duration {
    match count.checked_mul(60) {
        Some(seconds) => Duration::from_secs(seconds),
        None => panic!("too many minutes"),
    }
}

/// Parses integers with units in any order: `1h30m`, `250ms`.
///
/// # Errors
/// Fails with the part that is not a number with a unit. A fraction (`1.5s`) is an error: write
/// `1s500ms`.
pub fn parse(text: &str) -> Result<Duration, DurationError> {
    let wrong = |why| DurationError { text: text.to_owned(), why };
    if text.is_empty() {
        return Err(wrong("it is empty"));
    }
    let mut total = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        if digits == 0 {
            return Err(wrong(
                "each part must be a whole number followed by a unit, such as 1h30m or 250ms",
            ));
        }
        let (number, tail) = rest.split_at(digits);
        let letters = tail.bytes().take_while(u8::is_ascii_alphabetic).count();
        let (unit, tail) = tail.split_at(letters);
        let Some((_, nanos)) = UNITS.iter().find(|(name, _)| *name == unit) else {
            return Err(wrong("a number needs a unit, one of ns us ms s m h d"));
        };
        let part = number.parse::<u64>().ok().and_then(|number| times(number, *nanos));
        total = part
            .and_then(|part| total.checked_add(part))
            .ok_or_else(|| wrong("it is too long to be represented"))?;
        rest = tail;
    }
    Ok(total)
}

/// Prints a duration in the form that [`parse`] reads.
pub fn text(duration: Duration) -> impl fmt::Display + fmt::Debug {
    Text(duration)
}

/// Error: the text is not a duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a duration: {why}")]
pub struct DurationError {
    text: String,
    why: &'static str,
}

fn times(number: u64, nanos: u64) -> Option<Duration> {
    if nanos >= NANOS_PER_SECOND {
        number.checked_mul(nanos / NANOS_PER_SECOND).map(Duration::from_secs)
    } else {
        let per_second = NANOS_PER_SECOND / nanos;
        let below_a_second = (number % per_second) * nanos;
        Some(Duration::new(number / per_second, u32::try_from(below_a_second).ok()?))
    }
}

#[derive(Debug)]
struct Text(Duration);

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_zero() {
            return f.write_str("0s");
        }
        let (mut seconds, mut nanos) = (self.0.as_secs(), u64::from(self.0.subsec_nanos()));
        for (unit, length) in UNITS {
            let (rest, length) = if length >= NANOS_PER_SECOND {
                (&mut seconds, length / NANOS_PER_SECOND)
            } else {
                (&mut nanos, length)
            };
            if *rest >= length {
                write!(f, "{}{unit}", *rest / length)?;
                *rest %= length;
            }
        }
        Ok(())
    }
}

/// Nanoseconds in one word, as atomics and fast arithmetic need. Larger values saturate at 584
/// years.
pub(crate) const fn nanos(duration: Duration) -> u64 {
    match duration.as_secs().checked_mul(NANOS_PER_SECOND) {
        Some(nanos) => nanos.saturating_add(duration.subsec_nanos() as u64),
        None => u64::MAX,
    }
}

#[cfg(feature = "serde")]
pub mod serde {
    //! Serializes durations as strings in any serde format, with `#[serde(with = "…")]`.
    //!
    //! ```
    //! #[derive(serde::Serialize, serde::Deserialize)]
    //! struct Config {
    //!     #[serde(with = "rewheel::duration::serde")]
    //!     open_for: std::time::Duration,
    //! }
    //!
    //! let config: Config = serde_json::from_str(r#"{"open_for":"1m30s"}"#).unwrap();
    //! assert_eq!(config.open_for.as_secs(), 90);
    //! assert_eq!(serde_json::to_string(&config).unwrap(), r#"{"open_for":"1m30s"}"#);
    //! ```

    use super::Duration;
    use ::serde::{Deserializer, Serializer};

    /// Writes the text form.
    ///
    /// # Errors
    /// Returns the error of the serializer.
    pub fn serialize<S: Serializer>(duration: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&super::text(*duration))
    }

    /// Reads the text form.
    ///
    /// # Errors
    /// Fails with the reason why the text is not a duration.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        crate::text::deserialize(from, super::parse)
    }
}

#[cfg(test)]
mod tests {
    use super::{minutes, nanos, parse, text};
    use proptest::prelude::*;
    use std::time::Duration;

    #[track_caller]
    fn check(input: &str, expected: Duration, printed: &str) {
        assert_eq!(parse(input), Ok(expected));
        assert_eq!(text(expected).to_string(), printed);
    }

    #[test]
    fn reads_what_people_write() {
        check("0s", Duration::ZERO, "0s");
        check("0ms", Duration::ZERO, "0s");
        check("83ms", Duration::from_millis(83), "83ms");
        check("90s", Duration::from_secs(90), "1m30s");
        check("1h30m", Duration::from_secs(5_400), "1h30m");
        check("30m1h", Duration::from_secs(5_400), "1h30m");
        check("2d", Duration::from_secs(172_800), "2d");
        check("1s500us", Duration::new(1, 500_000), "1s500us");
        check("1500ms", Duration::from_millis(1_500), "1s500ms");
    }

    #[test]
    fn refuses_what_could_be_meant_in_two_ways() {
        for input in ["", " ", "10", "s", "1.5s", "-1s", "1 s", "1s ", "1sec", "1S", "10s5", "½s"]
        {
            assert!(parse(input).is_err(), "{input:?} was accepted");
        }
        assert!(parse("99999999999999999999s").is_err(), "more than a u64 was accepted");
        assert!(parse("18446744073709551615d").is_err(), "more than a Duration was accepted");
    }

    #[test]
    fn saturates_instead_of_wrapping() {
        assert_eq!(nanos(Duration::MAX), u64::MAX);
        assert_eq!(nanos(minutes(1)), 60_000_000_000);
    }

    proptest! {
        #[test]
        fn every_duration_survives_being_printed(seconds: u64, nanos in 0..1_000_000_000_u32) {
            let duration = Duration::new(seconds, nanos);
            prop_assert_eq!(parse(&text(duration).to_string()), Ok(duration));
        }

        #[test]
        fn no_text_makes_it_panic(input in "\\PC*") {
            let _ = parse(&input);
        }
    }
}
