//! Queue of due jobs, in the order in which they get a slot.

use crate::shared::Waiting;
use rewheel::Moment;
use rewheel_core::Priority;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet, btree_map};

/// Every n-th slot goes to a job below the highest priority: the one that arrived first.
const FIRST_COME_EVERY: u32 = 8;

/// By priority, then by due time, then by arrival.
pub(super) type Turn = (Reverse<Priority>, Moment, u64);

/// Jobs that wait for a slot.
#[derive(Debug)]
pub(super) struct Ready<T = Waiting> {
    by_urgency: BTreeMap<Turn, T>,
    /// By arrival.
    by_age: BTreeMap<u64, Turn>,
    /// Number of jobs of the highest priority that have started since another one did.
    urgent: u32,
}

impl<T> Default for Ready<T> {
    fn default() -> Ready<T> {
        Ready { by_urgency: BTreeMap::new(), by_age: BTreeMap::new(), urgent: 0 }
    }
}

impl<T> Ready<T> {
    pub(super) fn len(&self) -> usize {
        self.by_urgency.len()
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.by_urgency.is_empty()
    }

    pub(super) fn insert(&mut self, turn: Turn, job: T) {
        self.by_age.insert(turn.2, turn);
        self.by_urgency.insert(turn, job);
    }

    pub(super) fn remove(&mut self, turn: &Turn) -> Option<T> {
        self.by_age.remove(&turn.2);
        self.by_urgency.remove(turn)
    }

    pub(super) fn iter(&self) -> btree_map::Iter<'_, Turn, T> {
        self.by_urgency.iter()
    }

    pub(super) fn take(&mut self) -> impl Iterator<Item = T> {
        self.by_age.clear();
        std::mem::take(&mut self.by_urgency).into_values()
    }

    /// Returns the jobs in the order in which to offer them a slot, each once.
    pub(super) fn order(&self) -> Order<'_, T> {
        Order {
            ready: self,
            first: self.by_urgency.first_key_value().map(|(turn, _)| turn.0),
            by_urgency: self.by_urgency.iter(),
            by_age: self.by_age.values(),
            last: None,
            ahead: HashSet::new(),
            urgent: self.urgent,
        }
    }

    /// Records how often the highest priority had the first turn.
    pub(super) fn note(&mut self, urgent: u32) {
        self.urgent = urgent;
    }
}

/// Iterates over the waiting jobs.
pub(super) struct Order<'r, T> {
    ready: &'r Ready<T>,
    /// The highest priority of all.
    first: Option<Reverse<Priority>>,
    by_urgency: btree_map::Iter<'r, Turn, T>,
    by_age: btree_map::Values<'r, u64, Turn>,
    /// The position of the iteration by priority.
    last: Option<Turn>,
    /// Jobs that had their turn before that iteration reached them.
    ahead: HashSet<u64>,
    urgent: u32,
}

impl<'r, T> Order<'r, T> {
    /// Returns the next job.
    pub(super) fn next(&mut self) -> Option<(Turn, &'r T)> {
        if self.urgent + 1 >= FIRST_COME_EVERY
            && let Some(turn) = self.next_by_age()
        {
            self.ahead.insert(turn.2);
            return self.ready.by_urgency.get(&turn).map(|job| (turn, job));
        }
        let ahead = &self.ahead;
        let (turn, job) = self.by_urgency.find(|(turn, _)| !ahead.contains(&turn.2))?;
        self.last = Some(*turn);
        Some((*turn, job))
    }

    fn next_by_age(&mut self) -> Option<Turn> {
        let (first, last) = (self.first?, self.last);
        let is_behind = |turn: &&Turn| turn.0 > first && last.is_none_or(|last| **turn > last);
        self.by_age.find(is_behind).copied()
    }

    /// Records that this job got a slot.
    pub(super) fn started(&mut self, turn: &Turn) {
        let is_behind = self.first.is_some_and(|first| turn.0 > first);
        self.urgent = if is_behind { 0 } else { self.urgent.saturating_add(1) };
    }

    /// Returns the number of jobs of the highest priority that have started since another one did.
    pub(super) const fn urgent(&self) -> u32 {
        self.urgent
    }
}

#[cfg(test)]
mod tests {
    use super::{Ready, Turn};
    use rewheel::{Clock, Moment};
    use rewheel_core::Priority;
    use std::cmp::Reverse;

    fn ready(priorities: &[u8]) -> Ready<u8> {
        let now: Moment = Clock::system().now();
        let mut ready = Ready::default();
        for (count, priority) in priorities.iter().enumerate() {
            let turn: Turn = (Reverse(Priority::new(*priority).unwrap()), now, count as u64);
            ready.insert(turn, *priority);
        }
        ready
    }

    /// Starts `count` of the jobs that may start.
    fn start(ready: &mut Ready<u8>, count: usize, may: impl Fn(u8) -> bool) -> Vec<u8> {
        let (mut started, mut order) = (Vec::new(), ready.order());
        while started.len() < count
            && let Some((turn, job)) = order.next()
        {
            if may(*job) {
                order.started(&turn);
                started.push((turn, *job));
            }
        }
        let urgent = order.urgent();
        ready.note(urgent);
        for (turn, _) in &started {
            ready.remove(turn);
        }
        started.into_iter().map(|(_, job)| job).collect()
    }

    #[test]
    fn the_most_urgent_come_first() {
        assert_eq!(start(&mut ready(&[1, 5, 9, 5]), 4, |_| true), [9, 5, 5, 1]);
    }

    #[test]
    fn now_and_then_it_is_the_one_that_came_first() {
        let mut ready = ready(&[9, 3, 0, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9]);
        // One by one, or several at once.
        let mut started = start(&mut ready, 1, |_| true);
        started.extend(start(&mut ready, 4, |_| true));
        started.extend(start(&mut ready, 13, |_| true));
        assert_eq!(started, [9, 9, 9, 9, 9, 9, 9, 3, 9, 9, 9, 9, 9, 9, 9, 0, 9, 9]);
        assert!(ready.is_empty() && ready.by_age.is_empty());
    }

    #[test]
    fn a_job_that_cannot_start_delays_no_other_and_is_asked_once() {
        let mut ready = ready(&[9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 0, 1, 0]);
        let asked = std::cell::Cell::new(0);
        let may = |job| {
            asked.set(asked.get() + 1);
            job != 0
        };
        assert_eq!(start(&mut ready, 20, may), [9, 9, 9, 9, 9, 9, 9, 1, 9, 9, 9]);
        assert_eq!((asked.get(), ready.len()), (13, 2));
    }
}
