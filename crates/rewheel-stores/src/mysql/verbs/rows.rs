//! Inserts new rows into the hot table and the tables beside it, many with one statement.

use super::super::error::VerbError;
use super::super::job_columns::{BLOCKED, LEASED, SCHEDULED, give};
use super::super::lane_rows::tenant_text;
use super::super::row::id16;
use super::super::statement::chunks;
use super::super::transaction::Transaction;
use mysql_async::Value;
use rewheel_core::{NewJob, Timestamp};
use std::collections::BTreeMap;

/// Rows per statement: with more, a statement has more parameters than the protocol allows.
const ROWS_MAX: usize = 512;

/// Bytes of payloads per statement: a fraction of the smallest `max_allowed_packet` that servers have by default.
const BYTES_MAX: usize = 4 * 1024 * 1024;

/// A job to be stored.
#[derive(Clone, Copy)]
pub(super) struct NewRow<'a> {
    pub(super) job: &'a NewJob,
    pub(super) lane: i64,
    pub(super) due: Timestamp,
    pub(super) deadline: Option<Timestamp>,
    /// The holder that gets it at once, and when it becomes overdue.
    pub(super) lease: Option<(i64, Timestamp)>,
}

pub(super) async fn write(tx: &mut Transaction<'_>, rows: &[NewRow<'_>]) -> Result<(), VerbError> {
    let claims = write_claims(tx, rows).await?;
    let mut start = 0;
    while start < rows.len() {
        let mut bytes = 0;
        let fitting = rows[start..].iter().take_while(|row| {
            bytes += row.job.payload.len();
            bytes <= BYTES_MAX
        });
        let end = start + fitting.count().max(1);
        let mut left = &rows[start..end];
        for size in chunks(left.len(), ROWS_MAX) {
            let (part, rest) = left.split_at(size);
            let mut values = Vec::new();
            part.iter().for_each(|row| bind(tx, &mut values, row, &claims));
            tx.insert_rows(include_str!("../sql/insert.sql"), size, values).await?;
            left = rest;
        }
        start = end;
    }
    write_beside(tx, rows).await
}

/// Records the leases of the direct path, and returns the number of the claim for each lane.
async fn write_claims(
    tx: &mut Transaction<'_>,
    rows: &[NewRow<'_>],
) -> Result<BTreeMap<i64, i64>, VerbError> {
    let mut claims: BTreeMap<i64, (i64, Timestamp, Vec<u8>)> = BTreeMap::new();
    for row in rows {
        if let Some((holder, overdue)) = row.lease {
            let claim = claims.entry(row.lane).or_insert_with(|| (holder, overdue, Vec::new()));
            claim.1 = claim.1.min(overdue);
            claim.2.extend(row.job.id.to_bytes());
        }
    }
    let mut numbers = BTreeMap::new();
    for (lane, (holder, overdue, jobs)) in claims {
        numbers.insert(lane, claim(tx, holder, lane, overdue, jobs).await?);
    }
    Ok(numbers)
}

/// Records that jobs of a lane are leased, given their ids, and returns the number of the claim.
pub(super) async fn claim(
    tx: &mut Transaction<'_>,
    holder: i64,
    lane: i64,
    overdue: Timestamp,
    jobs: Vec<u8>,
) -> Result<i64, VerbError> {
    let values: Vec<Value> = vec![
        holder.into(),
        lane.into(),
        tx.now.as_millis().into(),
        overdue.as_millis().into(),
        (jobs.len() / 16).into(),
        jobs.into(),
    ];
    Ok(tx.run(include_str!("../sql/insert_claim.sql"), values).await?.number)
}

fn bind(
    tx: &Transaction<'_>,
    values: &mut Vec<Value>,
    row: &NewRow<'_>,
    claims: &BTreeMap<i64, i64>,
) {
    give(values, row.job);
    let (state, lane) = match row.lease {
        Some(_) => (LEASED, row.lane),
        None if row.job.group_key.is_some() => (BLOCKED, -row.lane),
        None => (SCHEDULED, row.lane),
    };
    let (holder, overdue) = row.lease.map_or((0, 0), |(holder, due)| (holder, due.as_millis()));
    let claim = row.lease.and_then(|_| claims.get(&row.lane)).copied().unwrap_or(0);
    let floor = tx.shared.epoch.fence_floor();
    values.extend([
        lane.into(),
        tx.place(row.due).into(),
        state.into(),
        row.due.as_millis().into(),
        row.lease.map_or(0, |_| floor + 1).into(),
        // Attempts so far, and those that do not count against the limit: the same for a new job.
        row.job.attempts_before.into(),
        row.job.attempts_before.into(),
        holder.into(),
        claim.into(),
        row.lease.map_or(0, |_| tx.now.as_millis()).into(),
        overdue.into(),
        tx.now.as_millis().into(),
        row.deadline.map(Timestamp::as_millis).into(),
    ]);
}

/// Writes the rows that only some jobs have.
async fn write_beside(tx: &mut Transaction<'_>, rows: &[NewRow<'_>]) -> Result<(), VerbError> {
    let (mut deadlines, mut children) = (Vec::new(), Vec::new());
    let (mut grouped, mut members) = (Vec::new(), Vec::new());
    for NewRow { job, deadline, .. } in rows {
        let id = || id16(job.id.to_bytes());
        if let Some(deadline) = deadline {
            deadlines.push(vec![deadline.as_millis().into(), id()]);
        }
        if let Some(parent) = job.parent {
            children.push(vec![id16(parent.to_bytes()), id()]);
        }
        if let Some(key) = &job.group_key {
            let tenant = tenant_text(job.tenant.as_ref());
            grouped.push(vec![key.as_str().into(), id()]);
            members.push(vec![id(), key.as_str().into(), job.kind.as_str().into(), tenant.into()]);
        }
    }
    insert(tx, include_str!("../sql/insert_deadlines.sql"), deadlines).await?;
    insert(tx, include_str!("../sql/insert_children.sql"), children).await?;
    insert(tx, include_str!("../sql/insert_grouped.sql"), grouped).await?;
    // In this order: the first in a batch is the first in its line.
    insert(tx, include_str!("../sql/insert_members.sql"), members).await
}

async fn insert(
    tx: &mut Transaction<'_>,
    sql: &'static str,
    rows: Vec<Vec<Value>>,
) -> Result<(), VerbError> {
    let sizes = chunks(rows.len(), ROWS_MAX);
    let mut rows = rows.into_iter();
    for size in sizes {
        let values = rows.by_ref().take(size).flatten().collect();
        tx.insert_rows(sql, size, values).await?;
    }
    Ok(())
}
