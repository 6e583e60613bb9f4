//! Deletes data whose retention has ended.

use super::super::PostgresStore;
use super::super::error::VerbError;
use super::super::row::{count, millis, unsigned, uuid};
use super::super::session::Session;
use super::super::statements::{
    ANNOUNCE, PRUNE_AUDIT, PRUNE_FINISHED, PRUNE_FINISHED_BEFORE, PRUNE_HOLDERS, PRUNE_KEYS,
    PRUNE_LEDGER, PRUNE_LIMITS, PRUNE_RESERVED,
};
use super::results;
use rewheel_core::Limits;
use rewheel_core::store::{DeadLetter, Prune, Pruned, StoreResult};
use uuid::Uuid;

/// Lines of the ledger that are not added up: with so few, reading the books is fast.
const LEDGER_LINES_MAX: i64 = 100;

impl PostgresStore {
    /// Each sort of data in its own statement, so that locks are held only for that statement.
    pub(in super::super) async fn prune_batch(&self, prune: &Prune) -> StoreResult<Pruned> {
        let session = self.write().await?;
        let pruned = pruned(&session, prune).await;
        let mut pruned = session.end(pruned).await?;
        self.open_bins().await;
        if prune.limit > 0 {
            pruned.finished += self.empty_bins().await?;
        }
        Ok(pruned)
    }
}

async fn pruned(session: &Session<'_>, prune: &Prune) -> Result<Pruned, VerbError> {
    let (offset, limit) = (session.offset(), count(prune.limit as u64));
    let row = session.one(&PRUNE_FINISHED, &[&offset, &limit]).await?;
    let finished: i64 = row.try_get(0)?;
    let row = session.one(&PRUNE_FINISHED_BEFORE, &[&offset, &(limit - finished)]).await?;
    let before: i64 = row.try_get(0)?;
    let keys = session.execute(&PRUNE_KEYS, &[&offset, &limit]).await?;
    let age = millis(prune.audit_older_than);
    let audit = session.execute(&PRUNE_AUDIT, &[&offset, &limit, &age]).await?;
    let age = millis(Limits::DEAD_HOLDERS_KEPT);
    let holders = session.execute(&PRUNE_HOLDERS, &[&offset, &limit, &age]).await?;
    session.execute(&PRUNE_RESERVED, &[]).await?;
    let age = millis(Limits::FLEET_STARTS_KEPT);
    session.execute(&PRUNE_LIMITS, &[&offset, &age]).await?;
    // The sum of the lines replaces one of them.
    let lines = limit.saturating_add(1);
    let ledger = session.one(&PRUNE_LEDGER, &[&lines, &LEDGER_LINES_MAX]).await?;
    Ok(Pruned {
        finished: unsigned(finished + before),
        results: results::prune(session, limit).await?,
        keys,
        audit,
        holders,
        ledger: unsigned(ledger.try_get(0)?).saturating_sub(1),
    })
}

pub(in super::super) async fn announce(
    session: &Session<'_>,
    letters: &[DeadLetter],
) -> Result<(), VerbError> {
    // In the order of their ids, the order in which all writers lock them.
    let mut letters: Vec<(Uuid, i64)> =
        letters.iter().map(|letter| (uuid(letter.job), count(letter.version.get()))).collect();
    letters.sort_unstable();
    let (ids, versions): (Vec<Uuid>, Vec<i64>) = letters.into_iter().unzip();
    session.execute(&ANNOUNCE, &[&session.offset(), &ids, &versions]).await.map(drop)
}
