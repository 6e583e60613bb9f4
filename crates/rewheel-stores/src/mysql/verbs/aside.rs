//! Moves jobs that were leased long ago out of the range that claims read.
//!
//! A move changes the primary key of a row, for which the server locks the row with the next larger id, too: it may be one that a user's
//! open transaction has stored. So a move waits for no lock: what cannot move now is left to a later sweep, and settles of the jobs do not
//! wait for a sweep that waits.

use super::super::error::VerbError;
use super::super::pool::lock_wait;
use super::super::row::{bytes, get, id16, instant, millis};
use super::super::transaction::Transaction;
use super::held::claimed_jobs;
use super::sweep::{Budget, CLAIMS_READ};
use mysql_async::Value;
use rewheel_core::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// What is leased for longer than this leaves the range that claims read.
const LEASED_LONG: Duration = Duration::from_secs(2);

/// Does not wait for locks. MySQL knows no wait that is shorter than a second.
const NO_WAIT: &str = "SET SESSION innodb_lock_wait_timeout = IF(VERSION() LIKE '%MariaDB%', 0, 1)";

/// Where a page of claims ends: when the last of them was leased, and its number.
pub(in super::super) type AsideAfter = (i64, i64);

/// What became of a page of claims.
#[derive(Debug, Default)]
pub(in super::super) struct Aside {
    /// Where the next page begins, if there may be one.
    pub(in super::super) next: Option<AsideAfter>,
    /// The jobs that did not move, because one of them could not.
    pub(in super::super) stuck: Vec<StuckJob>,
}

/// A job that may be moved alone: its id, and when it is due.
pub(in super::super) type StuckJob = (Value, Timestamp);

/// Moves jobs that were leased long ago out of the range that claims read: they would pass over them again and again. Takes the oldest
/// claims of all holders after a claim, because workers do not sweep. Locks the jobs that it moves, and claims only at the end, as a settle
/// does. Waits for neither: a claim of which a job was locked is left to the next sweep.
pub(in super::super) async fn set_long_leases_aside(
    tx: &mut Transaction<'_>,
    after: AsideAfter,
) -> Result<Aside, VerbError> {
    let since = tx.now.as_millis().saturating_sub(millis(LEASED_LONG));
    let (leased, seq) = after;
    let values =
        vec![since.into(), leased.into(), leased.into(), seq.into(), (CLAIMS_READ as u64).into()];
    let rows = tx.rows(include_str!("../sql/aside_claims.sql"), values).await?;
    let (mut last, mut left, mut ids) = (None, BTreeMap::new(), BTreeSet::new());
    for row in &rows {
        let seq: i64 = get(row, 1)?;
        last = Some((get(row, 0)?, seq));
        left.insert(seq, get::<i64>(row, 2)?);
        ids.extend(claimed_jobs(&get::<Vec<u8>>(row, 3)?));
    }
    let list: Vec<Value> = ids.into_iter().map(|id| id16(id.to_bytes())).collect();
    let mut jobs = Vec::new();
    for row in tx.run_list(include_str!("../sql/aside_jobs.sql"), &[], &list, &[]).await?.rows {
        let (claim, lane): (i64, i64) = (get(&row, 1)?, get(&row, 2)?);
        let Some(left) = left.get_mut(&claim) else { continue };
        *left -= 1;
        if lane > 0 {
            jobs.push((id16(bytes(&row, 0)?), instant(get(&row, 3)?)));
        }
    }
    let next = last.filter(|_| rows.len() == CLAIMS_READ);
    if move_together(tx, &jobs).await? == Moved::No {
        return Ok(Aside { next, stuck: jobs });
    }
    // `jobs_left` was read before the jobs: it can only have become smaller, and then the next sweep finds the claim again.
    let done = left.into_iter().filter(|(_, left)| *left == 0);
    let done: Vec<Value> = done.map(|(claim, _)| claim.into()).collect();
    let mut locked = Vec::new();
    for row in tx.run_list(include_str!("../sql/lock_claims.sql"), &[], &done, &[]).await?.rows {
        locked.push(Value::from(get::<i64>(&row, 0)?));
    }
    tx.run_list(include_str!("../sql/aside_done.sql"), &[], &locked, &[]).await?;
    Ok(Aside { next, stuck: Vec::new() })
}

/// Moves jobs one by one, each in a transaction of its own, and passes over those that cannot move now. The next sweep counts them.
pub(in super::super) async fn set_aside_alone(
    tx: &mut Transaction<'_>,
    jobs: &[StuckJob],
    budget: &mut Budget,
) -> Result<(), VerbError> {
    tx.command(NO_WAIT).await?;
    for (id, due) in jobs {
        // A new place: a paused or blocked job may have the same one.
        let values = vec![tx.place(*due).into(), id.clone()];
        match tx.execute(include_str!("../sql/aside_anew.sql"), values).await {
            Ok(_) => {}
            Err(trouble) if trouble.is_passing() => {}
            Err(trouble) => {
                // The connection goes back to the pool.
                wait_again(tx).await?;
                return Err(trouble);
            }
        }
        if budget.is_spent().await {
            break;
        }
    }
    wait_again(tx).await
}

/// Whether the jobs have moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moved {
    Yes,
    No,
}

async fn move_together(tx: &mut Transaction<'_>, jobs: &[StuckJob]) -> Result<Moved, VerbError> {
    if jobs.is_empty() {
        return Ok(Moved::Yes);
    }
    let list: Vec<Value> = jobs.iter().map(|(id, _)| id.clone()).collect();
    tx.command(NO_WAIT).await?;
    let moved = tx.run_list(include_str!("../sql/aside.sql"), &[], &list, &[]).await;
    let ended = wait_again(tx).await;
    match moved {
        Ok(_) => ended.map(|()| Moved::Yes),
        // A place that a paused or blocked job has, or a lock: the statement has changed nothing.
        Err(trouble) if trouble.is_lock() || trouble.is_duplicate() => ended.map(|()| Moved::No),
        Err(trouble) => Err(trouble),
    }
}

async fn wait_again(tx: &mut Transaction<'_>) -> Result<(), VerbError> {
    let wait = lock_wait(tx.shared.timeout).as_secs();
    tx.command(&format!("SET SESSION innodb_lock_wait_timeout = {wait}")).await
}
