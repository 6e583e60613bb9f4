//! Replaces jobs that wait to be claimed for the first time.

use super::super::error::VerbError;
use super::super::job_columns::{Payload, SCHEDULED, give};
use super::super::row::{bytes, get, id16};
use super::super::transaction::Transaction;
use super::ending;
use super::keys::Keys;
use super::read::lock;
use crate::audit::document;
use crate::duplicates::{SUBMIT, wakes};
use mysql_async::Value;
use rewheel_core::store::{Inserted, Refusal, StoreError};
use rewheel_core::{Job, JobId, NewJob, OnDuplicate, State, Timestamp, Waits, replaced_facts};

/// Returns whether a job waits to be claimed for the first time, and keeps others from claiming it.
pub(super) async fn waits(tx: &mut Transaction<'_>, job: JobId) -> Result<Waits, VerbError> {
    let sql = include_str!("../sql/find_fence.sql");
    let row = tx.find(sql, vec![id16(job.to_bytes())]).await?;
    let fence: Option<i64> = row.map(|row| get(&row, 0)).transpose()?;
    Ok(if fence == Some(0) { Waits::Yes } else { Waits::No })
}

/// Returns the job that a submit replaced when it was sent before.
pub(super) async fn replaced_by(
    tx: &mut Transaction<'_>,
    new: &NewJob,
) -> Result<Option<JobId>, VerbError> {
    if new.duplicates.on_duplicate() != OnDuplicate::Replace {
        return Ok(None);
    }
    let sql = include_str!("../sql/replaced_by.sql");
    let row = tx.find(sql, vec![id16(new.id.to_bytes())]).await?;
    row.map(|row| Ok(JobId::from_bytes(bytes(&row, 0)?))).transpose()
}

/// Replaces what a job that waits will run.
pub(super) async fn replace(
    tx: &mut Transaction<'_>,
    job: JobId,
    new: &NewJob,
    keys: &mut Keys,
) -> Result<Inserted, VerbError> {
    let before = lock(tx, job, Payload::Read).await?.ok_or_else(|| gone(job))?;
    let fresh = new.in_place_of(&before, tx.now);
    if fresh.is_too_late(tx.now) {
        return Ok(Inserted::Refused(Refusal::DeadlineTooEarly));
    }
    let after = fresh.replaced(&before);
    write(tx, &before, &fresh).await?;
    if let Some(key) = &fresh.key {
        keys.take(tx, &fresh, key).await?;
    }
    let (old, facts) = replaced_facts(&before, &after, new.id);
    let values = vec![
        tx.now.as_millis().into(),
        SUBMIT.into(),
        id16(before.id.to_bytes()),
        before.lane.kind.as_str().into(),
        document(&old).into(),
        document(&facts).into(),
        id16(new.id.to_bytes()),
    ];
    tx.execute(include_str!("../sql/audit_replace.sql"), values).await?;
    let report = tx.report.get_or_insert_default();
    if wakes(&before, &after) {
        report.add(&after.lane);
    }
    Ok(Inserted::Replaced { job: before.id, state: after.state() })
}

async fn write(tx: &mut Transaction<'_>, before: &Job, fresh: &NewJob) -> Result<(), VerbError> {
    let lane = tx.lane_or_new(&fresh.lane()).await?;
    let blocked = before.group.as_ref().is_some_and(|group| group.blocked);
    let is_claimable = before.state() == State::Scheduled && !blocked;
    let lane = if is_claimable { lane } else { -lane };
    debug_assert_eq!(SCHEDULED, 0, "claims read rows with this state");
    let due = fresh.due.resolve(tx.now);
    let deadline = fresh.deadline.map(|deadline| deadline.resolve(tx.now));
    let mut values: Vec<Value> = vec![
        lane.into(),
        tx.place(due).into(),
        due.as_millis().into(),
        deadline.map(Timestamp::as_millis).into(),
        fresh.attempts_before.into(),
        fresh.attempts_before.into(),
    ];
    give(&mut values, fresh);
    values.push(id16(fresh.id.to_bytes()));
    tx.execute(include_str!("../sql/replace.sql"), values).await?;
    ending::move_deadline(tx, before.id, before.deadline, deadline).await?;
    move_child(tx, before, fresh).await
}

/// Lists a job by the parent that it has now.
async fn move_child(
    tx: &mut Transaction<'_>,
    before: &Job,
    fresh: &NewJob,
) -> Result<(), VerbError> {
    if before.parent == fresh.parent {
        return Ok(());
    }
    let row = |parent: JobId| vec![id16(parent.to_bytes()), id16(before.id.to_bytes())];
    if let Some(parent) = before.parent {
        tx.execute(include_str!("../sql/drop_child.sql"), row(parent)).await?;
    }
    if let Some(parent) = fresh.parent {
        tx.insert_rows(include_str!("../sql/insert_children.sql"), 1, row(parent)).await?;
    }
    Ok(())
}

fn gone(job: JobId) -> VerbError {
    let what = format!("job {job} vanished while it was being replaced: run `rewheel doctor`");
    VerbError::Said(StoreError::Broken { what, source: None })
}
