//! The result of a simulated storm.

use std::time::Duration;

/// So many of a hundred calls must succeed for it to be over.
const WELL: f64 = 0.99;

/// For so long.
const WELL_FOR: usize = 5;

/// What became of one storm.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    pub(crate) seconds: Vec<Second>,
    pub(crate) served: u64,
    pub(crate) wasted: u64,
    /// How many seconds calls came in.
    pub(crate) came: usize,
    pub(crate) outage_end: Option<Duration>,
    pub(crate) refused: u64,
    pub(crate) cut_at: Option<Duration>,
}

/// What happened in one second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Second {
    /// Calls that began in it.
    pub offered: u64,
    /// How many of these succeeded in the end.
    pub succeeded: u64,
    /// Requests that reached the dependency in it.
    pub attempts: u64,
}

impl Outcome {
    /// Returns what happened, second by second.
    pub fn seconds(&self) -> &[Second] {
        &self.seconds
    }

    /// Returns how many calls there were.
    pub fn offered(&self) -> u64 {
        self.seconds.iter().map(|second| second.offered).sum()
    }

    /// Returns how many of them succeeded.
    pub fn succeeded(&self) -> u64 {
        self.seconds.iter().map(|second| second.succeeded).sum()
    }

    /// Returns how many requests reached the dependency.
    pub fn attempts(&self) -> u64 {
        self.seconds.iter().map(|second| second.attempts).sum()
    }

    /// Returns how many calls never reached it: a breaker kept them from it.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Returns how many requests it served while calls came in.
    pub fn served(&self) -> u64 {
        self.served
    }

    /// Returns how many of those it served for nobody: who asked had given up.
    pub fn wasted(&self) -> u64 {
        self.wasted
    }

    /// Returns when it was cut short, for having too many requests.
    pub fn cut_at(&self) -> Option<Duration> {
        self.cut_at
    }

    /// Returns how many requests a call was on average.
    pub fn amplification(&self) -> f64 {
        self.attempts() as f64 / self.offered().max(1) as f64
    }

    /// Returns the requests of the worst second, as a multiple of what is offered in one.
    pub fn peak(&self) -> f64 {
        let most = self.seconds.iter().map(|second| second.attempts).max().unwrap_or(0);
        most as f64 * self.came as f64 / self.offered().max(1) as f64
    }

    /// Returns how long after the last outage 99 of 100 calls succeeded again, for five seconds in a row. Nothing where they never
    /// did, or where there was no outage.
    pub fn recovered_after(&self) -> Option<Duration> {
        let end = self.outage_end?;
        let first = end.as_secs_f64().ceil() as usize;
        // Where nobody called, nobody was let down.
        let is_well = |second: &Second| second.succeeded as f64 >= WELL * second.offered as f64;
        let came = &self.seconds[..self.came.min(self.seconds.len())];
        let mut after = came.get(first..)?.windows(WELL_FOR).enumerate();
        let (nth, _) = after.find(|(_, seconds)| seconds.iter().all(is_well))?;
        Some(Duration::from_secs((first + nth) as u64).saturating_sub(end))
    }
}

#[cfg(test)]
mod tests {
    use super::{Outcome, Second};
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
}
