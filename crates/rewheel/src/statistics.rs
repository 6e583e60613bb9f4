//! Retry statistics of one dependency.

use crate::clock::{Clock, Moment};
use crate::duration::nanos;
use crate::ratio::Ratio;
use crate::sync::{AtomicU64, Ordering};
use crate::window::{Tally, TimeWindow};
use std::sync::Arc;
use std::time::Duration;

/// Statistics of all calls that use this value. Clones share its state: create one per dependency.
///
/// [`Backoff::adaptive`](crate::Backoff::adaptive) uses the failure ratio of the attempts of the last minute.
///
/// ```
/// use rewheel::{Retry, Retryable, Statistics, millis};
/// use std::io;
///
/// let statistics = Statistics::new();
/// let mut failures = 2;
/// (|| if failures > 0 { failures -= 1; Err(io::Error::from(io::ErrorKind::TimedOut)) } else { Ok(()) })
///     .retry(Retry::fixed(millis(1)))
///     .statistics(&statistics)
///     .call()?;
///
/// let summary = statistics.summary();
/// assert_eq!((summary.calls, summary.attempts, summary.retries), (1, 3, 2));
/// assert_eq!((summary.success_rate(), summary.retries_per_call()), (1.0, 2.0));
/// # Ok::<_, rewheel::Error<io::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Statistics {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    successes: AtomicU64,
    failures: AtomicU64,
    failed_attempts: AtomicU64,
    retries: AtomicU64,
    waited: AtomicU64,
    /// Nanoseconds of the clock plus one; zero for never.
    last_success: AtomicU64,
    last_failure: AtomicU64,
    recent: TimeWindow,
    clock: Clock,
}

/// How long an attempt counts as recent. Older results say nothing about the dependency now, also if no attempt followed them.
const RECENT: Duration = Duration::from_secs(60);

/// A snapshot of the statistics.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Summary {
    /// Calls that ended.
    pub calls: u64,
    /// Calls that succeeded.
    pub successes: u64,
    /// Attempts that ended.
    pub attempts: u64,
    /// Attempts beyond each call's first.
    pub retries: u64,
    /// The sum of the delays before these retries.
    pub waited: Duration,
    /// The share of the attempts of the last minute that failed; 0 if there were none.
    pub failure_ratio: f64,
    /// How long ago a call last succeeded.
    pub last_success: Option<Duration>,
    /// How long ago a call was last given up.
    pub last_failure: Option<Duration>,
}

impl Summary {
    /// Returns the share of calls that succeeded; 1 if there were no calls.
    pub fn success_rate(&self) -> f64 {
        if self.calls == 0 { 1.0 } else { Ratio::of(self.successes, self.calls).as_f64() }
    }

    /// Returns the average number of retries per call.
    pub fn retries_per_call(&self) -> f64 {
        if self.calls == 0 { 0.0 } else { self.retries as f64 / self.calls as f64 }
    }
}

impl Statistics {
    /// Creates empty statistics.
    pub fn new() -> Statistics {
        Statistics::default()
    }

    /// Like [`new`](Statistics::new), with another clock.
    pub fn with_clock(clock: impl Into<Clock>) -> Statistics {
        let shared = Shared { clock: clock.into(), ..Shared::default() };
        Statistics { shared: Arc::new(shared) }
    }

    /// Returns a snapshot.
    pub fn summary(&self) -> Summary {
        let Shared { successes, failures, failed_attempts, retries, waited, .. } = &*self.shared;
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let now = self.shared.clock.now();
        let ago =
            |at: &AtomicU64| load(at).checked_sub(1).map(|at| now.since(Moment::from_nanos(at)));
        Summary {
            calls: load(successes) + load(failures),
            successes: load(successes),
            attempts: load(successes) + load(failed_attempts),
            retries: load(retries),
            waited: Duration::from_nanos(load(waited)),
            failure_ratio: self.failure_ratio(),
            last_success: ago(&self.shared.last_success),
            last_failure: ago(&self.shared.last_failure),
        }
    }

    pub(crate) fn failure_ratio(&self) -> f64 {
        let counts = self.shared.recent.counts(self.shared.clock.now());
        Ratio::of(counts.failures, counts.calls).as_f64()
    }

    pub(crate) fn attempt_failed(&self) {
        self.shared.failed_attempts.fetch_add(1, Ordering::Relaxed);
        let now = self.shared.clock.now();
        self.shared.recent.record(Tally { failed: true, slow: false }, now);
    }

    pub(crate) fn retried(&self, delay: Duration) {
        self.shared.retries.fetch_add(1, Ordering::Relaxed);
        self.shared.waited.fetch_add(nanos(delay), Ordering::Relaxed);
    }

    pub(crate) fn succeeded(&self) {
        let now = self.shared.clock.now();
        self.shared.recent.record(Tally::default(), now);
        self.shared.successes.fetch_add(1, Ordering::Relaxed);
        Shared::stamp(&self.shared.last_success, now);
    }

    pub(crate) fn gave_up(&self) {
        self.shared.failures.fetch_add(1, Ordering::Relaxed);
        Shared::stamp(&self.shared.last_failure, self.shared.clock.now());
    }
}

impl Shared {
    fn stamp(last: &AtomicU64, now: Moment) {
        last.store(now.as_nanos().saturating_add(1), Ordering::Relaxed);
    }
}

impl Default for Shared {
    fn default() -> Shared {
        Shared {
            successes: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            failed_attempts: AtomicU64::new(0),
            retries: AtomicU64::new(0),
            waited: AtomicU64::new(0),
            last_success: AtomicU64::new(0),
            last_failure: AtomicU64::new(0),
            recent: TimeWindow::new(RECENT),
            clock: Clock::system(),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::Statistics;
    use crate::clock::ManualClock;
    use crate::duration::seconds;

    #[test]
    fn what_failed_long_ago_is_not_recent() {
        let clock = ManualClock::new();
        let statistics = Statistics::with_clock(&clock);
        for _ in 0..100 {
            statistics.attempt_failed();
        }
        assert_eq!(statistics.failure_ratio(), 1.0);
        clock.advance(seconds(61));
        assert_eq!(
            statistics.failure_ratio(),
            0.0,
            "an adaptive backoff waits for an outage of before"
        );
        statistics.succeeded();
        assert_eq!((statistics.failure_ratio(), statistics.summary().attempts), (0.0, 101));
    }
}
