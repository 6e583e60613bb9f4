//! Caches the numbers of lanes.

use super::error::{VerbError, unreadable};
use super::row::{read_tenant, tenant_text};
use super::session::Session;
use super::statements::{FIND_KINDS, FIND_LANES, FIND_OPEN_LANES, INSERT_LANES, NAME_LANES};
use rewheel::{Clock, Moment};
use rewheel_core::store::StoreChange;
use rewheel_core::{Kind, KindName, Lane, Priority, Shard, Timestamp};
use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio_postgres::Row;

/// Maximum number of cached lanes. They are short; a lane that is not cached costs a lookup.
const REMEMBERED_MAX: usize = 100_000;

/// From this number of lanes on, an engine does not read all of them with each poll.
const MANY: usize = 1_000;

/// Maximum number of cached floors: as many lanes as one claim visits.
const FLOORS_MAX: usize = rewheel_core::Limits::LANES_MAX;

/// How long a floor is valid. A transaction that commits late may add a job that is due below it.
const FLOOR_HOLDS: Duration = Duration::from_secs(1);

/// A cache of lane numbers. After a restore from a backup, or a failover to a lagging standby, a number may belong to another lane. A
/// cached number is therefore only a hint: each statement that takes a number also takes the lane's name, and does nothing unless both
/// still match.
#[derive(Debug)]
pub(super) struct Lanes {
    known: Mutex<Known>,
    clock: Clock,
}

#[derive(Debug, Default)]
struct Known {
    numbers: HashMap<Lane, i32>,
    /// The reverse, only for reports to watchers.
    names: HashMap<i32, Lane>,
    floors: HashMap<i32, Floor>,
}

/// The due time from which to read a lane. Jobs below it have been claimed, but PostgreSQL still scans their dead rows until vacuum
/// removes them, and an old transaction anywhere prevents that.
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
        // Nothing that can panic runs under this lock.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remember(&self, number: i32, lane: &Lane) {
        let mut known = self.known();
        if known.numbers.len() >= REMEMBERED_MAX {
            known.numbers.clear();
            known.names.clear();
        }
        known.numbers.insert(lane.clone(), number);
        known.names.insert(number, lane.clone());
    }

    fn missing<'l>(&self, lanes: impl Iterator<Item = &'l Lane>) -> Vec<Lane> {
        let known = self.known();
        let missing: HashSet<&Lane> =
            lanes.filter(|lane| !known.numbers.contains_key(*lane)).collect();
        missing.into_iter().cloned().collect()
    }

    /// Returns the number of a lane, if it is cached.
    pub(super) fn number(&self, lane: &Lane) -> Option<i32> {
        self.known().numbers.get(lane).copied()
    }

    /// Forgets the numbers of lanes whose kind is not in this list: the kind was deleted and accepts no more jobs.
    pub(super) fn keep_kinds(&self, kinds: &[Kind]) {
        let kinds: HashSet<&KindName> = kinds.iter().map(|kind| &kind.name).collect();
        let mut known = self.known();
        known.numbers.retain(|lane, _| kinds.contains(&lane.kind));
        known.names.retain(|_, lane| kinds.contains(&lane.kind));
    }

    /// Clears the cache: one number turned out to be wrong, so others may be wrong too.
    pub(super) fn forget(&self) {
        *self.known() = Known::default();
    }

    /// Compares the cached number of a lane with its number in the store, and clears the cache if they differ.
    pub(super) fn check(&self, lane: &Lane, number: i32) {
        if self.number(lane).is_some_and(|known| known != number) {
            self.forget();
        }
    }

    /// Returns whether there are so many lanes that a poll does not read all of them.
    pub(super) fn are_many(&self) -> bool {
        self.known().numbers.len() >= MANY
    }

    /// Returns the lanes with these numbers, for a report to watchers. A wrong one does no harm there: they read the lane again.
    pub(super) fn report(&self, numbers: HashSet<i32>) -> StoreChange {
        let known = self.known();
        let mut change = StoreChange::default();
        for number in numbers {
            match known.names.get(&number) {
                Some(lane) => change.add(lane),
                None => return StoreChange::AnyLane,
            }
        }
        change
    }

    /// Reads the numbers of lanes that exist and whose kind exists.
    pub(super) async fn find(
        &self,
        session: &Session<'_>,
        lanes: impl Iterator<Item = &Lane>,
    ) -> Result<(), VerbError> {
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

    /// Reads the numbers of lanes, and creates missing lanes whose kind exists. Returns whether lanes were created. Those are not cached
    /// until the session has committed and they are read again.
    pub(super) async fn find_or_make(
        &self,
        session: &Session<'_>,
        lanes: impl Iterator<Item = &Lane> + Clone,
    ) -> Result<bool, VerbError> {
        self.find(session, lanes.clone()).await?;
        let mut missing = self.missing(lanes);
        if missing.is_empty() {
            return Ok(false);
        }
        let kinds: Vec<&str> = missing.iter().map(|lane| lane.kind.as_str()).collect();
        let exist = existing_kinds(session, &kinds).await?;
        missing.retain(|lane| exist.contains(lane.kind.as_str()));
        if missing.is_empty() {
            return Ok(false);
        }
        session.execute(&INSERT_LANES, &Names::of(&missing).params()).await?;
        Ok(true)
    }

    /// Returns the number of a lane, and creates the lane if necessary, in a transaction that may be rolled back. The number is not
    /// cached.
    pub(super) async fn number_in(
        &self,
        session: &Session<'_>,
        lane: &Lane,
    ) -> Result<i32, VerbError> {
        let names = Names::of(std::slice::from_ref(lane));
        if session.find(&FIND_LANES, &names.params()).await?.is_none() {
            session.execute(&INSERT_LANES, &names.params()).await?;
        }
        let row = session.one(&FIND_LANES, &names.params()).await?;
        Ok(row.try_get(0)?)
    }

    /// Returns the numbers of lanes whose kind exists, and creates missing lanes, in a transaction that may be rolled back. The numbers
    /// are not cached.
    pub(super) async fn numbers_in(
        &self,
        session: &Session<'_>,
        mut lanes: Vec<Lane>,
    ) -> Result<HashMap<Lane, i32>, VerbError> {
        let kinds: Vec<&str> = lanes.iter().map(|lane| lane.kind.as_str()).collect();
        let exist = existing_kinds(session, &kinds).await?;
        lanes.retain(|lane| exist.contains(lane.kind.as_str()));
        let mut numbers = HashMap::with_capacity(lanes.len());
        for is_second in [false, true] {
            let missing: Vec<&Lane> =
                lanes.iter().filter(|lane| !numbers.contains_key(*lane)).collect();
            if missing.is_empty() {
                break;
            }
            let names = Names::of(missing);
            if is_second {
                session.execute(&INSERT_LANES, &names.params()).await?;
            }
            for row in session.query(&FIND_LANES, &names.params()).await? {
                let (number, lane) = read_lane(&row)?;
                numbers.insert(lane, number);
            }
        }
        Ok(numbers)
    }

    /// Returns the due time from which to read a lane.
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

    /// Returns all floors: the lanes, and the due time of each.
    pub(super) fn floors(&self) -> (Vec<i32>, Vec<i64>) {
        let now = self.clock.now();
        let mut known = self.known();
        known.floors.retain(|_, floor| now.since(floor.since) < FLOOR_HOLDS);
        known.floors.iter().map(|(lane, floor)| (*lane, floor.due.as_millis())).unzip()
    }

    /// Records the result of a claim: if it got as many jobs as it asked for, no job is left below the last one. A job that is not due
    /// yet proves nothing, since others may still be submitted before it. A claim that itself started at a floor which has expired
    /// meanwhile sets no new floor: no claim has looked below that floor since.
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
        // Keep the time at which the floor was first set, so that it expires.
        known.floors.entry(lane).and_modify(|known| known.due = floor.due).or_insert(floor);
    }

    /// Clears all floors: a job came back below one of them.
    pub(super) fn lower(&self) {
        self.known().floors.clear();
    }
}

/// Returns those of these kinds that exist.
pub(super) async fn existing_kinds(
    session: &Session<'_>,
    kinds: &[&str],
) -> Result<HashSet<String>, VerbError> {
    let rows = session.query(&FIND_KINDS, &[&kinds]).await?;
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

/// Returns the lanes with these numbers.
pub(super) async fn names(
    session: &Session<'_>,
    numbers: impl Iterator<Item = i32>,
) -> Result<HashMap<i32, Lane>, VerbError> {
    let mut numbers: Vec<i32> = numbers.collect();
    numbers.sort_unstable();
    numbers.dedup();
    if numbers.is_empty() {
        return Ok(HashMap::new());
    }
    let rows = session.query(&NAME_LANES, &[&numbers]).await?;
    // An unreadable lane counts as missing.
    let read = |row| match read_lane(row) {
        Ok(lane) => Some(Ok(lane)),
        Err(trouble) => trouble.of_row().err().map(Err),
    };
    rows.iter().filter_map(read).collect()
}

/// Lanes as one array per column.
pub(super) struct Names<'l> {
    kinds: Vec<&'l str>,
    tenants: Vec<&'l str>,
    priorities: Vec<i32>,
    shards: Vec<i32>,
}

impl<'l> Names<'l> {
    pub(super) fn of(lanes: impl IntoIterator<Item = &'l Lane, IntoIter: Clone>) -> Names<'l> {
        let lanes = lanes.into_iter();
        Names {
            kinds: lanes.clone().map(|lane| lane.kind.as_str()).collect(),
            tenants: lanes.clone().map(|lane| tenant_text(lane.tenant.as_ref())).collect(),
            priorities: lanes.clone().map(|lane| i32::from(lane.priority.get())).collect(),
            shards: lanes.map(|lane| i32::from(lane.shard.get())).collect(),
        }
    }

    pub(super) fn params(&self) -> [super::session::Param<'_>; 4] {
        [&self.kinds, &self.tenants, &self.priorities, &self.shards]
    }
}

fn read_lane(row: &Row) -> Result<(i32, Lane), VerbError> {
    Ok((row.try_get(0)?, lane_at(row, 1)?))
}

/// Reads kind, tenant, priority and shard from four columns.
pub(super) fn lane_at(row: &Row, at: usize) -> Result<Lane, VerbError> {
    let small = |at| Ok::<_, VerbError>(u8::try_from(row.try_get::<_, i32>(at)?).ok());
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
        // A job came back while a claim was running that did not see it.
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
