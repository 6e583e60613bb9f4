//! Records what holders do with the jobs that they have, and lists these jobs.

use super::super::error::VerbError;
use super::super::row::{bytes, count, get, id16, instant, millis, unsigned};
use super::super::transaction::Transaction;
use mysql_async::Value;
use rewheel_core::store::Extension;
use rewheel_core::{Fence, HolderId, JobId, Lease, Timestamp};
use std::time::Duration;

/// Jobs that are looked up with one statement.
const JOBS_READ: usize = 1_000;

pub(in super::super) async fn start(
    tx: &mut Transaction<'_>,
    holder: HolderId,
    leases: &[Lease],
) -> Result<Vec<bool>, VerbError> {
    let Some(number) = tx.alive(holder).await? else { return Ok(vec![false; leases.len()]) };
    let mut answers = Vec::with_capacity(leases.len());
    for lease in leases {
        let values = vec![id16(lease.job.to_bytes()), number.into(), count(lease.fence.get())];
        answers.push(tx.execute(include_str!("../sql/start.sql"), values).await? == 1);
    }
    Ok(answers)
}

pub(in super::super) async fn checkpoint(
    tx: &mut Transaction<'_>,
    holder: HolderId,
    lease: Lease,
    payload: &[u8],
) -> Result<bool, VerbError> {
    let Some(number) = tx.number(holder).await? else { return Ok(false) };
    let values =
        vec![payload.into(), id16(lease.job.to_bytes()), number.into(), count(lease.fence.get())];
    Ok(tx.execute(include_str!("../sql/checkpoint.sql"), values).await? == 1)
}

pub(in super::super) async fn extend(
    tx: &mut Transaction<'_>,
    holder: HolderId,
    extension: &Extension,
) -> Result<Option<Timestamp>, VerbError> {
    let Some(number) = tx.alive(holder).await? else { return Ok(None) };
    let lease = extension.lease;
    let id = id16(lease.job.to_bytes());
    let values = vec![id.clone(), number.into(), count(lease.fence.get())];
    let Some(row) = tx.find(include_str!("../sql/extend_find.sql"), values).await? else {
        return Ok(None);
    };
    let (leased, overdue) = (instant(get(&row, 0)?), instant(get(&row, 1)?));
    let end = tx.now.plus(extension.timeout).min(leased.plus(extension.total_max));
    let overdue = overdue.max(end.plus(extension.grace));
    let values = vec![overdue.as_millis().into(), id];
    tx.execute(include_str!("../sql/extend.sql"), values).await?;
    Ok(Some(overdue))
}

pub(in super::super) async fn held(
    tx: &mut Transaction<'_>,
    holder: HolderId,
    older_than: Duration,
    after: Option<JobId>,
    limit: usize,
) -> Result<Vec<Lease>, VerbError> {
    let Some(number) = tx.number(holder).await? else { return Ok(Vec::new()) };
    // The clock may have been set back since they were leased.
    let all = older_than.is_zero();
    let since = if all { i64::MAX } else { tx.now.as_millis().saturating_sub(millis(older_than)) };
    let mut ids = Vec::new();
    for row in tx.rows(include_str!("../sql/held_claims.sql"), vec![number.into()]).await? {
        ids.extend(claimed_jobs(&get::<Vec<u8>>(&row, 0)?));
    }
    ids.retain(|id| after.is_none_or(|after| *id > after));
    ids.sort_unstable();
    ids.dedup();
    let mut leases = Vec::new();
    for part in ids.chunks(JOBS_READ) {
        let list: Vec<Value> = part.iter().map(|id| id16(id.to_bytes())).collect();
        let after = [number.into(), since.into()];
        let rows = tx.run_list(include_str!("../sql/held.sql"), &[], &list, &after).await?.rows;
        let mut found = Vec::with_capacity(rows.len());
        for row in rows {
            let fence = Fence::new(unsigned(get(&row, 1)?));
            found.push(Lease { job: JobId::from_bytes(bytes(&row, 0)?), fence });
        }
        found.sort_unstable_by_key(|lease: &Lease| lease.job);
        leases.extend(found);
        if leases.len() >= limit {
            break;
        }
    }
    leases.truncate(limit);
    Ok(leases)
}

/// Returns the jobs that a claim leased.
pub(super) fn claimed_jobs(ids: &[u8]) -> impl Iterator<Item = JobId> + '_ {
    let (ids, _) = ids.as_chunks::<16>();
    ids.iter().map(|id| JobId::from_bytes(*id))
}
