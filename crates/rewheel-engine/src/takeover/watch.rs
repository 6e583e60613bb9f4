//! Detects forward jumps of the store's clock.

use rewheel::Moment;
use rewheel_core::Timestamp;
use rewheel_core::store::Watched;
use std::time::Duration;

/// How much further than this process's own clock the store's clock may move between two readings. A clock that is adjusted
/// gradually stays below it.
const TOLERANCE: Duration = Duration::from_secs(1);

/// Compares the store's clock with this process's own.
#[derive(Debug, Default)]
pub(super) struct ClockWatch {
    /// Since when the clock has not jumped ahead.
    since: Option<Moment>,
    /// When it was last read, and its value.
    last: Option<(Moment, Timestamp)>,
}

/// A reading of the store's clock, taken between request and response.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    pub(super) asked: Moment,
    pub(super) answered: Moment,
    pub(super) says: Timestamp,
}

impl ClockWatch {
    /// Compares a reading with the previous one. A clock that goes back, or stops, does not restart the watch: more time has
    /// passed than it shows.
    pub(super) fn read(&mut self, reading: Reading) -> Watched {
        let Reading { asked, answered, says } = reading;
        if let Some((before, said)) = self.last {
            let (went, passed) = (says.since(said), answered.since(before));
            if went > passed.saturating_add(TOLERANCE) {
                let by = went.saturating_sub(passed);
                tracing::warn!(
                    ?by,
                    "store clock jumped ahead: jobs may look overdue although they are not, so this node does not take them over from live holders yet; check the time sync of the store"
                );
                self.since = None;
            }
        }
        self.last = Some((asked, says));
        let since = *self.since.get_or_insert(answered);
        // From response to request: at most the time that certainly passed between the readings.
        Watched { until: says, since: asked.since(since) }
    }
}

#[cfg(test)]
mod tests {
    use super::{ClockWatch, Reading};
    use rewheel::{Clock, ManualClock, seconds};
    use rewheel_core::Timestamp;
    use std::time::Duration;

    /// A store whose clock is this far ahead after this much time.
    struct Store {
        clock: ManualClock,
        watch: ClockWatch,
        says: i64,
    }

    impl Store {
        fn new() -> Store {
            Store { clock: ManualClock::new(), watch: ClockWatch::default(), says: 1_000_000 }
        }

        /// Lets time pass, moves the store's clock by another time, and reads it.
        fn after(&mut self, passed: Duration, moved_seconds: i64) -> Duration {
            self.clock.advance(passed);
            self.says += moved_seconds * 1_000;
            let now = Clock::from(&self.clock).now();
            let says = Timestamp::from_millis(self.says);
            let watched = self.watch.read(Reading { asked: now, answered: now, says });
            assert_eq!(watched.until, says);
            watched.since
        }
    }

    #[test]
    fn a_clock_that_was_never_read_is_not_trusted() {
        assert_eq!(Store::new().after(seconds(1), 1), Duration::ZERO);
    }

    #[test]
    fn a_clock_that_goes_evenly_is_trusted_for_as_long_as_it_was_watched() {
        let mut store = Store::new();
        store.after(seconds(1), 1);
        assert_eq!(store.after(seconds(10), 10), seconds(10));
        // A slow response or an adjustment may add one second.
        assert_eq!(store.after(seconds(10), 11), seconds(20));
    }

    #[test]
    fn a_clock_that_jumps_ahead_is_watched_anew() {
        let mut store = Store::new();
        store.after(seconds(1), 1);
        store.after(seconds(100), 100);
        assert_eq!(store.after(seconds(10), 3_610), Duration::ZERO);
        assert_eq!(store.after(seconds(10), 10), seconds(10));
    }

    #[test]
    fn a_clock_that_goes_back_is_trusted_as_before() {
        let mut store = Store::new();
        store.after(seconds(1), 1);
        store.after(seconds(100), 100);
        assert_eq!(store.after(seconds(10), -3_600), seconds(110));
        assert_eq!(store.after(seconds(10), 10), seconds(120));
    }

    /// A slow response is not a jump, whichever of two readings was slow.
    #[test]
    fn an_answer_that_takes_long_is_not_a_jump() {
        let (clock, mut watch) = (ManualClock::new(), ClockWatch::default());
        let now = || Clock::from(&clock).now();
        let (asked, says) = (now(), Timestamp::from_millis(0));
        clock.advance(seconds(30));
        watch.read(Reading { asked, answered: now(), says });
        let (asked, says) = (now(), Timestamp::from_millis(30_000));
        let watched = watch.read(Reading { asked, answered: now(), says });
        assert_eq!(watched.since, Duration::ZERO);
        clock.advance(seconds(5));
        let says = Timestamp::from_millis(35_000);
        let watched = watch.read(Reading { asked: now(), answered: now(), says });
        assert_eq!(watched.since, seconds(5));
    }
}
