//! Deletes data whose retention has ended.

use super::super::error::VerbError;
use super::super::row::{millis, unsigned};
use super::super::transaction::Transaction;
use super::super::writer::count;
use rewheel_core::store::{DeadLetter, Prune, Pruned};
use rewheel_core::{Limits, Timestamp};
use std::time::Duration;

/// Lines of the ledger that are not added up: with so few, reading the books is fast.
const LEDGER_LINES_MAX: i64 = 100;

pub(in super::super) fn prune(
    tx: &mut Transaction<'_, '_>,
    prune: &Prune,
) -> Result<Pruned, VerbError> {
    let limit = count(prune.limit as u64);
    let now = tx.now.as_millis();
    let finished = finished(tx, limit)?;
    tx.pruned += finished;
    let long_ago = |age: Duration| now.saturating_sub(millis(age));
    let keys = tx.execute(include_str!("../sql/prune_keys.sql"), (now, limit))?;
    let audit = (long_ago(prune.audit_older_than), limit);
    let audit = tx.execute(include_str!("../sql/prune_audit.sql"), audit)?;
    let holders = (long_ago(Limits::DEAD_HOLDERS_KEPT), limit);
    let holders = tx.execute(include_str!("../sql/prune_holders.sql"), holders)?;
    tx.execute(include_str!("../sql/prune_reserved.sql"), [])?;
    let starts = [long_ago(Limits::FLEET_STARTS_KEPT)];
    tx.execute(include_str!("../sql/prune_limits.sql"), starts)?;
    Ok(Pruned {
        finished,
        results: super::results::prune(tx, limit)?,
        keys: keys as u64,
        audit: audit as u64,
        holders: holders as u64,
        ledger: fold(tx, limit)?,
    })
}

fn finished(tx: &Transaction<'_, '_>, limit: i64) -> Result<u64, VerbError> {
    let mut ids: Vec<[u8; 16]> = Vec::new();
    {
        let statement = tx.sql(include_str!("../sql/prune_finished.sql"))?;
        let mut statement = statement.get();
        let mut rows = statement.query((tx.now.as_millis(), limit))?;
        while let Some(row) = rows.next()? {
            ids.push(row.get(0)?);
        }
    }
    let statement = tx.sql(include_str!("../sql/delete_attempts.sql"))?;
    let mut statement = statement.get();
    for id in &ids {
        statement.execute([id])?;
    }
    Ok(ids.len() as u64)
}

/// Adds up old lines of the ledger into one.
fn fold(tx: &Transaction<'_, '_>, limit: i64) -> Result<u64, VerbError> {
    let read = |row: &rusqlite::Row<'_>| {
        Ok((unsigned(row.get(0)?), row.get::<_, Option<i64>>(1)?, row.get(2)?, row.get(3)?))
    };
    type Sums = (u64, Option<i64>, Option<i64>, Option<i64>);
    // The sum of the lines replaces one of them.
    let range = (limit.saturating_add(1), LEDGER_LINES_MAX);
    let found: Option<Sums> = tx.find(include_str!("../sql/ledger_sum.sql"), range, read)?;
    let Some((lines, Some(last), Some(submitted), Some(pruned))) = found else { return Ok(0) };
    if lines < 2 {
        return Ok(0);
    }
    tx.execute(include_str!("../sql/ledger_fold.sql"), [last])?;
    let line = (last, tx.now.as_millis(), submitted, pruned);
    tx.execute(include_str!("../sql/ledger_line.sql"), line)?;
    Ok(lines - 1)
}

pub(in super::super) fn announce(
    tx: &Transaction<'_, '_>,
    letters: &[DeadLetter],
) -> Result<(), VerbError> {
    let statement = tx.sql(include_str!("../sql/announce.sql"))?;
    let mut statement = statement.get();
    let now = Timestamp::as_millis(tx.now);
    for letter in letters {
        statement.execute((letter.job.to_bytes(), count(letter.version.get()), now))?;
    }
    Ok(())
}
