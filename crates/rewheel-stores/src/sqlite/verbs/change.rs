//! Changes jobs on behalf of operators.

use super::super::error::VerbError;
use super::super::job_columns::Payload;
use super::super::transaction::Transaction;
use super::audit::{Line, audit};
use super::ending::{Ending, Live, end, end_key};
use super::groups;
use super::insert::PAYLOAD_BYTES_MAX;
use super::read::get;
use rewheel_core::store::{Change, ChangeVerb, Changed};
use rewheel_core::{Actor, Job, Key, Retain, State, Timestamp, Wanted};
use rusqlite::types::ToSql;

pub(in super::super) fn change(
    tx: &mut Transaction<'_, '_>,
    changes: &[Change],
    by: &Actor,
    keep: Retain,
) -> Result<Vec<Changed>, VerbError> {
    let mut answers = Vec::with_capacity(changes.len());
    for change in changes {
        answers.push(one(tx, change, by, keep)?);
    }
    Ok(answers)
}

fn one(
    tx: &mut Transaction<'_, '_>,
    change: &Change,
    by: &Actor,
    keep: Retain,
) -> Result<Changed, VerbError> {
    let Some(before) = get(tx, change.job, Payload::Read)? else { return Ok(Changed::NotFound) };
    if change.if_version.is_some_and(|version| version != before.version) {
        return Ok(Changed::VersionChanged(before.version));
    }
    let after = match change.apply(&before, tx.now, PAYLOAD_BYTES_MAX) {
        Ok(after) => after,
        Err(answer) => return Ok(answer),
    };
    tx.report.get_or_insert_default().add(&after.lane);
    write(tx, &before, &after, &change.what, keep)?;
    let (old, new) = change.what.facts(&before, &after);
    let what = change.what.as_str();
    let kind = Some(&before.lane.kind);
    audit(tx, by, Line { what, job: Some(before.id), kind, before: old, after: new })?;
    let version = before.version.next();
    Ok(match after.status.wanted() {
        Some(_) => Changed::Wanted { version },
        None => Changed::Applied { state: after.state(), version },
    })
}

fn write(
    tx: &mut Transaction<'_, '_>,
    before: &Job,
    after: &Job,
    what: &ChangeVerb,
    keep: Retain,
) -> Result<(), VerbError> {
    let id = before.id.to_bytes();
    let deadline = after.deadline.map(Timestamp::as_millis);
    if before.state() == State::Paused {
        tx.execute(include_str!("../sql/delete_unreadable.sql"), [id])?;
    }
    match (before.state(), after.state()) {
        (State::Dead, State::Scheduled) => {
            let state = groups::stored_state(tx, after, State::Scheduled)?;
            let values = (id, after.due.as_millis(), deadline, state);
            tx.execute(include_str!("../sql/redrive.sql"), values)?;
            tx.execute(include_str!("../sql/delete_dead.sql"), [id])?;
            groups::redriven(tx, after)?;
        }
        (State::Dead, State::Cancelled) => cancel_dead(tx, before, keep)?,
        (State::Dead, _) => {
            let lane = tx.lane_or_new(&after.lane)?;
            let values = (
                id,
                lane,
                after.due.as_millis(),
                after.because.as_str(),
                deadline,
                after.attempts_max,
                payload(after, what),
            );
            tx.execute(include_str!("../sql/edit_dead.sql"), values)?;
        }
        (_, State::Cancelled) => cancel_live(tx, before, keep)?,
        (_, state) => {
            let lane = tx.lane_or_new(&after.lane)?;
            let wanted = after.status.wanted().map(Wanted::as_str);
            let values: [&dyn ToSql; 9] = [
                &id,
                &lane,
                &groups::stored_state(tx, after, state)?,
                &after.due.as_millis(),
                &after.because.as_str(),
                &deadline,
                &after.attempts_max,
                &wanted,
                &payload(after, what),
            ];
            tx.execute(include_str!("../sql/edit_live.sql"), &values[..])?;
            groups::changed(tx, after)?;
        }
    }
    Ok(())
}

/// Returns the payload if the edit changes it.
fn payload<'a>(after: &'a Job, what: &ChangeVerb) -> Option<&'a [u8]> {
    let is_new = matches!(what, ChangeVerb::Edit(edit) if edit.payload.is_some());
    after.payload.as_deref().filter(|_| is_new)
}

fn cancel_live(tx: &mut Transaction<'_, '_>, job: &Job, keep: Retain) -> Result<(), VerbError> {
    let sql = include_str!("../sql/find_live.sql");
    let id = job.id;
    let found = tx.find(sql, [id.to_bytes()], |row| {
        Ok(Live {
            seq: row.get(0)?,
            id,
            lane: row.get(1)?,
            key: row.get(2)?,
            attempt: job.attempt,
            fence: job.fence,
            takeovers: job.takeovers,
            takeovers_counted: job.takeovers_counted,
            group_key: row.get(3)?,
        })
    })?;
    if let Some(live) = found {
        let ending = Ending { state: State::Cancelled, failure: None, settled_by: None, keep };
        end(tx, &live, &ending)?;
    }
    Ok(())
}

fn cancel_dead(tx: &mut Transaction<'_, '_>, job: &Job, keep: Retain) -> Result<(), VerbError> {
    let id = job.id.to_bytes();
    if keep.job.is_zero() {
        tx.execute(include_str!("../sql/delete_attempts.sql"), [id])?;
        tx.pruned += 1;
    } else {
        let values = (id, tx.now.as_millis(), tx.now.plus(keep.job).as_millis());
        tx.execute(include_str!("../sql/cancel_dead.sql"), values)?;
    }
    tx.execute(include_str!("../sql/delete_dead.sql"), [id])?;
    groups::cancelled(tx, job)?;
    match &job.key {
        Some(key) => {
            let expires = tx.now.plus(keep.key);
            end_key(tx, &job.lane, Key::as_str(key), job.id, State::Cancelled, expires)
        }
        None => Ok(()),
    }
}
