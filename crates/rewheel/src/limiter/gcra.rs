//! Token bucket in one word (GCRA): stores the time at which the bucket is full again.

use crate::clock::Moment;
use crate::sync::{AtomicU64, Ordering, OwnLine, give_way};

/// How a bucket fills: one token per `interval` nanoseconds, up to `burst` tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bucket {
    interval: u64,
    burst: u64,
    /// Time for an empty bucket to fill: the product of both.
    capacity: u64,
}

impl Bucket {
    pub(crate) const fn new(interval: u64, burst: u64) -> Bucket {
        Bucket { interval, burst, capacity: interval.saturating_mul(burst) }
    }

    pub(crate) const fn burst(&self) -> u64 {
        self.burst
    }

    pub(crate) const fn interval(&self) -> u64 {
        self.interval
    }

    pub(crate) const fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Takes `n` tokens from a bucket that is full at `full_at`; returns when it is full after
    /// that, or how long to wait.
    ///
    /// The true time is between `now` and `latest`. Time that may have passed since is not counted
    /// as refill, so a late or coarse clock can only admit fewer.
    #[inline]
    pub(crate) const fn take(
        &self,
        full_at: u64,
        n: u64,
        now: Moment,
        latest: u64,
    ) -> Result<u64, u64> {
        let now = now.as_nanos();
        let fill = self.interval.saturating_mul(n);
        // The check uses the earliest possible time, the new fill time is computed from the latest:
        // a full bucket has its whole burst on any clock.
        let owed = full_at.saturating_sub(now).saturating_add(fill);
        if owed <= self.capacity {
            Ok(later(full_at, latest).saturating_add(fill))
        } else {
            Err(owed - self.capacity)
        }
    }
}

const fn later(a: u64, b: u64) -> u64 {
    if a > b { a } else { b }
}

/// A bucket that threads share without a lock.
#[derive(Debug)]
pub(crate) struct Gcra {
    bucket: Bucket,
    full_at: OwnLine<AtomicU64>,
    /// By how much the true time may be later than the clock.
    resolution: u64,
}

impl Gcra {
    pub(crate) fn new(interval: u64, burst: u64) -> Gcra {
        let bucket = Bucket::new(interval, burst);
        Gcra { bucket, full_at: OwnLine(AtomicU64::new(0)), resolution: 0 }
    }

    pub(crate) fn with_resolution(mut self, resolution: u64) -> Gcra {
        self.resolution = resolution;
        self
    }

    pub(crate) fn burst(&self) -> u64 {
        self.bucket.burst()
    }

    /// Returns when the bucket is full again.
    pub(crate) fn full_at(&self) -> u64 {
        self.full_at.load(Ordering::Relaxed)
    }

    pub(crate) fn set_full_at(&self, full_at: u64) {
        self.full_at.store(full_at, Ordering::Relaxed);
    }

    /// Returns how many tokens can be taken now.
    pub(crate) fn available(&self, now: Moment) -> u64 {
        let full_at = self.full_at.load(Ordering::Relaxed);
        let owed = full_at.saturating_sub(now.as_nanos());
        self.bucket.capacity().saturating_sub(owed) / self.bucket.interval()
    }

    /// Takes `n` tokens, or says how many nanoseconds to wait for them.
    #[inline]
    pub(crate) fn take(&self, n: u64, now: Moment) -> Result<(), u64> {
        let latest = now.as_nanos().saturating_add(self.resolution);
        let mut full_at = self.full_at.load(Ordering::Relaxed);
        loop {
            match self.bucket.take(full_at, n, now, latest) {
                Err(wait) => return Err(wait),
                Ok(next) => match self.full_at.compare_exchange_weak(
                    full_at,
                    next,
                    Ordering::Relaxed,
                    Ordering::Relaxed,
                ) {
                    Ok(_) => return Ok(()),
                    Err(_) => {
                        give_way();
                        full_at = self.full_at.load(Ordering::Relaxed);
                    }
                },
            }
        }
    }
}
