//! Replaces jobs that wait to be claimed for the first time.

use super::super::error::VerbError;
use super::super::job_columns::{self, Payload};
use super::super::row::column;
use super::super::transaction::Transaction;
use super::insert::take_key;
use super::read::get;
use crate::audit::document;
use crate::duplicates::{SUBMIT, wakes};
use rewheel_core::store::{Inserted, Refusal, StoreError};
use rewheel_core::{JobId, NewJob, OnDuplicate, Timestamp, Waits, When, replaced_facts};

/// Returns whether a job waits to be claimed for the first time.
pub(super) fn waits(tx: &Transaction<'_, '_>, job: JobId) -> Result<Waits, VerbError> {
    let sql = include_str!("../sql/find_fence.sql");
    let fence: Option<i64> = tx.find(sql, [job.to_bytes()], column)?;
    Ok(if fence == Some(0) { Waits::Yes } else { Waits::No })
}

/// Returns the job that a submit replaced when it was sent before.
pub(super) fn replaced_by(
    tx: &Transaction<'_, '_>,
    new: &NewJob,
) -> Result<Option<JobId>, VerbError> {
    if new.duplicates.on_duplicate() != OnDuplicate::Replace {
        return Ok(None);
    }
    let sql = include_str!("../sql/replaced_by.sql");
    let job: Option<[u8; 16]> = tx.find(sql, [new.id.to_bytes()], column)?;
    Ok(job.map(JobId::from_bytes))
}

/// Replaces what a job that waits will run.
pub(super) fn replace(
    tx: &mut Transaction<'_, '_>,
    job: JobId,
    new: &NewJob,
) -> Result<Inserted, VerbError> {
    let before = get(tx, job, Payload::Read)?.ok_or_else(|| gone(job))?;
    let fresh = new.in_place_of(&before, tx.now);
    if fresh.is_too_late(tx.now) {
        return Ok(Inserted::Refused(Refusal::DeadlineTooEarly));
    }
    let after = fresh.replaced(&before);
    write(tx, &fresh)?;
    if let Some(key) = &fresh.key {
        take_key(tx, &fresh, key)?;
    }
    let (old, facts) = replaced_facts(&before, &after, new.id);
    let values = (
        tx.now.as_millis(),
        SUBMIT,
        before.id.to_bytes(),
        before.lane.kind.as_str(),
        document(&old),
        new.id.to_bytes(),
        document(&facts),
    );
    tx.execute(include_str!("../sql/audit_replace.sql"), values)?;
    let report = tx.report.get_or_insert_default();
    if wakes(&before, &after) {
        report.add(&after.lane);
    }
    Ok(Inserted::Replaced { job: before.id, state: after.state() })
}

fn write(tx: &mut Transaction<'_, '_>, fresh: &NewJob) -> Result<(), VerbError> {
    let lane = tx.lane_or_new(&fresh.lane())?;
    let millis = |when: When| Timestamp::as_millis(when.resolve(tx.now));
    let statement = tx.sql(include_str!("../sql/replace.sql"))?;
    let mut statement = statement.get();
    statement.raw_bind_parameter(1, fresh.id.to_bytes())?;
    statement.raw_bind_parameter(2, millis(fresh.due))?;
    statement.raw_bind_parameter(3, fresh.deadline.map(millis))?;
    statement.raw_bind_parameter(4, fresh.attempts_before)?;
    job_columns::bind(&mut statement, 5, fresh, lane)?;
    statement.raw_execute()?;
    Ok(())
}

fn gone(job: JobId) -> VerbError {
    let what = format!("job {job} vanished while it was being replaced: run `rewheel doctor`");
    VerbError::Said(StoreError::Broken { what, source: None })
}
