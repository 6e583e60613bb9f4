//! Reads the failures that incidents are built from.

use super::super::error::VerbError;
use super::super::row::{bytes, count, failure, get, id16, instant};
use super::super::transaction::Transaction;
use super::unreadable::readable;
use mysql_async::Row;
use rewheel_core::store::{FailureScan, Failures};
use rewheel_core::{FailedJob, JobId};

/// Rows that are read at once: their messages are a few megabytes at most.
const PAGE: usize = 1_000;

pub(in super::super) async fn failures(
    tx: &mut Transaction<'_>,
    scan: &FailureScan,
) -> Result<Failures, VerbError> {
    let mut found = Failures { jobs: Vec::new(), complete: true };
    for (is_dead, sql) in [
        (true, include_str!("../sql/failures_dead.sql")),
        (false, include_str!("../sql/failures_live.sql")),
    ] {
        let (mut looked_at, mut size) = (0, 0);
        // Greater than every id.
        let mut before = [0xff; 16];
        let mut has_more = true;
        while has_more {
            // Asks for one row more than the limit, to know whether there are more.
            let limit = scan.rows_max.saturating_sub(looked_at).saturating_add(1).min(PAGE);
            let rows = tx.rows(sql, vec![id16(before), count(limit as u64)]).await?;
            has_more = rows.len() == limit;
            for row in &rows {
                if looked_at >= scan.rows_max || size >= scan.bytes_max {
                    (found.complete, has_more) = (false, false);
                    break;
                }
                looked_at += 1;
                before = bytes(row, 0)?;
                if let Some(failed) = read(tx, row, scan, is_dead).await? {
                    size += failed.failure.message().len();
                    found.jobs.push(failed);
                }
            }
        }
    }
    Ok(found)
}

/// Returns the failure of a job, if it has one that the scan wants.
async fn read(
    tx: &mut Transaction<'_>,
    row: &Row,
    scan: &FailureScan,
    is_dead: bool,
) -> Result<Option<FailedJob>, VerbError> {
    let lane = tx.lane_of(get(row, 1)?).await;
    let Some(lane) = readable(lane)?.filter(|lane| scan.wants(lane)) else { return Ok(None) };
    let failure = readable(failure(get(row, 3)?, get(row, 4)?, get(row, 5)?))?;
    let Some(failure) = failure.flatten() else { return Ok(None) };
    let id = JobId::from_bytes(bytes(row, 0)?);
    Ok(Some(FailedJob { id, kind: lane.kind, is_dead, seen: instant(get(row, 2)?), failure }))
}
