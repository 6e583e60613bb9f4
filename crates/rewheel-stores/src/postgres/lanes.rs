//! Knows the numbers of lanes.

use super::error::{Trouble, unreadable};
use super::row::{read_tenant, tenant_text};
use super::session::Session;
use super::statements::{FIND_KINDS, FIND_LANES, FIND_OPEN_LANES, INSERT_LANES, NAME_LANES};
use rewheel::{Clock, Moment};
use rewheel_core::{Kind, KindName, Lane, Priority, Shard, Timestamp};
use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio_postgres::Row;

/// Lanes that are remembered. They are short; forgetting them costs a lookup each.
const REMEMBERED_MAX: usize = 100_000;

/// Lanes whose floor is remembered: as many as one claim visits.
const FLOORS_MAX: usize = rewheel_core::Limits::LANES_MAX;

/// How long a floor holds. A transaction that commits late may bring a job that is due below it.
const FLOOR_HOLDS: Duration = Duration::from_secs(1);

/// Lanes by number, numbers by lane. A lane is never renumbered, so that remembering is safe.
#[derive(Debug)]
pub(super) struct Lanes {
    known: Mutex<Known>,
    clock: Clock,
}

#[derive(Debug, Default)]
struct Known {
    numbers: HashMap<Lane, i32>,
    names: HashMap<i32, Lane>,
    floors: HashMap<i32, Floor>,
}

/// From which due on to look into a lane. What was claimed below it is gone, but PostgreSQL steps over the
/// remains of each until they are cleared away, which an old transaction anywhere prevents.
#[derive(Clone, Copy, Debug)]
struct Floor {
    due: Timestamp,
    since: Moment,
}

impl Lanes {
    pub(super) fn new() -> Lanes {
        Lanes { known: Mutex::default(), clock: Clock::system() }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // Nothing that can panic happens under this lock.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remember(&self, number: i32, lane: &Lane) {
        let mut known = self.known();
        if known.names.len() >= REMEMBERED_MAX {
            known.numbers.clear();
            known.names.clear();
        }
        known.numbers.insert(lane.clone(), number);
        known.names.insert(number, lane.clone());
    }

    /// Remembers only what a number stands for: the kind of the lane may be deleted.
    fn remember_name(&self, number: i32, lane: &Lane) {
        let mut known = self.known();
        if known.names.len() < REMEMBERED_MAX {
            known.names.insert(number, lane.clone());
        }
    }

    fn missing<'l>(&self, lanes: impl Iterator<Item = &'l Lane>) -> Vec<Lane> {
        let known = self.known();
        let missing: HashSet<&Lane> =
            lanes.filter(|lane| !known.numbers.contains_key(*lane)).collect();
        missing.into_iter().cloned().collect()
    }

    /// Returns the number of a lane, if it is remembered.
    pub(super) fn number(&self, lane: &Lane) -> Option<i32> {
        self.known().numbers.get(lane).copied()
    }

    /// Forgets the numbers of lanes whose kind is not among these: it was deleted, and takes no more jobs.
    pub(super) fn keep_kinds(&self, kinds: &[Kind]) {
        let kinds: HashSet<&KindName> = kinds.iter().map(|kind| &kind.name).collect();
        self.known().numbers.retain(|lane, _| kinds.contains(&lane.kind));
    }

    /// Forgets the numbers of the lanes of one kind.
    pub(super) fn forget_kind(&self, kind: &KindName) {
        self.known().numbers.retain(|lane, _| lane.kind != *kind);
    }

    /// Learns the numbers of lanes that have one and whose kind exists.
    pub(super) async fn find(
        &self,
        session: &Session<'_>,
        lanes: impl Iterator<Item = &Lane>,
    ) -> Result<(), Trouble> {
        let missing = self.missing(lanes);
        if missing.is_empty() {
            return Ok(());
        }
        let names = Names::of(&missing);
        for row in session.query(&FIND_OPEN_LANES, &names.params()).await? {
            let (number, lane) = read_lane(&row)?;
            self.remember(number, &lane);
        }
        Ok(())
    }

    /// Learns the numbers of lanes, which begin to exist where their kind does. Returns whether some began: they are
    /// not remembered before the session has ended well and they are looked for once more.
    pub(super) async fn find_or_make(
        &self,
        session: &Session<'_>,
        lanes: impl Iterator<Item = &Lane> + Clone,
    ) -> Result<bool, Trouble> {
        self.find(session, lanes.clone()).await?;
        let mut missing = self.missing(lanes);
        if missing.is_empty() {
            return Ok(false);
        }
        let kinds: Vec<&str> = missing.iter().map(|lane| lane.kind.as_str()).collect();
        let mut exist = HashSet::new();
        for row in session.query(&FIND_KINDS, &[&kinds]).await? {
            exist.insert(row.try_get::<_, String>(0)?);
        }
        missing.retain(|lane| exist.contains(lane.kind.as_str()));
        if missing.is_empty() {
            return Ok(false);
        }
        session.execute(&INSERT_LANES, &Names::of(&missing).params()).await?;
        Ok(true)
    }

    /// Returns the number of a lane that may begin to exist, in a transaction that may be undone.
    pub(super) async fn number_in(
        &self,
        session: &Session<'_>,
        lane: &Lane,
    ) -> Result<i32, Trouble> {
        if let Some(number) = self.number(lane) {
            return Ok(number);
        }
        let names = Names::of(std::slice::from_ref(lane));
        if session.find(&FIND_LANES, &names.params()).await?.is_none() {
            session.execute(&INSERT_LANES, &names.params()).await?;
            session.made_lane();
        }
        let row = session.one(&FIND_LANES, &names.params()).await?;
        Ok(row.try_get(0)?)
    }

    /// Returns what the numbers of lanes stand for.
    pub(super) async fn names(
        &self,
        session: &Session<'_>,
        numbers: impl Iterator<Item = i32>,
    ) -> Result<HashMap<i32, Lane>, Trouble> {
        let mut names = HashMap::new();
        let mut missing = Vec::new();
        {
            let known = self.known();
            for number in numbers {
                match known.names.get(&number) {
                    Some(lane) => drop(names.insert(number, lane.clone())),
                    None => missing.push(number),
                }
            }
        }
        if !missing.is_empty() {
            for row in session.query(&NAME_LANES, &[&missing]).await? {
                let (number, lane) = read_lane(&row)?;
                // One that the session itself has made may be undone, and its number would then lead nowhere.
                if !session.may_have_made_lanes() {
                    self.remember_name(number, &lane);
                }
                names.insert(number, lane);
            }
        }
        Ok(names)
    }

    /// Returns from which due on to look into a lane.
    pub(super) fn floor(&self, lane: i32) -> i64 {
        let now = self.clock.now();
        let mut known = self.known();
        match known.floors.get(&lane) {
            Some(floor) if now.since(floor.since) < FLOOR_HOLDS => floor.due.as_millis(),
            Some(_) => {
                known.floors.remove(&lane);
                i64::MIN
            }
            None => i64::MIN,
        }
    }

    /// Returns every floor: lanes, and the due of each.
    pub(super) fn floors(&self) -> (Vec<i32>, Vec<i64>) {
        let now = self.clock.now();
        let mut known = self.known();
        known.floors.retain(|_, floor| now.since(floor.since) < FLOOR_HOLDS);
        known.floors.iter().map(|(lane, floor)| (*lane, floor.due.as_millis())).unzip()
    }

    /// Notes what a claim found: if it got all that it asked for, there is nothing below the last of it. One
    /// that is not due yet says nothing, since others may still be submitted before it.
    /// Where it looked from a floor itself, which has gone meanwhile, it does not lay another: nobody has looked below
    /// that since.
    pub(super) fn claimed(
        &self,
        (lane, from): (i32, i64),
        was_full: bool,
        last_due: Timestamp,
        now: Timestamp,
    ) {
        let mut known = self.known();
        if !was_full || last_due > now {
            known.floors.remove(&lane);
            return;
        }
        if from != i64::MIN && !known.floors.contains_key(&lane) {
            return;
        }
        if known.floors.len() >= FLOORS_MAX && !known.floors.contains_key(&lane) {
            known.floors.clear();
        }
        let floor = Floor { due: last_due, since: self.clock.now() };
        // The time at which the floor was first laid counts: it must not hold for ever.
        known.floors.entry(lane).and_modify(|known| known.due = floor.due).or_insert(floor);
    }

    /// Forgets a floor: something came back below it.
    pub(super) fn lower(&self) {
        self.known().floors.clear();
    }
}

/// Lanes as arrays, one for each column.
struct Names<'l> {
    kinds: Vec<&'l str>,
    tenants: Vec<&'l str>,
    priorities: Vec<i32>,
    shards: Vec<i32>,
}

impl<'l> Names<'l> {
    fn of(lanes: &'l [Lane]) -> Names<'l> {
        Names {
            kinds: lanes.iter().map(|lane| lane.kind.as_str()).collect(),
            tenants: lanes.iter().map(|lane| tenant_text(lane.tenant.as_ref())).collect(),
            priorities: lanes.iter().map(|lane| i32::from(lane.priority.get())).collect(),
            shards: lanes.iter().map(|lane| i32::from(lane.shard.get())).collect(),
        }
    }

    fn params(&self) -> [super::session::Param<'_>; 4] {
        [&self.kinds, &self.tenants, &self.priorities, &self.shards]
    }
}

fn read_lane(row: &Row) -> Result<(i32, Lane), Trouble> {
    Ok((row.try_get(0)?, lane_at(row, 1)?))
}

/// Reads kind, tenant, priority and shard from four columns.
pub(super) fn lane_at(row: &Row, at: usize) -> Result<Lane, Trouble> {
    let small = |at| Ok::<_, Trouble>(u8::try_from(row.try_get::<_, i32>(at)?).ok());
    let priority = small(at + 2)?.unwrap_or(u8::MAX);
    Ok(Lane {
        kind: KindName::parse(row.try_get(at)?).map_err(|_| unreadable("a kind"))?,
        tenant: read_tenant(row.try_get(at + 1)?)?,
        priority: Priority::new(priority).map_err(|_| unreadable("a priority"))?,
        shard: Shard::new(small(at + 3)?.ok_or_else(|| unreadable("a shard"))?),
    })
}

#[cfg(test)]
mod tests {
    use super::Lanes;
    use rewheel_core::Timestamp;

    #[test]
    fn a_floor_is_laid_only_by_a_claim_that_looked_below_it() {
        let (lanes, at) = (Lanes::new(), Timestamp::from_millis);
        lanes.claimed((1, i64::MIN), true, at(50), at(100));
        assert_eq!(lanes.floor(1), 50);
        lanes.claimed((1, 50), true, at(60), at(100));
        assert_eq!(lanes.floor(1), 60);
        // Something came back while a claim was on its way that did not look for it.
        lanes.lower();
        lanes.claimed((1, 60), true, at(70), at(100));
        assert_eq!(lanes.floor(1), i64::MIN);
    }

    #[test]
    fn a_claim_that_was_not_full_or_not_due_leaves_no_floor() {
        let (lanes, at) = (Lanes::new(), Timestamp::from_millis);
        lanes.claimed((1, i64::MIN), false, at(50), at(100));
        lanes.claimed((2, i64::MIN), true, at(101), at(100));
        assert_eq!((lanes.floor(1), lanes.floor(2)), (i64::MIN, i64::MIN));
    }
}
