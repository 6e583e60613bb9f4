//! Keeps locks in a PostgreSQL database.
//!
//! A verb reads the row of the lock, applies the rule here, and writes the row if its version has not changed; otherwise it starts over. No
//! transaction stays open between the two, so a process that is paused in the middle does not block other processes.

mod listen;

use self::listen::Listening;
use crate::backend::{
    Ask, BackendError, EarlierCalls, LockBackend, LockState, Release, Renewal, RequestId, Turn,
};
use crate::name::LockName;
use crate::record::Record;
use crate::row::{CALLS_PER_PRUNE, IDLE_KEPT, Row};
use crate::server_clock::{ServerTime, millis};
use crate::wakeups::Wakeups;
use async_trait::async_trait;
use deadpool_postgres::{
    Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod, Runtime,
};
use rewheel::{Backoff, Jitter, Random};
use rewheel_core::store::ClockOffset;
use rewheel_stores::{Pooler, PostgresOptions};
use std::error::Error as _;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Config, Error};

/// The schema name in the SQL files.
const SCHEMA: &str = "rewheel";

/// Maximum time to open a connection, and to wait for a free one: less than a renewal of the default lease may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// Maximum number of tries of a verb whose row keeps changing. Each time another request has made progress.
const TRIES_MAX: u32 = 200;

/// The waits between them.
const CONFLICT: Backoff = Backoff::exponential(Duration::from_millis(1))
    .max(Duration::from_millis(20))
    .jitter(Jitter::FULL);

/// Locks in a PostgreSQL database. Clones share the connections.
///
/// The tables `locks` and `lock_floor` are in the schema of the URL (`?schema=`, default `rewheel`), which may be that of a store of jobs. A user that may
/// not create them can use them once they exist.
#[derive(Clone)]
pub struct PostgresBackend {
    shared: Arc<Shared>,
}

struct Shared {
    pool: Pool,
    address: String,
    statements: Statements,
    channel: String,
    clock: ClockOffset,
    random: Random,
    calls: AtomicU64,
    wakeups: Wakeups,
    /// None behind a pooler that shares connections: a notification would reach another client.
    _listening: Option<Listening>,
}

/// The statements, with the name of the schema.
struct Statements {
    load: String,
    insert: String,
    update: String,
    prune: String,
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

impl PostgresBackend {
    /// Opens the locks of a database, and creates the tables if they do not exist.
    ///
    /// # Errors
    /// Says what is wrong with the server, and what to do.
    pub async fn open(options: PostgresOptions) -> Result<PostgresBackend, BackendError> {
        let mut server = options.server.clone();
        if server.get_application_name().is_none() {
            server.application_name("rewheel-lock");
        }
        server.connect_timeout(CONNECT_TIMEOUT);
        // A server that disappears without closing its connections is noticed within seconds.
        server.keepalives_idle(Duration::from_secs(10)).keepalives_interval(Duration::from_secs(5));
        server.keepalives_retries(3);
        let tls = options.tls().map_err(|error| BackendError::Broken {
            what: error.to_string(),
            source: Some(error.into()),
        })?;
        let recycling_method = RecyclingMethod::Fast;
        let manager =
            Manager::from_config(server.clone(), tls.clone(), ManagerConfig { recycling_method });
        let pool = Pool::builder(manager)
            .max_size(options.pool_max)
            .runtime(Runtime::Tokio1)
            .wait_timeout(Some(CONNECT_TIMEOUT))
            .create_timeout(Some(CONNECT_TIMEOUT))
            .build()
            .map_err(|error| BackendError::Unavailable(error.into()))?;
        // Names have at most 63 bytes. If two schemas share a channel, a process ignores the messages of the other schema.
        let channel = format!("{:.57}_locks", options.schema);
        let wakeups = Wakeups::default();
        let direct = options.pooler == Pooler::None;
        let address = address(&server);
        prepare(&pool, &address, &options.schema).await?;
        let listening =
            direct.then(|| Listening::start(server, tls, channel.clone(), wakeups.clone()));
        let shared = Shared {
            pool,
            address,
            statements: Statements::of(&options.schema),
            channel,
            clock: options.clock,
            random: Random::thread(),
            calls: AtomicU64::new(0),
            wakeups,
            _listening: listening,
        };
        Ok(PostgresBackend { shared: Arc::new(shared) })
    }

    /// Applies a verb to a lock. `wakes` returns the request to wake after it.
    async fn change<T>(
        &self,
        name: &LockName,
        write: Write,
        verb: impl Fn(&mut Record, ServerTime) -> T,
        wakes: impl Fn(&T) -> Option<RequestId>,
    ) -> Result<T, BackendError> {
        let Shared { pool, address, clock, random, calls, .. } = &*self.shared;
        let client = pool.get().await.map_err(|error| judge_pool(error, address))?;
        let client = Unfinished(Some(client));
        if calls.fetch_add(1, Ordering::Relaxed) % CALLS_PER_PRUNE == CALLS_PER_PRUNE - 1 {
            self.prune(client.get()).await;
        }
        for tries in 1..=TRIES_MAX {
            let Loaded { now, mut record, guard } = self.load(client.get(), name, clock).await?;
            let before = record.clone();
            let answer = verb(&mut record, now);
            let is_unchanged = record == before && write == Write::IfChanged;
            let is_done = is_unchanged || {
                let (row, next) = (Row::write(&record, now), wakes(&answer));
                self.save(client.get(), name, &row, &guard, next).await?
            };
            if is_done {
                client.finish();
                return Ok(answer);
            }
            tokio::time::sleep(CONFLICT.delay(tries, random)).await;
        }
        Err(BackendError::Unavailable("other requests changed the same lock each time".into()))
    }

    async fn load(
        &self,
        client: &Object,
        name: &LockName,
        clock: &ClockOffset,
    ) -> Result<Loaded, BackendError> {
        let Shared { statements, address, .. } = &*self.shared;
        let failed = |error| judge(&error, address);
        let params: [(&(dyn ToSql + Sync), Type); 1] = [(&name.as_str(), Type::TEXT)];
        let row = client.query_typed_one(&statements.load, &params).await.map_err(failed)?;
        let now = ServerTime::from_micros(row.try_get(0).map_err(failed)?).moved(clock);
        let floor: i64 = row.try_get(1).map_err(failed)?;
        let Some(version) = row.try_get::<_, Option<i64>>(2).map_err(failed)? else {
            let record = Record { token: floor, ..Record::default() };
            return Ok(Loaded { now, record, guard: Guard::Floor(floor) });
        };
        let stored = Row {
            token: row.try_get(3).map_err(failed)?,
            holder: row.try_get(4).map_err(failed)?,
            owner: row.try_get(5).map_err(failed)?,
            until_ms: row.try_get(6).map_err(failed)?,
            lease_ms: row.try_get(7).map_err(failed)?,
            line: row.try_get(8).map_err(failed)?,
        };
        Ok(Loaded { now, record: stored.read()?, guard: Guard::Version(version) })
    }

    /// Writes a row. Returns whether it was still what was read.
    async fn save(
        &self,
        client: &Object,
        name: &LockName,
        row: &Row,
        guard: &Guard,
        next: Option<RequestId>,
    ) -> Result<bool, BackendError> {
        let Shared { statements, channel, address, .. } = &*self.shared;
        let Row { token, holder, owner, until_ms, lease_ms, line } = row;
        let (name, next) = (name.as_str(), next.map(|id| id.to_string()).unwrap_or_default());
        let (sql, expected) = match guard {
            Guard::Floor(floor) => (&statements.insert, floor),
            Guard::Version(version) => (&statements.update, version),
        };
        let mut params: Vec<(&(dyn ToSql + Sync), Type)> = vec![
            (&name, Type::TEXT),
            (token, Type::INT8),
            (holder, Type::TEXT),
            (owner, Type::TEXT),
            (until_ms, Type::INT8),
            (lease_ms, Type::INT8),
            (line, Type::TEXT),
            (expected, Type::INT8),
        ];
        if let Guard::Version(_) = guard {
            params.extend::<[(&(dyn ToSql + Sync), Type); 2]>([
                (channel, Type::TEXT),
                (&next, Type::TEXT),
            ]);
        }
        let saved =
            client.query_typed(sql, &params).await.map_err(|error| judge(&error, address))?;
        Ok(!saved.is_empty())
    }

    /// Deletes old rows. The next prune repeats what fails.
    async fn prune(&self, client: &Object) {
        let Shared { statements, address, clock, .. } = &*self.shared;
        let params: [(&(dyn ToSql + Sync), Type); 2] =
            [(&millis(IDLE_KEPT), Type::INT8), (&clock.as_millis(), Type::INT8)];
        if let Err(error) = client.query_typed(&statements.prune, &params).await {
            tracing::debug!(error = %judge(&error, address), "failed to delete old locks");
        }
    }
}

impl Statements {
    fn of(schema: &str) -> Statements {
        let of = |sql: &str| sql.replace(SCHEMA, schema);
        Statements {
            load: of(include_str!("postgres/sql/load.sql")),
            insert: of(include_str!("postgres/sql/insert.sql")),
            update: of(include_str!("postgres/sql/update.sql")),
            prune: of(include_str!("postgres/sql/prune.sql")),
        }
    }
}

/// A connection in use. If the call is cancelled, the connection is closed: it may be one that does not answer any more.
struct Unfinished(Option<Object>);

impl Unfinished {
    fn get(&self) -> &Object {
        self.0.as_ref().expect("only `finish` takes it")
    }

    /// Gives the connection back to the pool.
    fn finish(mut self) {
        drop(self.0.take());
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        drop(self.0.take().map(Object::take));
    }
}

/// Creates the tables.
async fn prepare(pool: &Pool, address: &str, schema: &str) -> Result<(), BackendError> {
    /// Any number that other programs do not use.
    const ADVISORY: i64 = 0x7277_6c6f_636b;
    let mut client = pool.get().await.map_err(|error| judge_pool(error, address))?;
    let failed = |error| judge(&error, address);
    let prepared = include_str!("postgres/sql/prepared.sql").replace(SCHEMA, schema);
    let row = client.query_typed_one(&prepared, &[]).await.map_err(failed)?;
    if row.try_get(0).map_err(failed)? {
        return Ok(());
    }
    let transaction = client.transaction().await.map_err(failed)?;
    let params: [(&(dyn ToSql + Sync), Type); 1] = [(&ADVISORY, Type::INT8)];
    transaction.query_typed("SELECT pg_advisory_xact_lock($1)", &params).await.map_err(failed)?;
    let sql = include_str!("postgres/sql/prepare.sql").replace(SCHEMA, schema);
    transaction.batch_execute(&sql).await.map_err(failed)?;
    transaction.commit().await.map_err(failed)
}

/// Hosts and ports, for errors.
fn address(server: &Config) -> String {
    let ports = server.get_ports();
    let hosts = server.get_hosts().iter().enumerate().map(|(index, host)| {
        let port = ports.get(index).or(ports.first()).copied().unwrap_or(5_432);
        match host {
            tokio_postgres::config::Host::Tcp(name) => format!("{name}:{port}"),
            #[cfg(unix)]
            tokio_postgres::config::Host::Unix(path) => path.display().to_string(),
        }
    });
    hosts.collect::<Vec<_>>().join(",")
}

fn judge_pool(error: PoolError, address: &str) -> BackendError {
    match error {
        PoolError::Backend(error) => judge(&error, address),
        PoolError::Timeout(_)
        | PoolError::Closed
        | PoolError::NoRuntimeSpecified
        | PoolError::PostCreateHook(_) => {
            let advice =
                "check that the server is reachable, and raise `pool_max` if many locks are in use";
            let text = format!("got no connection to PostgreSQL at {address} in time: {advice}");
            BackendError::Unavailable(text.into())
        }
    }
}

fn judge(error: &Error, address: &str) -> BackendError {
    let text = error_text(error);
    let advice = match error.code().map(|state| state.code()) {
        Some(code) if code.starts_with("28") => {
            "check user and password in the URL, and pg_hba.conf"
        }
        Some("3D000") => "create the database, or name another in the URL",
        Some("42501") => {
            "permission denied: allow the user to create the schema and its tables, or to read and write `locks` and `lock_floor`"
        }
        Some(code) if code.starts_with("42") || code.starts_with("3F") => {
            "check that nothing else has changed the tables `locks` and `lock_floor`"
        }
        _ => {
            let text = format!("PostgreSQL at {address}: {text}");
            return BackendError::Unavailable(text.into());
        }
    };
    BackendError::Broken {
        what: format!("PostgreSQL at {address}: {text}: {advice}"),
        source: None,
    }
}

/// Returns the text of an error with its causes. The text of the driver's own error is only "db error".
fn error_text(error: &Error) -> String {
    if let Some(said) = error.as_db_error() {
        return format!("{} (SQLSTATE {})", said.message(), said.code().code());
    }
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}

#[async_trait]
impl LockBackend for PostgresBackend {
    fn name(&self) -> &'static str {
        "postgres"
    }

    async fn acquire(&self, ask: &Ask<'_>) -> Result<Turn, BackendError> {
        self.change(ask.name, Write::IfChanged, |record, now| record.acquire(ask, now), |_| None)
            .await
    }

    async fn renew(
        &self,
        name: &LockName,
        id: RequestId,
        lease: Duration,
    ) -> Result<Renewal, BackendError> {
        self.change(name, Write::IfChanged, |record, now| record.renew(id, lease, now), |_| None)
            .await
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
        let verb = |record: &mut Record, now| record.release(id, now);
        self.change(name, write, verb, |released| released.next).await
    }

    async fn inspect(&self, name: &LockName) -> Result<LockState, BackendError> {
        self.change(name, Write::IfChanged, |record, now| record.inspect(now), |_| None).await
    }

    fn wakeups(&self) -> &Wakeups {
        &self.shared.wakeups
    }
}

impl fmt::Debug for PostgresBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = &self.shared.address;
        f.debug_struct("PostgresBackend").field("address", address).finish_non_exhaustive()
    }
}
