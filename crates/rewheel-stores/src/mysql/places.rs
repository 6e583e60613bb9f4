//! Gives jobs their places in a lane.

use rewheel::Random;
use rewheel_core::Timestamp;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bits of a place that break ties between equal due times.
pub(super) const TIE_BITS: u32 = 20;

/// The latest due time that a place can express: in the year 2248. Later ones are claimed in any order.
const DUE_MAX: i64 = (1 << 43) - 1;

/// Numbers the jobs of this process, so that of two jobs with the same due time the first one is claimed first.
pub(super) struct Places(AtomicU64);

impl Places {
    /// Starts in the first half, so that the numbers do not start over soon.
    pub(super) fn new(random: &Random) -> Places {
        Places(AtomicU64::new(random.next() % (1 << (TIE_BITS - 1))))
    }

    /// Returns a place for a job. Another process may have taken it: then the transaction is repeated, with another place.
    pub(super) fn next(&self, due: Timestamp) -> i64 {
        let tie = self.0.fetch_add(1, Ordering::Relaxed) % (1 << TIE_BITS);
        first(due) | i64::try_from(tie).unwrap_or(0)
    }
}

/// Returns the first place of a due time.
pub(super) fn first(due: Timestamp) -> i64 {
    due.as_millis().clamp(0, DUE_MAX) << TIE_BITS
}

/// Returns the last place of a due time.
pub(super) fn last(due: Timestamp) -> i64 {
    first(due) | ((1 << TIE_BITS) - 1)
}

#[cfg(test)]
mod tests {
    use super::{Places, first, last};
    use rewheel::Random;
    use rewheel_core::Timestamp;

    #[test]
    fn places_are_in_the_order_of_due_times_and_then_of_arrival() {
        let places = Places::new(&Random::thread());
        let (now, later) =
            (Timestamp::from_millis(1_763_273_000_123), Timestamp::from_millis(1_763_273_000_124));
        let (one, two, three) = (places.next(now), places.next(now), places.next(later));
        assert!(first(now) <= one && one < two && two <= last(now) && last(now) < three);
    }

    #[test]
    fn the_end_of_time_has_a_place() {
        let end = Timestamp::from_millis(i64::MAX);
        assert!(last(end) > last(Timestamp::from_millis(4_102_444_800_000)));
        assert_eq!(first(Timestamp::from_millis(-5)), 0);
    }
}
