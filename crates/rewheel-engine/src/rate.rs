//! Fleet-wide rates.

use rewheel::duration;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A number of attempts per period.
///
/// ```
/// use rewheel_engine::Rate;
///
/// let rate: Rate = "500/s".parse()?;
/// assert_eq!(rate.to_string(), "500/s");
/// assert_eq!("5/30s".parse::<Rate>()?.to_string(), "5/30s");
/// assert_eq!("fast".parse::<Rate>().unwrap_err().to_string(), "`fast` is not a rate: write `500/s` or `5/30s`");
/// # Ok::<(), rewheel_engine::RateError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    calls: u32,
    period: Duration,
}

/// Error: the text is not a rate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a rate: write `500/s` or `5/30s`")]
pub struct RateError(String);

impl FromStr for Rate {
    type Err = RateError;

    fn from_str(text: &str) -> Result<Rate, RateError> {
        let wrong = || RateError(text.to_owned());
        let (calls, period) = text.split_once('/').ok_or_else(wrong)?;
        let calls = calls.parse().map_err(|_| wrong())?;
        let has_number = period.starts_with(|c: char| c.is_ascii_digit());
        let period = if has_number { period.to_owned() } else { format!("1{period}") };
        let period = duration::parse(&period).map_err(|_| wrong())?;
        // One attempt per day is slow enough, and a limiter can still compute with it.
        if calls == 0 || period.is_zero() || period > Duration::from_secs(86_400) {
            return Err(wrong());
        }
        Ok(Rate { calls, period })
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let period = duration::text(self.period).to_string();
        let unit = period.strip_prefix('1').filter(|unit| unit.chars().all(char::is_alphabetic));
        write!(f, "{}/{}", self.calls, unit.unwrap_or(&period))
    }
}

impl Serialize for Rate {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Rate, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

impl Rate {
    /// Creates a rate of at least one attempt, with a period of at most a day.
    ///
    /// # Panics
    /// Panics if the number is zero, or the period is zero or more than a day; in a constant that is a compile error.
    pub const fn new(calls: u32, period: Duration) -> Rate {
        assert!(calls > 0, "a rate allows at least one call");
        assert!(
            !period.is_zero() && period.as_secs() <= 86_400,
            "the period of a rate is at most a day"
        );
        Rate { calls, period }
    }

    /// Returns the number and the period.
    pub const fn parts(&self) -> (u32, Duration) {
        (self.calls, self.period)
    }

    /// Returns the time between two starts of a slow rate: one per second or less. The store enforces such a rate, because an
    /// engine's share would be less than one start.
    pub(crate) fn interval(self) -> Option<Duration> {
        let interval = self.period / self.calls;
        (interval >= Duration::from_secs(1)).then_some(interval)
    }

    /// Returns how many fit into `time`, for one of `holders`, at least one.
    pub(crate) fn within(&self, time: Duration, holders: usize) -> usize {
        let share = f64::from(self.calls) * time.as_secs_f64() / self.period.as_secs_f64();
        ((share / holders.max(1) as f64).ceil() as usize).max(1)
    }

    /// Returns how long `count` attempts take.
    pub(crate) fn time_of(&self, count: usize) -> Duration {
        self.period.mul_f64(count as f64 / f64::from(self.calls))
    }
}

#[cfg(test)]
mod tests {
    use super::Rate;
    use rewheel::{millis, seconds};

    #[test]
    fn a_rate_reads_back_as_it_was_written() {
        for text in ["1/s", "500/s", "30/m", "1/h", "5/30s", "100/1m30s", "7/d"] {
            assert_eq!(text.parse::<Rate>().unwrap().to_string(), text);
        }
        for text in ["", "5", "/s", "0/s", "-1/s", "5/", "5/x", "5/0s", "1/30d", "5.5/s"] {
            assert!(text.parse::<Rate>().is_err(), "{text}");
        }
    }

    #[test]
    fn one_a_second_or_fewer_is_slow() {
        for (text, interval) in [
            ("1/s", Some(seconds(1))),
            ("2/s", None),
            ("59/m", Some(millis(60_000) / 59)),
            ("61/m", None),
            ("1/h", Some(seconds(3_600))),
        ] {
            assert_eq!(text.parse::<Rate>().unwrap().interval(), interval, "{text}");
        }
    }
}
