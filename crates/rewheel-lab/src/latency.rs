//! How long a simulated request takes.

use crate::chance::Chance;
use rewheel::duration;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

/// The distribution of the time that a dependency needs for one request.
///
/// ```
/// use rewheel_lab::Latency;
/// use rewheel::millis;
///
/// let slow_tail: Latency = "lognormal 20ms p99 500ms".parse()?;
/// assert!(slow_tail.mean() > millis(20));
/// assert_eq!("20ms".parse::<Latency>()?.mean(), millis(20));
/// # Ok::<(), rewheel_lab::LatencyError>(())
/// ```
///
/// In text: `20ms` (evenly spread between half and one and a half of it), `fixed 20ms`, `exponential 20ms`, `normal 10ms 2ms` (mean and
/// deviation), `lognormal 20ms p99 500ms` (median and the 99th percentile).
#[derive(Clone, Debug, PartialEq)]
pub struct Latency(Shape);

#[derive(Clone, Debug, PartialEq)]
enum Shape {
    Fixed(Duration),
    Spread(Duration),
    Exponential(Duration),
    Normal {
        mean: Duration,
        deviation: Duration,
    },
    LogNormal {
        median: Duration,
        p99: Duration,
    },
    /// Measured latencies, in seconds.
    Samples {
        seconds: Arc<[f64]>,
        mean: f64,
    },
}

/// Longest mean that can be simulated.
pub(crate) const LATENCY_MAX: Duration = Duration::from_secs(3_600);

/// The deviation of a normal distribution is at most this many times the mean.
const DEVIATION_MAX: u32 = 1_000;

/// The 99th percentile of the normal distribution.
const NORMAL_P99: f64 = 2.326_347_874_040_841;

/// Error: the text is not a latency.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a latency: use `20ms`, `fixed 20ms`, `exponential 20ms`, `normal 10ms 2ms` or `lognormal 20ms p99 500ms`, with a mean of at most 1h"
)]
pub struct LatencyError(String);

impl Latency {
    /// Always the same time.
    pub const fn fixed(time: Duration) -> Latency {
        Latency(Shape::Fixed(time))
    }

    /// Evenly spread between half of the mean and one and a half of it.
    pub const fn spread(mean: Duration) -> Latency {
        Latency(Shape::Spread(mean))
    }

    /// Exponentially distributed, as in the textbook queue M/M/c.
    pub const fn exponential(mean: Duration) -> Latency {
        Latency(Shape::Exponential(mean))
    }

    /// As measured: each request takes as long as one of these, drawn at random. `None` if there are none.
    pub fn measured(times: &[Duration]) -> Option<Latency> {
        let seconds: Arc<[f64]> = times.iter().map(Duration::as_secs_f64).collect();
        let mean = seconds.iter().sum::<f64>() / seconds.len() as f64;
        (!seconds.is_empty()).then_some(Latency(Shape::Samples { seconds, mean }))
    }

    /// Returns the mean.
    pub fn mean(&self) -> Duration {
        match &self.0 {
            Shape::Fixed(mean)
            | Shape::Spread(mean)
            | Shape::Exponential(mean)
            | Shape::Normal { mean, .. } => *mean,
            Shape::LogNormal { median, p99 } => {
                Duration::from_secs_f64(lognormal_mean(*median, *p99))
            }
            Shape::Samples { mean, .. } => Duration::from_secs_f64(*mean),
        }
    }

    /// Draws a time, relative to the mean.
    pub(crate) fn factor(&self, chance: &Chance) -> f64 {
        match &self.0 {
            Shape::Fixed(_) => 1.0,
            Shape::Spread(_) => 0.5 + chance.unit(),
            Shape::Exponential(_) => chance.exponential(),
            Shape::Normal { mean, deviation } => {
                let deviation = deviation.as_secs_f64() / mean.as_secs_f64();
                chance.normal().mul_add(deviation, 1.0).abs()
            }
            Shape::LogNormal { median, p99 } => {
                let sigma = sigma(*median, *p99);
                chance.normal().mul_add(sigma, -sigma * sigma / 2.0).exp()
            }
            Shape::Samples { seconds, mean } => {
                let sample = seconds[chance.below(seconds.len() as u32) as usize];
                if *mean > 0.0 { sample / mean } else { 1.0 }
            }
        }
    }

    /// Draws a time.
    pub(crate) fn draw(&self, chance: &Chance) -> Duration {
        self.mean().mul_f64(self.factor(chance))
    }
}

fn sigma(median: Duration, p99: Duration) -> f64 {
    (p99.as_secs_f64() / median.as_secs_f64()).ln() / NORMAL_P99
}

/// Returns the mean in seconds, which may be more than a duration can be.
fn lognormal_mean(median: Duration, p99: Duration) -> f64 {
    let sigma = sigma(median, p99);
    median.as_secs_f64() * (sigma * sigma / 2.0).exp()
}

impl From<Duration> for Latency {
    fn from(mean: Duration) -> Latency {
        Latency::spread(mean)
    }
}

impl FromStr for Latency {
    type Err = LatencyError;

    fn from_str(text: &str) -> Result<Latency, LatencyError> {
        parse(text).map(Latency).ok_or_else(|| LatencyError(text.to_owned()))
    }
}

fn parse(text: &str) -> Option<Shape> {
    let time = |text: &str| duration::parse(text).ok().filter(|time| !time.is_zero());
    let words: Vec<&str> = text.split_whitespace().collect();
    Some(match words.as_slice() {
        [mean] => Shape::Spread(time(mean)?),
        ["fixed", mean] => Shape::Fixed(time(mean)?),
        ["exponential", mean] => Shape::Exponential(time(mean)?),
        ["normal", mean, deviation] => {
            let (mean, deviation) = (time(mean)?, time(deviation)?);
            let is_small = deviation <= mean.saturating_mul(DEVIATION_MAX);
            is_small.then_some(Shape::Normal { mean, deviation })?
        }
        ["lognormal", median, "p99", p99] => {
            let (median, p99) = (time(median)?, time(p99)?);
            let is_possible =
                p99 > median && lognormal_mean(median, p99) <= LATENCY_MAX.as_secs_f64();
            is_possible.then_some(Shape::LogNormal { median, p99 })?
        }
        _ => return None,
    })
}

impl fmt::Display for Latency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = duration::text;
        match &self.0 {
            Shape::Fixed(time) => write!(f, "fixed {}", text(*time)),
            Shape::Spread(mean) => write!(f, "{}", text(*mean)),
            Shape::Exponential(mean) => write!(f, "exponential {}", text(*mean)),
            Shape::Normal { mean, deviation } => {
                write!(f, "normal {} {}", text(*mean), text(*deviation))
            }
            Shape::LogNormal { median, p99 } => {
                write!(f, "lognormal {} p99 {}", text(*median), text(*p99))
            }
            Shape::Samples { seconds, mean } => {
                let mean = Duration::from_millis((mean * 1_000.0).round() as u64);
                write!(f, "{} measured latencies with mean {}", seconds.len(), text(mean))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Latency;
    use crate::chance::Chance;
    use rewheel::millis;

    /// Many draws in milliseconds, sorted.
    fn draws(latency: &Latency) -> Vec<f64> {
        let chance = Chance::seeded(7);
        let mut drawn: Vec<f64> =
            (0..100_000).map(|_| latency.draw(&chance).as_secs_f64() * 1e3).collect();
        drawn.sort_by(f64::total_cmp);
        drawn
    }

    #[track_caller]
    fn check(text: &str, mean: f64, median: f64, p99: f64) {
        let latency: Latency = text.parse().unwrap();
        assert_eq!(latency.to_string(), text);
        let drawn = draws(&latency);
        let is_near = |found: f64, expected: f64| (found / expected - 1.0).abs() < 0.03;
        let drawn_mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
        assert!(is_near(drawn_mean, mean), "{text}: the mean is {drawn_mean}, not {mean}");
        assert!(is_near(latency.mean().as_secs_f64() * 1e3, mean), "{text}: {:?}", latency.mean());
        assert!(is_near(drawn[50_000], median), "{text}: the median is {}", drawn[50_000]);
        assert!(is_near(drawn[99_000], p99), "{text}: p99 is {}", drawn[99_000]);
    }

    #[test]
    fn draws_have_the_quantiles_of_their_distribution() {
        check("fixed 20ms", 20.0, 20.0, 20.0);
        check("20ms", 20.0, 20.0, 29.8);
        check("exponential 20ms", 20.0, 20.0 * 2_f64.ln(), 20.0 * 100_f64.ln());
        check("normal 10ms 2ms", 10.0, 10.0, 14.65);
        // sigma = ln(10) / 2.326; the mean of a log-normal is the median times e^(sigma²/2).
        check("lognormal 20ms p99 200ms", 32.64, 20.0, 200.0);
    }

    #[test]
    fn measured_times_are_drawn_as_often_as_they_were_measured() {
        let times = [millis(10), millis(10), millis(10), millis(50)];
        let latency = Latency::measured(&times).unwrap();
        assert_eq!(latency.mean(), millis(20));
        let drawn = draws(&latency);
        let long = drawn.iter().filter(|drawn| **drawn > 30.0).count();
        assert!((24_000..26_000).contains(&long), "{long}");
        assert_eq!(Latency::measured(&[]), None);
    }

    #[test]
    fn a_mistake_is_named() {
        let too_long = ["lognormal 1ns p99 1h", "lognormal 1ns p99 500000000d", "normal 1ns 1h"];
        let wrong = ["", "soon", "0ms", "pareto 1s", "normal 10ms", "lognormal 20ms p99 10ms"];
        for text in wrong.into_iter().chain(too_long) {
            let error = text.parse::<Latency>().unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("`{text}` is not a latency: use `20ms`")),
                "{error}"
            );
        }
    }
}
