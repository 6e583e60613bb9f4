//! Does what people ask for.

use super::super::PostgresStore;
use super::super::error::{Trouble, unreadable};
use super::super::row::{Payload, read_job, uuid};
use super::super::session::{Param, Session};
use super::super::statements::{
    CANCEL_DEAD, DROP_DEAD, EDIT_DEAD, EDIT_LIVE, GET_FINISHED, INSERT_LEDGER, LOCK_DEAD,
    LOCK_LIVE, REDRIVE, SETTLE_FIND, Sql,
};
use super::audit::{Line, audit};
use super::insert::PAYLOAD_BYTES_MAX;
use super::writes::{Live, Writes};
use rewheel_core::store::{Answer, Change, Changed, What};
use rewheel_core::{Actor, Job, JobId, Keep, State, Timestamp, Wanted};

impl PostgresStore {
    /// All of them in one transaction: many small ones would wait for the disk each.
    pub(in super::super) async fn change_batch(
        &self,
        changes: &[Change],
        by: &Actor,
        keep: Keep,
    ) -> Answer<Vec<Changed>> {
        // In the order of their ids, so that two who change the same ones do not wait for each other.
        let mut order: Vec<usize> = (0..changes.len()).collect();
        order.sort_by_key(|place| changes[*place].job);
        let session = self.transaction().await?;
        let answers = change(&session, changes, &order, by, keep).await;
        let answers = session.end(answers).await?;
        self.shared.lanes.lower();
        self.wake();
        Ok(answers)
    }
}

async fn change(
    session: &Session<'_>,
    changes: &[Change],
    order: &[usize],
    by: &Actor,
    keep: Keep,
) -> Result<Vec<Changed>, Trouble> {
    let now = session.now().await?;
    let mut answers = vec![Changed::NotFound; changes.len()];
    for place in order {
        answers[*place] = one(session, &changes[*place], by, keep, now).await?;
    }
    Ok(answers)
}

async fn one(
    session: &Session<'_>,
    change: &Change,
    by: &Actor,
    keep: Keep,
    now: Timestamp,
) -> Result<Changed, Trouble> {
    let Some(before) = lock(session, change.job).await? else { return Ok(Changed::NotFound) };
    if change.if_version.is_some_and(|version| version != before.version) {
        return Ok(Changed::VersionChanged(before.version));
    }
    let after = match change.what.apply(&before, now, PAYLOAD_BYTES_MAX) {
        Ok(after) => after,
        Err(answer) => return Ok(answer),
    };
    write(session, &before, &after, &change.what, (now, keep)).await?;
    let (old, new) = change.what.facts(&before, &after);
    let (what, kind) = (change.what.as_str(), Some(&before.lane.kind));
    let line = Line { who: by, what, job: Some(before.id), kind, before: &old, after: &new };
    audit(session, now, &[line]).await?;
    let version = before.version.next();
    Ok(match after.status.wanted() {
        Some(_) => Changed::Wanted { version },
        None => Changed::Applied { state: after.state(), version },
    })
}

/// Finds a job wherever it is, and keeps others from changing it.
async fn lock(session: &Session<'_>, job: JobId) -> Result<Option<Job>, Trouble> {
    let tables: [&'static Sql; 3] = [&LOCK_LIVE, &LOCK_DEAD, &GET_FINISHED];
    // Twice: one that goes back to work meanwhile goes from a table that was not looked into yet to one that was.
    for sql in tables.into_iter().chain(tables) {
        if let Some(row) = session.find(sql, &[&uuid(job)]).await? {
            let number: i32 = row.try_get(1)?;
            let mut lanes = super::super::lanes::names(session, std::iter::once(number)).await?;
            let lane =
                lanes.remove(&number).ok_or_else(|| unreadable("a lane that does not exist"))?;
            return read_job(&row, lane, Payload::Read).map(Some);
        }
    }
    Ok(None)
}

async fn write(
    session: &Session<'_>,
    before: &Job,
    after: &Job,
    what: &What,
    (now, keep): (Timestamp, Keep),
) -> Result<(), Trouble> {
    let id = uuid(before.id);
    let deadline = after.deadline.map(Timestamp::as_millis);
    let attempts_max = after.attempts_max.map(i64::from);
    match (before.state(), after.state()) {
        (State::Dead, State::Scheduled) => {
            session.execute(&REDRIVE, &[&id, &after.due.as_millis(), &deadline]).await?;
        }
        (State::Dead, State::Cancelled) => cancel_dead(session, before, now, keep).await?,
        (State::Dead, _) => {
            let lane = session.shared.lanes.number_in(session, &after.lane).await?;
            let params: [Param<'_>; 7] = [
                &id,
                &lane,
                &after.due.as_millis(),
                &after.because.as_str(),
                &deadline,
                &attempts_max,
                &payload(after, what),
            ];
            session.execute(&EDIT_DEAD, &params).await?;
        }
        (_, State::Cancelled) => cancel_live(session, before.id, now, keep).await?,
        (_, state) => {
            let lane = session.shared.lanes.number_in(session, &after.lane).await?;
            let params: [Param<'_>; 9] = [
                &id,
                &lane,
                &state.as_str(),
                &after.due.as_millis(),
                &after.because.as_str(),
                &deadline,
                &attempts_max,
                &after.status.wanted().map(Wanted::as_str),
                &payload(after, what),
            ];
            session.execute(&EDIT_LIVE, &params).await?;
        }
    }
    Ok(())
}

/// The payload, if it is a new one.
fn payload<'a>(after: &'a Job, what: &What) -> Option<&'a [u8]> {
    let is_new = matches!(what, What::Edit(edit) if edit.payload.is_some());
    after.payload.as_deref().filter(|_| is_new)
}

async fn cancel_live(
    session: &Session<'_>,
    job: JobId,
    now: Timestamp,
    keep: Keep,
) -> Result<(), Trouble> {
    let mut writes = Writes::default();
    for row in session.query(&SETTLE_FIND, &[&vec![uuid(job)]]).await? {
        writes.end(Live::read(&row)?, State::Cancelled, None, None, (now, keep));
    }
    writes.flush(session, now, None).await
}

async fn cancel_dead(
    session: &Session<'_>,
    job: &Job,
    now: Timestamp,
    keep: Keep,
) -> Result<(), Trouble> {
    let id = uuid(job.id);
    if keep.job.is_zero() {
        session.execute(&DROP_DEAD, &[&id]).await?;
        session.execute(&INSERT_LEDGER, &[&now.as_millis(), &0_i64, &1_i64]).await?;
    } else {
        let params: [Param<'_>; 3] = [&id, &now.as_millis(), &now.plus(keep.job).as_millis()];
        session.execute(&CANCEL_DEAD, &params).await?;
    }
    let mut writes = Writes::default();
    if let Some(key) = &job.key {
        let lane = session.shared.lanes.number_in(session, &job.lane).await?;
        writes.end_key(lane, key.to_string(), job.id, State::Cancelled, now.plus(keep.key));
    }
    writes.flush(session, now, None).await
}
