//! Tabulates the delays of a retry policy.

use crate::outcome::quantile;
use rewheel::{Random, Retry, Series, Step, Verdict};
use std::time::Duration;

/// Longer tables say nothing more: the delay has reached its maximum.
const ROWS_MAX: usize = 30;

/// Series of attempts that are drawn for the means.
const SERIES: usize = 2_000;

/// The delay after one attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delay {
    /// The attempt that failed, from 1.
    pub attempt: u32,
    /// The shortest possible delay.
    pub shortest: Duration,
    /// A tenth of the drawn delays are shorter.
    pub p10: Duration,
    /// The mean of the drawn delays.
    pub mean: Duration,
    /// A tenth of the drawn delays are longer.
    pub p90: Duration,
    /// The longest possible delay.
    pub longest: Duration,
    /// The mean of the sum of all delays so far.
    pub waited: Duration,
}

/// Returns the delays between the attempts of a call that always fails at once, at most 30. Draws them with the code of the library.
///
/// ```
/// use rewheel::{Retry, millis};
/// use rewheel_lab::delays;
///
/// let table = delays(&Retry::fixed(millis(100)).attempts_max(3), 0);
/// assert_eq!(table.len(), 2);
/// assert_eq!((table[1].attempt, table[1].mean, table[1].waited), (2, millis(100), millis(200)));
/// ```
pub fn delays(retry: &Retry, seed: u64) -> Vec<Delay> {
    let random = Random::seeded(seed);
    let mut drawn: Vec<Vec<Duration>> = Vec::new();
    for _ in 0..SERIES {
        let mut series = Series::new(*retry);
        let mut waited = Duration::ZERO;
        for row in 0..ROWS_MAX {
            let Step::Wait(delay) = series.after(Verdict::Retry, waited, &random) else { break };
            waited += delay;
            if drawn.len() <= row {
                drawn.push(Vec::new());
            }
            drawn[row].push(delay);
        }
    }
    let mut waited = Duration::ZERO;
    drawn
        .iter_mut()
        .zip(1..)
        .map(|(drawn, attempt)| row(retry, drawn, attempt, &mut waited))
        .collect()
}

fn row(retry: &Retry, drawn: &mut [Duration], attempt: u32, waited: &mut Duration) -> Delay {
    drawn.sort_unstable();
    let mean = drawn.iter().sum::<Duration>() / drawn.len().max(1) as u32;
    *waited += mean;
    let range = retry.backoff().delay_range(attempt);
    let of = |share| quantile(drawn, share).unwrap_or_default();
    Delay {
        attempt,
        shortest: *range.start(),
        p10: of(0.1),
        mean,
        p90: of(0.9),
        longest: *range.end(),
        waited: *waited,
    }
}

#[cfg(test)]
mod tests {
    use super::delays;
    use rewheel::{Jitter, Retry, millis, seconds};

    #[test]
    fn means_are_those_of_the_distribution() {
        let retry = Retry::exponential(millis(100)).delay_max(seconds(1)).attempts_max(8);
        let table = delays(&retry.jitter(Jitter::FULL), 1);
        assert_eq!(table.len(), 7);
        for (row, longest) in table.iter().zip([100, 200, 400, 800, 1_000, 1_000, 1_000]) {
            assert_eq!((row.shortest, row.longest), (millis(0), millis(longest)));
            let half = longest as f64 / 2e3;
            let mean = row.mean.as_secs_f64();
            assert!(
                (mean / half - 1.0).abs() < 0.06,
                "attempt {}: {mean}, not {half}",
                row.attempt
            );
            assert!(row.p10 < row.mean && row.mean < row.p90 && row.p90 <= row.longest);
        }
    }

    #[test]
    fn a_deadline_ends_the_table_and_endless_retries_have_a_limited_one() {
        let retry = Retry::fixed(seconds(1)).attempts_max(100).deadline(seconds(4));
        assert_eq!(delays(&retry, 0).len(), 3);
        assert_eq!(delays(&Retry::fixed(seconds(1)).attempts_max(u32::MAX), 0).len(), 30);
        assert_eq!(delays(&Retry::fixed(seconds(1)).attempts_max(1), 0).len(), 0);
    }
}
