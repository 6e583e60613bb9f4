//! How long to wait between two looks at the store, which may get jobs that no watcher reports.

use rewheel::Moment;
use rewheel_core::store::{Capabilities, Wakes};
use std::time::Duration;

/// The shortest interval: 200 looks a second at most.
const SHORTEST: Duration = Duration::from_millis(5);

/// While a node finds jobs, a look comes after this part of the time since the last one that found some. So a job waits for a quarter of the
/// time at most that the node had nothing to do, and the looks after a job are about as many for each doubling of that time.
const PART: u32 = 4;

/// A look takes at most this part of the time: the store may be slow, or have many lanes.
const WORK_PART: u32 = 4;

/// The interval between looks. On a store that wakes the watchers of all processes it is always the configured one.
#[derive(Debug)]
pub(super) struct PollInterval {
    /// The configured interval.
    longest: Duration,
    adapts: bool,
    /// When a look found a job that no watcher had reported.
    found: Option<Moment>,
    /// How long the last look took.
    took: Duration,
}

impl PollInterval {
    pub(super) fn new(longest: Duration, store: Option<&Capabilities>) -> PollInterval {
        let adapts = store.is_some_and(|store| match store.wakes {
            Wakes::Fleet => false,
            Wakes::Process | Wakes::None => store.shared,
        });
        PollInterval { longest, adapts, found: None, took: Duration::ZERO }
    }

    /// Notes that another process submits jobs.
    pub(super) fn found(&mut self, now: Moment) {
        self.found = Some(now);
    }

    /// Notes how long a look took.
    pub(super) fn took(&mut self, took: Duration) {
        self.took = took;
    }

    /// Returns how long to wait before the next look.
    pub(super) fn get(&self, now: Moment) -> Duration {
        match self.found {
            Some(found) if self.adapts => {
                let wait = (now.since(found) / PART).max(self.took * WORK_PART);
                wait.max(SHORTEST).min(self.longest)
            }
            Some(_) | None => self.longest,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::PollInterval;
    use rewheel::{Clock, Moment, millis, seconds};
    use rewheel_core::store::{Capabilities, Wakes};
    use std::time::Duration;

    fn store(wakes: Wakes, shared: bool) -> Capabilities {
        Capabilities {
            name: "test",
            durable: true,
            shared,
            remote: true,
            wakes,
            groups: false,
            payload_bytes_max: 1_000,
        }
    }

    fn after(interval: &PollInterval, found: Moment, idle: Duration) -> Duration {
        interval.get(found.plus(idle))
    }

    #[test]
    fn the_interval_follows_the_time_since_the_last_job() {
        let now = Clock::system().now();
        let mut interval = PollInterval::new(seconds(1), Some(&store(Wakes::Process, true)));
        assert_eq!(interval.get(now), seconds(1), "nothing was found yet");
        interval.found(now);
        for (idle, wait) in
            [(0, 5), (20, 5), (100, 25), (3_000, 750), (4_000, 1_000), (9_000, 1_000)]
        {
            assert_eq!(after(&interval, now, millis(idle)), millis(wait), "idle for {idle} ms");
        }
    }

    #[test]
    fn a_slow_store_is_read_less_often_and_never_less_than_configured() {
        let now = Clock::system().now();
        let mut interval = PollInterval::new(seconds(1), Some(&store(Wakes::Process, true)));
        interval.found(now);
        interval.took(millis(30));
        assert_eq!(interval.get(now), millis(120));
        interval.took(seconds(9));
        assert_eq!(interval.get(now), seconds(1));
        let mut short = PollInterval::new(millis(2), Some(&store(Wakes::Process, true)));
        short.found(now);
        assert_eq!(short.get(now), millis(2));
    }

    #[test]
    fn a_store_that_wakes_all_nodes_or_has_one_is_read_as_configured() {
        let now = Clock::system().now();
        for store in [store(Wakes::Fleet, true), store(Wakes::Process, false)] {
            let mut interval = PollInterval::new(seconds(1), Some(&store));
            interval.found(now);
            assert_eq!(interval.get(now), seconds(1), "{store:?}");
        }
    }
}
