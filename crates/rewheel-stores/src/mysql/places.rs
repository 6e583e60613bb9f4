//! Gives jobs their places in a lane.

use rewheel::Random;
use rewheel_core::Timestamp;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bits of a place that break ties between equal due times.
pub(super) const TIE_BITS: u32 = 20;

/// The latest due time that a place can express: in the year 2248. Later ones are claimed in any order.
const DUE_MAX: i64 = (1 << 43) - 1;

/// Tries with other ties of the same due time, before a transaction also takes places of later ones.
const SAME_DUE_TRIES: u32 = 3;

/// The latest that a job may be claimed because the places of its due time are taken: about a second.
const LATER_BITS_MAX: u32 = 10;

/// Numbers jobs, so that of two jobs with the same due time the first one is claimed first.
pub(super) struct Places {
    tie: AtomicU64,
    /// How many milliseconds after their due times the jobs are placed.
    later_ms: i64,
}

impl Places {
    /// Starts in the first half, so that the numbers do not start over soon.
    pub(super) fn new(random: &Random) -> Places {
        let tie = AtomicU64::new(random.next() % (1 << (TIE_BITS - 1)));
        Places { tie, later_ms: 0 }
    }

    /// Returns the places of a transaction that met taken ones, so many times before. It chooses anew: the next numbers are probably taken as
    /// well, because each process takes them one after the other. After some tries it also takes places of later due times, in a range that
    /// doubles each time: all places of one due time may be taken.
    pub(super) fn anew(random: &Random, collisions: u32) -> Places {
        let bits = collisions.saturating_sub(SAME_DUE_TRIES).min(LATER_BITS_MAX);
        let later_ms = i64::try_from(random.next() % (1 << bits)).unwrap_or(0);
        Places { later_ms, ..Places::new(random) }
    }

    /// Returns a place for a job. Another process may have taken it: then the transaction is repeated, with [`Places::anew`].
    pub(super) fn next(&self, due: Timestamp) -> i64 {
        let tie = self.tie.fetch_add(1, Ordering::Relaxed) % (1 << TIE_BITS);
        let due = Timestamp::from_millis(due.as_millis().saturating_add(self.later_ms));
        first(due) | i64::try_from(tie).unwrap_or(0)
    }
}

/// Returns the first place of a due time.
pub(super) fn first(due: Timestamp) -> i64 {
    due.as_millis().clamp(0, DUE_MAX) << TIE_BITS
}

/// Returns the due time of a place.
pub(super) fn due(place: i64) -> Timestamp {
    Timestamp::from_millis(place >> TIE_BITS)
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
    use std::time::Duration;

    #[test]
    fn places_are_in_the_order_of_due_times_and_then_of_arrival() {
        let places = Places::new(&Random::thread());
        let (now, later) =
            (Timestamp::from_millis(1_763_273_000_123), Timestamp::from_millis(1_763_273_000_124));
        let (one, two, three) = (places.next(now), places.next(now), places.next(later));
        assert!(first(now) <= one && one < two && two <= last(now) && last(now) < three);
    }

    #[test]
    fn a_repetition_chooses_anew_and_later_ones_use_later_places() {
        let (random, due) = (Random::seeded(7), Timestamp::from_millis(1_763_273_000_123));
        let place = |collisions| Places::anew(&random, collisions).next(due);
        let same = first(due)..=last(due);
        let chosen: Vec<i64> = (1..=3).map(place).collect();
        assert!(chosen.iter().all(|place| same.contains(place)), "{chosen:?}");
        assert!(chosen[0].abs_diff(chosen[1]) > 100 && chosen[1].abs_diff(chosen[2]) > 100);
        let later: Vec<i64> = (4..30).map(place).collect();
        let latest = last(due.plus(Duration::from_millis(1_023)));
        assert!(later.iter().all(|place| (first(due)..=latest).contains(place)));
        assert!(later.iter().filter(|place| !same.contains(place)).count() > 15);
    }

    #[test]
    fn the_end_of_time_has_a_place() {
        let end = Timestamp::from_millis(i64::MAX);
        assert!(last(end) > last(Timestamp::from_millis(4_102_444_800_000)));
        assert_eq!(first(Timestamp::from_millis(-5)), 0);
    }
}
