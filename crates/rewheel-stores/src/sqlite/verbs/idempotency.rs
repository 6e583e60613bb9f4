//! Stores idempotency keys and the responses to them.

use super::super::SqliteStore;
use super::super::error::VerbError;
use super::super::row::{duration, millis};
use super::super::transaction::Transaction;
use super::super::writer::count;
use crate::idempotency::judge;
use async_trait::async_trait;
use rewheel::idempotency::{
    Begin, Begun, Fingerprint, Finished, IdempotencyStore, IdempotencyStoreError, Judged, RunId,
    StoredKey, Ticket,
};
use rusqlite::Row;
use std::time::Duration;

/// Several processes on one machine may share the file. Stored responses survive a power cut.
#[async_trait]
impl IdempotencyStore for SqliteStore {
    async fn begin(&self, ask: &Begin) -> Result<Begun, IdempotencyStoreError> {
        let ask = *ask;
        self.write(1, move |tx| begin(tx, &ask)).await.map_err(judge)
    }

    async fn renew(&self, ticket: &Ticket, lease: Duration) -> Result<bool, IdempotencyStoreError> {
        let ticket = *ticket;
        let renew = move |tx: &mut Transaction<'_, '_>| {
            let until = later(tx, lease);
            let values = (ticket.key.as_bytes(), ticket.run.as_bytes(), until);
            Ok(tx.execute(include_str!("../sql/idempotency_renew.sql"), values)? == 1)
        };
        self.live(renew).await.map_err(judge)
    }

    async fn finish(
        &self,
        ticket: &Ticket,
        answer: &[u8],
    ) -> Result<Finished, IdempotencyStoreError> {
        let (ticket, answer) = (*ticket, answer.to_vec());
        self.write(1, move |tx| finish(tx, &ticket, &answer)).await.map_err(judge)
    }

    async fn release(&self, ticket: &Ticket) -> Result<(), IdempotencyStoreError> {
        let ticket = *ticket;
        let release = move |tx: &mut Transaction<'_, '_>| {
            let values = (ticket.key.as_bytes(), ticket.run.as_bytes());
            tx.execute(include_str!("../sql/idempotency_release.sql"), values).map(drop)
        };
        self.write(1, release).await.map_err(judge)
    }

    async fn prune(&self, limit: usize) -> Result<u64, IdempotencyStoreError> {
        let prune = move |tx: &mut Transaction<'_, '_>| {
            let values = (tx.now.as_millis(), count(limit as u64));
            Ok(tx.execute(include_str!("../sql/idempotency_prune.sql"), values)? as u64)
        };
        self.write(limit, prune).await.map_err(judge)
    }
}

fn begin(tx: &Transaction<'_, '_>, ask: &Begin) -> Result<Begun, VerbError> {
    let now = tx.now.as_millis();
    let known =
        tx.find(include_str!("../sql/idempotency_find.sql"), [ask.key.as_bytes()], |row| {
            read(row, now)
        })?;
    if let Some(known) = known
        && let Judged::Answer(begun) = known.judge(ask)
    {
        return Ok(begun);
    }
    let leased_until = later(tx, ask.lease);
    let ends = leased_until.max(later(tx, ask.keep));
    let (key, fingerprint) = (ask.key.as_bytes(), ask.fingerprint.as_bytes());
    let values = (key, fingerprint, ask.run.as_bytes(), leased_until, ends);
    tx.execute(include_str!("../sql/idempotency_take.sql"), values)?;
    Ok(Begun::Run)
}

fn finish(tx: &Transaction<'_, '_>, ticket: &Ticket, answer: &[u8]) -> Result<Finished, VerbError> {
    let key = ticket.key.as_bytes();
    let values = (key, ticket.run.as_bytes(), answer, later(tx, ticket.keep));
    if tx.execute(include_str!("../sql/idempotency_finish.sql"), values)? == 1 {
        return Ok(Finished::Stored);
    }
    let now = tx.now.as_millis();
    let known =
        tx.find(include_str!("../sql/idempotency_find.sql"), [key], |row| read(row, now))?;
    let ours = known.is_some_and(|known| known.run == ticket.run);
    Ok(if ours { Finished::Already } else { Finished::Lost })
}

fn read(row: &Row<'_>, now: i64) -> rusqlite::Result<StoredKey> {
    let leased_until: Option<i64> = row.get(2)?;
    Ok(StoredKey {
        fingerprint: Fingerprint::from_bytes(row.get(0)?),
        run: RunId::from_bytes(row.get(1)?),
        lease_left: leased_until.map(|until| duration(until.saturating_sub(now))),
        expired: row.get::<_, i64>(3)? <= now,
        answer: row.get(4)?,
    })
}

fn later(tx: &Transaction<'_, '_>, by: Duration) -> i64 {
    tx.now.as_millis().saturating_add(millis(by))
}
