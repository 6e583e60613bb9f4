//! One engine's share of a fleet-wide rate.

use crate::rate::Rate;
use rewheel::Moment;
use std::time::Duration;

/// How far ahead jobs are claimed: those that may start within this time. The others stay in the store.
const AHEAD: Duration = Duration::from_secs(2);

/// How much may start at once after a time without work, because attempts come in batches.
const BURST: Duration = Duration::from_millis(100);

/// A token bucket for fast rates. The store enforces slow ones, see [`Rate::interval`].
///
/// It starts empty, so that a restart does not allow more, and a change of the fleet keeps its level: it is never refilled at
/// once.
#[derive(Debug)]
pub(super) struct Bucket {
    rate: Rate,
    /// Number of engines that share the rate. `None` until the fleet is known: nothing may start before.
    holders: Option<usize>,
    /// Number of attempts that may start now.
    level: f64,
    at: Moment,
}

impl Bucket {
    pub(super) const fn new(rate: Rate, now: Moment) -> Bucket {
        Bucket { rate, holders: None, level: 0.0, at: now }
    }

    /// Sets another rate, and keeps the level.
    pub(super) fn change(&mut self, rate: Rate, now: Moment) {
        self.refill(now);
        self.rate = rate;
        self.level = self.level.min(self.burst());
    }

    /// Sets the number of engines.
    pub(super) fn share(&mut self, holders: usize, now: Moment) {
        let holders = holders.max(1);
        if self.holders == Some(holders) {
            return;
        }
        self.refill(now);
        if let Some(before) = self.holders.filter(|before| *before < holders) {
            // New engines start with an empty bucket: the level is divided among more engines.
            self.level *= before as f64 / holders as f64;
        }
        self.holders = Some(holders);
        self.level = self.level.min(self.burst());
    }

    /// Returns how long the next start has to wait; zero if it may start now.
    pub(super) fn wait(&mut self, now: Moment) -> Duration {
        self.refill(now);
        let missing = 1.0 - self.level;
        if missing <= 1e-9 {
            return Duration::ZERO;
        }
        match self.per_second() {
            per_second if per_second > 0.0 => {
                Duration::from_secs_f64((missing / per_second).min(86_400.0 * 365.0))
                    .max(Duration::from_nanos(1))
            }
            _ => AHEAD,
        }
    }

    /// Returns how many attempts may start now.
    pub(super) fn whole(&mut self, now: Moment) -> usize {
        self.refill(now);
        (self.level + 1e-9).floor().max(0.0) as usize
    }

    /// Takes one start.
    pub(super) fn take(&mut self) {
        self.level -= 1.0;
    }

    /// Returns a start that was not used.
    pub(super) fn refund(&mut self) {
        self.level = (self.level + 1.0).min(self.burst());
    }

    /// Returns how many jobs to hold in this engine.
    pub(super) fn ahead(&self) -> usize {
        self.rate.within(AHEAD, self.holders.unwrap_or(1))
    }

    fn refill(&mut self, now: Moment) {
        let gained = now.since(self.at).as_secs_f64() * self.per_second();
        self.at = if now > self.at { now } else { self.at };
        self.level = (self.level + gained).min(self.burst());
    }

    fn burst(&self) -> f64 {
        self.rate.within(BURST, self.holders.unwrap_or(1)) as f64
    }

    fn per_second(&self) -> f64 {
        let (calls, period) = self.rate.parts();
        let share = |holders| f64::from(calls) / period.as_secs_f64() / holders as f64;
        self.holders.map_or(0.0, share)
    }
}

/// Returns whether a job should go back to the store rather than wait here.
pub(super) fn is_far(wait: Duration) -> bool {
    wait > AHEAD
}

#[cfg(test)]
mod tests {
    use super::Bucket;
    use rewheel::{Clock, ManualClock, millis, seconds};
    use std::time::Duration;

    fn bucket(rate: &str, clock: &ManualClock) -> Bucket {
        Bucket::new(rate.parse().unwrap(), Clock::from(clock).now())
    }

    fn passes(bucket: &mut Bucket, clock: &ManualClock) -> bool {
        let passes = bucket.wait(Clock::from(clock).now()).is_zero();
        if passes {
            bucket.take();
        }
        passes
    }

    #[test]
    fn each_engine_has_its_share() {
        for (holders, passed) in [(1, 1_000), (4, 250)] {
            let clock = ManualClock::new();
            let mut bucket = bucket("100/s", &clock);
            bucket.share(holders, Clock::from(&clock).now());
            let mut count = 0;
            for _ in 0..10_000 {
                count += u32::from(passes(&mut bucket, &clock));
                clock.advance(millis(1));
            }
            assert!((passed - 2..=passed).contains(&count), "{count} of {passed}");
            assert_eq!(bucket.ahead(), 200 / holders);
        }
    }

    #[test]
    fn starts_nothing_before_the_fleet_is_known() {
        let clock = ManualClock::new();
        let mut bucket = bucket("100/s", &clock);
        clock.advance(seconds(10));
        assert!(!passes(&mut bucket, &clock));
        bucket.share(1, Clock::from(&clock).now());
        assert!(!passes(&mut bucket, &clock), "what passed before it was known does not count");
    }

    #[test]
    fn a_fleet_that_changes_all_the_time_goes_no_faster() {
        let clock = ManualClock::new();
        let mut bucket = bucket("100/s", &clock);
        let mut count = 0;
        for turn in 0..10_000 {
            bucket.share([1, 2, 1, 10][turn % 4], Clock::from(&clock).now());
            count += u32::from(passes(&mut bucket, &clock));
            clock.advance(millis(1));
        }
        assert!(count <= 660, "{count}: two of four turns at 100, one at 50, one at 10 are 650");
    }

    #[test]
    fn polls_that_start_nothing_bank_nothing() {
        let clock = ManualClock::new();
        let mut bucket = bucket("10/s", &clock);
        bucket.share(1, Clock::from(&clock).now());
        for _ in 0..100 {
            clock.advance(seconds(1));
            if passes(&mut bucket, &clock) {
                bucket.refund();
            }
        }
        let at_once = (0..10).filter(|_| passes(&mut bucket, &clock)).count();
        assert_eq!(at_once, 1, "a tenth of a second's worth");
    }

    #[test]
    fn says_when_the_next_may_start() {
        let clock = ManualClock::new();
        let mut bucket = bucket("5/s", &clock);
        bucket.share(1, Clock::from(&clock).now());
        let wait = bucket.wait(Clock::from(&clock).now());
        assert!(wait > Duration::ZERO && wait <= millis(200), "{wait:?}");
        clock.advance(wait + millis(1));
        assert!(passes(&mut bucket, &clock));
    }
}
