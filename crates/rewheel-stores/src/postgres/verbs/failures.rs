//! Reads the failures that incidents are built from.

use super::super::error::VerbError;
use super::super::row::{count as number, failure, instant, job_id};
use super::super::session::Session;
use super::super::statements::{FAILURES_DEAD, FAILURES_LIVE, Sql};
use super::read::{lane, lanes};
use super::unreadable::readable;
use rewheel_core::FailedJob;
use rewheel_core::store::{FailureScan, Failures};
use uuid::Uuid;

/// Number of rows per read.
const CHUNK: usize = 1_000;

pub(in super::super) async fn failures(
    session: &Session<'_>,
    scan: &FailureScan,
) -> Result<Failures, VerbError> {
    let mut failures = Failures { jobs: Vec::new(), complete: true };
    for (is_dead, sql) in [(true, &FAILURES_DEAD), (false, &FAILURES_LIVE)] {
        failures.complete &= table(session, sql, is_dead, scan, &mut failures.jobs).await?;
    }
    Ok(failures)
}

/// Reads one table. Returns whether it was read to its end.
async fn table(
    session: &Session<'_>,
    sql: &'static Sql,
    is_dead: bool,
    scan: &FailureScan,
    jobs: &mut Vec<FailedJob>,
) -> Result<bool, VerbError> {
    let (mut before, mut looked_at, mut bytes) = (Uuid::max(), 0, 0);
    while looked_at < scan.rows_max && bytes < scan.bytes_max {
        let most = CHUNK.min(scan.rows_max - looked_at);
        // Ask for one row more than the limit, to know whether there are more.
        let asked = number((most as u64).saturating_add(1));
        let rows = session.query(sql, &[&before, &asked]).await?;
        let named = lanes(session, &rows, 1).await?;
        for row in rows.iter().take(most) {
            before = row.try_get(0)?;
            let Some(lane) = readable(lane(&named, row, 1))? else { continue };
            if !scan.wants(&lane) {
                continue;
            }
            let failure = failure(row.try_get(3)?, row.try_get(4)?, row.try_get(5)?);
            let Some(failure) = readable(failure)?.flatten() else { continue };
            bytes += failure.message().len();
            let (kind, seen) = (lane.kind, instant(row.try_get(2)?));
            jobs.push(FailedJob { id: job_id(before), kind, is_dead, seen, failure });
        }
        if rows.len() <= most {
            return Ok(true);
        }
        looked_at += most;
    }
    Ok(false)
}
