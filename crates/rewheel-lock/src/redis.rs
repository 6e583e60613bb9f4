//! Keeps locks in a Redis or Valkey server.
//!
//! Each verb is one script, which the server runs alone, with the server's clock.

mod connection;
mod error;
mod listen;

use self::connection::Connection;
use self::error::unreadable;
use self::listen::Listening;
use crate::backend::{
    Ask, BackendError, EarlierCalls, Holder, IfHeld, LINE_MAX, LockBackend, LockState, PLACE_TTL,
    Release, Renewal, RequestId, Turn,
};
use crate::name::LockName;
use crate::server_clock::{duration, millis};
use crate::token::FencingToken;
use crate::wakeups::Wakeups;
use ::redis::{Client, FromRedisValue, Script, ScriptInvocation, Value};
use async_trait::async_trait;
use rewheel_core::store::ClockOffset;
use rewheel_stores::RedisOptions;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// How long the server refuses a request that was released while a call was on its way. Within this time, the system gives up sending
/// what a closed connection has left.
const REFUSED: Duration = Duration::from_secs(120);

/// Locks in a Redis or Valkey server. Clones share the connections.
///
/// Keys start with the prefix of the URL (`?prefix=`, default `rewheel`), which may be that of a store of jobs.
#[derive(Clone)]
pub struct RedisBackend {
    shared: Arc<Shared>,
}

struct Shared {
    connection: Connection,
    /// The start of all keys, with the hash tag.
    prefix: String,
    clock: ClockOffset,
    scripts: Scripts,
    wakeups: Wakeups,
    _listening: Listening,
}

struct Scripts {
    acquire: Script,
    renew: Script,
    release: Script,
    inspect: Script,
}

impl RedisBackend {
    /// Opens the locks of a server.
    ///
    /// # Errors
    /// Says what is wrong with the server or its settings, and what to do. A server that may evict keys is refused: it would release
    /// locks when its memory is full.
    pub async fn open(options: RedisOptions) -> Result<RedisBackend, BackendError> {
        let Some(server) = options.server() else {
            let what = "a Redis Cluster cannot keep locks: use a single Redis server".to_owned();
            return Err(BackendError::Broken { what, source: None });
        };
        let client = Client::open(server.expose()).map_err(|error| BackendError::Broken {
            what: "the URL of the Redis server is not valid".to_owned(),
            source: Some(error.into()),
        })?;
        let connection = Connection::new(client.clone(), options.timeout);
        connection.check_settings().await?;
        let (prefix, wakeups) = (format!("{{{}}}:", options.prefix), Wakeups::default());
        let listening = Listening::start(client, channel(&prefix), wakeups.clone());
        let shared = Shared {
            connection,
            prefix,
            clock: options.clock,
            scripts: Scripts::new(),
            wakeups,
            _listening: listening,
        };
        Ok(RedisBackend { shared: Arc::new(shared) })
    }

    /// Prepares a call: the keys, and the arguments of every script.
    fn call<'s>(&'s self, script: &'s Script, name: &LockName) -> ScriptInvocation<'s> {
        let Shared { prefix, clock, .. } = &*self.shared;
        let mut call = script.key(format!("{prefix}lock:{name}"));
        call.key(format!("{prefix}lock-token"));
        call.arg(clock.as_millis()).arg(millis(PLACE_TTL));
        call
    }

    /// As [`call`](RedisBackend::call), for a script that asks or writes whether a request is refused.
    fn call_of<'s>(
        &'s self,
        script: &'s Script,
        name: &LockName,
        id: RequestId,
    ) -> ScriptInvocation<'s> {
        let mut call = self.call(script, name);
        call.key(format!("{}lock-refused:{id}", self.shared.prefix)).arg(id.to_string());
        call
    }

    async fn run(&self, call: &ScriptInvocation<'_>) -> Result<Value, BackendError> {
        self.shared.connection.run(call).await
    }
}

impl Scripts {
    fn new() -> Scripts {
        let script =
            |verb: &str| Script::new(&format!("{}\n{verb}", include_str!("redis/lua/lib.lua")));
        Scripts {
            acquire: script(include_str!("redis/lua/acquire.lua")),
            renew: script(include_str!("redis/lua/renew.lua")),
            release: script(include_str!("redis/lua/release.lua")),
            inspect: script(include_str!("redis/lua/inspect.lua")),
        }
    }
}

/// The channel that tells which request is next.
fn channel(prefix: &str) -> String {
    format!("{prefix}lock-wake")
}

#[async_trait]
impl LockBackend for RedisBackend {
    fn name(&self) -> &'static str {
        "redis"
    }

    async fn acquire(&self, ask: &Ask<'_>) -> Result<Turn, BackendError> {
        let mut call = self.call_of(&self.shared.scripts.acquire, ask.name, ask.id);
        let if_held = match ask.if_held {
            IfHeld::Refuse => "refuse",
            IfHeld::Wait => "wait",
        };
        call.arg(ask.owner).arg(millis(ask.lease));
        call.arg(if_held).arg(LINE_MAX);
        turn(self.run(&call).await?).ok_or_else(unreadable)
    }

    async fn renew(
        &self,
        name: &LockName,
        id: RequestId,
        lease: Duration,
    ) -> Result<Renewal, BackendError> {
        let mut call = self.call(&self.shared.scripts.renew, name);
        call.arg(id.to_string()).arg(millis(lease));
        match read(self.run(&call).await?).ok_or_else(unreadable)? {
            0 => Ok(Renewal::Lost),
            _ => Ok(Renewal::Renewed),
        }
    }

    async fn release(
        &self,
        name: &LockName,
        id: RequestId,
        earlier: EarlierCalls,
    ) -> Result<Release, BackendError> {
        let mut call = self.call_of(&self.shared.scripts.release, name, id);
        let refused = match earlier {
            EarlierCalls::Answered => Duration::ZERO,
            EarlierCalls::Unanswered => REFUSED,
        };
        call.arg(channel(&self.shared.prefix)).arg(millis(refused));
        let answer = read(self.run(&call).await?);
        let (was_held, next): (i64, String) = answer.ok_or_else(unreadable)?;
        Ok(Release { was_held: was_held == 1, next: RequestId::parse(&next) })
    }

    async fn inspect(&self, name: &LockName) -> Result<LockState, BackendError> {
        let call = self.call(&self.shared.scripts.inspect, name);
        let (found, waiting) = read(self.run(&call).await?).ok_or_else(unreadable)?;
        Ok(LockState::new(holder(found).ok_or_else(unreadable)?, waiting))
    }

    fn wakeups(&self) -> &Wakeups {
        &self.shared.wakeups
    }
}

fn read<T: FromRedisValue>(value: Value) -> Option<T> {
    T::from_redis_value(value).ok()
}

/// Reads the answer of `acquire.lua`.
fn turn(answer: Value) -> Option<Turn> {
    let parts: Vec<Value> = read(answer)?;
    let mut parts = parts.into_iter();
    let verdict: String = read(parts.next()?)?;
    match verdict.as_str() {
        "acquired" => {
            let token = read::<String>(parts.next()?)?.parse().ok()?;
            Some(Turn::Acquired { token: FencingToken::new(token) })
        }
        "busy" => Some(Turn::Busy { holder: holder(parts.next()?)? }),
        "full" => Some(Turn::LineFull),
        "waiting" => {
            let (ahead, look_again) = (read(parts.next()?)?, duration(read(parts.next()?)?));
            Some(Turn::Waiting { ahead, look_again, holder: holder(parts.next()?)? })
        }
        _ => None,
    }
}

/// Reads a holder: owner, token, milliseconds left; or nothing.
fn holder(found: Value) -> Option<Option<Holder>> {
    let parts: Vec<Value> = read(found)?;
    let mut parts = parts.into_iter();
    let Some(owner) = parts.next() else { return Some(None) };
    let token = read::<String>(parts.next()?)?.parse().ok()?;
    let left = duration(read(parts.next()?)?);
    Some(Some(Holder::new(read::<String>(owner)?, FencingToken::new(token), left)))
}

impl fmt::Debug for RedisBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shared { connection, prefix, .. } = &*self.shared;
        let mut debug = f.debug_struct("RedisBackend");
        debug
            .field("address", &connection.address())
            .field("prefix", prefix)
            .finish_non_exhaustive()
    }
}
