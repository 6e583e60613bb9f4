//! Caches the numbers of lanes, and owns their floors.

use super::error::{VerbError, unreadable};
use super::floors::Floors;
use super::row::{read_tenant, tenant_text};
use super::session::Session;
use super::statements::{FIND_KINDS, FIND_LANES, FIND_OPEN_LANES, INSERT_LANES, NAME_LANES};
use rewheel::Clock;
use rewheel_core::store::StoreChange;
use rewheel_core::{Kind, KindName, Lane, Priority, Shard};
use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio_postgres::Row;

/// Maximum number of cached lanes. They are short; a lane that is not cached costs a lookup.
const REMEMBERED_MAX: usize = 100_000;

/// From this number of lanes on, an engine does not read all of them with each poll.
const MANY: usize = 1_000;

/// A cache of lane numbers. After a restore from a backup, or a failover to a lagging standby, a number may belong to another lane. A
/// cached number is therefore only a hint: each statement that takes a number also takes the lane's name, and does nothing unless both
/// still match.
#[derive(Debug)]
pub(super) struct Lanes {
    known: Mutex<Known>,
    pub(super) floors: Floors,
}

#[derive(Debug, Default)]
struct Known {
    numbers: HashMap<Lane, i32>,
    /// The reverse, only for reports to watchers.
    names: HashMap<i32, Lane>,
}

impl Lanes {
    pub(super) fn new(clock: Clock) -> Lanes {
        Lanes { known: Mutex::default(), floors: Floors::new(clock) }
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
        self.floors.forget();
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
    pub(super) fn report(&self, numbers: impl IntoIterator<Item = i32>) -> StoreChange {
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
    let shard = u16::try_from(row.try_get::<_, i32>(at + 3)?).ok();
    Ok(Lane {
        kind: KindName::parse(row.try_get(at)?).map_err(|_| unreadable("a kind"))?,
        tenant: read_tenant(row.try_get(at + 1)?)?,
        priority: Priority::new(priority).map_err(|_| unreadable("a priority"))?,
        shard: shard.and_then(Shard::stored).ok_or_else(|| unreadable("a shard"))?,
    })
}
