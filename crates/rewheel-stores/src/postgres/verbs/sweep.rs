//! Frees jobs of dead holders and overdue jobs, and ends jobs whose deadline has passed.

use super::super::PostgresStore;
use super::super::error::{VerbError, unreadable};
use super::super::row::{count, holder_id, holder_uuid, instant, job_id, millis, number};
use super::super::session::{Param, Session};
use super::super::statements::{
    DEADLINES, DEADLINES_LOOK, FIND_HOLDER, SHELVE, SWEEP, SWEEP_LOOK, TAKEOVERS_MAX,
};
use super::audit::actor;
use super::groups::Freed;
use super::lane_heads;
use super::unreadable::Unreadable;
use super::writes::{Live, Writes};
use rewheel_core::store::{StoreChange, StoreError, StoreResult, Sweep};
use rewheel_core::{
    Actor, Cause, Failure, HolderId, JobEvent, JobId, Lane, Retain, State, Timestamp, Transition,
};
use std::collections::HashMap;
use std::time::Duration;
use tokio_postgres::Row;
use uuid::Uuid;

/// The age at which the remaining jobs of a claim's list move to their shelf. Most are settled by then; the others must not slow down
/// claims for long.
const SHELVED_AFTER: Duration = Duration::from_secs(2);

/// Number of lists removed in one transaction, to keep it short.
const LISTS_AT_ONCE: u64 = 8;

impl PostgresStore {
    pub(in super::super) async fn sweep_batch(&self, asked: &Sweep) -> StoreResult<Vec<JobEvent>> {
        self.look_below().await;
        let events = self.take_over(asked).await?;
        // Not urgent: takeovers come first, and their events must not be lost to a timeout.
        if events.is_empty() {
            self.count_forgotten().await;
        }
        Ok(events)
    }

    async fn take_over(&self, asked: &Sweep) -> StoreResult<Vec<JobEvent>> {
        let (listed, mut lost) = self.look_for_lost(asked.by).await?;
        if listed {
            self.shelve(SHELVED_AFTER, None).await?;
            // Most of those jobs are not lost: do not search all jobs for them.
            lost = lost || self.look_for_lost(asked.by).await?.1;
        }
        if !lost {
            return Ok(Vec::new());
        }
        let session = self.transaction().await?;
        let events = sweep(&session, asked).await;
        let (events, change, freed) = session.end(events).await?;
        if !events.is_empty() {
            self.wake(change);
        }
        self.after_groups(freed).await;
        Ok(events)
    }

    /// Looks for jobs below the floors of lanes, if that takes long: here no claim waits for it. If it fails, the next read of the lanes
    /// tries it again.
    async fn look_below(&self) {
        let Some(reading) = self.shared.lanes.floors.look_early() else { return };
        let Ok(session) = self.read().await else { return };
        let looked = lane_heads::look_below(&session, &reading).await;
        let _ = session.end(looked).await;
    }

    /// Returns whether there are old lists of claims, and whether there are jobs to take over.
    async fn look_for_lost(&self, by: HolderId) -> StoreResult<(bool, bool)> {
        let session = self.read().await?;
        let overdue = &self.shared.overdue;
        let from = overdue.from();
        let (holder, age) = (holder_uuid(by), millis(SHELVED_AFTER));
        let params: [Param<'_>; 5] = [&holder, &session.offset(), &age, &from.at, &from.list];
        let row = session.one(&SWEEP_LOOK, &params).await;
        let seen = row.and_then(|row| {
            let (listed, lost) = (row.try_get(1)?, row.try_get(2)?);
            if lost {
                overdue.found();
            } else {
                overdue.found_nothing(from, row.try_get(3)?, row.try_get(4)?);
            }
            if row.try_get(0)? {
                Ok((listed, lost))
            } else {
                Err(StoreError::HolderDead(by).into())
            }
        });
        session.end(seen).await
    }

    /// Removes old lists of claims, and moves their remaining jobs to their shelf.
    pub(in super::super) async fn shelve(
        &self,
        older_than: Duration,
        holder: Option<HolderId>,
    ) -> StoreResult<()> {
        loop {
            let session = self.write().await?;
            let (holder, most) = (holder.map(holder_uuid), count(LISTS_AT_ONCE));
            let first = self.shared.overdue.from().list;
            let params: [Param<'_>; 5] =
                [&millis(older_than), &holder, &session.offset(), &most, &first];
            let shelved = session.one(&SHELVE, &params).await;
            let shelved = shelved
                .and_then(|row| Ok((row.try_get::<_, i64>(0)?, row.try_get::<_, Option<i64>>(1)?)));
            let (shelved, overdue) = session.end(shelved).await?;
            if let Some(overdue) = overdue {
                self.shared.overdue.lower(overdue);
            }
            if shelved < most {
                return Ok(());
            }
        }
    }

    pub(in super::super) async fn deadlines_batch(
        &self,
        grace: Duration,
        limit: usize,
    ) -> StoreResult<Vec<JobEvent>> {
        let floor = &self.shared.deadlines;
        let from = floor.from();
        let session = self.read().await?;
        let looked = session.one(&DEADLINES_LOOK, &[&session.offset(), &from.at]).await;
        let looked = looked.and_then(|row| Ok((row.try_get(0)?, row.try_get::<_, bool>(1)?)));
        let (now, passed) = session.end(looked).await?;
        if !passed {
            floor.found_nothing(from, now, None);
            return Ok(Vec::new());
        }
        floor.found();
        let session = self.transaction().await?;
        let events = deadlines(&session, grace, limit).await;
        let (events, freed) = session.end(events).await?;
        self.after_groups(freed).await;
        Ok(events)
    }
}

/// Returns what happened to jobs, their lanes, and what happened to lines of groups.
async fn sweep(
    session: &Session<'_>,
    asked: &Sweep,
) -> Result<(Vec<JobEvent>, StoreChange, Freed), VerbError> {
    let Sweep { by, limit, keep, watched } = *asked;
    let row = session.one(&FIND_HOLDER, &[&holder_uuid(by), &session.offset()]).await?;
    let now = instant(row.try_get(0)?);
    if !row.try_get::<_, Option<bool>>(2)?.unwrap_or(false) {
        return Err(StoreError::HolderDead(by).into());
    }
    let who = actor(by, row.try_get(3)?);
    let overdue = now.min(watched.until).as_millis();
    let params: [Param<'_>; 3] = [&overdue, &count(limit as u64), &millis(watched.since)];
    let rows = session.query(&SWEEP, &params).await?;
    let Taken { jobs: taken, lanes, .. } = read_taken(session, &rows).await?;
    let mut change = StoreChange::default();
    if taken.is_empty() {
        return Ok((Vec::new(), change, Freed::default()));
    }
    let most = takeovers_max(session).await?;
    let mut writes = Writes::default();
    let mut events = Vec::with_capacity(taken.len());
    for (mut live, holder) in taken {
        let kind = kind_of(&lanes, &live)?;
        change.add(kind);
        live.takeovers += 1;
        live.takeovers_counted += u32::from(live.started);
        let counted = live.takeovers_counted;
        let poison =
            live.started && most.get(kind.kind.as_str()).is_some_and(|max| counted >= *max);
        let to = match live.wanted {
            Some(wanted) => wanted.state(),
            None if poison => State::Dead,
            None => State::Scheduled,
        };
        events.push(event(&live, kind, to, Cause::Takeover, holder, now));
        let failure = (to == State::Dead).then(|| Failure::of_takeovers(counted));
        let transition = live.transition(Cause::Takeover, to, holder);
        writes.note(&live, &Transition { failure: failure.as_ref(), ..transition }, &who);
        if to.is_live() {
            live.fence = live.fence.next();
            writes.let_go(live, to, None, None, None);
        } else {
            writes.end(live, to, failure, None, (now, keep));
        }
    }
    let touched = writes.flush(session, now, None).await?;
    Ok((events, change, touched.leave(session, now).await?))
}

async fn deadlines(
    session: &Session<'_>,
    grace: Duration,
    limit: usize,
) -> Result<(Vec<JobEvent>, Freed), VerbError> {
    let now = session.now().await?;
    let leased = now.as_millis().saturating_sub(millis(grace));
    let rows =
        session.query(&DEADLINES, &[&now.as_millis(), &leased, &count(limit as u64)]).await?;
    let Taken { jobs: late, lanes, unreadable } = read_taken(session, &rows).await?;
    let who = Actor::engine();
    let mut writes = Writes::default();
    let mut events = Vec::with_capacity(late.len());
    for (live, holder) in late {
        events.push(event(
            &live,
            kind_of(&lanes, &live)?,
            State::Dead,
            Cause::Deadline,
            holder,
            now,
        ));
        let failure = Failure::of_deadline();
        let transition = live.transition(Cause::Deadline, State::Dead, holder);
        writes.note(&live, &Transition { failure: Some(&failure), ..transition }, &who);
        writes.end(live, State::Dead, Some(failure), None, (now, Retain::default()));
    }
    let mut touched = writes.flush(session, now, None).await?;
    unreadable.into_iter().for_each(|job| touched.lock(job));
    Ok((events, touched.leave(session, now).await?))
}

/// Locked jobs.
struct Taken {
    /// Each with its previous holder.
    jobs: Vec<(Live, Option<HolderId>)>,
    lanes: HashMap<i32, Lane>,
    unreadable: Vec<JobId>,
}

/// Reads locked jobs and their lanes. Sets unreadable jobs aside.
async fn read_taken(session: &Session<'_>, rows: &[Row]) -> Result<Taken, VerbError> {
    let lanes = super::read::lanes(session, rows, 1).await?;
    let mut unreadable = Unreadable::default();
    let mut taken = Vec::with_capacity(rows.len());
    for row in rows {
        let read = Live::read(row).and_then(|live| kind_of(&lanes, &live).map(|_| live.clone()));
        if let Some(live) = unreadable.check(job_id(row.try_get(0)?), read)? {
            taken.push((live, row.try_get::<_, Option<Uuid>>(14)?.map(holder_id)));
        }
    }
    unreadable.set_aside(session).await?;
    Ok(Taken { jobs: taken, lanes, unreadable: unreadable.jobs().collect() })
}

fn kind_of<'l>(lanes: &'l HashMap<i32, Lane>, live: &Live) -> Result<&'l Lane, VerbError> {
    lanes.get(&live.lane).ok_or_else(|| unreadable("a lane that does not exist"))
}

async fn takeovers_max(session: &Session<'_>) -> Result<HashMap<String, u32>, VerbError> {
    let rows = session.query(&TAKEOVERS_MAX, &[]).await?;
    rows.iter().map(|row| Ok((row.try_get(0)?, number(row.try_get(1)?)))).collect()
}

fn event(
    live: &Live,
    lane: &Lane,
    to: State,
    cause: Cause,
    holder: Option<HolderId>,
    at: Timestamp,
) -> JobEvent {
    let (job, kind, from) = (live.id, lane.kind.clone(), live.state);
    JobEvent { job, kind, from, to, cause, holder, at }
}
