//! Edits one job.

use super::super::error::{VerbError, unreadable};
use super::super::job_columns::{LANE, read_job};
use super::super::row::uuid;
use super::super::session::{Param, Session};
use super::super::statements::{EDIT_DEAD, EDIT_LIVE, GET_FINISHED, LOCK_DEAD, LOCK_LIVE, Sql};
use super::audit::{Line, audit};
use super::groups::Touched;
use super::insert::PAYLOAD_BYTES_MAX;
use rewheel_core::store::{Change, ChangeVerb, Changed};
use rewheel_core::{Actor, Job, JobId, State, Timestamp, Wanted};

/// Edits one job at a time, because its payload is read with it.
pub(super) async fn edit(
    session: &Session<'_>,
    change: &Change,
    by: &Actor,
    now: Timestamp,
    touched: &mut Touched,
) -> Result<Changed, VerbError> {
    let Some(before) = lock(session, change.job).await? else { return Ok(Changed::NotFound) };
    touched.lock_all(std::iter::once(&before));
    if change.if_version.is_some_and(|version| version != before.version) {
        return Ok(Changed::VersionChanged(before.version));
    }
    let after = match change.apply(&before, now, PAYLOAD_BYTES_MAX) {
        Ok(after) => after,
        Err(answer) => return Ok(answer),
    };
    write(session, &before, &after, &change.what).await?;
    let (old, new) = change.what.facts(&before, &after);
    let (what, kind) = (change.what.as_str(), Some(&before.lane.kind));
    let line = Line { who: by, what, job: Some(before.id), kind, before: &old, after: &new };
    audit(session, now, &[line]).await?;
    let version = before.version.next();
    Ok(Changed::Applied { state: after.state(), version })
}

/// Finds a job in any table and locks it.
async fn lock(session: &Session<'_>, job: JobId) -> Result<Option<Job>, VerbError> {
    let tables: [&'static Sql; 3] = [&LOCK_LIVE, &LOCK_DEAD, &GET_FINISHED];
    // Search the tables twice: a job that is redriven meanwhile moves to a table that was already searched.
    for sql in tables.into_iter().chain(tables) {
        if let Some(row) = session.find(sql, &[&uuid(job)]).await? {
            let number: i32 = row.try_get(LANE)?;
            let mut lanes = super::super::lanes::names(session, std::iter::once(number)).await?;
            let lane =
                lanes.remove(&number).ok_or_else(|| unreadable("a lane that does not exist"))?;
            return read_job(&row, lane).map(Some);
        }
    }
    Ok(None)
}

async fn write(
    session: &Session<'_>,
    before: &Job,
    after: &Job,
    what: &ChangeVerb,
) -> Result<(), VerbError> {
    let id = uuid(before.id);
    let lane = session.shared.lanes.number_in(session, &after.lane).await?;
    let (due, because) = (after.due.as_millis(), after.because.as_str());
    let deadline = after.deadline.map(Timestamp::as_millis);
    let attempts_max = after.attempts_max.map(i64::from);
    let payload = payload(after, what);
    if before.state() == State::Dead {
        let params: [Param<'_>; 7] =
            [&id, &lane, &due, &because, &deadline, &attempts_max, &payload];
        session.execute(&EDIT_DEAD, &params).await?;
    } else {
        let params: [Param<'_>; 9] = [
            &id,
            &lane,
            &after.state().as_str(),
            &due,
            &because,
            &deadline,
            &attempts_max,
            &after.status.wanted().map(Wanted::as_str),
            &payload,
        ];
        session.execute_returning(&EDIT_LIVE, &params).await?;
    }
    Ok(())
}

/// Returns the payload if the edit changes it.
fn payload<'a>(after: &'a Job, what: &ChangeVerb) -> Option<&'a [u8]> {
    let is_new = matches!(what, ChangeVerb::Edit(edit) if edit.payload.is_some());
    after.payload.as_deref().filter(|_| is_new)
}
