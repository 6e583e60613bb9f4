//! Sliding window: limits the number of calls in any period of a given length.

use crate::clock::Moment;
use std::time::Duration;

/// Number of periods of a window. A call counts until its whole period has left the window, so the
/// limit is never exceeded, but a call counts up to 1/32 of the window longer.
const PERIODS: usize = 32;

/// One bucket for each period of the window, and one for the period that is partly in it.
const BUCKETS: usize = PERIODS + 1;

/// The limit of a sliding window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limit {
    pub(crate) calls: u64,
    period: u64,
}

impl Limit {
    pub(crate) const fn new(calls: u64, window: u64) -> Limit {
        Limit { calls, period: window.div_ceil(PERIODS as u64) }
    }
}

/// The calls of the window, by period.
#[derive(Clone, Debug)]
pub(crate) struct Sliding {
    admitted: [u64; BUCKETS],
    total: u64,
    /// The latest period that was read.
    period: u64,
}

impl Sliding {
    pub(crate) const fn new() -> Sliding {
        Sliding { admitted: [0; BUCKETS], total: 0, period: 0 }
    }

    /// Admits `n` calls, or returns how long to wait.
    pub(crate) fn take(&mut self, limit: Limit, n: u64, now: Moment) -> Result<(), Duration> {
        self.slide(limit, now);
        let most = limit.calls.saturating_sub(n);
        if self.total <= most {
            self.admitted[place(self.period)] += n;
            self.total += n;
            return Ok(());
        }
        let mut left = self.total;
        // From the oldest period to the current one: find the period whose end frees enough.
        for age in (0..BUCKETS as u64).rev() {
            let Some(period) = self.period.checked_sub(age) else { continue };
            left -= self.admitted[place(period)];
            if left <= most {
                let leaves = (period + BUCKETS as u64).saturating_mul(limit.period);
                return Err(Duration::from_nanos(leaves.saturating_sub(now.as_nanos()).max(1)));
            }
        }
        unreachable!("an empty window admits every request up to the limit")
    }

    /// Returns how many calls can be admitted now.
    pub(crate) fn available(&mut self, limit: Limit, now: Moment) -> u64 {
        self.slide(limit, now);
        limit.calls.saturating_sub(self.total)
    }

    /// Returns whether no call is in the window.
    pub(crate) fn is_fresh(&mut self, limit: Limit, now: Moment) -> bool {
        self.slide(limit, now);
        self.total == 0
    }

    /// Clears the periods that have left the window. A clock reading older than the latest one
    /// counts as the latest.
    fn slide(&mut self, limit: Limit, now: Moment) {
        let period = (now.as_nanos() / limit.period).max(self.period);
        let passed = (period - self.period).min(BUCKETS as u64);
        for step in 1..=passed {
            let bucket = &mut self.admitted[place(self.period + step)];
            self.total -= *bucket;
            *bucket = 0;
        }
        self.period = period;
    }
}

const fn place(period: u64) -> usize {
    (period % BUCKETS as u64) as usize
}
