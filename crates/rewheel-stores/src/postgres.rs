//! Keeps jobs in a PostgreSQL database that many nodes share.
//!
//! Every verb is one transaction, and most verbs are one statement. A pool of connections does the work, one more connection is reserved
//! for heartbeats, and one listens for changes by other nodes. All times are the database server's.

mod error;
mod options;
mod statements;
mod session;
mod tls;
mod hosts;
mod epoch;
mod connections;
mod migrate;
mod floors;
mod look_floor;
mod lanes;
mod row_address;
mod row;
mod bins;
mod vacuum;
mod job_columns;
mod fleet;
mod verbs;
mod store_traits;
mod caller_transaction;

pub use self::options::{OptionsError, Pooler, PostgresOptions, Verify};

use self::bins::Bins;
use self::connections::Connections;
use self::epoch::Epochs;
use self::error::{Stage, broken, judge, judge_pool};
use self::fleet::Fleet;
use self::hosts::{Hosts, Primary};
use self::lanes::Lanes;
use self::look_floor::LookFloor;
use self::row_address::Places;
use self::session::Session;
use self::statements::Sql;
use self::vacuum::Vacuum;
use self::verbs::group_checks::ChecksFrom;
use self::verbs::groups::SeenTurn;
use crate::acknowledged::Acknowledged;
use crate::clock;
use crate::groups::CheckedTo;
use crate::open_mode::Tables;
use crate::wakeup::Wakeup;
use deadpool_postgres::{Manager, ManagerConfig, Object, Pool, RecyclingMethod, Runtime};
use rewheel_core::store::{ClockOffset, Sample, StoreChange, StoreError, StoreResult};
use std::collections::HashMap;
use std::fmt;
use std::fmt::Write;
use std::ops::Deref;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio_postgres::Config;
use uuid::Uuid;

/// The schema name in the SQL files.
const SCHEMA: &str = "rewheel";

/// Maximum time to open a connection: a heartbeat must get through within a third of its lease.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// Begins the transaction that expires a holder. A node that is leasing jobs to that holder finishes within milliseconds, or is paused in
/// the middle of it. The wait is short, because the caller must send its own heartbeats.
const HASTY: &str = "BEGIN; SET LOCAL lock_timeout = '250ms'";

/// Begins a read-only transaction with one consistent snapshot.
const SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// Maximum time that the server waits for the client within a transaction, and for the client to read a response. Both normally take
/// microseconds. A process that is paused in the middle keeps its locks until then, and those keep other nodes from taking over its jobs.
const STOPPED_MAX: Duration = Duration::from_secs(3);

/// Settings of every session. With them each statement has only one plan, whatever the table statistics say. Statistics of a table whose
/// rows come and go are wrong most of the time.
const GUARDS: [(&str, &str); 8] = [
    ("jit", "off"),
    ("plan_cache_mode", "force_generic_plan"),
    ("enable_seqscan", "off"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
    ("enable_bitmapscan", "off"),
    ("enable_sort", "off"),
    ("enable_material", "off"),
];

/// A store in a PostgreSQL database.
///
/// Clones share it. Several processes may open the same database and schema.
///
/// ```no_run
/// use rewheel_core::store::ReadStore;
/// use rewheel_stores::PostgresStore;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = PostgresStore::open("postgres://shop@localhost/shop").await?;
/// assert_eq!(store.books().await?.missing(), 0);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct PostgresStore {
    shared: Arc<Shared>,
}

struct Shared {
    work: Pool,
    /// One connection that only heartbeats use, so that they never wait behind other work.
    life: Pool,
    /// The hosts of the server.
    hosts: Arc<Hosts>,
    epochs: Arc<Epochs>,
    /// The epoch that the caches below belong to.
    cached_in: AtomicI64,
    schema: String,
    /// Statements rewritten for another schema name, by the address of their text in this program.
    texts: RwLock<HashMap<usize, Arc<str>>>,
    /// Whether statements are prepared once per connection.
    prepares: bool,
    /// The SQL that begins a transaction.
    begin: String,
    /// The SQL that begins a read-only transaction with one snapshot.
    begin_snapshot: String,
    /// As `begin_snapshot`, for statements that may take minutes.
    begin_long_snapshot: String,
    /// The SQL that begins a transaction with a short lock timeout.
    begin_hasty: String,
    /// As `begin`, for statements that may take minutes.
    begin_long: String,
    lanes: Lanes,
    /// Up to when a sweep has found no overdue jobs.
    overdue: LookFloor,
    /// Up to when no deadline of a live job has passed.
    deadlines: LookFloor,
    places: Places,
    acknowledged: Acknowledged,
    /// An id of this process, to tell its counts from those of others.
    node: Uuid,
    groups_checked: CheckedTo,
    group_checks: ChecksFrom,
    turn: SeenTurn,
    bins: Bins,
    vacuum: Option<Vacuum>,
    listed_min: usize,
    woken: Wakeup,
    /// How often it was asked for changes while no connection listened for them.
    unheard: AtomicU64,
    fleet: Option<Fleet>,
    clock: ClockOffset,
}

impl PostgresStore {
    /// Opens the store that a URL names, and creates its tables if they do not exist.
    ///
    /// # Errors
    /// Says what is wrong with the URL, the server or the tables, and what to do.
    pub async fn open(url: &str) -> StoreResult<PostgresStore> {
        let options = PostgresOptions::parse(url);
        let options = options.map_err(|error| broken(error.to_string(), None))?;
        PostgresStore::open_with(options).await
    }

    /// Opens a store with the given options.
    ///
    /// # Errors
    /// Says what is wrong with the server or the tables, and what to do.
    pub async fn open_with(options: PostgresOptions) -> StoreResult<PostgresStore> {
        PostgresStore::open_tables(options, Tables::Migrate).await
    }

    pub(crate) async fn open_tables(
        options: PostgresOptions,
        tables: Tables,
    ) -> StoreResult<PostgresStore> {
        let tls = tls::connector(&options.verify)?;
        let direct = options.pooler == Pooler::None;
        let config = server(&options, direct, false);
        let primary = Primary::of(&config);
        let hosts = Arc::new(Hosts::new(&config, tls.clone(), primary.clone()));
        let epochs = Arc::new(Epochs::new(&options.schema, primary.clone()));
        let make = || Connections::new(Arc::clone(&hosts), Arc::clone(&epochs));
        let work = pool(&config, make(), options.pool_max, &options)?;
        let life = pool(&config, make(), 1, &options)?;
        migrate::open(&work, &hosts, &epochs, &options.schema, tables).await?;
        let woken = Wakeup::default();
        let fleet = direct.then(|| {
            let listens = Hosts::new(&server(&options, true, true), tls, primary);
            Fleet::listen(listens, &options.schema, woken.clone())
        });
        let vacuum = options.vacuumed_after.map(|after| {
            Vacuum::start(work.clone(), &options.schema, after, options.timer.clone())
        });
        let shared = Shared {
            work,
            life,
            hosts,
            cached_in: AtomicI64::new(epochs.current()),
            epochs,
            texts: RwLock::default(),
            prepares: direct,
            begin: begin("BEGIN", &options),
            begin_snapshot: begin(SNAPSHOT, &options),
            begin_long_snapshot: begin_long(SNAPSHOT, &options),
            begin_hasty: begin(HASTY, &options),
            begin_long: begin_long("BEGIN", &options),
            lanes: Lanes::new(options.timer.clone()),
            overdue: LookFloor::new(options.timer.clone()),
            deadlines: LookFloor::new(options.timer.clone()),
            places: Places::default(),
            acknowledged: Acknowledged::default(),
            node: random_id(),
            groups_checked: CheckedTo::default(),
            group_checks: ChecksFrom::new(options.timer.clone()),
            turn: SeenTurn::default(),
            bins: Bins::new(options.binned_min),
            vacuum,
            listed_min: options.listed_min,
            woken,
            unheard: AtomicU64::new(0),
            fleet,
            clock: options.clock,
            schema: options.schema,
        };
        Ok(PostgresStore { shared: Arc::new(shared) })
    }

    /// Returns a session for single statements that only read.
    async fn read(&self) -> StoreResult<Session<'_>> {
        self.session(&self.shared.work, false, Stage::Open).await
    }

    /// Returns a session for single statements that each commit.
    async fn write(&self) -> StoreResult<Session<'_>> {
        self.session(&self.shared.work, false, Stage::Committing).await
    }

    /// Returns a session for single statements that each commit, on the heartbeat's connection.
    async fn live(&self) -> StoreResult<Session<'_>> {
        self.session(&self.shared.life, false, Stage::Committing).await
    }

    /// Returns a session whose statements are one transaction.
    async fn transaction(&self) -> StoreResult<Session<'_>> {
        self.session(&self.shared.work, true, Stage::Open).await
    }

    /// A session whose statements see one moment.
    async fn snapshot(&self) -> StoreResult<Session<'_>> {
        let connection = self.connection(&self.shared.work).await?;
        let begin = Some(self.shared.begin_snapshot.as_str());
        Ok(Session::ours(&self.shared, connection, begin, Stage::Open))
    }

    /// A session whose statements see one moment, and may take minutes.
    async fn long_snapshot(&self) -> StoreResult<Session<'_>> {
        let connection = self.connection(&self.shared.work).await?;
        let begin = Some(self.shared.begin_long_snapshot.as_str());
        Ok(Session::ours(&self.shared, connection, begin, Stage::Open))
    }

    /// A session whose statements are one transaction, and may take minutes.
    async fn long_transaction(&self) -> StoreResult<Session<'_>> {
        let connection = self.connection(&self.shared.work).await?;
        let begin = Some(self.shared.begin_long.as_str());
        Ok(Session::ours(&self.shared, connection, begin, Stage::Open))
    }

    /// A session whose statements are one transaction, and wait for no lock for long.
    async fn hasty(&self) -> StoreResult<Session<'_>> {
        let connection = self.connection(&self.shared.work).await?;
        let begin = Some(self.shared.begin_hasty.as_str());
        Ok(Session::ours(&self.shared, connection, begin, Stage::Open))
    }

    async fn connection(&self, pool: &Pool) -> StoreResult<Object> {
        let shared = &self.shared;
        let connection = pool.get().await.map_err(|error| judge_pool(error, &shared.hosts))?;
        if !shared.epochs.is_doubtful() {
            self.keep_up();
            return Ok(connection);
        }
        let mut checking = Checking(Some(connection));
        if let Some(connection) = &checking.0 {
            let checked = shared.epochs.check(connection).await;
            checked.map_err(|unusable| judge(unusable.into(), Stage::Open))?;
        }
        self.keep_up();
        checking.0.take().ok_or(StoreError::Closed)
    }

    /// Drops everything that was cached in an earlier epoch: numbers of lanes, row positions, and times up to which nothing was found.
    fn keep_up(&self) {
        let (shared, epoch) = (&self.shared, self.shared.epochs.current());
        if shared.cached_in.swap(epoch, Ordering::AcqRel) == epoch {
            return;
        }
        shared.lanes.forget();
        shared.overdue.found();
        shared.deadlines.found();
        shared.places.forget();
        shared.groups_checked.set(None, 0, 0);
        shared.group_checks.forget();
        shared.acknowledged.ask(epoch, clock::now(&shared.clock));
        shared.woken.wake(StoreChange::Replaced);
    }

    async fn session(&self, pool: &Pool, together: bool, stage: Stage) -> StoreResult<Session<'_>> {
        let connection = self.connection(pool).await?;
        // Behind a pooler what a session was told holds for a transaction only.
        let begin = (together || !self.shared.prepares).then_some(self.shared.begin.as_str());
        Ok(Session::ours(&self.shared, connection, begin, stage))
    }

    /// Wakes all waiting tasks of all nodes.
    fn wake(&self, change: StoreChange) {
        if let Some(fleet) = &self.shared.fleet {
            fleet.tell(change.clone());
        }
        self.shared.woken.wake(change);
    }
}

/// A connection whose server is being checked. Unless the check succeeds, the connection is closed: the next verb would wait behind it.
struct Checking(Option<Object>);

impl Drop for Checking {
    fn drop(&mut self) {
        drop(self.0.take().map(Object::take));
    }
}

impl Shared {
    /// Returns a statement's text for the schema of this store.
    fn text(&self, sql: &'static Sql) -> Text {
        if self.schema == SCHEMA {
            return Text::Written(&sql.text);
        }
        let place = sql.text.as_ptr().addr();
        let known = self.texts.read().unwrap_or_else(PoisonError::into_inner).get(&place).cloned();
        Text::Made(known.unwrap_or_else(|| {
            let text: Arc<str> = Arc::from(for_schema(&sql.text, &self.schema));
            let mut texts = self.texts.write().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(texts.entry(place).or_insert(text))
        }))
    }
}

/// The text of a statement.
enum Text {
    Written(&'static str),
    Made(Arc<str>),
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Text::Written(text) => text,
            Text::Made(text) => text,
        }
    }
}

/// Creates an id that no other process has.
fn random_id() -> Uuid {
    let random = rewheel::Random::thread();
    Uuid::from_u64_pair(random.next(), random.next())
}

/// Rewrites a statement for another schema name.
fn for_schema(text: &str, schema: &str) -> String {
    text.replace("rewheel.", &format!("{schema}."))
}

/// Builds the SQL that begins a transaction. Behind a pooler it includes the session settings.
fn begin(begin: &str, options: &PostgresOptions) -> String {
    let mut text = begin.to_owned();
    if options.pooler == Pooler::Transaction {
        for (name, value) in settings(options, false) {
            let _ = write!(text, "; SET LOCAL {name} = '{value}'");
        }
    }
    text
}

/// Builds the SQL that begins a transaction for statements that may take as long as a count of jobs.
fn begin_long(how: &str, options: &PostgresOptions) -> String {
    let time_max = Sample::COUNT_MAX.max(options.statement_timeout).as_millis();
    format!("{}; SET LOCAL statement_timeout = '{time_max}'", begin(how, options))
}

/// Returns the settings of a session.
fn settings(options: &PostgresOptions, listens: bool) -> Vec<(&'static str, String)> {
    let mut settings: Vec<(&str, String)> =
        GUARDS.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    settings.push(("statement_timeout", options.statement_timeout.as_millis().to_string()));
    let stopped = STOPPED_MAX.min(options.statement_timeout).as_millis().to_string();
    settings.push(("idle_in_transaction_session_timeout", stopped));
    settings.push(("search_path", "pg_catalog".to_owned()));
    if listens {
        // Notifications need no durable commit.
        settings.push(("synchronous_commit", "off".to_owned()));
    }
    settings
}

fn server(options: &PostgresOptions, direct: bool, listens: bool) -> Config {
    let mut server = options.server.clone();
    if direct {
        let mut text = server.get_options().unwrap_or_default().to_owned();
        for (name, value) in settings(options, listens) {
            let _ = write!(text, " -c {name}={value}");
        }
        let stopped = STOPPED_MAX.min(options.statement_timeout).as_millis();
        let _ = write!(text, " -c tcp_user_timeout={stopped}");
        server.options(text.trim_start());
    }
    if server.get_application_name().is_none() {
        server.application_name("rewheel");
    }
    if server.get_connect_timeout().is_none() {
        server.connect_timeout(CONNECT_TIMEOUT);
    }
    // A server that disappears without closing its connections is noticed within seconds.
    server.keepalives_idle(Duration::from_secs(10)).keepalives_interval(Duration::from_secs(5));
    server.keepalives_retries(3).tcp_user_timeout(options.statement_timeout * 2);
    server
}

fn pool(
    server: &Config,
    connections: Connections,
    max: usize,
    options: &PostgresOptions,
) -> StoreResult<Pool> {
    let recycling_method = RecyclingMethod::Fast;
    let manager =
        Manager::from_connect(server.clone(), connections, ManagerConfig { recycling_method });
    Pool::builder(manager)
        .max_size(max)
        .runtime(Runtime::Tokio1)
        .wait_timeout(Some(options.statement_timeout))
        .create_timeout(Some(CONNECT_TIMEOUT))
        .build()
        .map_err(|error| broken(format!("failed to create the connection pool: {error}"), None))
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore").field("schema", &self.shared.schema).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::{PostgresOptions, begin, server};

    /// A process that is paused in the middle of a transaction must not keep its locks, or its holder could not be expired.
    #[test]
    fn no_transaction_stays_open_for_ever() {
        let told = |pooler: &str| {
            let url = format!("postgres://h/d?pooler={pooler}");
            let options = PostgresOptions::parse(&url).expect("a URL");
            let server = server(&options, pooler == "none", false);
            (begin("BEGIN", &options), server.get_options().unwrap_or_default().to_owned())
        };
        let (begin, _) = told("transaction");
        assert!(
            begin.contains("; SET LOCAL idle_in_transaction_session_timeout = '3000'"),
            "{begin}"
        );
        let (begin, options) = told("none");
        assert_eq!(begin, "BEGIN");
        assert!(options.contains("-c idle_in_transaction_session_timeout=3000"), "{options}");
        assert!(options.contains("-c tcp_user_timeout=3000"), "{options}");
    }
}
