//! Remembers which lanes have jobs and when those are due, so that a claim from a few lanes does not list all of them.
//!
//! All lanes are read once, page by page. After that the cost depends on the number of changes, not on the number of lanes. Watchers report the lanes that
//! got jobs, and claims report the lanes that they emptied. Only these lanes are read again. Each poll also reads one page of lanes, in turns. This finds
//! jobs that no watcher reported, such as jobs that a user wrote by SQL. If all lanes fit into one page, each poll finds them.

mod times;

use self::times::LaneTimes;
use rewheel::{Clock, Moment};
use rewheel_core::store::{LaneHead, Store, StoreChange, StoreResult};
use rewheel_core::{KindName, Lane};
use std::collections::BTreeSet;
use std::time::Duration;

/// Maximum number of lanes that are read at once, and that are offered for one claim.
pub(crate) const LANES_READ: usize = 1_000;

/// The lanes of a set of kinds.
#[derive(Debug)]
pub(crate) struct LaneCache {
    clock: Clock,
    poll: Duration,
    kinds: Vec<KindName>,
    times: LaneTimes,
    /// Lanes to read again before the next claim.
    changed: BTreeSet<Lane>,
    /// Where the last page ended. `None` after the last page.
    after: Option<Lane>,
    listing: Listing,
    /// Whether to read all lanes once more. A listing that began is never cut short: the last lanes would never be read.
    lists_again: bool,
    /// When the next page is due, unless all are being read.
    next_page: Moment,
    /// The last number of [`Store::unreported_changes`].
    unreported: Option<u64>,
}

/// Whether all lanes are being read, without a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Listing {
    /// Yes, beginning with the first.
    FromStart,
    /// Yes, up to the last.
    ToEnd,
    /// No: one page per poll.
    No,
}

impl LaneCache {
    pub(crate) fn new(clock: Clock, poll: Duration) -> LaneCache {
        LaneCache {
            next_page: clock.now(),
            clock,
            poll,
            kinds: Vec::new(),
            times: LaneTimes::default(),
            changed: BTreeSet::new(),
            after: None,
            listing: Listing::FromStart,
            lists_again: false,
            unreported: None,
        }
    }

    /// Takes in a report of a watcher.
    pub(crate) fn hear(&mut self, change: StoreChange) {
        match change {
            StoreChange::Lanes(lanes) => self.changed.extend(lanes),
            StoreChange::AnyLane | StoreChange::Replaced => self.list(),
        }
    }

    /// Notes that a claim got fewer jobs from a lane than it asked for.
    pub(crate) fn emptied(&mut self, lane: &Lane) {
        self.changed.insert(lane.clone());
    }

    /// Reads what is to be read next: the lanes that changed, and a page if it is time for one. Returns whether there is more to read
    /// at once.
    pub(crate) async fn refresh(
        &mut self,
        store: &dyn Store,
        kinds: Vec<KindName>,
    ) -> StoreResult<bool> {
        if self.kinds != kinds {
            self.times.keep_kinds(&kinds);
            self.kinds = kinds;
            self.list();
        }
        self.read_changed(store).await?;
        if self.listing == Listing::No && self.next_page <= self.clock.now() {
            self.look_for_unreported(store).await?;
        }
        if self.listing != Listing::No || self.next_page <= self.clock.now() {
            self.read_page(store).await?;
        }
        Ok(self.listing != Listing::No || !self.changed.is_empty())
    }

    /// Returns lanes whose first job is due within the horizon, at most [`LANES_READ`]: the next ones in turn, and whether that was the
    /// end of a turn.
    pub(crate) fn due(&mut self, horizon: Duration) -> (Vec<LaneTime>, bool) {
        self.times.due(self.clock.now(), horizon, LANES_READ)
    }

    /// Returns the time until another lane has a job that is due within the horizon.
    pub(crate) fn next_due(&self, horizon: Duration) -> Option<Duration> {
        self.times.next(self.clock.now(), horizon)
    }

    /// Reads all lanes again. Those that are known stay: most of them have not changed.
    fn list(&mut self) {
        match self.listing {
            Listing::FromStart => {}
            Listing::ToEnd => self.lists_again = true,
            Listing::No => {
                self.listing = Listing::FromStart;
                self.after = None;
            }
        }
    }

    async fn read_changed(&mut self, store: &dyn Store) -> StoreResult<()> {
        self.changed.retain(|lane| self.kinds.binary_search(&lane.kind).is_ok());
        let lanes: Vec<Lane> = self.changed.iter().take(LANES_READ).cloned().collect();
        if lanes.is_empty() {
            return Ok(());
        }
        let heads = store.lane_heads(&lanes).await?;
        let now = self.clock.now();
        for lane in &lanes {
            self.changed.remove(lane);
            self.times.remove(lane);
        }
        self.add(heads, now);
        Ok(())
    }

    /// Finds out whether another process has changed lanes without a report. Up to one page of lanes the page itself shows it.
    async fn look_for_unreported(&mut self, store: &dyn Store) -> StoreResult<()> {
        if self.times.len() < LANES_READ {
            return Ok(());
        }
        let unreported = store.unreported_changes().await?;
        if self.unreported.replace(unreported).is_some_and(|before| before != unreported) {
            self.list();
        }
        Ok(())
    }

    async fn read_page(&mut self, store: &dyn Store) -> StoreResult<()> {
        let heads = store.lanes(&self.kinds, self.after.as_ref(), LANES_READ).await?;
        let now = self.clock.now();
        let is_last = heads.len() < LANES_READ;
        let end = heads.last().filter(|_| !is_last).map(|head| head.lane.clone());
        self.times.remove_between(self.after.as_ref(), end.as_ref());
        self.add(heads, now);
        self.after = end;
        self.next_page = now.plus(self.poll);
        if self.listing != Listing::No {
            self.listing = if is_last { Listing::No } else { Listing::ToEnd };
            if is_last && std::mem::take(&mut self.lists_again) {
                self.list();
            }
        }
        Ok(())
    }

    fn add(&mut self, heads: Vec<LaneHead>, now: Moment) {
        for head in heads {
            self.times.insert(head.lane, now.plus(head.due_in));
        }
    }
}

/// A lane that has a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LaneTime {
    pub(crate) lane: Lane,
    /// Time until its first job is due; zero if it is due.
    pub(crate) due_in: Duration,
}

#[cfg(test)]
mod tests;
