//! Remembers up to when a search by time found nothing, so that the next one does not read dead rows there.

use super::floors::{LATE, before, hold_after, is_long};
use rewheel::{Clock, Moment};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How far below the first list of a claim the next full read starts. One statement takes the number of a list and commits it: rarely do that
/// many others commit in between.
const LISTS_LATE: i64 = 8;

/// Up to when looks for rows by their time found none: those of overdue jobs and of deadlines. The next full read starts [`LATE`] below that,
/// and every so often at the very beginning, as with lanes.
#[derive(Debug)]
pub(super) struct LookFloor {
    known: Mutex<Option<Clean>>,
    clock: Clock,
}

#[derive(Clone, Copy, Debug)]
struct Clean {
    /// The store's time of the latest look.
    at: i64,
    /// The first list of a claim.
    list: i64,
    /// When the latest look at everything began.
    looked: Moment,
    /// The time between two of those.
    hold: Duration,
}

/// From where one full read starts.
#[derive(Clone, Copy, Debug)]
pub(super) struct LookFrom {
    pub(super) at: i64,
    /// The first list of a claim to look at.
    pub(super) list: i64,
    began: Moment,
}

impl LookFloor {
    pub(super) fn new(clock: Clock) -> LookFloor {
        LookFloor { known: Mutex::default(), clock }
    }

    fn known(&self) -> MutexGuard<'_, Option<Clean>> {
        // Nothing that can panic runs under this lock.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn from(&self) -> LookFrom {
        let began = self.clock.now();
        match *self.known() {
            Some(clean) if began.since(clean.looked) < clean.hold => {
                LookFrom { at: before(clean.at, LATE), list: clean.list, began }
            }
            Some(_) | None => LookFrom { at: i64::MIN, list: i64::MIN, began },
        }
    }

    /// Returns from where to count, for a statement that does not report what it finds. If looks at everything stop, it starts at the
    /// very beginning.
    pub(super) fn peek(&self) -> LookFrom {
        self.peek_if(|_| true)
    }

    /// As `peek`, for a count that starts at the very beginning unless that takes long.
    pub(super) fn peek_if_long(&self) -> LookFrom {
        self.peek_if(|clean| is_long(clean.hold))
    }

    fn peek_if(&self, wanted: impl FnOnce(&Clean) -> bool) -> LookFrom {
        let began = self.clock.now();
        match *self.known() {
            Some(clean) if began.since(clean.looked) < clean.hold * 2 && wanted(&clean) => {
                LookFrom { at: before(clean.at, LATE), list: clean.list, began }
            }
            Some(_) | None => LookFrom { at: i64::MIN, list: i64::MIN, began },
        }
    }

    /// Records that a look at `now` found nothing, and the first list of a claim, if there is one.
    pub(super) fn found_nothing(&self, from: LookFrom, now: i64, list: Option<i64>) {
        let took = self.clock.now().since(from.began);
        let mut known = self.known();
        // A list that commits late has a lower number.
        let list = list.map(|list| list.saturating_sub(LISTS_LATE));
        if from.at == i64::MIN {
            let list = list.or(known.map(|clean| clean.list)).unwrap_or(i64::MIN);
            let hold = hold_after(took);
            *known = Some(Clean { at: now, list, looked: from.began, hold });
        } else if let Some(clean) = known.as_mut() {
            (clean.at, clean.list) = (now, list.unwrap_or(clean.list));
        }
    }

    /// Lowers the floor to the time of a row that was written: the next full read finds it.
    pub(super) fn lower(&self, at: i64) {
        if let Some(clean) = self.known().as_mut() {
            clean.at = clean.at.min(at);
        }
    }

    /// Records that a full read found something: the next one starts at the very beginning.
    pub(super) fn found(&self) {
        *self.known() = None;
    }
}

#[cfg(test)]
mod tests {
    use super::LookFloor;
    use rewheel::{Clock, ManualClock};
    use std::time::Duration;

    const NOW: i64 = 1_000_000;
    const LATE_MS: i64 = 10_000;

    #[test]
    fn a_look_by_time_starts_where_the_last_one_found_nothing() {
        let clock = ManualClock::new();
        let floor = LookFloor::new(Clock::from(&clock));
        let first = floor.from();
        assert_eq!((first.at, first.list), (i64::MIN, i64::MIN));
        clock.advance(Duration::from_millis(100));
        floor.found_nothing(first, NOW, Some(500));
        assert_eq!((floor.from().at, floor.from().list), (NOW - LATE_MS, 500 - 8));
        floor.found_nothing(floor.from(), NOW + 1, None);
        assert_eq!((floor.from().at, floor.from().list), (NOW + 1 - LATE_MS, 500 - 8));
        floor.lower(NOW - 99);
        assert_eq!(floor.from().at, NOW - 99 - LATE_MS);
        // The first full read began five seconds ago.
        clock.advance(Duration::from_millis(4_900));
        assert_eq!(floor.from().at, i64::MIN);
        floor.found_nothing(floor.from(), NOW, None);
        assert_eq!((floor.from().at, floor.from().list), (NOW - LATE_MS, 500 - 8));
        floor.found();
        assert_eq!(floor.from().at, i64::MIN);
    }

    #[test]
    fn a_count_starts_at_the_floor_for_a_while_after_the_last_look_at_everything() {
        let clock = ManualClock::new();
        let floor = LookFloor::new(Clock::from(&clock));
        assert_eq!((floor.peek().at, floor.peek().list), (i64::MIN, i64::MIN));
        floor.found_nothing(floor.from(), NOW, Some(500));
        assert_eq!((floor.peek().at, floor.peek().list), (NOW - LATE_MS, 500 - 8));
        // That look took no time: an exact count takes no time either.
        assert_eq!(floor.peek_if_long().at, i64::MIN);
        // It is time to look at everything, but a count leaves that to the next full read.
        clock.advance(Duration::from_secs(1));
        assert_eq!((floor.from().at, floor.peek().at), (i64::MIN, NOW - LATE_MS));
        clock.advance(Duration::from_secs(1));
        assert_eq!(floor.peek().at, i64::MIN);

        let slow = floor.from();
        clock.advance(Duration::from_millis(100));
        floor.found_nothing(slow, NOW, None);
        assert_eq!(floor.peek_if_long().at, NOW - LATE_MS);
        floor.found();
        assert_eq!((floor.peek().at, floor.peek_if_long().at), (i64::MIN, i64::MIN));
    }
}
