//! Formats and parses timestamps: RFC 3339, UTC, with milliseconds.

use rewheel_core::Timestamp;

/// Formats a timestamp. A time outside of the calendar's range becomes the nearest valid one.
///
/// ```
/// use rewheel_core::Timestamp;
/// use rewheel_server::rfc3339;
///
/// assert_eq!(rfc3339::text(Timestamp::from_millis(1_500)), "1970-01-01T00:00:01.500Z");
/// assert_eq!(rfc3339::parse("1970-01-01T01:00:00+01:00"), Ok(Timestamp::from_millis(0)));
/// ```
pub fn text(at: Timestamp) -> String {
    let nearest = if at.as_millis() < 0 { jiff::Timestamp::MIN } else { jiff::Timestamp::MAX };
    let at = jiff::Timestamp::from_millisecond(at.as_millis()).unwrap_or(nearest);
    format!("{at:.3}")
}

/// Parses a timestamp with any offset from UTC.
///
/// # Errors
/// Says which form is expected.
pub fn parse(text: &str) -> Result<Timestamp, TimeError> {
    // The calendar library also accepts years that RFC 3339 does not allow.
    if !text.starts_with(|first: char| first.is_ascii_digit()) {
        return Err(TimeError);
    }
    let at = text.parse::<jiff::Timestamp>().map_err(|_| TimeError)?;
    Ok(Timestamp::from_millis(at.as_millisecond()))
}

/// The text is not a timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be a time such as 2026-01-31T12:00:00.000Z")]
pub struct TimeError;

#[cfg(test)]
mod tests {
    use super::{Timestamp, parse, text};

    #[test]
    fn what_is_written_is_read_again() {
        for millis in [0, 1, 999, 1_700_000_000_123] {
            let at = Timestamp::from_millis(millis);
            assert_eq!(parse(&text(at)), Ok(at));
        }
    }

    #[test]
    fn the_end_of_time_has_a_text() {
        assert!(text(Timestamp::from_millis(i64::MAX)).starts_with("9999-12-3"));
        assert!(text(Timestamp::from_millis(i64::MIN)).starts_with("-009999-01-0"));
    }

    #[test]
    fn a_date_alone_or_a_local_time_is_no_instant() {
        for bad in [
            "",
            "2026-01-31",
            "2026-01-31T12:00:00",
            "tomorrow",
            "1700000000",
            "-000001-01-01T00:00:00Z",
        ] {
            assert!(parse(bad).is_err(), "{bad:?} was accepted");
        }
    }
}
