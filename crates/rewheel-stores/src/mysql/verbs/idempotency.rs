//! Stores idempotency keys and the responses to them.

use super::super::error::VerbError;
use super::super::row::{bytes, count, duration, get, millis};
use super::super::transaction::Transaction;
use super::super::{MysqlStore, write};
use super::prune::hex_list;
use crate::idempotency::judge;
use async_trait::async_trait;
use mysql_async::{Row, Value};
use rewheel::idempotency::{
    Begin, Begun, Fingerprint, Finished, IdempotencyStore, IdempotencyStoreError, Judged, RunId,
    StoredKey, Ticket,
};
use rewheel_core::Timestamp;
use rewheel_core::store::StoreResult;
use std::time::Duration;

/// Maximum number of tries for a key that keeps changing. After each change another request got its result.
const LOOKS_MAX: usize = 16;

/// Several processes may share the database. Stored responses are as durable as jobs.
#[async_trait]
impl IdempotencyStore for MysqlStore {
    async fn begin(&self, ask: &Begin) -> Result<Begun, IdempotencyStoreError> {
        self.begin_key(ask).await.map_err(judge)
    }

    async fn renew(&self, ticket: &Ticket, lease: Duration) -> Result<bool, IdempotencyStoreError> {
        self.renew_key(ticket, lease).await.map_err(judge)
    }

    async fn finish(
        &self,
        ticket: &Ticket,
        answer: &[u8],
    ) -> Result<Finished, IdempotencyStoreError> {
        self.finish_key(ticket, answer).await.map_err(judge)
    }

    async fn release(&self, ticket: &Ticket) -> Result<(), IdempotencyStoreError> {
        self.release_key(ticket).await.map_err(judge)
    }

    async fn prune(&self, limit: usize) -> Result<u64, IdempotencyStoreError> {
        self.prune_keys(limit).await.map_err(judge)
    }
}

impl MysqlStore {
    /// Stores the response to an idempotency key inside the caller's transaction: the database changes of the handler and the response
    /// commit together, **exactly once**. If the process dies before the commit, nothing was done and the next request runs the handler.
    /// If it dies after the commit, the next request gets the stored response.
    ///
    /// If the result is [`Finished::Lost`], another request has the key: roll the transaction back. The connection must use the database
    /// of the store, and the isolation level READ COMMITTED, as for [`insert_in`](MysqlStore::insert_in).
    ///
    /// # Errors
    /// Returns an error if a statement fails, and [`StoreError::Rejected`](rewheel_core::store::StoreError::Rejected) if the session has
    /// another isolation level or a `sql_mode` that is not strict: roll the transaction back.
    pub async fn finish_in(
        &self,
        transaction: &mut mysql_async::Transaction<'_>,
        ticket: &Ticket,
        answer: &[u8],
    ) -> StoreResult<Finished> {
        let mut tx = Transaction::theirs(&self.shared, transaction).await?;
        let finished = finish(&mut tx, ticket, answer).await;
        tx.hand_back(finished).await
    }

    async fn begin_key(&self, ask: &Begin) -> StoreResult<Begun> {
        write!(self, tx => begin(tx, ask))
    }

    async fn renew_key(&self, ticket: &Ticket, lease: Duration) -> StoreResult<bool> {
        write!(self, tx => renew(tx, ticket, lease))
    }

    async fn finish_key(&self, ticket: &Ticket, answer: &[u8]) -> StoreResult<Finished> {
        write!(self, tx => finish(tx, ticket, answer))
    }

    async fn release_key(&self, ticket: &Ticket) -> StoreResult<()> {
        write!(self, tx => release(tx, ticket))
    }

    async fn prune_keys(&self, limit: usize) -> StoreResult<u64> {
        write!(self, tx => prune(tx, limit))
    }
}

/// Looks without a lock first: a handler that stores its response inside its own transaction keeps its key locked, and other requests must
/// not wait for it.
async fn begin(tx: &mut Transaction<'_>, ask: &Begin) -> Result<Begun, VerbError> {
    let key = Value::from(ask.key.as_bytes().as_slice());
    let fingerprint = Value::from(ask.fingerprint.as_bytes().as_slice());
    let run = Value::from(ask.run.as_bytes().as_slice());
    for _ in 0..LOOKS_MAX {
        let known = find(tx, &key).await?;
        let now = tx.now.as_millis();
        let leased_until = later(tx.now, ask.lease);
        let times = [leased_until.into(), leased_until.max(later(tx.now, ask.keep)).into()];
        let Some(known) = known else {
            let mut values = vec![key.clone(), fingerprint.clone(), run.clone()];
            values.extend_from_slice(&times);
            match tx.execute(include_str!("../sql/idempotency_insert.sql"), values).await {
                Ok(_) => return Ok(Begun::Run),
                Err(trouble) if trouble.is_duplicate() => continue,
                Err(trouble) => return Err(trouble),
            }
        };
        let before = known.run;
        match known.judge(ask) {
            Judged::Answer(begun) => return Ok(begun),
            Judged::Take => {
                let mut values = vec![fingerprint.clone(), run.clone()];
                values.extend_from_slice(&times);
                let before = Value::from(before.as_bytes().as_slice());
                values.extend([key.clone(), before, now.into(), now.into()]);
                if tx.execute(include_str!("../sql/idempotency_take.sql"), values).await? == 1 {
                    return Ok(Begun::Run);
                }
            }
        }
    }
    // Other requests were faster each time: one of them is running.
    Ok(Begun::InFlight { left: Duration::from_millis(1) })
}

async fn finish(
    tx: &mut Transaction<'_>,
    ticket: &Ticket,
    answer: &[u8],
) -> Result<Finished, VerbError> {
    let [key, run] = names(ticket);
    let ends = later(tx.now, ticket.keep);
    let values = vec![answer.into(), ends.into(), key.clone(), run];
    if tx.execute(include_str!("../sql/idempotency_finish.sql"), values).await? == 1 {
        return Ok(Finished::Stored);
    }
    // Locked: in a caller's transaction a plain read may return the row as it was before another run took the key.
    let row = tx.find(include_str!("../sql/idempotency_run.sql"), vec![key]).await?;
    let run = row.map(|row| bytes(&row, 0).map(RunId::from_bytes)).transpose()?;
    let ours = run == Some(ticket.run);
    Ok(if ours { Finished::Already } else { Finished::Lost })
}

async fn renew(
    tx: &mut Transaction<'_>,
    ticket: &Ticket,
    lease: Duration,
) -> Result<bool, VerbError> {
    let until = Value::from(later(tx.now, lease));
    let [key, run] = names(ticket);
    let values = vec![until.clone(), until, key, run];
    Ok(tx.execute(include_str!("../sql/idempotency_renew.sql"), values).await? == 1)
}

async fn release(tx: &mut Transaction<'_>, ticket: &Ticket) -> Result<(), VerbError> {
    let values = names(ticket).to_vec();
    tx.execute(include_str!("../sql/idempotency_release.sql"), values).await.map(drop)
}

async fn prune(tx: &mut Transaction<'_>, limit: usize) -> Result<u64, VerbError> {
    let values = vec![tx.now.as_millis().into(), count(limit as u64)];
    let rows = tx.rows(include_str!("../sql/idempotency_prune.sql"), values).await?;
    if rows.is_empty() {
        return Ok(0);
    }
    let keys = hex_list(&rows)?;
    tx.execute(include_str!("../sql/idempotency_delete.sql"), vec![keys.into()]).await
}

/// Returns the values that name a key and its run.
fn names(ticket: &Ticket) -> [Value; 2] {
    [ticket.key.as_bytes().as_slice().into(), ticket.run.as_bytes().as_slice().into()]
}

async fn find(tx: &mut Transaction<'_>, key: &Value) -> Result<Option<StoredKey>, VerbError> {
    let row = tx.find(include_str!("../sql/idempotency_find.sql"), vec![key.clone()]).await?;
    let Some(row) = row else { return Ok(None) };
    // Another run may have taken the key after this transaction began: its lease must not seem longer than it is.
    tx.refresh_now().await?;
    read(&row, tx.now.as_millis()).map(Some)
}

fn read(row: &Row, now: i64) -> Result<StoredKey, VerbError> {
    let leased_until: Option<i64> = get(row, 2)?;
    Ok(StoredKey {
        fingerprint: Fingerprint::from_bytes(bytes(row, 0)?),
        run: RunId::from_bytes(bytes(row, 1)?),
        lease_left: leased_until.map(|until| duration(until.saturating_sub(now))),
        expired: get::<i64>(row, 3)? <= now,
        answer: get(row, 4)?,
    })
}

fn later(now: Timestamp, by: Duration) -> i64 {
    now.as_millis().saturating_add(millis(by))
}
