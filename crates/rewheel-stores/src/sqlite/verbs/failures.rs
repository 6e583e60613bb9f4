//! Reads the failures that incidents are built from.

use super::super::error::VerbError;
use super::super::row::{failure, instant};
use super::super::transaction::Transaction;
use super::super::writer::count as number;
use super::unreadable::readable;
use rewheel_core::store::{FailureScan, Failures};
use rewheel_core::{FailedJob, JobId};

pub(in super::super) fn failures(
    tx: &mut Transaction<'_, '_>,
    scan: &FailureScan,
) -> Result<Failures, VerbError> {
    let mut failures = Failures { jobs: Vec::new(), complete: true };
    for (is_dead, sql) in [
        (true, include_str!("../sql/failures_dead.sql")),
        (false, include_str!("../sql/failures_live.sql")),
    ] {
        let statement = tx.sql(sql)?;
        let mut statement = statement.get();
        // Ask for one row more than the limit, to know whether there are more.
        let mut rows = statement.query([number((scan.rows_max as u64).saturating_add(1))])?;
        let (mut looked_at, mut bytes) = (0, 0);
        while let Some(row) = rows.next()? {
            if looked_at >= scan.rows_max || bytes >= scan.bytes_max {
                failures.complete = false;
                break;
            }
            looked_at += 1;
            let Some(lane) = readable(tx.lane_of(row.get(1)?))? else { continue };
            if !scan.wants(&lane) {
                continue;
            }
            let failure = readable(failure(row.get(3)?, row.get(4)?, row.get(5)?))?;
            let Some(failure) = failure.flatten() else { continue };
            bytes += failure.message().len();
            failures.jobs.push(FailedJob {
                id: JobId::from_bytes(row.get(0)?),
                kind: lane.kind,
                is_dead,
                seen: instant(row.get(2)?),
                failure,
            });
        }
    }
    Ok(failures)
}
