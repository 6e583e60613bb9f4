//! A private Redis server for one test, which may be killed.

use rewheel::Random;
use rewheel_core::store::Visit;
use rewheel_core::store::{ClockOffset, KindStore, LeaseStore, StoreResult};
use rewheel_core::{
    Actor, Format, HolderId, JobId, KindName, Lane, NewHolder, NewJob, NewKind, Priority, Role,
    Shard, Timestamp,
};
use rewheel_stores::{RedisOptions, RedisStore};
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// Settings with which nothing that was answered is lost.
pub(super) const SAFE: &str = "--appendonly yes --appendfsync always";

/// The programs of Redis and of Valkey.
const PROGRAMS: [&str; 2] = ["redis-server", "valkey-server"];

/// A server with its own data.
pub(super) struct Server {
    process: Option<Child>,
    folder: TempDir,
    port: u16,
    settings: String,
}

impl Server {
    /// Starts a server with these settings.
    pub(super) async fn start(settings: &str) -> Server {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        drop(listener);
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut server = Server { process: None, folder, port, settings: settings.to_owned() };
        server.restart().await;
        server
    }

    /// Starts the server again, with the data that it has written.
    pub(super) async fn restart(&mut self) {
        self.process = PROGRAMS.iter().find_map(|program| self.spawn(program, self.folder.path()));
        assert!(self.process.is_some(), "redis-server is not installed: run `cargo xtask test`");
        for _ in 0..1_500 {
            if self.ping().is_some() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("the server does not answer");
    }

    /// Starts the server again with additional settings, from its snapshot, and does not wait until it has read it.
    pub(super) fn begin_restart(&mut self, settings: &str) {
        // The file that is appended to would be read instead.
        self.settings = settings.to_owned();
        self.process = PROGRAMS.iter().find_map(|program| self.spawn(program, self.folder.path()));
        assert!(self.process.is_some(), "redis-server is not installed: run `cargo xtask test`");
    }

    fn spawn(&self, program: &str, folder: &Path) -> Option<Child> {
        let mut command = Command::new(program);
        command.args(["--port", &self.port.to_string(), "--bind", "127.0.0.1", "--save", ""]);
        command.args(self.settings.split(' ').filter(|word| !word.is_empty()));
        command.current_dir(folder).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().ok()
    }

    /// Returns an answer once the server has loaded its data.
    fn ping(&self) -> Option<String> {
        let mut connection = redis::Client::open(self.url()).ok()?.get_connection().ok()?;
        redis::cmd("PING").query(&mut connection).ok()
    }

    /// Kills the server, as a crash would.
    pub(super) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().expect("it runs");
            process.wait().expect("it was started here");
        }
    }

    pub(super) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// The folder with its data.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Runs a command by hand.
    pub(super) fn command<T: redis::FromRedisValue>(&self, words: &[&str]) -> T {
        let client = redis::Client::open(self.url()).expect("a URL");
        let mut connection = client.get_connection().expect("the server answers");
        let mut command = redis::cmd(words[0]);
        command.arg(&words[1..]);
        command.query(&mut connection).expect("the command works")
    }

    /// Opens a store with one kind.
    pub(super) async fn open(&self) -> StoreResult<RedisStore> {
        let store = self.open_with(ClockOffset::default()).await?;
        let new = NewKind {
            name: kind(),
            settings: "{}".to_owned(),
            takeovers_max: 3,
            on_dead: Default::default(),
        };
        store.put_kinds(&[new], &Actor::new("test")).await?;
        Ok(store)
    }

    pub(super) async fn open_with(&self, clock: ClockOffset) -> StoreResult<RedisStore> {
        let mut options = RedisOptions::parse(&self.url()).expect("a URL");
        options.clock = clock;
        RedisStore::open_with(options).await
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

pub(crate) fn kind() -> KindName {
    KindName::parse("crash").expect("a kind")
}

pub(crate) fn jobs(random: &Random, count: usize, payload_bytes: usize) -> Vec<NewJob> {
    let now = Timestamp::from_millis(1_700_000_000_000);
    let job = |_| NewJob::new(JobId::new(now, random), kind(), vec![7; payload_bytes]);
    (0..count).map(job).collect()
}

/// Registers a holder.
pub(super) async fn holder(store: &RedisStore, random: &Random) -> HolderId {
    let id = HolderId::new(Timestamp::from_millis(0), random);
    let (name, lease_ttl) = ("test".to_owned(), Duration::from_secs(60));
    let new = NewHolder { id, name, role: Role::Engine, lease_ttl, format: Format::CURRENT };
    store.join(&new).await.expect("a new holder");
    id
}

/// A visit of the lane of [`jobs`].
pub(super) fn visit(limit: usize) -> Visit {
    Visit {
        lane: Lane { kind: kind(), tenant: None, priority: Priority::DEFAULT, shard: Shard::NONE },
        limit,
        attempt_timeout: Duration::from_secs(30),
        attempt_timeout_ceiling: Duration::from_secs(3_600),
        grace: Duration::from_secs(5),
    }
}
