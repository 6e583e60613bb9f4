//! The connections to the server. A broken one is replaced at the next call.

use super::error::{Stage, broken, ends_connection, judge, unreadable};
use super::pack::Args;
use super::script::{EPOCH, Effect, Script};
use super::servers::Servers;
use crate::acknowledged::Acknowledged;
use crate::clock;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Cmd, ErrorKind, RedisError, ServerErrorKind, Value, cmd};
use rewheel::{Clock, Moment};
use rewheel_core::store::{ClockOffset, StoreError, StoreResult};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::Mutex;

/// Maximum time to open a connection: a heartbeat must get through within a third of its lease.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// How often one call follows a slot to another node of a cluster.
const MOVES_MAX: usize = 5;

/// A call that is dropped after it has waited for this long counts as a failure of its connection: its path may be dead.
const SLOW: Duration = Duration::from_secs(1);

/// What a connection is for. Each has its own, so that a heartbeat never waits behind large payloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    Work,
    Life,
    Reading,
}

/// A connection, with the number of its opening.
type Open = (u64, MultiplexedConnection);

/// Counts how often the server was lost. A connection from before that is not used again: a call on it would fail without having been sent.
pub(super) type Losses = Arc<AtomicU64>;

/// The connections to the server that has the keys.
pub(super) struct Connections {
    pub(super) servers: Arc<Servers>,
    /// The start of all keys, with the hash tag.
    pub(super) prefix: String,
    pub(super) clock: ClockOffset,
    /// What a server that was restarted or replaced may have forgotten.
    pub(super) acknowledged: Acknowledged,
    /// The epoch of the last connection for work; negative before the first.
    epoch: AtomicI64,
    /// When the store was created, as of that connection; negative before the first.
    created: AtomicI64,
    timeout: Duration,
    timer: Clock,
    slots: [Mutex<Option<Open>>; 3],
    pub(super) losses: Losses,
    /// The number of losses when each connection was opened.
    losses_before: [AtomicU64; 3],
    opened: AtomicU64,
    closed: AtomicBool,
    /// Connections live on the runtime that opened the store: that of a caller may end before.
    runtime: Handle,
}

impl Connections {
    pub(super) fn new(
        servers: Arc<Servers>,
        prefix: String,
        clock: ClockOffset,
        timeout: Duration,
    ) -> Connections {
        Connections {
            servers,
            prefix,
            clock,
            acknowledged: Acknowledged::default(),
            epoch: AtomicI64::new(-1),
            created: AtomicI64::new(-1),
            timeout,
            timer: Clock::system(),
            slots: Default::default(),
            losses: Losses::default(),
            losses_before: Default::default(),
            opened: AtomicU64::new(0),
            closed: AtomicBool::new(false),
            runtime: Handle::current(),
        }
    }

    /// Ends all connections permanently.
    pub(super) async fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        for slot in &self.slots {
            drop(slot.lock().await.take());
        }
    }

    async fn open(&self, place: Use) -> StoreResult<Open> {
        let mut slot = self.slots[place as usize].lock().await;
        if self.closed.load(Ordering::SeqCst) {
            return Err(StoreError::Closed);
        }
        let (losses, before) =
            (self.losses.load(Ordering::Relaxed), &self.losses_before[place as usize]);
        if let Some(open) = &*slot
            && before.load(Ordering::Relaxed) == losses
        {
            return Ok(open.clone());
        }
        before.store(losses, Ordering::Relaxed);
        *slot = None;
        let (servers, config) = (
            Arc::clone(&self.servers),
            AsyncConnectionConfig::new()
                .set_connection_timeout(Some(CONNECT_TIMEOUT))
                .set_response_timeout(Some(self.timeout)),
        );
        let connecting = self.runtime.spawn(async move { servers.connect(&config).await });
        let mut connection = match connecting.await {
            Ok(connected) => connected?,
            Err(_) => return Err(StoreError::Closed),
        };
        if place == Use::Work {
            self.enter_epoch(&mut connection).await?;
        }
        let open = (self.opened.fetch_add(1, Ordering::Relaxed), connection);
        *slot = Some(open.clone());
        Ok(open)
    }

    /// Begins a new epoch if the server was restarted or replaced. Only connections for work give out fences.
    async fn enter_epoch(&self, connection: &mut MultiplexedConnection) -> StoreResult<()> {
        let stage = Stage::Sent(Effect::Reads);
        let info: Result<String, _> = cmd("INFO").arg("server").query_async(connection).await;
        let info = info.map_err(|error| self.refusal(error, stage))?;
        let server = info.lines().find_map(|line| line.strip_prefix("run_id:"));
        // A host that does not show it cannot be watched.
        let Some(server) = server else { return Ok(()) };
        let created = self.created.load(Ordering::Relaxed);
        let known = (created >= 0).then_some(created as f64);
        let args = Args::default().bytes(server.as_bytes()).maybe_number(known);
        let args = args.pack(self.clock.as_millis());
        let mut command = cmd("EVAL");
        command.arg(&EPOCH.text).arg(1).arg(&self.prefix).arg(args);
        let answer: Result<[String; 2], _> = command.query_async(connection).await;
        let [floor, created] = answer.map_err(|error| {
            self.servers.follow(&error);
            self.refusal(error, stage)
        })?;
        let number = |text: String| text.parse().map_err(|_| unreadable("an epoch"));
        let epoch = number(floor)?;
        self.created.store(number(created)?, Ordering::Relaxed);
        let before = self.epoch.swap(epoch, Ordering::Relaxed);
        if before >= 0 && before != epoch {
            tracing::warn!(
                server = self.servers.address(),
                "Redis was restarted or replaced: it may have forgotten what it acknowledged last"
            );
            self.acknowledged.ask(epoch, clock::now(&self.clock));
        }
        Ok(())
    }

    /// Forgets a connection that failed, unless another call has replaced it already.
    async fn forget(&self, place: Use, number: u64) {
        let mut slot = self.slots[place as usize].lock().await;
        if slot.as_ref().is_some_and(|(current, _)| *current == number) {
            *slot = None;
        }
    }

    async fn send(
        &self,
        place: Use,
        command: &Cmd,
        stage: Stage,
    ) -> StoreResult<Result<Value, RedisError>> {
        // A read is repeated at once on a new connection: the old one may have been lost while it was idle.
        let mut may_repeat = stage == Stage::Sent(Effect::Reads);
        let mut moves = 0;
        loop {
            let (number, mut connection) = self.open(place).await?;
            let mut waiting =
                Waiting { connections: self, place, number, since: Some(self.timer.now()) };
            let answer = match connection.send_packed_command(command).await {
                Ok(Value::ServerError(error)) => Err(error.into()),
                answer => answer,
            };
            waiting.since = None;
            match answer {
                Err(error) if ends_connection(&error) => {
                    self.forget(place, number).await;
                    self.servers.forget();
                    if !may_repeat || error.is_timeout() {
                        return Err(self.refusal(error, stage));
                    }
                    may_repeat = false;
                }
                Err(error) => {
                    let has_moved = self.servers.follow(&error);
                    if has_moved || self.servers.is_elsewhere(&error) {
                        self.forget(place, number).await;
                    }
                    moves += 1;
                    if !has_moved || moves > MOVES_MAX {
                        return Ok(Err(error));
                    }
                }
                answer => return Ok(answer),
            }
        }
    }

    /// Runs a command that is no script.
    pub(super) async fn command(&self, command: &Cmd, stage: Stage) -> StoreResult<Value> {
        let answer = self.send(Use::Reading, command, stage).await?;
        answer.map_err(|error| self.refusal(error, stage))
    }

    /// Runs a script. A server that does not know it gets its text: after a restart, a failover or `SCRIPT FLUSH`.
    pub(super) async fn run(
        &self,
        script: &Script,
        place: Use,
        args: Args,
    ) -> StoreResult<Result<Value, RedisError>> {
        let args = args.pack(self.clock.as_millis());
        let stage = Stage::Sent(script.effect);
        let call = |name: &str, what: &str| {
            let mut command = Cmd::new();
            command.arg(name).arg(what).arg(1).arg(&self.prefix).arg(&args);
            command
        };
        let answer = self.send(place, &call("EVALSHA", &script.hash), stage).await?;
        match answer {
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                self.send(place, &call("EVAL", &script.text), stage).await
            }
            answer => Ok(answer),
        }
    }

    /// Judges an error reply of a script that the verb does not expect.
    pub(super) fn judge(&self, error: RedisError, script: &Script) -> StoreError {
        if error.code() == Some("ERR") && error.to_string().contains("user_script") {
            // A script that fails has a bug, or met damaged data. What it wrote before stays.
            let what = format!(
                "the script `{}` failed on {}: report this as a bug",
                script.name,
                self.servers.address()
            );
            return broken(what, Some(error.into()));
        }
        self.refusal(error, Stage::Sent(script.effect))
    }

    /// Judges an error, as a node of a cluster or a server of its own means it.
    fn refusal(&self, error: RedisError, stage: Stage) -> StoreError {
        let address = self.servers.address();
        if self.servers.is_cluster() && matches!(error.code(), Some("ASK" | "MOVED")) {
            let why = format!(
                "{address}: the slot of this store moves to another node; the store waits for the end of the move: {error}"
            );
            return StoreError::Unavailable(why.into());
        }
        judge(error, stage, &address)
    }
}

/// A call that waits for its answer. Dropped before that, it gives up its connection if it has waited for long.
struct Waiting<'c> {
    connections: &'c Connections,
    place: Use,
    number: u64,
    /// `None` once it has an answer.
    since: Option<Moment>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let now = self.connections.timer.now();
        if self.since.is_none_or(|since| now.since(since) < SLOW) {
            return;
        }
        // If it is locked, another call replaces the connection at this moment.
        if let Ok(mut slot) = self.connections.slots[self.place as usize].try_lock()
            && slot.as_ref().is_some_and(|(current, _)| *current == self.number)
        {
            *slot = None;
        }
    }
}
