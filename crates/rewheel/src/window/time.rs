//! Counts the outcomes of the last N seconds, without a lock.

use super::{Counts, Tally};
use crate::clock::Moment;
use crate::duration::nanos;
use crate::sync::{AtomicU64, Ordering};
use std::time::Duration;

/// Number of buckets of a window: it forgets in steps of a tenth.
const BUCKETS: usize = 10;

/// Number of periods by which a clock reading may be late and still be recognized as late. The
/// period number wraps around: without a limit, half of all numbers would look like the future to a
/// bucket that was not used for long.
const LATE_MAX: u32 = 1 << 16;

/// Buckets that each carry the number of the period they count. A bucket whose number is not in
/// this window counts as empty, so nothing needs to be cleared after any pause.
#[derive(Debug)]
pub(crate) struct TimeWindow {
    period: u64,
    calls: [Bucket; BUCKETS],
    failures: [Bucket; BUCKETS],
    slow: [Bucket; BUCKETS],
}

impl TimeWindow {
    pub(crate) fn new(length: Duration) -> TimeWindow {
        TimeWindow {
            period: nanos(length).div_ceil(BUCKETS as u64).max(1),
            calls: std::array::from_fn(|_| Bucket::new()),
            failures: std::array::from_fn(|_| Bucket::new()),
            slow: std::array::from_fn(|_| Bucket::new()),
        }
    }

    #[inline]
    pub(crate) fn record(&self, tally: Tally, now: Moment) {
        let (period, bucket) = self.place(now);
        self.calls[bucket].add(period);
        if tally.failed {
            self.failures[bucket].add(period);
        }
        if tally.slow {
            self.slow[bucket].add(period);
        }
    }

    pub(crate) fn counts(&self, now: Moment) -> Counts {
        let (period, _) = self.place(now);
        let sum = |buckets: &[Bucket; BUCKETS]| {
            buckets.iter().map(|bucket| bucket.count_since(period)).sum()
        };
        Counts { calls: sum(&self.calls), failures: sum(&self.failures), slow: sum(&self.slow) }
    }

    /// Clears the window. Must not be called while others record.
    pub(crate) fn clear(&self) {
        for bucket in self.calls.iter().chain(&self.failures).chain(&self.slow) {
            bucket.0.store(0, Ordering::Relaxed);
        }
    }

    #[inline]
    fn place(&self, now: Moment) -> (u32, usize) {
        let period = now.as_nanos() / self.period;
        (period as u32, (period % BUCKETS as u64) as usize)
    }
}

/// The number of a period in the upper half, its count in the lower.
#[derive(Debug)]
struct Bucket(AtomicU64);

impl Bucket {
    fn new() -> Bucket {
        Bucket(AtomicU64::new(0))
    }

    /// Acquires and releases: a thread that counts a failure after another one sees that one's
    /// call, too. Of two threads that exceed the threshold together, one notices it.
    #[inline]
    fn add(&self, period: u32) {
        let mut word = self.0.load(Ordering::Relaxed);
        loop {
            let (counted, count) = split(word);
            if counted == period && count < u32::MAX {
                self.0.fetch_add(1, Ordering::AcqRel);
                return;
            }
            // A thread with an old clock reading must not bring back an old period.
            let ahead = counted.wrapping_sub(period);
            if count > 0 && ahead < LATE_MAX {
                return;
            }
            let fresh = u64::from(period) << 32 | 1;
            match self.0.compare_exchange_weak(word, fresh, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return,
                Err(current) => word = current,
            }
        }
    }

    fn count_since(&self, now: u32) -> u64 {
        let (counted, count) = split(self.0.load(Ordering::Relaxed));
        if (now.wrapping_sub(counted) as usize) < BUCKETS { u64::from(count) } else { 0 }
    }
}

const fn split(word: u64) -> (u32, u32) {
    ((word >> 32) as u32, word as u32)
}
