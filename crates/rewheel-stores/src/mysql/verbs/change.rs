//! Changes jobs on behalf of operators.

use super::super::error::VerbError;
use super::super::job_columns::{Payload, SCHEDULED};
use super::super::row::{id16, wanted_number};
use super::super::transaction::Transaction;
use super::audit::{Auditor, Line};
use super::ending::{Ending, Live, drop_records, end, move_deadline};
use super::groups;
use super::keys::end_key;
use super::read::lock;
use super::sweep::Budget;
use mysql_async::Value;
use rewheel_core::store::{Change, ChangeVerb, Changed};
use rewheel_core::{Actor, Job, Key, Retain, State, Timestamp};

/// Changes the first of these jobs, as many as its time allows. The caller goes on with the others.
pub(in super::super) async fn change(
    tx: &mut Transaction<'_>,
    changes: &[Change],
    by: &Actor,
    keep: Retain,
) -> Result<Vec<Changed>, VerbError> {
    let (mut answers, mut budget) = (Vec::with_capacity(changes.len()), Budget::of(tx));
    let mut auditor = Auditor::of(by);
    for change in changes {
        answers.push(one(tx, change, by, keep, &mut auditor).await?);
        if budget.is_spent().await {
            break;
        }
    }
    auditor.write(tx).await?;
    Ok(answers)
}

async fn one(
    tx: &mut Transaction<'_>,
    change: &Change,
    by: &Actor,
    keep: Retain,
    auditor: &mut Auditor,
) -> Result<Changed, VerbError> {
    let Some(before) = lock(tx, change.job, Payload::Read).await? else {
        return Ok(Changed::NotFound);
    };
    if change.if_version.is_some_and(|version| version != before.version) {
        return Ok(Changed::VersionChanged(before.version));
    }
    let after = match change.apply(&before, tx.now, tx.shared.payload_bytes_max) {
        Ok(after) => after,
        Err(answer) => return Ok(answer),
    };
    tx.report.get_or_insert_default().add(&after.lane);
    write(tx, &before, &after, &change.what, keep).await?;
    let (old, new) = change.what.facts(&before, &after);
    let (what, kind) = (change.what.as_str(), Some(&before.lane.kind));
    auditor.add(tx, by, &Line { what, job: Some(before.id), kind, before: old, after: new });
    let version = before.version.next();
    Ok(match after.status.wanted() {
        Some(_) => Changed::Wanted { version },
        None => Changed::Applied { state: after.state(), version },
    })
}

async fn write(
    tx: &mut Transaction<'_>,
    before: &Job,
    after: &Job,
    what: &ChangeVerb,
    keep: Retain,
) -> Result<(), VerbError> {
    let id = id16(before.id.to_bytes());
    if before.state() == State::Paused {
        tx.execute(include_str!("../sql/delete_unreadable.sql"), vec![id]).await?;
    }
    match (before.state(), after.state()) {
        (State::Dead, State::Scheduled) => redrive(tx, after).await,
        (State::Dead, State::Cancelled) => cancel_dead(tx, before, keep).await,
        (State::Dead, _) => edit_dead(tx, after, what).await,
        (_, State::Cancelled) => cancel_live(tx, before, keep).await,
        (_, State::Leased) => want(tx, after).await,
        (_, _) => edit_live(tx, before, after, what).await,
    }
}

async fn redrive(tx: &mut Transaction<'_>, after: &Job) -> Result<(), VerbError> {
    let id = || id16(after.id.to_bytes());
    let state = groups::stored_state(tx, after, State::Scheduled).await?;
    let [lane, place] = address(tx, after, state).await?;
    let deadline = after.deadline.map(Timestamp::as_millis);
    let due = after.due.as_millis();
    let values = vec![lane, place, state.into(), due.into(), deadline.into(), id()];
    tx.execute(include_str!("../sql/redrive.sql"), values).await?;
    tx.execute(include_str!("../sql/drop_dead.sql"), vec![id()]).await?;
    move_deadline(tx, after.id, None, after.deadline).await?;
    groups::redriven(tx, after).await
}

/// Returns where a job is stored in the hot table.
async fn address(tx: &mut Transaction<'_>, job: &Job, state: u8) -> Result<[Value; 2], VerbError> {
    let lane = tx.lane_or_new(&job.lane).await?;
    let lane = if state == SCHEDULED { lane } else { -lane };
    Ok([lane.into(), tx.place(job.due).into()])
}

async fn edit_dead(
    tx: &mut Transaction<'_>,
    after: &Job,
    what: &ChangeVerb,
) -> Result<(), VerbError> {
    let lane = tx.lane_or_new(&after.lane).await?;
    let values = vec![
        lane.into(),
        after.due.as_millis().into(),
        after.because.as_str().into(),
        after.deadline.map(Timestamp::as_millis).into(),
        after.attempts_max.into(),
        payload(after, what).into(),
        id16(after.id.to_bytes()),
    ];
    tx.execute(include_str!("../sql/edit_dead.sql"), values).await.map(drop)
}

/// Requests something of the holder of a job.
async fn want(tx: &mut Transaction<'_>, after: &Job) -> Result<(), VerbError> {
    let id = || id16(after.id.to_bytes());
    let wanted = wanted_number(after.status.wanted());
    tx.execute(include_str!("../sql/want.sql"), vec![wanted.into(), id()]).await?;
    let sql = match after.status.wanted() {
        Some(_) => include_str!("../sql/insert_wanted.sql"),
        None => include_str!("../sql/withdraw_wanted.sql"),
    };
    tx.execute(sql, vec![id()]).await.map(drop)
}

async fn edit_live(
    tx: &mut Transaction<'_>,
    before: &Job,
    after: &Job,
    what: &ChangeVerb,
) -> Result<(), VerbError> {
    let state = groups::stored_state(tx, after, after.state()).await?;
    let mut values = vec![
        state.into(),
        after.due.as_millis().into(),
        after.because.as_str().into(),
        after.deadline.map(Timestamp::as_millis).into(),
        after.attempts_max.into(),
        wanted_number(after.status.wanted()).into(),
        payload(after, what).into(),
    ];
    values.extend(address(tx, after, state).await?);
    values.push(id16(after.id.to_bytes()));
    tx.execute(include_str!("../sql/edit_live.sql"), values).await?;
    move_deadline(tx, after.id, before.deadline, after.deadline).await?;
    groups::changed(tx, after).await
}

/// Returns the payload if the edit changes it.
fn payload<'a>(after: &'a Job, what: &ChangeVerb) -> Option<&'a [u8]> {
    let is_new = matches!(what, ChangeVerb::Edit(edit) if edit.payload.is_some());
    after.payload.as_deref().filter(|_| is_new)
}

async fn cancel_live(tx: &mut Transaction<'_>, job: &Job, keep: Retain) -> Result<(), VerbError> {
    let sql = include_str!("../sql/lock_live.sql");
    let rows = tx.run_list(sql, &[], &[id16(job.id.to_bytes())], &[]).await?.rows;
    if let Some(row) = rows.first() {
        let live = Live::read(row)?;
        let ending = Ending { state: State::Cancelled, failure: None, settled_by: None, keep };
        end(tx, &live, &ending).await?;
    }
    Ok(())
}

async fn cancel_dead(tx: &mut Transaction<'_>, job: &Job, keep: Retain) -> Result<(), VerbError> {
    let id = || id16(job.id.to_bytes());
    if keep.job.is_zero() {
        let group = job.group.as_ref().map(|group| group.key.as_str());
        drop_records(tx, job.id, job.parent, group).await?;
        tx.pruned += 1;
    } else {
        let expires = tx.now.plus(keep.job).as_millis();
        let values = vec![tx.now.as_millis().into(), expires.into(), id()];
        tx.execute(include_str!("../sql/cancel_dead.sql"), values).await?;
    }
    tx.execute(include_str!("../sql/drop_dead.sql"), vec![id()]).await?;
    groups::cancelled(tx, job).await?;
    match &job.key {
        Some(key) => {
            let expires = tx.now.plus(keep.key);
            end_key(tx, &job.lane, Key::as_str(key), job.id, State::Cancelled, expires).await
        }
        None => Ok(()),
    }
}
