//! The connections to the server. A broken one is replaced at the next call.

use super::error::{Stage, broken, ends_connection, judge};
use super::script::{Effect, Script};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, ErrorKind, RedisError, ServerErrorKind, Value};
use rewheel_core::store::{StoreError, StoreResult};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::Mutex;

/// Maximum time to open a connection: a heartbeat must get through within a third of its lease.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

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

/// The connections to one server.
pub(super) struct Connections {
    pub(super) client: Client,
    /// Host and port of the server, for errors.
    pub(super) address: String,
    timeout: Duration,
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
    pub(super) fn new(client: Client, timeout: Duration) -> Connections {
        Connections {
            address: client.get_connection_info().addr().to_string(),
            client,
            timeout,
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
        let (client, config) = (
            self.client.clone(),
            AsyncConnectionConfig::new()
                .set_connection_timeout(Some(CONNECT_TIMEOUT))
                .set_response_timeout(Some(self.timeout)),
        );
        let connecting = self.runtime.spawn(async move {
            client.get_multiplexed_async_connection_with_config(&config).await
        });
        let connected = match connecting.await {
            Ok(connected) => connected,
            Err(_) => return Err(StoreError::Closed),
        };
        let connection =
            connected.map_err(|error| judge(error, Stage::Connecting, &self.address))?;
        let open = (self.opened.fetch_add(1, Ordering::Relaxed), connection);
        *slot = Some(open.clone());
        Ok(open)
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
        loop {
            let (number, mut connection) = self.open(place).await?;
            match connection.send_packed_command(command).await {
                Ok(Value::ServerError(error)) => return Ok(Err(error.into())),
                Err(error) if ends_connection(&error) => {
                    self.forget(place, number).await;
                    if !may_repeat || error.is_timeout() {
                        return Err(judge(error, stage, &self.address));
                    }
                    may_repeat = false;
                }
                answer => return Ok(answer),
            }
        }
    }

    /// Runs a command that is no script.
    pub(super) async fn command(&self, command: &Cmd, stage: Stage) -> StoreResult<Value> {
        let answer = self.send(Use::Reading, command, stage).await?;
        answer.map_err(|error| judge(error, stage, &self.address))
    }

    /// Runs a script. A server that does not know it gets its text: after a restart, a failover or `SCRIPT FLUSH`.
    pub(super) async fn run(
        &self,
        script: &Script,
        place: Use,
        prefix: &str,
        args: &[u8],
    ) -> StoreResult<Result<Value, RedisError>> {
        let stage = Stage::Sent(script.effect);
        let call = |name: &str, what: &str| {
            let mut command = Cmd::new();
            command.arg(name).arg(what).arg(1).arg(prefix).arg(args);
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
                script.name, self.address
            );
            return broken(what, Some(error.into()));
        }
        judge(error, Stage::Sent(script.effect), &self.address)
    }
}
