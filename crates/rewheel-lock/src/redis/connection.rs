//! The connection to the server. A broken one is replaced at the next call.

use super::error::{ends_connection, judge};
use crate::backend::BackendError;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, RedisError, ScriptInvocation, Value};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Mutex;

/// Maximum time to open a connection: less than a renewal of the default lease may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// The oldest release. Before it, errors inside scripts begin with `ERR` instead of their code, so a replica could not be told from a
/// mistake.
const OLDEST: (u32, u32) = (7, 0);

/// A connection that all calls share.
pub(super) struct Connection {
    client: Client,
    timeout: Duration,
    open: Mutex<Option<(u64, MultiplexedConnection)>>,
    /// Counts the connections that failed. One that was opened before the last failure is not used again.
    failures: AtomicU64,
}

impl Connection {
    pub(super) fn new(client: Client, timeout: Duration) -> Connection {
        Connection { client, timeout, open: Mutex::new(None), failures: AtomicU64::new(0) }
    }

    /// Host and port of the server, for errors.
    pub(super) fn address(&self) -> String {
        self.client.get_connection_info().addr().to_string()
    }

    /// Runs a script. A server that does not know it gets its text.
    pub(super) async fn run(&self, call: &ScriptInvocation<'_>) -> Result<Value, BackendError> {
        let (number, mut connection) = self.open().await.map_err(|error| self.judge(error))?;
        let mut watch = Unfinished { failures: &self.failures, number, ends: true };
        let answer = call.invoke_async(&mut connection).await;
        watch.ends = answer.as_ref().is_err_and(ends_connection);
        answer.map_err(|error| self.judge(error))
    }

    async fn open(&self) -> Result<(u64, MultiplexedConnection), RedisError> {
        let mut open = self.open.lock().await;
        let failures = self.failures.load(Ordering::Relaxed);
        if let Some((number, connection)) = &*open
            && *number == failures
        {
            return Ok((*number, connection.clone()));
        }
        *open = None;
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT_TIMEOUT))
            .set_response_timeout(Some(self.timeout));
        let connection = self.client.get_multiplexed_async_connection_with_config(&config).await?;
        *open = Some((failures, connection.clone()));
        Ok((failures, connection))
    }

    /// Refuses a server that would forget locks while it runs.
    pub(super) async fn check_settings(&self) -> Result<(), BackendError> {
        let asked = async {
            let (_, mut connection) = self.open().await?;
            redis::cmd("INFO").query_async::<String>(&mut connection).await
        };
        let info = asked.await.map_err(|error| self.judge(error))?;
        check_info(&info, &self.address())
    }

    fn judge(&self, error: RedisError) -> BackendError {
        judge(error, &self.address())
    }
}

/// A call on the way. If it is cancelled, its connection is not used again: it may be one that does not answer any more.
struct Unfinished<'c> {
    failures: &'c AtomicU64,
    /// The number of failures when the connection was opened.
    number: u64,
    ends: bool,
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if self.ends {
            let (old, new) = (self.number, self.number + 1);
            // If it fails, another call has counted this failure already.
            let _ = self.failures.compare_exchange(old, new, Ordering::Relaxed, Ordering::Relaxed);
        }
    }
}

/// Checks the answer to `INFO`.
fn check_info(info: &str, address: &str) -> Result<(), BackendError> {
    let setting = |name: &str| {
        let mut lines = info.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(known, _)| *known == name).map(|(_, value)| value.trim())
    };
    let refuse = |what: String| Err(BackendError::Broken { what, source: None });
    if let Some(version) = setting("redis_version")
        && release(version).is_some_and(|release| release < OLDEST)
    {
        return refuse(format!(
            "Redis at {address} has version {version}, which is too old: use 7.0 or later, or Valkey"
        ));
    }
    match setting("maxmemory_policy") {
        None | Some("noeviction") => {}
        Some(policy) => {
            return refuse(format!(
                "Redis at {address} has maxmemory-policy {policy}: when its memory is full it would delete locks that are held; set it with \
                 CONFIG SET maxmemory-policy noeviction, and in the server's configuration"
            ));
        }
    }
    if setting("aof_enabled") == Some("0") {
        tracing::warn!(
            address,
            "Redis has appendonly no: a restart of the server releases all locks while their holders still work; set appendonly to yes"
        );
    }
    Ok(())
}

fn release(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version.split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::check_info;

    #[test]
    fn a_server_that_is_too_old_is_refused() {
        let check = |version| check_info(&format!("redis_version:{version}\r\n"), "cache:6379");
        for version in ["6.0.16", "6.2.14"] {
            let text = check(version).unwrap_err().to_string();
            assert!(text.ends_with("which is too old: use 7.0 or later, or Valkey"), "{text}");
        }
        for version in ["7.0.0", "7.2.4", "10.0.1"] {
            check(version).unwrap();
        }
    }
}
