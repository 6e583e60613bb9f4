//! Keeps locks in an SQLite file, for processes of one machine.

use crate::backend::{
    Ask, BackendError, EarlierCalls, LockBackend, LockState, Release, Renewal, RequestId, Turn,
};
use crate::name::LockName;
use crate::record::Record;
use crate::row::{CALLS_PER_PRUNE, IDLE_KEPT, Row};
use crate::server_clock::{ServerTime, machine_time, millis};
use crate::wakeups::Wakeups;
use async_trait::async_trait;
use rewheel_core::store::ClockOffset;
use rusqlite::{
    Connection, ErrorCode, OptionalExtension, Transaction, TransactionBehavior, params,
};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

/// How long a call waits for another process that writes to the file.
const BUSY_TIMEOUT: Duration = Duration::from_secs(4);

/// Locks in an SQLite file. Clones share the connection.
///
/// The clock is that of the machine. The file can be one that other programs use, too: its tables are `rewheel_locks` and
/// `rewheel_lock_floor`.
#[derive(Clone)]
pub struct SqliteBackend {
    file: Arc<File>,
    clock: ClockOffset,
    wakeups: Wakeups,
}

struct File {
    path: PathBuf,
    open: Mutex<Open>,
}

struct Open {
    connection: Connection,
    calls: u64,
}

impl SqliteBackend {
    /// Opens a file, and creates it if it does not exist.
    ///
    /// # Errors
    /// [`BackendError`] names the file and the cause.
    pub async fn open(path: impl AsRef<Path>) -> Result<SqliteBackend, BackendError> {
        SqliteBackend::open_with(path, ClockOffset::default()).await
    }

    /// As [`open`](SqliteBackend::open), with a clock that tests can move.
    ///
    /// # Errors
    /// [`BackendError`] names the file and the cause.
    pub async fn open_with(
        path: impl AsRef<Path>,
        clock: ClockOffset,
    ) -> Result<SqliteBackend, BackendError> {
        let path = path.as_ref().to_owned();
        let (at, opening) = (path.clone(), move || connect(&path));
        let connection = blocking(opening).await?.map_err(|error| unopened(&at, error))?;
        let file = File { path: at, open: Mutex::new(Open { connection, calls: 0 }) };
        Ok(SqliteBackend { file: Arc::new(file), clock, wakeups: Wakeups::default() })
    }

    /// Applies a verb to a lock, in one transaction.
    async fn change<T: Send + 'static>(
        &self,
        name: &LockName,
        verb: impl FnOnce(&mut Record, ServerTime) -> T + Send + 'static,
    ) -> Result<T, BackendError> {
        let (file, clock, name) = (Arc::clone(&self.file), self.clock.clone(), name.clone());
        // Dropped with this future.
        let caller = Arc::new(());
        let call = Arc::downgrade(&caller);
        blocking(move || file.change(&clock, &name, &call, verb)).await?
    }
}

impl File {
    fn change<T>(
        &self,
        clock: &ClockOffset,
        name: &LockName,
        caller: &Weak<()>,
        verb: impl FnOnce(&mut Record, ServerTime) -> T,
    ) -> Result<T, BackendError> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        // If its caller has given up meanwhile, the call might come after the release of its request. If the caller gives up later, its
        // release has to wait for this call.
        if caller.strong_count() == 0 {
            return Err(BackendError::Unavailable("the caller has given up".into()));
        }
        open.calls += 1;
        let prunes = open.calls.is_multiple_of(CALLS_PER_PRUNE);
        let failed = |error| self.judge(error);
        // Waits for other processes, so the time is read after it.
        let transaction = open
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(failed)?;
        let now = machine_time(clock);
        let stored = load(&transaction, name).map_err(failed)?;
        let mut record = match stored.clone() {
            Some(row) => row.read()?,
            None => Record { token: floor(&transaction).map_err(failed)?, ..Record::default() },
        };
        let before = record.clone();
        let answer = verb(&mut record, now);
        if record != before {
            save(&transaction, name, &Row::write(&record, now)).map_err(failed)?;
        }
        if prunes {
            prune(&transaction, now).map_err(failed)?;
        }
        transaction.commit().map_err(failed)?;
        Ok(answer)
    }

    fn judge(&self, error: rusqlite::Error) -> BackendError {
        let path = self.path.display();
        let passes = [
            ErrorCode::DatabaseBusy,
            ErrorCode::DatabaseLocked,
            ErrorCode::DiskFull,
            ErrorCode::SystemIoFailure,
            ErrorCode::OutOfMemory,
        ];
        match error.sqlite_error_code() {
            Some(code) if passes.contains(&code) => {
                BackendError::Unavailable(format!("{path}: {error}").into())
            }
            _ => BackendError::Broken {
                what: format!(
                    "{path}: {error}: check that the file is a database, is writable and belongs to this user"
                ),
                source: Some(error.into()),
            },
        }
    }
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    // A token must not be given out twice after a power failure.
    connection.pragma_update(None, "synchronous", "full")?;
    connection.execute_batch(include_str!("sqlite/sql/prepare.sql"))?;
    Ok(connection)
}

fn unopened(path: &Path, error: rusqlite::Error) -> BackendError {
    BackendError::Broken {
        what: format!(
            "{}: cannot be opened: check that its folder exists and is writable: {error}",
            path.display()
        ),
        source: Some(error.into()),
    }
}

fn load(transaction: &Transaction<'_>, name: &LockName) -> rusqlite::Result<Option<Row>> {
    let mut statement = transaction.prepare(include_str!("sqlite/sql/load.sql"))?;
    let row = statement.query_row([name.as_str()], |row| {
        Ok(Row {
            token: row.get(0)?,
            holder: row.get(1)?,
            owner: row.get(2)?,
            until_ms: row.get(3)?,
            lease_ms: row.get(4)?,
            line: row.get(5)?,
        })
    });
    row.optional()
}

fn floor(transaction: &Transaction<'_>) -> rusqlite::Result<i64> {
    transaction.query_row(include_str!("sqlite/sql/floor.sql"), [], |row| row.get(0))
}

fn save(transaction: &Transaction<'_>, name: &LockName, row: &Row) -> rusqlite::Result<()> {
    let Row { token, holder, owner, until_ms, lease_ms, line } = row;
    let mut statement = transaction.prepare(include_str!("sqlite/sql/save.sql"))?;
    statement.execute(params![name.as_str(), token, holder, owner, until_ms, lease_ms, line])?;
    Ok(())
}

fn prune(transaction: &Transaction<'_>, now: ServerTime) -> rusqlite::Result<()> {
    let before = now.as_millis() - millis(IDLE_KEPT);
    transaction.execute(include_str!("sqlite/sql/raise_floor.sql"), [before])?;
    transaction.execute(include_str!("sqlite/sql/prune.sql"), [before])?;
    Ok(())
}

/// Runs work on a thread that may block.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, BackendError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| BackendError::Unavailable(error.into()))
}

#[async_trait]
impl LockBackend for SqliteBackend {
    fn name(&self) -> &'static str {
        "sqlite"
    }

    async fn acquire(&self, ask: &Ask<'_>) -> Result<Turn, BackendError> {
        let Ask { id, lease, if_held, .. } = *ask;
        let (name, owner) = (ask.name.clone(), ask.owner.to_owned());
        let verb = move |record: &mut Record, now| {
            record.acquire(&Ask { name: &name, id, owner: &owner, lease, if_held }, now)
        };
        self.change(ask.name, verb).await
    }

    async fn renew(
        &self,
        name: &LockName,
        id: RequestId,
        lease: Duration,
    ) -> Result<Renewal, BackendError> {
        self.change(name, move |record, now| record.renew(id, lease, now)).await
    }

    async fn release(
        &self,
        name: &LockName,
        id: RequestId,
        _earlier: EarlierCalls,
    ) -> Result<Release, BackendError> {
        self.change(name, move |record, now| record.release(id, now)).await
    }

    async fn inspect(&self, name: &LockName) -> Result<LockState, BackendError> {
        self.change(name, |record, now| record.inspect(now)).await
    }

    fn wakeups(&self) -> &Wakeups {
        &self.wakeups
    }
}

impl fmt::Debug for SqliteBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteBackend").field("path", &self.file.path).finish_non_exhaustive()
    }
}
