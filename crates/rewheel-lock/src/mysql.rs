//! Keeps locks in a MySQL or MariaDB database.
//!
//! A verb reads the row of the lock, applies the rule here, and writes the row if its version has not changed; otherwise it starts over. Every
//! statement is a transaction of its own, so a process that is paused in the middle does not block other processes.

mod error;
mod connections;

use self::connections::{Connection, Connections};
use self::error::{has_no_table, is_conflict, judge};
use crate::backend::{
    Ask, BackendError, EarlierCalls, LockBackend, LockState, Release, Renewal, RequestId, Turn,
};
use crate::name::LockName;
use crate::record::Record;
use crate::row::{CALLS_PER_PRUNE, IDLE_KEPT, Row};
use crate::server_clock::{ServerTime, millis};
use crate::wakeups::Wakeups;
use async_trait::async_trait;
use mysql_async::{Error, FromValueError, Value};
use rewheel::{Backoff, Jitter, Random};
use rewheel_core::store::ClockOffset;
use rewheel_stores::MysqlOptions;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Maximum number of tries of a verb whose row keeps changing. Each time another request has made progress.
const TRIES_MAX: u32 = 200;

/// The waits between them.
const CONFLICT: Backoff = Backoff::exponential(Duration::from_millis(1))
    .max(Duration::from_millis(20))
    .jitter(Jitter::FULL);

/// Maximum number of old rows that one call deletes, so that it does not take long.
const PRUNED_MAX: u64 = 200;

/// Locks in a MySQL or MariaDB database. Clones share the connections.
///
/// The tables `rewheel_locks` and `rewheel_lock_floor` are in the database of the URL, which may be that of a store of jobs. A user that may
/// not create them can use them once they exist.
#[derive(Clone)]
pub struct MysqlBackend {
    shared: Arc<Shared>,
}

struct Shared {
    connections: Connections,
    clock: ClockOffset,
    random: Random,
    calls: AtomicU64,
    wakeups: Wakeups,
}

/// When a verb writes the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Write {
    IfChanged,
    /// An earlier call may be about to write the version of the row that it has read: then it fails.
    Always,
}

/// A row, with what decides whether it may still be written.
struct Loaded {
    now: ServerTime,
    record: Record,
    guard: Guard,
}

enum Guard {
    /// There is no row, and the floor is this.
    Floor(i64),
    Version(i64),
}

impl MysqlBackend {
    /// Opens the locks of a database, and creates the tables if they do not exist.
    ///
    /// # Errors
    /// Says what is wrong with the server, and what to do.
    pub async fn open(options: MysqlOptions) -> Result<MysqlBackend, BackendError> {
        let connections = Connections::new(&options);
        prepare(&connections).await?;
        let shared = Shared {
            connections,
            clock: options.clock,
            random: Random::thread(),
            calls: AtomicU64::new(0),
            wakeups: Wakeups::default(),
        };
        Ok(MysqlBackend { shared: Arc::new(shared) })
    }

    /// Applies a verb to a lock.
    async fn change<T>(
        &self,
        name: &LockName,
        write: Write,
        verb: impl Fn(&mut Record, ServerTime) -> T,
    ) -> Result<T, BackendError> {
        let Shared { connections, random, calls, .. } = &*self.shared;
        let mut connection = connections.get().await?;
        if calls.fetch_add(1, Ordering::Relaxed) % CALLS_PER_PRUNE == CALLS_PER_PRUNE - 1
            && let Err(error) = self.prune(&mut connection).await
        {
            // The next prune repeats it. The connection may be lost.
            tracing::debug!(error = %judge(error, &connections.address), "failed to delete old locks");
            drop(connection);
            connection = connections.get().await?;
        }
        for tries in 1..=TRIES_MAX {
            let loaded = match self.load(&mut connection, name).await {
                // The server has closed it while it waited in the pool. Reading again is safe.
                Err(error) if connection.was_idle && error.is_fatal() => {
                    connections.forget_idle();
                    drop(connection);
                    connection = connections.get().await?;
                    self.load(&mut connection, name).await
                }
                loaded => loaded,
            };
            let loaded = loaded.map_err(|error| judge(error, &connections.address))?;
            let Loaded { now, mut record, guard } = loaded.read(&connections.address)?;
            let before = record.clone();
            let answer = verb(&mut record, now);
            let is_unchanged = record == before && write == Write::IfChanged;
            if is_unchanged || self.save(&mut connection, name, &record, now, &guard).await? {
                connection.finish();
                return Ok(answer);
            }
            tokio::time::sleep(CONFLICT.delay(tries, random)).await;
        }
        Err(BackendError::Unavailable("other requests changed the same lock each time".into()))
    }

    async fn load(
        &self,
        connection: &mut Connection<'_>,
        name: &LockName,
    ) -> Result<Stored, Error> {
        let values = vec![name.as_str().into()];
        let done = connection.run(include_str!("mysql/sql/load.sql"), values).await?;
        Ok(Stored { row: done.rows.into_iter().next(), clock: self.shared.clock.clone() })
    }

    /// Writes a row. Returns whether it was still what was read.
    async fn save(
        &self,
        connection: &mut Connection<'_>,
        name: &LockName,
        record: &Record,
        now: ServerTime,
        guard: &Guard,
    ) -> Result<bool, BackendError> {
        let Row { token, holder, owner, until_ms, lease_ms, line } = Row::write(record, now);
        let name = Value::from(name.as_str());
        let columns: [Value; 6] = [
            token.into(),
            holder.into(),
            owner.into(),
            until_ms.into(),
            lease_ms.into(),
            line.into(),
        ];
        let (sql, values) = match guard {
            Guard::Floor(floor) => {
                let mut values = vec![name];
                values.extend(columns);
                values.push((*floor).into());
                (include_str!("mysql/sql/insert.sql"), values)
            }
            Guard::Version(version) => {
                let mut values = columns.to_vec();
                values.extend([name, (*version).into()]);
                (include_str!("mysql/sql/update.sql"), values)
            }
        };
        match connection.run(sql, values).await {
            Ok(done) => Ok(done.affected == 1),
            Err(error) if is_conflict(&error) => Ok(false),
            Err(error) => Err(judge(error, &self.shared.connections.address)),
        }
    }

    /// Deletes old rows, after their tokens are in the floor. In between, this process may be paused: a row that was used meanwhile stays.
    async fn prune(&self, connection: &mut Connection<'_>) -> Result<(), Error> {
        let floor = connection.run(include_str!("mysql/sql/load.sql"), vec!["".into()]).await?;
        let stored =
            Stored { row: floor.rows.into_iter().next(), clock: self.shared.clock.clone() };
        let Some(now) = stored.now() else { return Ok(()) };
        let before = now.as_millis() - millis(IDLE_KEPT);
        let values = vec![before.into(), PRUNED_MAX.into()];
        let idle = connection.run(include_str!("mysql/sql/idle.sql"), values).await?;
        let mut old: Vec<(Value, i64, i64)> = Vec::new();
        for row in idle.rows {
            if let Ok(row) = mysql_async::from_row_opt::<(Value, i64, i64)>(row) {
                old.push(row);
            }
        }
        let Some(largest) = old.iter().map(|(.., token)| *token).max() else { return Ok(()) };
        let values = vec![largest.into(), largest.into()];
        connection.run(include_str!("mysql/sql/raise_floor.sql"), values).await?;
        for (name, version, _) in old {
            connection.run(include_str!("mysql/sql/prune.sql"), vec![name, version.into()]).await?;
        }
        Ok(())
    }
}

/// The answer to `load`.
struct Stored {
    row: Option<mysql_async::Row>,
    clock: ClockOffset,
}

impl Stored {
    fn now(&self) -> Option<ServerTime> {
        let micros: i64 = self.row.as_ref()?.get(0)?;
        Some(ServerTime::from_micros(micros).moved(&self.clock))
    }

    fn read(self, address: &str) -> Result<Loaded, BackendError> {
        let unreadable = |_: FromValueError| BackendError::Broken {
            what: format!(
                "MySQL at {address}: a row of `rewheel_locks` cannot be read: a newer version of Rewheel, or something else, wrote it"
            ),
            source: None,
        };
        let now = self.now();
        let (Some(row), Some(now)) = (self.row, now) else {
            let what = format!(
                "MySQL at {address}: the row of `rewheel_lock_floor` is missing: insert (1, 0) into it"
            );
            return Err(BackendError::Broken { what, source: None });
        };
        let column = |index: usize| row.as_ref(index).cloned().unwrap_or(Value::NULL);
        let number = |index| mysql_async::from_value_opt::<i64>(column(index)).map_err(unreadable);
        let text = |index| mysql_async::from_value_opt::<String>(column(index)).map_err(unreadable);
        let floor = number(1)?;
        if column(2) == Value::NULL {
            let record = Record { token: floor, ..Record::default() };
            return Ok(Loaded { now, record, guard: Guard::Floor(floor) });
        }
        let stored = Row {
            token: number(3)?,
            holder: text(4)?,
            owner: text(5)?,
            until_ms: number(6)?,
            lease_ms: number(7)?,
            line: text(8)?,
        };
        Ok(Loaded { now, record: stored.read()?, guard: Guard::Version(number(2)?) })
    }
}

/// Creates the tables, unless they exist: a user may lack the right to create them.
async fn prepare(connections: &Connections) -> Result<(), BackendError> {
    let failed = |error| judge(error, &connections.address);
    let mut connection = connections.get().await?;
    match connection.run(include_str!("mysql/sql/load.sql"), vec!["".into()]).await {
        Ok(done) if !done.rows.is_empty() => {
            connection.finish();
            return Ok(());
        }
        Ok(_) => {}
        Err(error) if has_no_table(&error) => {}
        Err(error) => return Err(failed(error)),
    }
    for sql in [
        include_str!("mysql/sql/prepare_locks.sql"),
        include_str!("mysql/sql/prepare_floor.sql"),
        include_str!("mysql/sql/insert_floor.sql"),
    ] {
        connection.run(sql, Vec::new()).await.map_err(failed)?;
    }
    connection.finish();
    Ok(())
}

#[async_trait]
impl LockBackend for MysqlBackend {
    fn name(&self) -> &'static str {
        "mysql"
    }

    async fn acquire(&self, ask: &Ask<'_>) -> Result<Turn, BackendError> {
        self.change(ask.name, Write::IfChanged, |record, now| record.acquire(ask, now)).await
    }

    async fn renew(
        &self,
        name: &LockName,
        id: RequestId,
        lease: Duration,
    ) -> Result<Renewal, BackendError> {
        self.change(name, Write::IfChanged, |record, now| record.renew(id, lease, now)).await
    }

    async fn release(
        &self,
        name: &LockName,
        id: RequestId,
        earlier: EarlierCalls,
    ) -> Result<Release, BackendError> {
        let write = match earlier {
            EarlierCalls::Answered => Write::IfChanged,
            EarlierCalls::Unanswered => Write::Always,
        };
        self.change(name, write, |record, now| record.release(id, now)).await
    }

    async fn inspect(&self, name: &LockName) -> Result<LockState, BackendError> {
        self.change(name, Write::IfChanged, |record, now| record.inspect(now)).await
    }

    fn wakeups(&self) -> &Wakeups {
        &self.shared.wakeups
    }
}

impl fmt::Debug for MysqlBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = &self.shared.connections.address;
        f.debug_struct("MysqlBackend").field("address", address).finish_non_exhaustive()
    }
}
