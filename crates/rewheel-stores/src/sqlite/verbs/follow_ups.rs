//! Stores the jobs that settlements submit.

use super::super::error::{VerbError, unreadable};
use super::super::row::column;
use super::super::transaction::Transaction;
use super::audit::Auditor;
use super::ending::{Ending, Live, end};
use super::insert::{self, Batch};
use super::kinds;
use super::rows::{self, NewRow};
use crate::follow_ups::{FollowUps, Letter};
use rewheel_core::store::Insert;
use rewheel_core::{Actor, Cause, Fence, JobId, NewJob, Retain, State, Transition};

/// Stores them in the transaction of the settle that submits them.
pub(super) fn store(
    tx: &mut Transaction<'_, '_>,
    mut follow_ups: FollowUps,
    auditor: &mut Auditor,
) -> Result<(), VerbError> {
    if follow_ups.is_empty() {
        return Ok(());
    }
    let jobs = std::mem::take(&mut follow_ups.jobs);
    let Insert { if_refused, sent, direct, .. } = FollowUps::insert(&jobs);
    let batch = Batch { jobs, if_refused, sent, direct };
    let answers = insert::insert(tx, &batch)?;
    follow_ups.jobs = batch.jobs;
    follow_ups.refused(&answers);
    for kind in follow_ups.kinds() {
        if kinds::get_kind(tx, &kind.name)?.is_none() {
            kinds::put_kinds(tx, std::slice::from_ref(&kind), &Actor::engine())?;
        }
    }
    for letter in &follow_ups.letters {
        if !exists(tx, letter.job.id)? {
            bury(tx, letter, auditor)?;
        }
    }
    Ok(())
}

/// Stores a job as a dead letter.
fn bury(
    tx: &mut Transaction<'_, '_>,
    letter: &Letter,
    auditor: &mut Auditor,
) -> Result<(), VerbError> {
    let Letter { job, failure } = letter;
    let live = insert_one(tx, job)?;
    let keep = Retain::default();
    let ending = Ending { state: State::Dead, failure: Some(failure), settled_by: None, keep };
    end(tx, &live, &ending)?;
    let transition = live.transition(Cause::Settle, State::Scheduled, State::Dead);
    auditor.note(tx, &live, &Transition { failure: Some(failure), ..transition })?;
    tx.submitted += 1;
    tx.report.get_or_insert_default();
    Ok(())
}

fn insert_one(tx: &mut Transaction<'_, '_>, job: &NewJob) -> Result<Live, VerbError> {
    let lane = tx.lane_or_new(&job.lane())?;
    rows::write(tx, &[NewRow { job, lane, due: tx.now, deadline: None, lease: None }])?;
    let seq = tx.find(include_str!("../sql/find_live.sql"), [job.id.to_bytes()], column)?;
    Ok(Live {
        seq: seq.ok_or_else(|| unreadable("a job that was just stored"))?,
        id: job.id,
        lane,
        key: None,
        fence: Fence::new(0),
        attempt: 0,
        takeovers: 0,
        takeovers_counted: 0,
        group_key: job.group_key.as_ref().map(ToString::to_string),
    })
}

fn exists(tx: &Transaction<'_, '_>, job: JobId) -> Result<bool, VerbError> {
    let sql = include_str!("../sql/find_state.sql");
    Ok(tx.find(sql, [job.to_bytes()], |_| Ok(()))?.is_some())
}
