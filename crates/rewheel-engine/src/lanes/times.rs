//! The lanes that have jobs, by the time at which the first one is due.

use super::LaneTime;
use rewheel::Moment;
use rewheel_core::{KindName, Lane};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::time::Duration;

/// Maximum number of lanes to keep. The others are found again when their page is read.
const REMEMBERED_MAX: usize = 200_000;

/// Due times of lanes.
#[derive(Debug, Default)]
pub(super) struct LaneTimes {
    all: BTreeMap<Lane, Moment>,
    /// Lanes whose first job is due.
    due: BTreeSet<Lane>,
    /// The others, in the order of their times.
    later: BTreeSet<(Moment, Lane)>,
    /// Those of them with debounced jobs, which are claimed without a horizon.
    later_debounced: BTreeSet<(Moment, Lane)>,
    /// The last lane that was offered, if there are more due lanes than fit into one offer.
    offered: Option<Lane>,
}

impl LaneTimes {
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Returns whether a lane is known to have a job that is due.
    pub(super) fn is_due(&self, lane: &Lane, now: Moment) -> bool {
        self.all.get(lane).is_some_and(|due| *due <= now)
    }

    pub(super) fn insert(&mut self, lane: Lane, due: Moment) {
        self.remove(&lane);
        if self.all.len() >= REMEMBERED_MAX {
            // A lane that is due much later is the cheapest to forget.
            match self.later.last().or(self.later_debounced.last()) {
                Some((latest, last)) if *latest > due => {
                    let last = last.clone();
                    self.remove(&last);
                }
                Some(_) | None => return,
            }
        }
        self.all.insert(lane.clone(), due);
        self.later(&lane).insert((due, lane));
    }

    /// Returns where a lane waits until it is due.
    fn later(&mut self, lane: &Lane) -> &mut BTreeSet<(Moment, Lane)> {
        if lane.shard.is_debounced() { &mut self.later_debounced } else { &mut self.later }
    }

    pub(super) fn remove(&mut self, lane: &Lane) {
        let Some((lane, due)) = self.all.remove_entry(lane) else { return };
        if !self.due.remove(&lane) {
            self.later(&lane).remove(&(due, lane));
        }
    }

    /// Removes the lanes after one, up to and including another; without those, from the first or to the last.
    pub(super) fn remove_between(&mut self, after: Option<&Lane>, end: Option<&Lane>) {
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        let end = end.map_or(Bound::Unbounded, Bound::Included);
        let lanes = self.all.range::<Lane, _>((start, end)).map(|(lane, _)| lane.clone());
        let lanes: Vec<Lane> = lanes.collect();
        lanes.iter().for_each(|lane| self.remove(lane));
    }

    /// Removes the lanes of all other kinds, which are sorted.
    pub(super) fn keep_kinds(&mut self, kinds: &[KindName]) {
        let is_other = |lane: &&Lane| kinds.binary_search(&lane.kind).is_err();
        let others: Vec<Lane> = self.all.keys().filter(is_other).cloned().collect();
        others.iter().for_each(|lane| self.remove(lane));
    }

    /// Returns the next lanes in turn whose job is due within the horizon, and whether those were the last of a turn.
    pub(super) fn due(
        &mut self,
        now: Moment,
        horizon: Duration,
        max: usize,
    ) -> (Vec<LaneTime>, bool) {
        let until = now.plus(horizon);
        for (later, until) in [(&mut self.later, until), (&mut self.later_debounced, now)] {
            while later.first().is_some_and(|(due, _)| *due <= until) {
                let Some((_, lane)) = later.pop_first() else { break };
                self.due.insert(lane);
            }
        }
        let start = self.offered.take().map_or(Bound::Unbounded, Bound::Excluded);
        let from_start: Vec<&Lane> =
            self.due.range((start.as_ref(), Bound::Unbounded)).take(max).collect();
        let lane_time = |lane: &Lane| {
            let due_in = self.all.get(lane).map_or(Duration::ZERO, |due| due.since(now));
            LaneTime { lane: lane.clone(), due_in }
        };
        let lanes: Vec<LaneTime> = from_start.into_iter().map(lane_time).collect();
        let is_end = lanes.len() < max || lanes.last().map(|last| &last.lane) == self.due.last();
        self.offered = lanes.last().filter(|_| !is_end).map(|last| last.lane.clone());
        (lanes, is_end)
    }

    /// Returns the time until the next lane is due within the horizon.
    pub(super) fn next(&self, now: Moment, horizon: Duration) -> Option<Duration> {
        let wait = |later: &BTreeSet<(Moment, Lane)>| Some(later.first()?.0.since(now));
        let early = wait(&self.later).map(|wait| wait.saturating_sub(horizon));
        early.into_iter().chain(wait(&self.later_debounced)).min()
    }
}

#[cfg(test)]
mod tests {
    use super::LaneTimes;
    use rewheel::{Clock, Moment};
    use rewheel_core::{KindName, Lane, Priority, Shard, Tenant};
    use std::time::Duration;

    const HORIZON: Duration = Duration::from_secs(1);

    fn lane(tenant: u32) -> Lane {
        Lane {
            kind: KindName::parse("charge").unwrap(),
            tenant: Tenant::parse(&format!("{tenant:06}")).ok(),
            priority: Priority::default(),
            shard: Shard::NONE,
        }
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn names(times: &mut LaneTimes, now: Moment, max: usize) -> (Vec<Lane>, bool) {
        let (lanes, is_end) = times.due(now, HORIZON, max);
        (lanes.into_iter().map(|one| one.lane).collect(), is_end)
    }

    #[test]
    fn a_lane_is_due_once_its_time_is_within_the_horizon() {
        let (now, mut times) = (Clock::system().now(), LaneTimes::default());
        times.insert(lane(2), now);
        times.insert(lane(1), now.plus(seconds(10)));
        assert_eq!(names(&mut times, now, 10), (vec![lane(2)], true));
        assert_eq!(times.next(now, HORIZON), Some(seconds(9)));
        let later = now.plus(seconds(9));
        assert_eq!(times.due(later, HORIZON, 10).0[0].due_in, seconds(1));
        assert_eq!(names(&mut times, later, 10), (vec![lane(1), lane(2)], true));
        assert_eq!(times.next(later, HORIZON), None);
    }

    #[test]
    fn a_lane_of_debounced_jobs_is_due_without_a_horizon() {
        let (now, mut times) = (Clock::system().now(), LaneTimes::default());
        let debounced = Lane { shard: Shard::NONE.debounced(), ..lane(1) };
        times.insert(debounced.clone(), now.plus(seconds(1)));
        assert_eq!(names(&mut times, now, 10).0, []);
        assert_eq!(times.next(now, HORIZON), Some(seconds(1)));
        times.insert(lane(1), now.plus(seconds(3)));
        assert_eq!(times.next(now, HORIZON), Some(seconds(1)));
        assert_eq!(names(&mut times, now.plus(seconds(1)), 10).0, std::slice::from_ref(&debounced));
        times.remove(&debounced);
        assert_eq!(times.next(now, HORIZON), Some(seconds(2)));
    }

    #[test]
    fn a_lane_has_only_its_latest_time() {
        let (now, mut times) = (Clock::system().now(), LaneTimes::default());
        times.insert(lane(1), now);
        assert_eq!(names(&mut times, now, 10).0, [lane(1)]);
        times.insert(lane(1), now.plus(seconds(60)));
        assert_eq!(names(&mut times, now, 10).0, []);
        times.insert(lane(1), now.plus(seconds(5)));
        assert_eq!(times.next(now, HORIZON), Some(seconds(4)));
        times.remove(&lane(1));
        assert_eq!((times.len(), times.next(now, HORIZON)), (0, None));
    }

    #[test]
    fn every_due_lane_has_its_turn() {
        let (now, mut times) = (Clock::system().now(), LaneTimes::default());
        (0..25).for_each(|one| times.insert(lane(one), now));
        let mut seen = Vec::new();
        for is_last in [false, false, true] {
            let (lanes, is_end) = names(&mut times, now, 10);
            assert_eq!(is_end, is_last);
            seen.extend(lanes);
        }
        assert_eq!(seen, (0..25).map(lane).collect::<Vec<_>>());
        assert_eq!(names(&mut times, now, 10).0[0], lane(0), "and then from the start");
    }

    #[test]
    fn a_page_replaces_what_was_known_of_its_lanes() {
        let (now, mut times) = (Clock::system().now(), LaneTimes::default());
        (0..10).for_each(|one| times.insert(lane(one), now));
        times.remove_between(Some(&lane(2)), Some(&lane(5)));
        let left = [0, 1, 2, 6, 7, 8, 9].map(lane);
        assert_eq!(names(&mut times, now, 100).0, left);
        times.remove_between(Some(&lane(7)), None);
        times.remove_between(None, Some(&lane(1)));
        assert_eq!(names(&mut times, now, 100).0, [2, 6, 7].map(lane));
        times.keep_kinds(&[KindName::parse("refund").unwrap()]);
        assert_eq!(times.len(), 0);
    }
}
