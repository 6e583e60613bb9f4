//! Keeps jobs in a Redis or Valkey server that many nodes share.
//!
//! Every verb is one script, which the server runs alone: no other command is between its reads and its writes. A script that fails keeps
//! what it wrote before, so each script checks everything first. Verbs whose rules are pure functions of `rewheel-core` read first, apply the rule here,
//! and write with a script that does nothing if the values have changed meanwhile. All times are the server's.

mod error;
mod options;
mod servers;
mod pack;
mod script;
mod reply;
mod values;
mod connection;
mod wake;
mod verbs;
mod store_traits;

pub use self::options::{RedisOptions, RedisOptionsError};

use self::connection::{Connections, Use};
use self::error::broken;
use self::pack::Args;
use self::reply::Reply;
use self::script::Script;
use self::servers::Servers;
use self::wake::Hearing;
use crate::groups::CheckedTo;
use crate::wakeup::Wakeup;
use rewheel_core::HolderId;
use rewheel_core::store::{StoreError, StoreResult};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// The same limit as SQLite's. A payload should refer to data rather than contain it.
const PAYLOAD_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Jobs that one script handles at most, so that it keeps other clients waiting for less than 5 ms: one job takes about 10 µs.
const SCRIPT_JOBS_MAX: usize = 250;

/// The same for scripts that read each job, change it and write every index that refers to it: about 80 µs.
const SCRIPT_CHANGES_MAX: usize = 40;

/// Maximum number of tries of a verb whose values keep changing between its read and its write.
const TRIES_MAX: usize = 100;

/// A store in a Redis or Valkey server, or in one slot of a cluster.
///
/// Clones share it. Several processes may open the same server and prefix.
///
/// ```no_run
/// use rewheel_core::store::ReadStore;
/// use rewheel_stores::RedisStore;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = RedisStore::open("redis://localhost:6379/0?prefix=shop").await?;
/// assert_eq!(store.books().await?.missing(), 0);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct RedisStore {
    shared: Arc<Shared>,
}

struct Shared {
    connections: Connections,
    /// The start of all keys, with the hash tag.
    prefix: String,
    /// A sender id, so that a node ignores its own reports.
    me: Vec<u8>,
    woken: Wakeup,
    hearing: Hearing,
    /// How often it was asked for changes while no connection listened for them.
    unheard: AtomicU64,
    groups_checked: CheckedTo,
}

impl RedisStore {
    /// Opens the store that a URL names.
    ///
    /// # Errors
    /// Says what is wrong with the URL, the server or its settings, and what to do. A server that may evict keys is refused: it would
    /// delete jobs when its memory is full.
    pub async fn open(url: &str) -> StoreResult<RedisStore> {
        let options = RedisOptions::parse(url);
        let options = options.map_err(|error| broken(error.to_string(), None))?;
        RedisStore::open_with(options).await
    }

    /// Opens a store with the given options.
    ///
    /// # Errors
    /// As [`RedisStore::open`].
    pub async fn open_with(options: RedisOptions) -> StoreResult<RedisStore> {
        let prefix = format!("{{{}}}:", options.prefix);
        let servers = Arc::new(Servers::new(&options, &prefix)?);
        let me = rewheel::Random::thread().next().to_be_bytes().to_vec();
        let woken = Wakeup::default();
        let connections =
            Connections::new(Arc::clone(&servers), prefix.clone(), options.clock, options.timeout);
        verbs::settings::check(&connections).await?;
        let losses = Arc::clone(&connections.losses);
        let channel = format!("{prefix}wake");
        let hearing = Hearing::start(servers, channel, me.clone(), woken.clone(), losses);
        let shared = Shared {
            connections,
            prefix,
            me,
            woken,
            hearing,
            unheard: AtomicU64::new(0),
            groups_checked: CheckedTo::default(),
        };
        Ok(RedisStore { shared: Arc::new(shared) })
    }

    /// Runs a script.
    async fn run(&self, script: &Script, args: Args) -> StoreResult<Reply> {
        self.run_on(Use::Work, script, args).await
    }

    /// Runs a script that only reads, without delaying work.
    async fn read(&self, script: &Script, args: Args) -> StoreResult<Reply> {
        self.run_on(Use::Reading, script, args).await
    }

    async fn run_on(&self, place: Use, script: &Script, args: Args) -> StoreResult<Reply> {
        let connections = &self.shared.connections;
        let answer = connections.run(script, place, args).await?;
        answer.map(Reply).map_err(|error| connections.judge(error, script))
    }

    /// Runs a script that only a living holder may run.
    async fn run_alive(
        &self,
        place: Use,
        script: &Script,
        args: Args,
        holder: HolderId,
    ) -> StoreResult<Reply> {
        let connections = &self.shared.connections;
        let answer = connections.run(script, place, args).await?;
        answer.map(Reply).map_err(|error| match error.code() {
            Some("DEAD") => StoreError::HolderDead(holder),
            _ => connections.judge(error, script),
        })
    }

    /// Wakes the tasks of this node. The script has told the other nodes.
    fn wake(&self, lanes: Reply) -> StoreResult<()> {
        if lanes.is_missing() {
            return Ok(());
        }
        let lanes: Vec<Vec<u8>> =
            lanes.list()?.into_iter().map(Reply::must).collect::<StoreResult<_>>()?;
        self.shared.woken.wake(wake::changed(lanes.iter().map(Vec::as_slice)));
        Ok(())
    }
}

/// The error of a verb that was overtaken each time it tried to write.
fn overtaken() -> StoreError {
    StoreError::Unavailable("other nodes changed the same values each time".into())
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore").field("prefix", &self.shared.prefix).finish_non_exhaustive()
    }
}
