//! A pool of connections. A connection that was dropped within a transaction or a statement is closed, not used again.

use super::epoch::{self, Restored};
use super::error::{Shown, Stage, VerbError, broken, judge};
use super::options::MysqlOptions;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error, Opts, OptsBuilder};
use rewheel_core::store::{StoreError, StoreResult};
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Maximum time to open a connection: a heartbeat must get through within a third of its lease.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// Number of statements that a connection keeps prepared: those of the verbs that run all the time. The server has one limit for all
/// connections of all nodes (`max_prepared_stmt_count`).
pub(super) const STATEMENTS_MAX: usize = 64;

/// Settings of every session, whatever the server's defaults are. `sql_mode` strict: a value that does not fit is an error.
/// Without `autocommit`, single statements would stay open and be rolled back; `completion_type` could begin another transaction after a
/// commit; `sql_select_limit` would cut results off.
const SETTINGS: [&str; 4] = [
    "SET SESSION autocommit = 1, completion_type = 'NO_CHAIN', sql_select_limit = 18446744073709551615",
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION,ERROR_FOR_DIVISION_BY_ZERO', time_zone = '+00:00'",
    "SET NAMES utf8mb4 COLLATE utf8mb4_bin",
];

/// Returns how long a statement waits for a lock, in whole seconds: less than it may take.
pub(super) fn lock_wait(statement_timeout: Duration) -> Duration {
    Duration::from_secs(statement_timeout.as_secs().clamp(1, 3))
}

pub(super) struct Pool {
    opts: Opts,
    /// Host and port, for errors.
    address: String,
    settings: Vec<String>,
    timeout: Duration,
    permits: Arc<Semaphore>,
    idle: Mutex<Vec<Conn>>,
    closed: AtomicBool,
    /// The latest epoch that a new connection found; -1 while there are no tables yet.
    epoch: AtomicI64,
}

impl Pool {
    pub(super) fn new(options: &MysqlOptions, max: usize) -> Arc<Pool> {
        let opts = OptsBuilder::from_opts(options.server.clone())
            .client_found_rows(true)
            .prefer_socket(false)
            .tcp_nodelay(true)
            .tcp_keepalive(Some(Duration::from_secs(10)))
            .stmt_cache_size(STATEMENTS_MAX);
        let mut settings: Vec<String> = SETTINGS.iter().map(|text| (*text).to_owned()).collect();
        let lock_wait = lock_wait(options.statement_timeout).as_secs();
        settings.push(format!("SET SESSION innodb_lock_wait_timeout = {lock_wait}"));
        let table_wait = options.statement_timeout.as_secs().max(1);
        settings.push(format!("SET SESSION lock_wait_timeout = {table_wait}"));
        let address = format!("{}:{}", options.server.ip_or_hostname(), options.server.tcp_port());
        Arc::new(Pool {
            opts: opts.into(),
            address,
            settings,
            timeout: options.statement_timeout,
            permits: Arc::new(Semaphore::new(max)),
            idle: Mutex::default(),
            closed: AtomicBool::new(false),
            epoch: AtomicI64::new(-1),
        })
    }

    /// Returns a connection, alone for the caller.
    pub(super) async fn get(self: &Arc<Pool>) -> StoreResult<Connection> {
        if self.closed.load(Ordering::Acquire) {
            return Err(StoreError::Closed);
        }
        let permit = tokio::time::timeout(self.timeout, Arc::clone(&self.permits).acquire_owned());
        let permit = match permit.await {
            Ok(Ok(permit)) => permit,
            Ok(Err(_)) => return Err(StoreError::Closed),
            Err(_) => {
                let what = format!(
                    "got no connection to the server at {} in time: raise `pool_max` if all connections are in use",
                    self.address
                );
                return Err(StoreError::Unavailable(what.into()));
            }
        };
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let conn = match idle {
            Some(conn) => conn,
            None => self.open().await?,
        };
        Ok(Connection { conn: Some(conn), pool: Arc::clone(self), _permit: permit, clean: true })
    }

    async fn open(&self) -> StoreResult<Conn> {
        let opened = tokio::time::timeout(CONNECT_TIMEOUT, async {
            let mut conn = Conn::new(self.opts.clone()).await?;
            for setting in &self.settings {
                conn.query_drop(setting.as_str()).await?;
            }
            // Settings that only one of the two servers has.
            for setting in optional_settings() {
                match conn.query_drop(setting).await {
                    Ok(()) | Err(Error::Server(_)) => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(conn)
        });
        match opened.await {
            Ok(Ok(conn)) => self.check_epoch(conn).await,
            Ok(Err(error)) => Err(self.judge_open(error)),
            Err(_) => {
                let what = format!("no answer from {} within {CONNECT_TIMEOUT:?}", self.address);
                Err(StoreError::Unavailable(what.into()))
            }
        }
    }

    /// Compares the server of a new connection with the one before.
    async fn check_epoch(&self, mut conn: Conn) -> StoreResult<Conn> {
        if self.epoch.load(Ordering::Acquire) >= 0 {
            let found =
                tokio::time::timeout(self.timeout, epoch::find(&mut conn, Restored::No)).await;
            match found {
                Ok(Ok(epoch)) => drop(self.epoch.fetch_max(epoch, Ordering::AcqRel)),
                Ok(Err(trouble)) => return Err(judge(trouble, Stage::Open)),
                Err(_) => {
                    let what = format!("no answer from {} in time", self.address);
                    return Err(StoreError::Unavailable(what.into()));
                }
            }
        }
        Ok(conn)
    }

    /// Returns the latest epoch that a connection found.
    pub(super) fn epoch(&self) -> i64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Begins to compare the servers of new connections: the tables exist.
    pub(super) fn set_epoch(&self, epoch: i64) {
        self.epoch.fetch_max(epoch, Ordering::AcqRel);
    }

    fn judge_open(&self, error: Error) -> StoreError {
        match error {
            error @ Error::Server(_) => judge(VerbError::Sql(error), Stage::Open),
            Error::Url(error) => broken("the store's URL is not valid", Some(Error::Url(error))),
            error @ (Error::Driver(_) | Error::Io(_) | Error::Other(_)) => {
                let what = format!(
                    "cannot connect to the server at {}: {}: check that it runs, and check host and port in the store's URL",
                    self.address,
                    Shown(error)
                );
                StoreError::Unavailable(what.into())
            }
        }
    }

    /// Closes the connections that are not in use, and returns no more.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.permits.close();
        self.forget();
    }

    /// Closes the connections that are not in use.
    pub(super) fn forget(&self) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// MariaDB turns long lists into a join that scans the table, and ends transactions of paused processes, whose locks would keep other nodes
/// from taking over its jobs. Newer ones report a row that changed after it was read (error 1020), which statements here expect.
fn optional_settings() -> [&'static str; 3] {
    [
        "SET SESSION in_predicate_conversion_threshold = 0",
        "SET SESSION idle_transaction_timeout = 3",
        "SET SESSION innodb_snapshot_isolation = OFF",
    ]
}

/// A connection that returns to its pool, if it is clean.
pub(super) struct Connection {
    conn: Option<Conn>,
    pool: Arc<Pool>,
    _permit: OwnedSemaphorePermit,
    clean: bool,
}

impl Connection {
    /// Marks the connection as in the middle of something: if it is dropped now, it is closed.
    pub(super) fn begin(&mut self) {
        self.clean = false;
    }

    /// Marks the connection as usable by others.
    pub(super) fn finish(&mut self) {
        self.clean = true;
    }
}

impl Deref for Connection {
    type Target = Conn;

    fn deref(&self) -> &Conn {
        self.conn.as_ref().expect("a connection has its conn until it is dropped")
    }
}

impl DerefMut for Connection {
    fn deref_mut(&mut self) -> &mut Conn {
        self.conn.as_mut().expect("a connection has its conn until it is dropped")
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let Some(conn) = self.conn.take() else { return };
        if self.clean && !conn.is_disconnected() && !self.pool.closed.load(Ordering::Acquire) {
            self.pool.idle.lock().unwrap_or_else(PoisonError::into_inner).push(conn);
        }
    }
}
