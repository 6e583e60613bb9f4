//! Ends live jobs, as dead letters or as finished.

use super::super::error::VerbError;
use super::super::transaction::{Transaction, tenant_text};
use super::groups;
use rewheel_core::{Cause, Failure, Fence, JobId, Lane, Retain, State, Timestamp, Transition};
use rusqlite::types::ToSql;

/// A row of the hot table that is about to leave it.
#[derive(Clone, Debug)]
pub(super) struct Live {
    pub(super) seq: i64,
    pub(super) id: JobId,
    pub(super) lane: i64,
    pub(super) key: Option<String>,
    pub(super) group_key: Option<String>,
    /// Its fence, before it is taken from its holder.
    pub(super) fence: Fence,
    /// Its counters at the end.
    pub(super) attempt: u32,
    pub(super) takeovers: u32,
    pub(super) takeovers_counted: u32,
}

impl Live {
    /// Describes what the engine does to the job, whether it takes it from a holder or not.
    pub(super) fn transition(&self, cause: Cause, from: State, to: State) -> Transition<'static> {
        Transition {
            cause,
            from,
            to,
            holder: None,
            fence: self.fence,
            wanted: None,
            takeovers: self.takeovers,
            takeovers_counted: self.takeovers_counted,
            failure: None,
        }
    }
}

/// How a job ends.
#[derive(Clone, Debug)]
pub(super) struct Ending<'a> {
    pub(super) state: State,
    pub(super) failure: Option<&'a Failure>,
    /// The holder whose settle ends it, to recognize a repeated settle.
    pub(super) settled_by: Option<i64>,
    pub(super) keep: Retain,
}

/// Returns category, code and message as they are stored.
pub(super) fn texts(failure: Option<&Failure>) -> (Option<&str>, Option<&str>, Option<&str>) {
    match failure {
        Some(failure) => {
            (Some(failure.category().as_str()), failure.code(), Some(failure.message()))
        }
        None => (None, None, None),
    }
}

/// Moves a job out of the hot table.
pub(super) fn end(
    tx: &mut Transaction<'_, '_>,
    live: &Live,
    end: &Ending<'_>,
) -> Result<(), VerbError> {
    match end.state {
        State::Dead => die(tx, live, end)?,
        State::Succeeded | State::Failed | State::Cancelled => finish(tx, live, end)?,
        State::Scheduled | State::Leased | State::Paused => {
            debug_assert!(false, "a job does not end as {}", end.state);
            return Ok(());
        }
    }
    tx.execute(include_str!("../sql/delete_job.sql"), [live.seq])?;
    groups::ended(tx, live, end.state)
}

fn die(tx: &Transaction<'_, '_>, live: &Live, end: &Ending<'_>) -> Result<(), VerbError> {
    let (category, code, message) = texts(end.failure);
    let values: [&dyn ToSql; 9] = [
        &live.seq,
        &live.attempt,
        &live.takeovers,
        &live.takeovers_counted,
        &end.settled_by,
        &category,
        &code,
        &message,
        &tx.now.as_millis(),
    ];
    tx.execute(include_str!("../sql/end_dead.sql"), &values[..])?;
    Ok(())
}

fn finish(tx: &mut Transaction<'_, '_>, live: &Live, end: &Ending<'_>) -> Result<(), VerbError> {
    if end.keep.job.is_zero() {
        tx.execute(include_str!("../sql/delete_attempts.sql"), [live.id.to_bytes()])?;
        tx.pruned += 1;
    } else {
        let (category, code, message) = texts(end.failure);
        let values: [&dyn ToSql; 11] = [
            &live.seq,
            &end.state.as_str(),
            &live.attempt,
            &live.takeovers,
            &end.settled_by,
            &category,
            &code,
            &message,
            &tx.now.as_millis(),
            &tx.now.plus(end.keep.job).as_millis(),
            &live.takeovers_counted,
        ];
        tx.execute(include_str!("../sql/end_finished.sql"), &values[..])?;
    }
    match &live.key {
        Some(key) => {
            let lane = tx.lane_of(live.lane)?;
            end_key(tx, &lane, key, live.id, end.state, tx.now.plus(end.keep.key))
        }
        None => Ok(()),
    }
}

/// Stores the final state of a job in its key, until the key expires.
pub(super) fn end_key(
    tx: &Transaction<'_, '_>,
    lane: &Lane,
    key: &str,
    job: JobId,
    state: State,
    expires: Timestamp,
) -> Result<(), VerbError> {
    let tenant = tenant_text(lane.tenant.as_ref());
    let values =
        (lane.kind.as_str(), tenant, key, job.to_bytes(), state.as_str(), expires.as_millis());
    tx.execute(include_str!("../sql/end_key.sql"), values)?;
    Ok(())
}
