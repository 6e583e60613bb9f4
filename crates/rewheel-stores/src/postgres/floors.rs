//! Remembers below which due time a lane has no jobs left, so that statements do not read dead rows there.
//!
//! PostgreSQL steps over the index entries of claimed jobs until vacuum removes them, and while any transaction in the database keeps an
//! old snapshot, vacuum removes none. So each lane has a *floor*: the due time up to which it was found empty, at most `now - MARGIN`.
//! Statements that look for due jobs start there.
//!
//! A floor is a hint, because a job may appear below it. A floor must not hide such a job for long:
//!
//! - A job that commits at most [`MARGIN`] after its due time is never below a floor.
//! - This process may itself write a job below a floor: it gives a job back, takes one over, changes one, or submits one with a due time in
//!   the past. It then lowers the floor right after the commit. A statement that was running meanwhile does not raise it again, see
//!   `lowered`.
//! - Another process, or a transaction that commits late, may write a job there, and this process does not know. A *look* finds it: one
//!   statement that reads everything below the floors, once per second. With many dead rows a full read takes long. Then this process waits
//!   [`LOOK_SHARE`] times as long before the next full read, but at most [`LOOK_MAX`]. In the meantime, once per second, a statement starts
//!   [`LATE`] below the floor. So a job that commits late by at most [`LATE`] is found within a second, and the cost depends on the rate
//!   of jobs, not on the age of the snapshot.
//! - If the last full read is twice that long ago, statements ignore the floor and read the whole lane. So these limits hold whichever verbs a
//!   process calls.

use rewheel::{Clock, Moment};
use rewheel_core::Timestamp;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Maximum number of floors: the lanes that an engine reads at once. A statement gets all of them.
const FLOORS_MAX: usize = 1_000;

/// How far floors stay behind the time of the store. A transaction that submits a job rarely takes longer to commit.
const MARGIN: Duration = Duration::from_millis(200);

/// How far below a floor statements look once per second. Transactions of applications rarely take longer.
pub(super) const LATE: Duration = Duration::from_secs(10);

/// Minimum time between two looks.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A process spends at most this fraction of its time on looks: 1/50.
const LOOK_SHARE: u32 = 50;

/// Maximum time between two looks, whatever they cost.
const LOOK_MAX: Duration = Duration::from_secs(30);

/// The floors of lanes, by their numbers.
#[derive(Debug)]
pub(super) struct Floors {
    known: Mutex<Known>,
    clock: Clock,
}

#[derive(Debug)]
struct Known {
    floors: BTreeMap<i32, Floor>,
    /// The time between two looks.
    hold: Duration,
    /// When the current look began, if one is running.
    looking: Option<Moment>,
    /// Counts how often floors were lowered: a statement that began before that may not have seen the job that caused it.
    lowered: u64,
}

#[derive(Clone, Copy, Debug)]
struct Floor {
    due: i64,
    /// When the latest statement began that read everything below.
    looked: Moment,
    /// When the latest statement began that read a part of what is below.
    dipped: Moment,
}

/// Where one statement starts to read.
#[derive(Debug)]
pub(super) struct Reading {
    /// The lanes, and the due time from which to read each.
    pub(super) lanes: Vec<i32>,
    pub(super) from: Vec<i64>,
    began: Moment,
    lowered: u64,
}

impl Floors {
    pub(super) fn new(clock: Clock) -> Floors {
        let floors = BTreeMap::new();
        let known = Known { floors, hold: LOOK_EVERY, looking: None, lowered: 0 };
        Floors { known: Mutex::new(known), clock }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // Nothing that can panic runs under this lock.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns from where to read these lanes, in this order. A lane without a floor is read as a whole.
    pub(super) fn of(&self, lanes: &[i32]) -> Reading {
        let now = self.clock.now();
        let mut known = self.known();
        let from = lanes.iter().map(|lane| known.from(*lane, now).unwrap_or(i64::MIN)).collect();
        Reading { lanes: lanes.to_vec(), from, began: now, lowered: known.lowered }
    }

    /// Returns from where to read the lanes that have a floor, in the order of their numbers.
    pub(super) fn all(&self) -> Reading {
        let now = self.clock.now();
        let mut known = self.known();
        let lanes: Vec<i32> = known.floors.keys().copied().collect();
        let from = lanes.iter().map(|lane| known.from(*lane, now).unwrap_or(i64::MIN)).collect();
        Reading { lanes, from, began: now, lowered: known.lowered }
    }

    /// As `all`, for a statement that does not report what it finds.
    pub(super) fn peek(&self) -> Reading {
        let now = self.clock.now();
        let known = self.known();
        let from = |floor: &Floor| if known.is_stale(floor, now) { i64::MIN } else { floor.due };
        let (lanes, from) = known.floors.iter().map(|(lane, floor)| (*lane, from(floor))).unzip();
        Reading { lanes, from, began: now, lowered: known.lowered }
    }

    /// Returns from where to count the jobs of the lanes that have a floor, in the order of their numbers. Counts must be exact, so they
    /// start at the very beginning unless that takes long. Even then they find what commits late by at most [`LATE`].
    pub(super) fn for_count(&self) -> Reading {
        let now = self.clock.now();
        let known = self.known();
        let is_floor = |floor: &&Floor| is_long(known.hold) && !known.is_stale(floor, now);
        let floors = known.floors.iter().filter(|(_, floor)| is_floor(floor));
        let (lanes, from) = floors.map(|(lane, floor)| (*lane, before(floor.due, LATE))).unzip();
        Reading { lanes, from, began: now, lowered: known.lowered }
    }

    /// Records that a statement found no more jobs of a lane from where it began to read up to a due time, and what the time was.
    pub(super) fn emptied(
        &self,
        reading: &Reading,
        (lane, from): (i32, i64),
        until: Timestamp,
        now: Timestamp,
    ) {
        let due = until.as_millis().min(before(now.as_millis(), MARGIN));
        let mut known = self.known();
        if known.lowered != reading.lowered {
            return;
        }
        match known.floors.get_mut(&lane) {
            // Jobs below `from` have been found meanwhile.
            Some(floor) if floor.due < from => {}
            Some(floor) => {
                floor.due = due;
                if from == i64::MIN {
                    floor.looked = reading.began;
                }
            }
            // No statement has read below `from` lately.
            None if from != i64::MIN => {}
            None => {
                if known.floors.len() >= FLOORS_MAX {
                    known.floors.clear();
                }
                let floor = Floor { due, looked: reading.began, dipped: reading.began };
                known.floors.insert(lane, floor);
            }
        }
    }

    /// Returns the floors to look below now, if it is time.
    pub(super) fn look(&self) -> Option<Reading> {
        self.look_after(|hold| hold)
    }

    /// Like `look`, for background work. If looks take long, background work looks early, so that a claim does not have to.
    pub(super) fn look_early(&self) -> Option<Reading> {
        self.look_after(|hold| if is_long(hold) { hold / 2 } else { hold })
    }

    fn look_after(&self, age: impl FnOnce(Duration) -> Duration) -> Option<Reading> {
        let now = self.clock.now();
        let mut known = self.known();
        let (hold, age) = (known.hold, age(known.hold));
        // A full read that was given up never ends.
        if known.looking.is_some_and(|began| now.since(began) < hold)
            || !known.floors.values().any(|floor| now.since(floor.looked) >= age)
        {
            return None;
        }
        known.looking = Some(now);
        // All that are due soon at once: one look at a time keeps its share of the time small.
        let old = |(_, floor): &(&i32, &Floor)| now.since(floor.looked) >= hold / 2;
        let (lanes, from) =
            known.floors.iter().filter(old).map(|(lane, floor)| (*lane, floor.due)).unzip();
        Some(Reading { lanes, from, began: now, lowered: known.lowered })
    }

    /// Records what a full read found: the earliest due time of each lane that has jobs below its floor.
    pub(super) fn looked(&self, reading: &Reading, found: &[(i32, i64)]) {
        let took = self.clock.now().since(reading.began);
        let mut known = self.known();
        known.looking = None;
        known.hold = hold_after(took);
        for (lane, from) in reading.lanes.iter().zip(&reading.from) {
            // A floor that was raised meanwhile was raised by a statement that read from the old one.
            if let Some(floor) = known.floors.get_mut(lane)
                && floor.due >= *from
            {
                (floor.looked, floor.dipped) = (reading.began, reading.began);
            }
        }
        for (lane, due) in found {
            if let Some(floor) = known.floors.get_mut(lane) {
                floor.due = floor.due.min(*due);
            }
        }
    }

    /// Lowers floors to the due times of jobs that were committed below them.
    pub(super) fn lower(&self, jobs: &[(i32, i64)]) {
        if jobs.is_empty() {
            return;
        }
        let mut known = self.known();
        known.lowered += 1;
        for (lane, due) in jobs {
            if let Some(floor) = known.floors.get_mut(lane) {
                floor.due = floor.due.min(*due);
            }
        }
    }

    /// Forgets all floors: a lane may have another number.
    pub(super) fn forget(&self) {
        let mut known = self.known();
        known.lowered += 1;
        known.floors.clear();
    }
}

impl Known {
    fn is_stale(&self, floor: &Floor, now: Moment) -> bool {
        now.since(floor.looked) >= self.hold * 2
    }

    fn from(&mut self, lane: i32, now: Moment) -> Option<i64> {
        let floor = *self.floors.get(&lane)?;
        if self.is_stale(&floor, now) {
            return None;
        }
        // If looks are cheap, they are as frequent.
        if !is_long(self.hold) || now.since(floor.dipped) < LOOK_EVERY {
            return Some(floor.due);
        }
        self.floors.insert(lane, Floor { dipped: now, ..floor });
        Some(before(floor.due, LATE))
    }
}

impl Reading {
    /// Returns from where a lane is read, if the lanes are in the order of their numbers.
    pub(super) fn start_of(&self, lane: i32) -> i64 {
        self.lanes.binary_search(&lane).map_or(i64::MIN, |nth| self.from[nth])
    }
}

/// Returns the time between two looks that take this long.
pub(super) fn hold_after(took: Duration) -> Duration {
    took.saturating_mul(LOOK_SHARE).clamp(LOOK_EVERY, LOOK_MAX)
}

/// Returns whether a full read takes so long that the time until the next one is longer than usual.
pub(super) fn is_long(hold: Duration) -> bool {
    hold > LOOK_EVERY
}

/// Returns the time that is this much earlier.
pub(super) fn before(at_ms: i64, by: Duration) -> i64 {
    at_ms.saturating_sub(i64::try_from(by.as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::{Floors, LATE, LOOK_EVERY, LOOK_MAX, Reading};
    use rewheel::{Clock, ManualClock};
    use rewheel_core::Timestamp;
    use std::time::Duration;

    const NOW: i64 = 1_000_000;
    /// The highest floor.
    const EDGE: i64 = NOW - 200;
    const LATE_MS: i64 = 10_000;

    fn fresh() -> (Floors, ManualClock) {
        let clock = ManualClock::new();
        (Floors::new(Clock::from(&clock)), clock)
    }

    /// A claim of lane 1 that emptied it up to a due time.
    fn claim(floors: &Floors, until: i64) {
        end(floors, &floors.of(&[1]), until);
    }

    fn end(floors: &Floors, reading: &Reading, until: i64) {
        let (until, now) = (Timestamp::from_millis(until), Timestamp::from_millis(NOW));
        floors.emptied(reading, (1, reading.from[0]), until, now);
    }

    fn floor(floors: &Floors) -> i64 {
        floors.of(&[1]).from[0]
    }

    #[test]
    fn a_floor_is_where_a_claim_ended_but_behind_the_time() {
        let (floors, _) = fresh();
        assert_eq!(floor(&floors), i64::MIN);
        claim(&floors, 50);
        assert_eq!(floor(&floors), 50);
        claim(&floors, i64::MAX);
        assert_eq!(floor(&floors), EDGE);
        assert_eq!((floors.peek().lanes, floors.all().from), (vec![1], vec![EDGE]));
        // After the clock was put back, new jobs are due below the old floor.
        let reading = floors.of(&[1]);
        let early = Timestamp::from_millis(5_000);
        floors.emptied(&reading, (1, EDGE), Timestamp::from_millis(i64::MAX), early);
        assert_eq!(floor(&floors), 4_800);
    }

    #[test]
    fn a_job_that_comes_back_lowers_the_floor_at_once() {
        let (floors, _) = fresh();
        claim(&floors, i64::MAX);
        let reading = floors.of(&[1]);
        floors.lower(&[(1, 70)]);
        assert_eq!(floor(&floors), 70);
        // This claim began before that and did not see the job.
        end(&floors, &reading, i64::MAX);
        assert_eq!(floor(&floors), 70);
        claim(&floors, i64::MAX);
        assert_eq!(floor(&floors), EDGE);
    }

    #[test]
    fn a_first_claim_does_not_pass_over_a_job_that_came_back_meanwhile() {
        let (floors, _) = fresh();
        let reading = floors.of(&[1]);
        floors.lower(&[(1, 70)]);
        end(&floors, &reading, i64::MAX);
        assert_eq!(floor(&floors), i64::MIN);
    }

    #[test]
    fn a_look_each_second_finds_what_others_put_below() {
        let (floors, clock) = fresh();
        claim(&floors, i64::MAX);
        assert!(floors.look().is_none(), "it is too early");
        clock.advance(LOOK_EVERY);
        let look = floors.look().expect("it is time");
        assert_eq!((&look.lanes, &look.from), (&vec![1], &vec![EDGE]));
        assert!(floors.look().is_none(), "one is under way");
        // A claim from the floor is running, and knows nothing of what the full read finds.
        let reading = floors.of(&[1]);
        floors.looked(&look, &[(1, 30)]);
        end(&floors, &reading, i64::MAX);
        assert_eq!(floor(&floors), 30);
        assert!(floors.look().is_none(), "it was just now");
    }

    #[test]
    fn without_a_look_the_whole_lane_is_read() {
        let (floors, clock) = fresh();
        claim(&floors, i64::MAX);
        clock.advance(LOOK_EVERY * 2 - Duration::from_nanos(1));
        assert_eq!(floor(&floors), EDGE);
        clock.advance(Duration::from_nanos(1));
        assert_eq!((floor(&floors), floors.peek().from), (i64::MIN, vec![i64::MIN]));
        // That was as good as a full read.
        claim(&floors, i64::MAX);
        assert_eq!(floor(&floors), EDGE);
        assert!(floors.look().is_none());
    }

    #[test]
    fn a_look_that_was_given_up_is_repeated() {
        let (floors, clock) = fresh();
        claim(&floors, i64::MAX);
        clock.advance(LOOK_EVERY);
        drop(floors.look().expect("it is time"));
        clock.advance(LOOK_EVERY);
        assert!(floors.look().is_some());
    }

    /// Looks that take this long.
    fn looking_for(took: Duration) -> (Floors, ManualClock) {
        let (floors, clock) = fresh();
        claim(&floors, i64::MAX);
        clock.advance(LOOK_EVERY);
        let look = floors.look().expect("it is time");
        clock.advance(took);
        floors.looked(&look, &[]);
        (floors, clock)
    }

    #[test]
    fn looks_that_take_long_are_rare_but_not_too_rare() {
        let (floors, clock) = looking_for(Duration::from_millis(100));
        // Five seconds after it began.
        clock.advance(Duration::from_millis(4_899));
        assert!(floors.look().is_none());
        clock.advance(Duration::from_millis(1));
        assert!(floors.look().is_some());

        let (floors, clock) = looking_for(Duration::from_secs(5));
        clock.advance(LOOK_MAX - Duration::from_millis(5_001));
        assert!(floors.look().is_none());
        clock.advance(Duration::from_millis(1));
        assert!(floors.look().is_some());
    }

    #[test]
    fn a_look_without_a_waiting_claim_comes_first() {
        let (floors, clock) = looking_for(Duration::from_millis(200));
        clock.advance(Duration::from_millis(4_800));
        assert!(floors.look().is_none());
        let look = floors.look_early().expect("it is half time");
        floors.looked(&look, &[]);
        clock.advance(Duration::from_millis(999));
        assert!(floors.look().is_none());
        // Cheap looks are left to whom needs them.
        clock.advance(Duration::from_millis(1));
        assert!(floors.look_early().is_some());
    }

    #[test]
    fn between_rare_looks_each_second_a_part_is_read() {
        let (floors, clock) = looking_for(Duration::from_millis(100));
        assert_eq!(i64::try_from(LATE.as_millis()), Ok(LATE_MS));
        assert_eq!(floor(&floors), EDGE);
        clock.advance(LOOK_EVERY);
        // What does not report jobs leaves that to others.
        assert_eq!(floors.peek().from, [EDGE]);
        let reading = floors.of(&[1]);
        assert_eq!(reading.from, [EDGE - LATE_MS]);
        assert_eq!(floor(&floors), EDGE, "once per second");
        // It finds a job.
        end(&floors, &reading, EDGE - 500);
        assert_eq!(floor(&floors), EDGE - 500);
        clock.advance(LOOK_EVERY);
        assert_eq!(floors.all().from, [EDGE - 500 - LATE_MS]);
    }

    #[test]
    fn a_count_starts_at_a_floor_only_while_looks_take_long() {
        let (floors, clock) = fresh();
        claim(&floors, i64::MAX);
        assert!(floors.for_count().lanes.is_empty());
        clock.advance(LOOK_EVERY);
        let reading = floors.look().unwrap();
        clock.advance(Duration::from_millis(100));
        floors.looked(&reading, &[]);
        let reading = floors.for_count();
        assert_eq!((reading.lanes, reading.from), (vec![1], vec![EDGE - LATE_MS]));
        // Twice the five seconds between two such looks.
        clock.advance(Duration::from_secs(10));
        assert!(floors.for_count().lanes.is_empty());
    }
}
