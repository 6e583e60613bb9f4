//! Counts requests and accepts of a recent period.

use crate::clock::Moment;
use crate::duration::nanos;
use std::time::Duration;

/// The window forgets in steps of a tenth.
const BUCKETS: usize = 10;

/// Two counters in buckets. The owner keeps it behind a lock.
#[derive(Clone, Debug)]
pub(super) struct Window {
    /// Nanoseconds of a bucket.
    period: u64,
    buckets: [Bucket; BUCKETS],
    /// The latest period that was seen. A late clock reading counts in it.
    latest: u64,
    requests: u64,
    accepts: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    requests: u64,
    accepts: u64,
}

impl Window {
    pub(super) fn new(length: Duration) -> Window {
        let period = nanos(length).div_ceil(BUCKETS as u64).max(1);
        let buckets = [Bucket::default(); BUCKETS];
        Window { period, buckets, latest: 0, requests: 0, accepts: 0 }
    }

    /// Returns the requests and the accepts of the window.
    pub(super) fn counts(&mut self, now: Moment) -> (u64, u64) {
        self.advance(now);
        (self.requests, self.accepts)
    }

    pub(super) fn request(&mut self, now: Moment) {
        self.advance(now).requests += 1;
        self.requests += 1;
    }

    pub(super) fn accept(&mut self, now: Moment) {
        self.advance(now).accepts += 1;
        self.accepts += 1;
    }

    /// Takes back a request that was counted then, unless the window has forgotten it.
    pub(super) fn forget(&mut self, at: Moment) {
        let period = at.as_nanos() / self.period;
        if self.latest.saturating_sub(period) >= BUCKETS as u64 {
            return;
        }
        let requests = &mut self.buckets[(period % BUCKETS as u64) as usize].requests;
        // A late clock reading may have counted it in another bucket.
        if *requests > 0 {
            *requests -= 1;
            self.requests -= 1;
        }
    }

    /// Clears the buckets that are too old, and returns the one of now.
    fn advance(&mut self, now: Moment) -> &mut Bucket {
        let period = now.as_nanos() / self.period;
        let steps = period.saturating_sub(self.latest).min(BUCKETS as u64);
        self.latest = self.latest.max(period);
        for step in 0..steps {
            let index = ((self.latest - step) % BUCKETS as u64) as usize;
            let old = std::mem::take(&mut self.buckets[index]);
            self.requests -= old.requests;
            self.accepts -= old.accepts;
        }
        &mut self.buckets[(self.latest % BUCKETS as u64) as usize]
    }
}
