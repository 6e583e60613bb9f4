//! Divides the free slots of fleet-wide limits among the lanes of a claim.

use super::claim::{FleetLimit, LimitOf, LimitWait, LimitedClaim};
use crate::job::Lane;
use crate::timestamp::Timestamp;
use std::collections::BTreeSet;
use std::time::Duration;

/// Current use of a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitUse {
    /// Number of leased jobs; a store need not count beyond `concurrency_max`.
    pub leased: usize,
    /// When a limited claim last leased a job under this limit.
    pub last: Option<Timestamp>,
}

impl FleetLimit {
    /// Returns why a job would have to wait for this limit.
    ///
    /// ```
    /// use rewheel_core::store::{FleetLimit, LimitOf, LimitUse, LimitWait};
    /// use rewheel_core::{KindName, Timestamp};
    /// use std::time::Duration;
    ///
    /// let at = Timestamp::from_millis;
    /// let limit = FleetLimit {
    ///     of: LimitOf::Kind(KindName::parse("charge-card")?),
    ///     concurrency_max: Some(2),
    ///     interval: Some(Duration::from_secs(5)),
    /// };
    /// let used = |leased| LimitUse { leased, last: Some(at(10_000)) };
    /// assert_eq!(limit.wait(used(2), at(12_000)), Some(LimitWait::Concurrency));
    /// assert_eq!(limit.wait(used(1), at(12_000)), Some(LimitWait::Rate(Duration::from_secs(3))));
    /// assert_eq!(limit.wait(used(1), at(15_000)), None);
    /// # Ok::<(), rewheel_core::NameError>(())
    /// ```
    pub fn wait(&self, used: LimitUse, now: Timestamp) -> Option<LimitWait> {
        if self.slots_left(used) == 0 {
            return Some(LimitWait::Concurrency);
        }
        // Otherwise a clock that was set back would stop the work for that long.
        let last = used.last?.min(now);
        let left = last.plus(self.interval()?).since(now);
        (!left.is_zero()).then_some(LimitWait::Rate(left))
    }

    fn interval(&self) -> Option<Duration> {
        self.interval.filter(|interval| !interval.is_zero())
    }

    fn slots_left(&self, used: LimitUse) -> usize {
        let most = self.concurrency_max.map_or(usize::MAX, |max| max as usize);
        most.saturating_sub(used.leased)
    }
}

/// The free slots of a limited claim.
///
/// Every store uses this, so that all stores agree: it takes slots for a lane before the claim, and returns the slots that the
/// lane did not use.
#[derive(Debug)]
pub struct FleetSlots<'a> {
    limits: &'a [FleetLimit],
    now: Timestamp,
    /// Use of each limit, including the jobs that this claim leased.
    used: Vec<LimitUse>,
    /// Free slots of each limit.
    free: Vec<usize>,
    /// Number of jobs that the claim may still lease, independent of limits.
    left: usize,
    /// For each limit, whether there may be more jobs.
    has_more: Vec<bool>,
    /// For each limit, whether the store has to write now as its last start.
    is_start: Vec<bool>,
}

impl<'a> FleetSlots<'a> {
    /// Starts a claim at this time, with the current use of each of its limits.
    pub fn new(claim: &LimitedClaim<'a>, used: Vec<LimitUse>, now: Timestamp) -> FleetSlots<'a> {
        debug_assert_eq!(used.len(), claim.limits.len(), "each limit has one entry in `used`");
        let free = |(limit, used): (&FleetLimit, &LimitUse)| match limit.wait(*used, now) {
            Some(LimitWait::Concurrency | LimitWait::Rate(_)) => 0,
            None if limit.interval().is_some() => 1,
            None => limit.slots_left(*used),
        };
        // After the clock was set back, the last start is in the future. Writing it as now lets the interval pass normally.
        let is_ahead = |used: &LimitUse| used.last.is_some_and(|last| last > now);
        FleetSlots {
            limits: claim.limits,
            now,
            is_start: used.iter().map(is_ahead).collect(),
            free: claim.limits.iter().zip(&used).map(free).collect(),
            used,
            left: claim.limit,
            has_more: vec![false; claim.limits.len()],
        }
    }

    /// Records when jobs were leased, for a store whose clock advances during a claim.
    pub fn leased_at(&mut self, now: Timestamp) {
        self.now = self.now.max(now);
    }

    /// Takes slots for jobs of a lane, at most `most`. Returns the number taken.
    pub fn take(&mut self, lane: &Lane, most: usize) -> usize {
        let free = covering(self.limits, lane).map(|nth| self.free[nth]).min();
        let taken = most.min(self.left).min(free.unwrap_or(usize::MAX));
        self.left -= taken;
        covering(self.limits, lane).for_each(|nth| self.free[nth] -= taken);
        taken
    }

    /// Returns the unused slots of a lane: they are free for the next lane.
    pub fn give_back(&mut self, lane: &Lane, taken: usize, leased: usize) {
        let unused = taken.saturating_sub(leased);
        self.left += unused;
        for nth in covering(self.limits, lane) {
            self.free[nth] += unused;
            let used = &mut self.used[nth];
            used.leased = used.leased.saturating_add(leased);
            if leased > 0 {
                used.last = Some(self.now);
                self.is_start[nth] = true;
            }
        }
    }

    /// Records that a lane may have more jobs.
    pub fn has_more(&mut self, lane: &Lane) {
        covering(self.limits, lane).for_each(|nth| self.has_more[nth] = true);
    }

    /// Returns the limits whose last start the store has to write, and the time to write.
    pub fn starts(&self) -> (BTreeSet<&'a LimitOf>, Timestamp) {
        let limits = self.limits.iter().zip(&self.is_start);
        (limits.filter(|(_, is_start)| **is_start).map(|(limit, _)| &limit.of).collect(), self.now)
    }

    /// Returns the value of [`LimitedClaimed::waits`](super::LimitedClaimed::waits).
    pub fn waits(&self) -> Vec<Option<LimitWait>> {
        let limits = self.limits.iter().zip(&self.used).zip(&self.has_more);
        limits
            .map(|((limit, used), has_more)| limit.wait(*used, self.now).filter(|_| *has_more))
            .collect()
    }
}

/// Returns the limits that apply to a lane.
fn covering<'l>(limits: &'l [FleetLimit], lane: &'l Lane) -> impl Iterator<Item = usize> + 'l {
    limits.iter().enumerate().filter(|(_, limit)| limit.of.covers(lane)).map(|(nth, _)| nth)
}
