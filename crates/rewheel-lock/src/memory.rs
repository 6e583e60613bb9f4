//! Keeps locks in memory, for one process and for tests.

use crate::backend::{
    Ask, BackendError, EarlierCalls, LockBackend, LockState, Release, Renewal, RequestId, Turn,
};
use crate::name::LockName;
use crate::record::Record;
use crate::server_clock::{ServerTime, machine_time};
use crate::wakeups::Wakeups;
use async_trait::async_trait;
use rewheel_core::store::ClockOffset;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Locks in the memory of this process. Clones share them.
///
/// ```
/// use rewheel_lock::{Locks, MemoryBackend};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), rewheel_lock::LockError> {
/// let backend = MemoryBackend::default();
/// let (one, other) = (Locks::new(backend.clone()), Locks::new(backend));
/// let guard = one.try_lock("nightly").await?;
/// assert!(other.try_lock("nightly").await.is_err());
/// guard.release().await?;
/// assert!(other.try_lock("nightly").await.is_ok());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct MemoryBackend {
    table: Arc<Mutex<Table>>,
    clock: ClockOffset,
    wakeups: Wakeups,
}

#[derive(Debug, Default)]
struct Table {
    records: HashMap<LockName, Record>,
    /// The largest token of all names, so that a name without a record needs none.
    token: i64,
}

impl MemoryBackend {
    /// Creates a backend whose clock tests can move.
    pub fn with_clock(clock: ClockOffset) -> MemoryBackend {
        let wakeups = Wakeups::default();
        // There is no other process.
        wakeups.set_listening(true);
        MemoryBackend { table: Arc::default(), clock, wakeups }
    }

    fn change<T>(&self, name: &LockName, verb: impl FnOnce(&mut Record, ServerTime) -> T) -> T {
        let now = machine_time(&self.clock);
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let last = table.token;
        let record = table.records.entry(name.clone()).or_default();
        if record.held.is_none() {
            record.token = last;
        }
        let answer = verb(record, now);
        let (token, is_idle) = (record.token, record.is_idle(now) && record.held.is_none());
        table.token = table.token.max(token);
        if is_idle {
            table.records.remove(name);
        }
        answer
    }
}

impl Default for MemoryBackend {
    fn default() -> MemoryBackend {
        MemoryBackend::with_clock(ClockOffset::default())
    }
}

#[async_trait]
impl LockBackend for MemoryBackend {
    fn name(&self) -> &'static str {
        "memory"
    }

    async fn acquire(&self, ask: &Ask<'_>) -> Result<Turn, BackendError> {
        Ok(self.change(ask.name, |record, now| record.acquire(ask, now)))
    }

    async fn renew(
        &self,
        name: &LockName,
        id: RequestId,
        lease: Duration,
    ) -> Result<Renewal, BackendError> {
        Ok(self.change(name, |record, now| record.renew(id, lease, now)))
    }

    async fn release(
        &self,
        name: &LockName,
        id: RequestId,
        _earlier: EarlierCalls,
    ) -> Result<Release, BackendError> {
        Ok(self.change(name, |record, now| record.release(id, now)))
    }

    async fn inspect(&self, name: &LockName) -> Result<LockState, BackendError> {
        Ok(self.change(name, |record, now| record.inspect(now)))
    }

    fn wakeups(&self) -> &Wakeups {
        &self.wakeups
    }
}
