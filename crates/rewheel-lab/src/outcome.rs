//! The result of a simulated storm.

use std::time::Duration;

/// Share of calls that must succeed for the storm to be over.
const WELL: f64 = 0.99;

/// Number of seconds in a row with that share.
const WELL_FOR: usize = 5;

/// The result of one storm.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    pub(crate) seconds: Vec<Second>,
    pub(crate) served: u64,
    pub(crate) wasted: u64,
    /// Number of seconds in which calls arrived.
    pub(crate) came: usize,
    pub(crate) outage_end: Option<Duration>,
    pub(crate) refused: u64,
    pub(crate) cut_at: Option<Duration>,
    /// Time from the start of each call to its end, sorted.
    pub(crate) latencies: Vec<Duration>,
}

/// What happened in one second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Second {
    /// Calls that began in this second.
    pub offered: u64,
    /// Number of these calls that succeeded in the end.
    pub succeeded: u64,
    /// Requests that reached the dependency in this second.
    pub attempts: u64,
}

impl Outcome {
    /// Returns what happened, second by second.
    pub fn seconds(&self) -> &[Second] {
        &self.seconds
    }

    pub(crate) fn into_seconds(self) -> Vec<Second> {
        self.seconds
    }

    /// Returns whether there was an outage or a surge.
    pub fn had_trouble(&self) -> bool {
        self.outage_end.is_some()
    }

    /// Returns the number of calls.
    pub fn offered(&self) -> u64 {
        self.seconds.iter().map(|second| second.offered).sum()
    }

    /// Returns the number of calls that succeeded.
    pub fn succeeded(&self) -> u64 {
        self.seconds.iter().map(|second| second.succeeded).sum()
    }

    /// Returns the number of requests that reached the dependency.
    pub fn attempts(&self) -> u64 {
        self.seconds.iter().map(|second| second.attempts).sum()
    }

    /// Returns the number of calls that never reached the dependency because a breaker refused them.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Returns the number of requests that the dependency served while calls arrived.
    pub fn served(&self) -> u64 {
        self.served
    }

    /// Returns the number of served requests that were wasted: their client had given up.
    pub fn wasted(&self) -> u64 {
        self.wasted
    }

    /// Returns when the simulation was stopped early because of too many requests.
    pub fn cut_at(&self) -> Option<Duration> {
        self.cut_at
    }

    /// Returns the time in which this share of the calls ended, 0 to 1, whether they succeeded or not. `None` if no call ended.
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        quantile(&self.latencies, share)
    }

    /// Returns the average time of a call; zero if no call ended.
    pub fn latency_mean(&self) -> Duration {
        let sum: Duration = self.latencies.iter().sum();
        sum.checked_div(self.latencies.len() as u32).unwrap_or_default()
    }

    /// Returns the average number of requests per call.
    pub fn amplification(&self) -> f64 {
        self.attempts() as f64 / self.offered().max(1) as f64
    }

    /// Returns the requests of the worst second, relative to the calls offered per second.
    pub fn peak(&self) -> f64 {
        let most = self.seconds.iter().map(|second| second.attempts).max().unwrap_or(0);
        most as f64 * self.came as f64 / self.offered().max(1) as f64
    }

    /// Returns how long after the last outage 99 % of calls succeeded again, for five seconds in a row. `None` if they never did,
    /// or if there was no outage.
    pub fn recovered_after(&self) -> Option<Duration> {
        let end = self.outage_end?;
        let first = end.as_secs_f64().ceil() as usize;
        // A second without calls counts as successful.
        let is_well = |second: &Second| second.succeeded as f64 >= WELL * second.offered as f64;
        let came = &self.seconds[..self.came.min(self.seconds.len())];
        let mut after = came.get(first..)?.windows(WELL_FOR).enumerate();
        let (nth, _) = after.find(|(_, seconds)| seconds.iter().all(is_well))?;
        Some(Duration::from_secs((first + nth) as u64).saturating_sub(end))
    }
}

/// Returns the smallest of these sorted times that is not shorter than this share of them.
pub(crate) fn quantile(sorted: &[Duration], share: f64) -> Option<Duration> {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1).min(sorted.len().saturating_sub(1))).copied()
}

#[cfg(test)]
mod tests {
    use super::{Outcome, Second, quantile};
    use rewheel::seconds;

    fn outcome(succeeded: &[u64]) -> Outcome {
        let second =
            |succeeded: &u64| Second { offered: 100, succeeded: *succeeded, attempts: 200 };
        let seconds = succeeded.iter().map(second).collect();
        Outcome {
            seconds,
            came: succeeded.len(),
            served: 0,
            wasted: 0,
            refused: 0,
            cut_at: None,
            latencies: Vec::new(),
            outage_end: Some(rewheel::seconds(2)),
        }
    }

    #[test]
    fn it_is_over_once_it_stays_well() {
        let well = outcome(&[100, 0, 0, 99, 100, 50, 100, 100, 99, 100, 100]);
        assert_eq!(well.recovered_after(), Some(seconds(4)));
        assert_eq!((well.amplification(), well.peak()), (2.0, 2.0));
        assert_eq!(outcome(&[100, 0, 0, 0, 100, 100, 100, 100]).recovered_after(), None);
        assert_eq!(outcome(&[100]).recovered_after(), None);
    }

    #[test]
    fn a_quantile_is_one_of_the_times() {
        let times: Vec<_> = (1..=200).map(seconds).collect();
        assert_eq!(quantile(&times, 0.5), Some(seconds(100)));
        assert_eq!(quantile(&times, 0.99), Some(seconds(198)));
        assert_eq!(
            (quantile(&times, 0.0), quantile(&times, 1.0)),
            (Some(seconds(1)), Some(seconds(200)))
        );
        assert_eq!(quantile(&[], 0.5), None);
    }
}
