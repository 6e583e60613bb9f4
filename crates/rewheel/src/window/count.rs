//! Counts the outcomes of the last N calls, without a lock.

use super::{Counts, Tally};
use crate::sync::{AtomicU64, Ordering, OwnLine};

/// A ring with one bit per call. The counters follow the transitions of the bits, so they are exact
/// for any interleaving; a thread that stalls between taking a slot and writing it only leaves the
/// old outcome in place for that time.
#[derive(Debug)]
pub(crate) struct CountWindow {
    size: u64,
    /// Number of counted calls: gives the next slot, and how full the ring is.
    cursor: OwnLine<AtomicU64>,
    failures: Bits,
    slow: Bits,
}

impl CountWindow {
    pub(crate) fn new(size: u32) -> CountWindow {
        let size = u64::from(size);
        CountWindow {
            size,
            cursor: OwnLine(AtomicU64::new(0)),
            failures: Bits::new(size),
            slow: Bits::new(size),
        }
    }

    /// Counts an outcome in place of the oldest.
    #[inline]
    pub(crate) fn record(&self, tally: Tally) {
        if !tally.failed && !tally.slow && self.is_spotless() {
            // Replacing a good call by another changes nothing visible, so threads that share a
            // healthy window do not contend for the cursor.
            return;
        }
        let slot = self.cursor.fetch_add(1, Ordering::Relaxed) % self.size;
        self.failures.set(slot, tally.failed);
        self.slow.set(slot, tally.slow);
    }

    /// Returns whether the window is full of calls that neither failed nor were slow.
    #[inline]
    fn is_spotless(&self) -> bool {
        self.failures.count.load(Ordering::Relaxed) == 0
            && self.slow.count.load(Ordering::Relaxed) == 0
            && self.cursor.load(Ordering::Relaxed) >= self.size
    }

    pub(crate) fn counts(&self) -> Counts {
        Counts {
            calls: self.cursor.load(Ordering::Relaxed).min(self.size),
            failures: self.failures.count().min(self.size),
            slow: self.slow.count().min(self.size),
        }
    }

    /// Clears the window. Must not be called while others record.
    pub(crate) fn clear(&self) {
        self.cursor.store(0, Ordering::Relaxed);
        self.failures.clear();
        self.slow.clear();
    }
}

/// A set of slots that counts its elements.
#[derive(Debug)]
struct Bits {
    words: Box<[AtomicU64]>,
    count: AtomicU64,
}

impl Bits {
    fn new(size: u64) -> Bits {
        let words = (0..size.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        Bits { words, count: AtomicU64::new(0) }
    }

    #[inline]
    fn set(&self, slot: u64, on: bool) {
        let mask = 1 << (slot % 64);
        let word = &self.words[usize::try_from(slot / 64).unwrap_or(usize::MAX)];
        // Writing a bit that is already set would only take the cache line from other threads.
        if (word.load(Ordering::Relaxed) & mask != 0) == on {
            return;
        }
        if on {
            if word.fetch_or(mask, Ordering::Relaxed) & mask == 0 {
                // A thread that counts a failure after this thread sees the call of this thread, too: of two threads
                // that fill a window, one knows that it is full.
                self.count.fetch_add(1, Ordering::AcqRel);
            }
        } else if word.fetch_and(!mask, Ordering::Relaxed) & mask != 0 {
            self.count.fetch_sub(1, Ordering::Relaxed);
        }
    }

    fn count(&self) -> u64 {
        // Of two threads that set and clear the same slot, the second may count first: then the
        // counter is briefly below zero.
        self.count.load(Ordering::Relaxed).cast_signed().max(0).cast_unsigned()
    }

    fn clear(&self) {
        for word in &self.words {
            word.store(0, Ordering::Relaxed);
        }
        self.count.store(0, Ordering::Relaxed);
    }
}
