//! Stores the jobs that settlements submit.

use super::super::error::{VerbError, unreadable};
use super::super::row::id16;
use super::super::transaction::Transaction;
use super::audit::Auditor;
use super::ending::{Ending, Live, end};
use super::insert::{self, Lines, find_states};
use super::kinds;
use super::rows::{self, NewRow};
use crate::follow_ups::{FollowUps, Letter};
use rewheel_core::{Actor, Cause, NewJob, Retain, State, Transition};

/// Stores them in the transaction of the settle that submits them.
pub(super) async fn store(
    tx: &mut Transaction<'_>,
    mut follow_ups: FollowUps,
    auditor: &mut Auditor,
) -> Result<(), VerbError> {
    if follow_ups.is_empty() {
        return Ok(());
    }
    let batch = FollowUps::insert(&follow_ups.jobs);
    let lines = if tx.is_theirs() { Lines::Leave } else { Lines::Release };
    let answers = Box::pin(insert::insert(tx, &batch, lines)).await?;
    follow_ups.refused(&answers);
    for kind in follow_ups.kinds() {
        if kinds::get_kind(tx, &kind.name).await?.is_none() {
            kinds::put_kinds(tx, std::slice::from_ref(&kind), &Actor::engine()).await?;
        }
    }
    for letter in &follow_ups.letters {
        if find_states(tx, &[letter.job.id]).await?.is_empty() {
            bury(tx, letter, auditor).await?;
        }
    }
    Ok(())
}

/// Stores a job as a dead letter.
async fn bury(
    tx: &mut Transaction<'_>,
    letter: &Letter,
    auditor: &mut Auditor,
) -> Result<(), VerbError> {
    let Letter { job, failure } = letter;
    let live = insert_one(tx, job).await?;
    let keep = Retain::default();
    let ending = Ending { state: State::Dead, failure: Some(failure), settled_by: None, keep };
    end(tx, &live, &ending).await?;
    let transition = live.transition(Cause::Settle, State::Scheduled, State::Dead);
    auditor.note(tx, &live, &Transition { failure: Some(failure), ..transition }).await?;
    tx.submitted += 1;
    tx.report.get_or_insert_default();
    Ok(())
}

async fn insert_one(tx: &mut Transaction<'_>, job: &NewJob) -> Result<Live, VerbError> {
    let lane = tx.lane_or_new(&job.lane()).await?;
    let row = NewRow { job, lane, due: tx.now, deadline: None, lease: None };
    rows::write(tx, &[row]).await?;
    let sql = include_str!("../sql/lock_live.sql");
    let found = tx.run_list(sql, &[], &[id16(job.id.to_bytes())], &[]).await?.rows;
    let row = found.first().ok_or_else(|| unreadable("a job that was just stored"))?;
    Live::read(row)
}
