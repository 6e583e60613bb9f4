//! Keeps jobs in a MySQL or MariaDB database that many nodes share.
//!
//! Every verb is one transaction at the isolation level READ COMMITTED, which is repeated when it meets another one (deadlock, lock wait,
//! a value that was free a moment ago). Jobs are stored in the order in which they are claimed, and a claim changes rows where they are. All
//! times are the database server's.

mod error;
mod options;
mod statement;
mod pool;
mod lanes;
mod row;
mod job_columns;
mod link;
mod tries;
mod caller_session;
mod transaction;
mod lane_rows;
mod migrate;
mod epoch;
mod places;
mod verbs;
mod store_traits;
mod caller_transaction;

pub use self::options::{MysqlOptions, MysqlOptionsError};

use self::epoch::{Epoch, Observed, Restored};
use self::error::{Stage, broken, judge};
use self::lanes::Lanes;
use self::places::Places;
use self::pool::Pool;
use self::transaction::Transaction;
use crate::groups::CheckedTo;
use crate::open_mode::Tables;
use crate::wakeup::Wakeup;
use rewheel_core::store::{ClockOffset, StoreChange, StoreResult};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The same limit as SQLite's, if the server accepts packets of that size. A payload should refer to data rather than contain it.
const PAYLOAD_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Space in a packet for everything but the payload.
const PACKET_SPARE: usize = 64 * 1024;

/// Connections for heartbeats: one that waits for a lock must not stop those of other holders of the process.
const LIFE_POOL_MAX: usize = 2;

/// A store in a MySQL or MariaDB database.
///
/// Clones share it. Several processes may open the same database.
///
/// ```no_run
/// use rewheel_core::store::ReadStore;
/// use rewheel_stores::MysqlStore;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = MysqlStore::open("mysql://shop@localhost/shop").await?;
/// assert_eq!(store.books().await?.missing(), 0);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct MysqlStore {
    shared: Arc<Shared>,
}

struct Shared {
    work: Arc<Pool>,
    /// Connections that only heartbeats and expiries use, so that they never wait behind other work.
    life: Arc<Pool>,
    timeout: Duration,
    clock: ClockOffset,
    lanes: Lanes,
    places: Places,
    epoch: Epoch,
    /// A number of this process, so that it can tell its own lines of the ledger from those of others.
    writer: i64,
    woken: Wakeup,
    groups_checked: CheckedTo,
    /// Maximum number of connections of this process.
    connections_max: usize,
    payload_bytes_max: usize,
}

/// Runs a verb in a transaction, again and again while others are faster, and returns its result.
macro_rules! write {
    ($store:expr, $tx:ident => $verb:expr) => {
        $crate::mysql::write!($store, work, $tx => $verb)
    };
    ($store:expr, $pool:ident, $tx:ident => $verb:expr) => {{
        let shared = &*$store.shared;
        let mut tries = $crate::mysql::tries::Tries::default();
        loop {
            let mut tx = $crate::mysql::Transaction::write(shared, &shared.$pool).await?;
            tx.repeated = tries.is_repetition();
            tx.places = tries.places();
            let $tx = &mut tx;
            let outcome = $verb.await;
            if let Some(result) = tx.commit(outcome, &mut tries).await {
                break result;
            }
        }
    }};
}

/// Runs a verb that only reads, and returns its result.
macro_rules! read {
    ($store:expr, $tx:ident => $verb:expr) => {{
        let mut tx = $crate::mysql::Transaction::read(&$store.shared).await?;
        let $tx = &mut tx;
        let outcome = $verb.await;
        tx.finish(outcome).await
    }};
}

/// Runs a verb whose reads all see one moment, and returns its result.
macro_rules! snapshot {
    ($store:expr, $tx:ident => $verb:expr) => {{
        let mut tx = $crate::mysql::Transaction::snapshot(&$store.shared).await?;
        let $tx = &mut tx;
        let outcome = $verb.await;
        tx.finish(outcome).await
    }};
}

use {read, snapshot, write};

impl MysqlStore {
    /// Opens the store that a URL names, and migrates its tables.
    ///
    /// # Errors
    /// Says what is wrong with the URL, the server or the database, and what to do.
    pub async fn open(url: &str) -> StoreResult<MysqlStore> {
        let options = MysqlOptions::parse(url);
        let options = options.map_err(|error| broken(error.to_string(), None))?;
        MysqlStore::open_with(options).await
    }

    /// Opens a store with the given options, and migrates its tables.
    ///
    /// # Errors
    /// As [`MysqlStore::open`].
    pub async fn open_with(options: MysqlOptions) -> StoreResult<MysqlStore> {
        MysqlStore::open_tables(options, Tables::Migrate).await
    }

    pub(crate) async fn open_tables(
        options: MysqlOptions,
        tables: Tables,
    ) -> StoreResult<MysqlStore> {
        let work = Pool::new(&options, options.pool_max);
        let life = Pool::new(&options, LIFE_POOL_MAX);
        let packet_max = {
            let mut connection = work.get().await?;
            connection.begin();
            let prepared = migrate::open(&mut connection, tables).await;
            let packet_max = prepared.map_err(|trouble| judge(trouble, Stage::Open))?;
            let found = epoch::find(&mut connection, Restored::No).await;
            let found = found.map_err(|trouble| judge(trouble, Stage::Open))?;
            connection.finish();
            work.set_epoch(found);
            life.set_epoch(found);
            packet_max
        };
        let random = rewheel::Random::thread();
        let epoch = Epoch::default();
        epoch.observe(work.epoch());
        let shared = Shared {
            work,
            life,
            timeout: options.statement_timeout,
            clock: options.clock,
            lanes: Lanes::default(),
            places: Places::new(&random),
            epoch,
            writer: i64::try_from(random.next() >> 1).unwrap_or(1).max(1),
            woken: Wakeup::default(),
            groups_checked: CheckedTo::default(),
            connections_max: options.pool_max + LIFE_POOL_MAX,
            payload_bytes_max: PAYLOAD_BYTES_MAX.min(packet_max.saturating_sub(PACKET_SPARE)),
        };
        Ok(MysqlStore { shared: Arc::new(shared) })
    }
}

impl Shared {
    /// Notes the epoch that the store is in. In a new one, forgets what was cached.
    fn observe(&self, epoch: i64) {
        if self.epoch.observe(epoch) == Observed::New {
            self.lanes.forget();
            self.groups_checked.set(None, 0, 0);
            self.woken.wake(StoreChange::Replaced);
        }
    }
}

impl fmt::Debug for MysqlStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MysqlStore").finish_non_exhaustive()
    }
}
