//! Deletes data whose retention has ended.

use super::super::error::VerbError;
use super::super::row::{bytes, count, get, millis};
use super::super::transaction::Transaction;
use super::super::{MysqlStore, write};
use super::groups;
use super::results;
use mysql_async::{Row, Value};
use rewheel_core::Limits;
use rewheel_core::store::{Prune, Pruned, StoreResult};
use std::time::Duration;

/// Lines of the ledger that are not added up: with so few, reading the books is fast.
const LEDGER_LINES_MAX: usize = 100;

/// How long the line of a group is kept after its last job: its turns grow even if the server's clock is set back by less.
const IDLE_LINES_KEPT: Duration = Duration::from_secs(24 * 3_600);

impl MysqlStore {
    /// Prunes each sort of data in its own transaction, so that locks are held for a short time.
    pub(in super::super) async fn prune_batch(&self, prune: &Prune) -> StoreResult<Pruned> {
        let limit = prune.limit;
        if limit == 0 {
            return Ok(Pruned::default());
        }
        let finished = write!(self, tx => finished(tx, limit))?;
        let keys = write!(self, tx => keys(tx, limit))?;
        let audit = write!(self, tx => audit(tx, limit, prune.audit_older_than))?;
        let holders = write!(self, tx => holders(tx, limit))?;
        write!(self, tx => reserved_and_limits(tx))?;
        write!(self, tx => lines(tx, limit))?;
        let results = write!(self, tx => results::prune(tx, limit))?;
        let ledger = write!(self, tx => fold(tx, limit))?;
        Ok(Pruned { finished, results, keys, audit, holders, ledger })
    }
}

/// Deletes finished jobs with all that refers to them.
async fn finished(tx: &mut Transaction<'_>, limit: usize) -> Result<u64, VerbError> {
    let values = vec![tx.now.as_millis().into(), count(limit as u64)];
    let rows = tx.rows(include_str!("../sql/prune_finished.sql"), values).await?;
    if rows.is_empty() {
        return Ok(0);
    }
    let jobs = Value::from(hex_list(&rows)?);
    tx.execute(include_str!("../sql/delete_finished.sql"), vec![jobs.clone()]).await?;
    tx.execute(include_str!("../sql/prune_attempts.sql"), vec![jobs]).await?;
    for (at, sql) in [
        (1, include_str!("../sql/delete_children.sql")),
        (2, include_str!("../sql/delete_grouped.sql")),
    ] {
        if let Some(pairs) = hex_pairs(&rows, at)? {
            tx.execute(sql, vec![pairs.into()]).await?;
        }
    }
    tx.pruned += rows.len() as u64;
    Ok(rows.len() as u64)
}

async fn keys(tx: &mut Transaction<'_>, limit: usize) -> Result<u64, VerbError> {
    let values = vec![tx.now.as_millis().into(), count(limit as u64)];
    let rows = tx.rows(include_str!("../sql/prune_keys.sql"), values).await?;
    if rows.is_empty() {
        return Ok(0);
    }
    tx.execute(include_str!("../sql/delete_keys.sql"), vec![hex_list(&rows)?.into()]).await
}

async fn audit(
    tx: &mut Transaction<'_>,
    limit: usize,
    older_than: Duration,
) -> Result<u64, VerbError> {
    let until = long_ago(tx, older_than);
    let rows = tx.rows(include_str!("../sql/prune_audit.sql"), vec![count(limit as u64)]).await?;
    let mut old = Vec::new();
    for row in &rows {
        if get::<i64>(row, 1)? <= until {
            old.push(get::<i64>(row, 0)?);
        }
    }
    delete(tx, include_str!("../sql/delete_audit.sql"), &old).await
}

async fn holders(tx: &mut Transaction<'_>, limit: usize) -> Result<u64, VerbError> {
    let until = long_ago(tx, Limits::DEAD_HOLDERS_KEPT);
    let values = vec![until.into(), count(limit as u64)];
    let rows = tx.rows(include_str!("../sql/prune_holders.sql"), values).await?;
    let dead = rows.iter().map(|row| get(row, 0)).collect::<Result<Vec<i64>, _>>()?;
    delete(tx, include_str!("../sql/delete_renewals.sql"), &dead).await?;
    delete(tx, include_str!("../sql/delete_holders.sql"), &dead).await
}

/// Deletes reservations of deleted holders, and limits that were not used for long.
async fn reserved_and_limits(tx: &mut Transaction<'_>) -> Result<(), VerbError> {
    for sql in
        [include_str!("../sql/prune_reserved.sql"), include_str!("../sql/prune_reserve_locks.sql")]
    {
        for row in tx.rows(sql, Vec::new()).await? {
            let values = vec![get(&row, 0)?, get(&row, 1)?];
            tx.execute(include_str!("../sql/reserve_drop.sql"), values).await?;
        }
    }
    let until = long_ago(tx, Limits::FLEET_STARTS_KEPT);
    for row in tx.rows(include_str!("../sql/prune_limits.sql"), vec![until.into()]).await? {
        let values = vec![get(&row, 0)?, get(&row, 1)?];
        tx.execute(include_str!("../sql/delete_limit.sql"), values).await?;
    }
    Ok(())
}

/// Deletes the lines of groups that have had no jobs for long.
async fn lines(tx: &mut Transaction<'_>, limit: usize) -> Result<(), VerbError> {
    let until = long_ago(tx, IDLE_LINES_KEPT);
    groups::prune(tx, until, limit).await
}

/// Adds up old lines of the ledger into the last of them. Leaves the newest, which tell other processes what changed.
async fn fold(tx: &mut Transaction<'_>, limit: usize) -> Result<u64, VerbError> {
    let most = limit.saturating_add(1).saturating_add(LEDGER_LINES_MAX);
    let rows = tx.rows(include_str!("../sql/ledger_lines.sql"), vec![count(most as u64)]).await?;
    let (mut old, mut submitted, mut pruned) = (Vec::new(), 0_i64, 0_i64);
    for row in &rows[..rows.len().saturating_sub(LEDGER_LINES_MAX)] {
        old.push(get::<i64>(row, 0)?);
        submitted = submitted.saturating_add(get(row, 1)?);
        pruned = pruned.saturating_add(get(row, 2)?);
    }
    let Some((last, rest)) = old.split_last().filter(|(_, rest)| !rest.is_empty()) else {
        return Ok(0);
    };
    let values = vec![submitted.into(), pruned.into(), (*last).into()];
    tx.execute(include_str!("../sql/ledger_fold.sql"), values).await?;
    delete(tx, include_str!("../sql/delete_ledger.sql"), rest).await
}

fn long_ago(tx: &Transaction<'_>, age: Duration) -> i64 {
    tx.now.as_millis().saturating_sub(millis(age))
}

/// Deletes rows by their numbers.
async fn delete(
    tx: &mut Transaction<'_>,
    sql: &'static str,
    numbers: &[i64],
) -> Result<u64, VerbError> {
    if numbers.is_empty() {
        return Ok(0);
    }
    let list: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    tx.execute(sql, vec![format!("[{}]", list.join(",")).into()]).await
}

/// Returns the first column of all rows as a list of hexadecimal texts in JSON.
pub(super) fn hex_list(rows: &[Row]) -> Result<String, VerbError> {
    let texts = rows.iter().map(|row| Ok(format!("\"{}\"", hex(&get::<Vec<u8>>(row, 0)?))));
    Ok(format!("[{}]", texts.collect::<Result<Vec<String>, VerbError>>()?.join(",")))
}

/// Returns pairs of a column, where it is not NULL, and of the job's id in the first column; `None` if there are none.
fn hex_pairs(rows: &[Row], at: usize) -> Result<Option<String>, VerbError> {
    let mut pairs = Vec::new();
    for row in rows {
        if let Some(value) = get::<Option<Vec<u8>>>(row, at)? {
            pairs.push(format!("[\"{}\",\"{}\"]", hex(&value), hex(&bytes::<16>(row, 0)?)));
        }
    }
    Ok((!pairs.is_empty()).then(|| format!("[{}]", pairs.join(","))))
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: [char; 16] =
        ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'A', 'B', 'C', 'D', 'E', 'F'];
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(|digit| DIGITS[usize::from(digit)]).collect()
}
