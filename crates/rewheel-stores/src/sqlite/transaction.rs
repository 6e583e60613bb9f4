//! The context of one verb: an open transaction, the time and the lanes.

use super::error::{VerbError, unreadable};
use super::job_columns::fill_in;
use rewheel_core::store::StoreChange;
use rewheel_core::{HolderId, KindName, Lane, Priority, Shard, Tenant, Timestamp};
use rusqlite::{Connection, OptionalExtension, Params, Row, Statement};
use std::cell::{RefCell, RefMut};
use std::collections::HashMap;
use std::rc::Rc;

/// Maximum number of cached lanes. They are short; a lane that is not cached costs a lookup.
const LANES_REMEMBERED_MAX: usize = 100_000;

/// The transaction of one verb.
pub(super) struct Transaction<'a, 'c> {
    pub(super) statements: &'a Statements<'c>,
    /// The store's time: the same for the whole verb.
    pub(super) now: Timestamp,
    pub(super) lanes: &'a mut Lanes,
    /// The jobs that the verb added and removed, for the ledger.
    pub(super) submitted: u64,
    pub(super) pruned: u64,
    /// What to report to watchers.
    pub(super) report: Option<StoreChange>,
}

impl<'a, 'c> Transaction<'a, 'c> {
    pub(super) fn new(
        statements: &'a Statements<'c>,
        now: Timestamp,
        lanes: &'a mut Lanes,
    ) -> Transaction<'a, 'c> {
        Transaction { statements, now, lanes, submitted: 0, pruned: 0, report: None }
    }

    /// Reports to watchers that the lane may have a new first job. Fails no verb: if the lane cannot be read, any may have changed.
    pub(super) fn report_lane(&mut self, number: i64) {
        let lane = self.lane_of(number);
        let report = self.report.get_or_insert_default();
        match lane {
            Ok(lane) => report.add(&lane),
            Err(_) => report.merge(StoreChange::AnyLane),
        }
    }

    /// Returns a statement, compiled once per connection.
    pub(super) fn sql(&self, sql: &'static str) -> Result<Compiled<'c>, VerbError> {
        Ok(self.statements.compiled(sql)?)
    }

    pub(super) fn execute(
        &self,
        sql: &'static str,
        params: impl Params,
    ) -> Result<usize, VerbError> {
        Ok(self.sql(sql)?.get().execute(params)?)
    }

    /// Reads the only row, if there is one.
    pub(super) fn find<T>(
        &self,
        sql: &'static str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, VerbError> {
        Ok(self.sql(sql)?.get().query_row(params, read).optional()?)
    }

    /// Returns the number of a holder that is alive.
    pub(super) fn alive(&self, holder: HolderId) -> Result<Option<i64>, VerbError> {
        self.find(include_str!("sql/find_holder.sql"), [holder.to_bytes()], |row| row.get(0))
    }

    /// Returns the number of a holder, alive or dead.
    pub(super) fn number(&self, holder: HolderId) -> Result<Option<i64>, VerbError> {
        self.find(include_str!("sql/number_holder.sql"), [holder.to_bytes()], |row| row.get(0))
    }

    /// Returns the number of a lane, if any job was ever in it.
    pub(super) fn lane(&mut self, lane: &Lane) -> Result<Option<i64>, VerbError> {
        if let Some(number) = self.lanes.numbers.get(lane) {
            return Ok(Some(*number));
        }
        let number: Option<i64> =
            self.find(include_str!("sql/find_lane.sql"), name_of(lane), |row| row.get(0))?;
        if let Some(number) = number {
            self.lanes.remember(number, lane);
        }
        Ok(number)
    }

    /// Returns the number of a lane, and creates the lane if necessary.
    pub(super) fn lane_or_new(&mut self, lane: &Lane) -> Result<i64, VerbError> {
        if let Some(number) = self.lane(lane)? {
            return Ok(number);
        }
        let insert = self.sql(include_str!("sql/insert_lane.sql"))?;
        let number = insert.get().query_row(name_of(lane), |row| row.get(0))?;
        self.lanes.remember(number, lane);
        Ok(number)
    }

    /// Returns the lane with a number.
    pub(super) fn lane_of(&mut self, number: i64) -> Result<Lane, VerbError> {
        if let Some(lane) = self.lanes.names.get(&number) {
            return Ok(lane.clone());
        }
        let read = |row: &Row<'_>| {
            let (kind, tenant): (String, String) = (row.get(0)?, row.get(1)?);
            Ok((kind, tenant, row.get::<_, u8>(2)?, row.get::<_, u16>(3)?))
        };
        let (kind, tenant, priority, shard) = self
            .find(include_str!("sql/name_lane.sql"), [number], read)?
            .ok_or_else(|| unreadable("a lane that does not exist"))?;
        let lane = Lane {
            kind: KindName::parse(&kind).map_err(|_| unreadable("a kind"))?,
            tenant: read_tenant(&tenant)?,
            priority: Priority::new(priority).map_err(|_| unreadable("a priority"))?,
            shard: Shard::stored(shard).ok_or_else(|| unreadable("a shard"))?,
        };
        self.lanes.remember(number, &lane);
        Ok(lane)
    }
}

/// The statements of one connection, each compiled at its first use. They are looked up by the
/// address of their text in this program, which is faster than by content.
pub(super) struct Statements<'c> {
    pub(super) connection: &'c Connection,
    compiled: RefCell<HashMap<*const u8, Compiled<'c>>>,
}

/// A compiled statement for one user at a time.
#[derive(Clone)]
pub(super) struct Compiled<'c>(Rc<RefCell<Statement<'c>>>);

impl<'c> Compiled<'c> {
    pub(super) fn get(&self) -> RefMut<'_, Statement<'c>> {
        self.0.borrow_mut()
    }
}

impl<'c> Statements<'c> {
    pub(super) fn new(connection: &'c Connection) -> Statements<'c> {
        Statements { connection, compiled: RefCell::default() }
    }

    pub(super) fn compiled(&self, sql: &'static str) -> rusqlite::Result<Compiled<'c>> {
        if let Some(known) = self.compiled.borrow().get(&sql.as_ptr()) {
            return Ok(known.clone());
        }
        let text = fill_in(sql);
        let fresh = Compiled(Rc::new(RefCell::new(self.connection.prepare(&text)?)));
        self.compiled.borrow_mut().insert(sql.as_ptr(), fresh.clone());
        Ok(fresh)
    }

    /// Runs a statement without parameters and results.
    pub(super) fn run(&self, sql: &'static str) -> rusqlite::Result<()> {
        self.compiled(sql)?.get().execute([]).map(drop)
    }
}

/// Returns the key that a lane is looked up by.
fn name_of(lane: &Lane) -> (&str, &str, u8, u16) {
    let tenant = tenant_text(lane.tenant.as_ref());
    (lane.kind.as_str(), tenant, lane.priority.get(), lane.shard.get())
}

/// Lanes by number and numbers by lane. A lane's number never changes, so the cache stays valid
/// unless the transaction that created a lane is rolled back.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    numbers: HashMap<Lane, i64>,
    names: HashMap<i64, Lane>,
}

impl Lanes {
    fn remember(&mut self, number: i64, lane: &Lane) {
        if self.names.len() >= LANES_REMEMBERED_MAX {
            self.forget();
        }
        self.numbers.insert(lane.clone(), number);
        self.names.insert(number, lane.clone());
    }

    pub(super) fn forget(&mut self) {
        self.numbers.clear();
        self.names.clear();
    }
}

/// Returns the stored form of a tenant: the empty text stands for no tenant.
pub(super) fn tenant_text(tenant: Option<&Tenant>) -> &str {
    tenant.map_or("", Tenant::as_str)
}

pub(super) fn read_tenant(text: &str) -> Result<Option<Tenant>, VerbError> {
    if text.is_empty() {
        return Ok(None);
    }
    Tenant::parse(text).map(Some).map_err(|_| unreadable("a tenant"))
}
