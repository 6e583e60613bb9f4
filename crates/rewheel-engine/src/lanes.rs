//! Remembers which lanes have jobs and when those are due, so that a claim from a few lanes does not list all of them.
//!
//! All lanes are read once, page by page. After that the cost depends on the number of changes, not on the number of lanes. Watchers report the lanes that
//! got jobs, and claims report the lanes that they emptied. Only these lanes are read again. Each poll also reads one page of lanes, in turns. This finds
//! jobs that no watcher reported, such as jobs that a user wrote by SQL. If all lanes fit into one page, each poll finds them. On a store that
//! does not report what other processes do, polls follow each other faster while they find jobs.

mod times;
mod interval;

use self::interval::PollInterval;
use self::times::LaneTimes;
use rewheel::{Clock, Moment};
use rewheel_core::store::{Capabilities, LaneHead, Store, StoreChange, StoreResult};
use rewheel_core::{KindName, Lane};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Maximum number of lanes that are read at once, and that are offered for one claim.
pub(crate) const LANES_READ: usize = 1_000;

/// The lanes of a set of kinds.
#[derive(Debug)]
pub(crate) struct LaneCache {
    clock: Clock,
    poll: PollInterval,
    /// How long the look that is under way, or the last one, took.
    look: Duration,
    kinds: Vec<KindName>,
    times: LaneTimes,
    /// Lanes to read again before the next claim.
    changed: BTreeMap<Lane, Cause>,
    /// Lanes that have due jobs which no watcher has reported: another process has stored them.
    news: BTreeSet<Lane>,
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

/// Why a lane is read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    /// A watcher has reported it.
    Reported,
    /// A claim got jobs, and found no more.
    Emptied,
    /// A claim got no job: the kind may be closed, or others were faster.
    Fruitless,
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
    /// Makes a cache that reads a page of lanes after each poll interval. With the capabilities of a store that several processes share, and
    /// which does not report what others do, the interval is shorter after others have stored jobs.
    pub(crate) fn new(clock: Clock, poll: Duration, store: Option<&Capabilities>) -> LaneCache {
        LaneCache {
            next_page: clock.now(),
            clock,
            poll: PollInterval::new(poll, store),
            look: Duration::ZERO,
            kinds: Vec::new(),
            times: LaneTimes::default(),
            changed: BTreeMap::new(),
            news: BTreeSet::new(),
            after: None,
            listing: Listing::FromStart,
            lists_again: false,
            unreported: None,
        }
    }

    /// Takes in a report of a watcher.
    pub(crate) fn hear(&mut self, change: StoreChange) {
        match change {
            StoreChange::Lanes(lanes) => {
                for lane in lanes {
                    self.news.remove(&lane);
                    self.changed.insert(lane, Cause::Reported);
                }
            }
            StoreChange::AnyLane | StoreChange::Replaced => {
                self.news.clear();
                self.list();
            }
        }
    }

    /// Notes that a claim got fewer jobs from a lane than it asked for.
    pub(crate) fn emptied(&mut self, lane: &Lane) {
        self.changed.entry(lane.clone()).or_insert(Cause::Emptied);
    }

    /// Notes that a claim got no job from a lane.
    pub(crate) fn gave_nothing(&mut self, lane: &Lane) {
        self.changed.entry(lane.clone()).or_insert(Cause::Fruitless);
    }

    /// Returns how long to wait before the next page is read, unless something is reported before.
    pub(crate) fn rest(&mut self) -> Duration {
        let now = self.clock.now();
        if !self.news.is_empty() {
            self.news.clear();
            self.poll.found(now);
            self.next_page = self.next_page.min(now.plus(self.poll.get(now)));
        }
        self.next_page.since(now)
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
            let began = self.clock.now();
            self.look_for_unreported(store).await?;
            self.look = self.clock.now().since(began);
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
        self.changed.retain(|lane, _| self.kinds.binary_search(&lane.kind).is_ok());
        let lanes: Vec<Lane> = self.changed.keys().take(LANES_READ).cloned().collect();
        if lanes.is_empty() {
            return Ok(());
        }
        let heads = store.lane_heads(&lanes).await?;
        let now = self.clock.now();
        let is_news = |head: &&LaneHead| {
            head.due_in.is_zero() && self.changed.get(&head.lane) == Some(&Cause::Emptied)
        };
        self.news.extend(heads.iter().filter(is_news).map(|head| head.lane.clone()));
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
        let began = self.clock.now();
        let heads = store.lanes(&self.kinds, self.after.as_ref(), LANES_READ).await?;
        let now = self.clock.now();
        // All pages that the look has led to, not only the last one.
        self.look = self.look.saturating_add(now.since(began));
        self.poll.took(self.look);
        if self.listing == Listing::No {
            let is_news = |head: &&LaneHead| {
                let is_known = self.times.is_due(&head.lane, now);
                head.due_in.is_zero() && !is_known && !self.changed.contains_key(&head.lane)
            };
            self.news.extend(heads.iter().filter(is_news).map(|head| head.lane.clone()));
        }
        let is_last = heads.len() < LANES_READ;
        let end = heads.last().filter(|_| !is_last).map(|head| head.lane.clone());
        self.times.remove_between(self.after.as_ref(), end.as_ref());
        self.add(heads, now);
        self.after = end;
        self.next_page = now.plus(self.poll.get(now));
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
