//! Random numbers that a test can reproduce from a seed.

use crate::sync::{AtomicU64, Ordering};
use std::sync::Arc;

/// The source of jitter: this thread's generator, or a seed.
///
/// Clones of a seeded handle share one sequence, so that two clients with the same handle never
/// draw the same number.
///
/// ```
/// use rewheel::{Backoff, Random, millis};
///
/// let backoff = Backoff::exponential(millis(100));
/// let (a, b) = (Random::seeded(7), Random::seeded(7));
/// assert_eq!(backoff.delay(3, &a), backoff.delay(3, &b));
/// assert_ne!(backoff.delay(3, &a), backoff.delay(4, &a));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Random(Option<Arc<AtomicU64>>);

impl Random {
    /// Uses a separate generator per thread, seeded by the operating system.
    pub const fn thread() -> Random {
        Random(None)
    }

    /// Starts a sequence that is the same for the same seed.
    pub fn seeded(seed: u64) -> Random {
        Random(Some(Arc::new(AtomicU64::new(seed))))
    }

    /// Returns 64 random bits.
    pub fn next(&self) -> u64 {
        /// The odd number nearest to 2^64 divided by the golden ratio: stepping by it visits every
        /// 64-bit value once before any repeats.
        const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
        match &self.0 {
            None => fastrand::u64(..),
            Some(state) => mix(state.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP)),
        }
    }

    /// Returns an evenly distributed number in `low..=high`.
    pub(crate) fn between(&self, low: u64, high: u64) -> u64 {
        debug_assert!(low <= high, "an empty range: {low}..={high}");
        if low == high {
            return low;
        }
        // The upper half of a 128-bit product maps 2^64 values onto the range without a division.
        // The bias is at most the range's share of 2^64: not measurable for delays.
        let count = u128::from(high - low) + 1;
        low + ((u128::from(self.next()) * count) >> 64) as u64
    }
}

/// Turns consecutive states into numbers that look unrelated (the finalizer of splitmix64).
const fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::Random;

    #[test]
    fn stays_within_a_range_of_any_width() {
        let random = Random::seeded(1);
        for (low, high) in [(0, 0), (5, 6), (0, u64::MAX), (u64::MAX - 1, u64::MAX)] {
            for _ in 0..1_000 {
                let drawn = random.between(low, high);
                assert!((low..=high).contains(&drawn), "{drawn} is outside {low}..={high}");
            }
        }
    }

    #[test]
    fn reaches_both_ends_of_a_small_range() {
        let random = Random::seeded(2);
        let mut seen = [0_u32; 3];
        for _ in 0..3_000 {
            seen[usize::try_from(random.between(0, 2)).unwrap()] += 1;
        }
        assert!(seen.iter().all(|count| (800..1_200).contains(count)), "uneven: {seen:?}");
    }

    #[test]
    fn clones_share_one_sequence() {
        let random = Random::seeded(3);
        assert_ne!(random.clone().next(), random.next());
    }
}
