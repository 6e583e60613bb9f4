//! Changes jobs on behalf of operators: a few statements per batch, independent of its size.

use super::super::PostgresStore;
use super::super::error::VerbError;
use super::super::job_columns::{LANE, read_job};
use super::super::row::{count, job_id, uuid};
use super::super::session::{Param, Session};
use super::super::statements::{
    CANCEL_DEAD, CHANGE_LIVES, DROP_DEAD, FIND_FINISHED, INSERT_LEDGER, LOCK_DEADS, LOCK_LIVES,
    REDRIVE, SETTLE_FIND, Sql,
};
use super::audit::{Line, audit};
use super::edit::edit;
use super::groups::Freed;
use super::insert::PAYLOAD_BYTES_MAX;
use super::writes::{Live, Writes};
use rewheel_core::store::{Change, ChangeVerb, Changed, StoreChange, StoreResult};
use rewheel_core::{Actor, AuditFields, Job, JobId, Lane, Retain, State, Timestamp, Wanted};
use std::collections::{HashMap, HashSet};
use uuid::Uuid;

impl PostgresStore {
    /// Changes all jobs in one transaction: separate transactions would each wait for the disk.
    pub(in super::super) async fn change_batch(
        &self,
        changes: &[Change],
        by: &Actor,
        keep: Retain,
    ) -> StoreResult<Vec<Changed>> {
        let session = self.transaction().await?;
        let answers = change(&session, changes, by, keep).await;
        let (answers, lanes, freed) = session.end(answers).await?;
        self.wake(lanes);
        self.after_groups(freed).await;
        Ok(answers)
    }
}

async fn change(
    session: &Session<'_>,
    changes: &[Change],
    by: &Actor,
    keep: Retain,
) -> Result<(Vec<Changed>, StoreChange, Freed), VerbError> {
    let now = session.now().await?;
    let (mut lanes, mut freed) = (StoreChange::default(), Freed::default());
    let mut answers = vec![Changed::NotFound; changes.len()];
    // In the order of their ids, so that two batches with the same jobs cannot deadlock.
    let mut left: Vec<usize> = (0..changes.len()).collect();
    left.sort_by_key(|place| changes[*place].job);
    while !left.is_empty() {
        // Each job once per round: two changes of one job are applied one after the other, in order.
        let mut jobs = HashSet::new();
        let (round, rest) = left.into_iter().partition(|place| jobs.insert(changes[*place].job));
        left = rest;
        let (edits, others): (Vec<usize>, Vec<usize>) = Vec::into_iter(round)
            .partition(|place: &usize| matches!(changes[*place].what, ChangeVerb::Edit(_)));
        let found = lock(session, changes, &others).await?;
        let mut batch = Batch::new(now, keep);
        for place in others {
            answers[place] = batch.apply(&changes[place], &found);
        }
        batch.lanes().for_each(|lane| lanes.add(lane));
        freed.merge(batch.write(session, by).await?);
        for place in edits {
            answers[place] = edit(session, &changes[place], by, now).await?;
            // An edit may move the job to another lane.
            lanes = StoreChange::AnyLane;
        }
    }
    Ok((answers, lanes, freed))
}

/// A locked job without its payload, and the number of its lane.
struct Found {
    job: Job,
    lane: i32,
}

/// Finds jobs in all tables and locks them.
async fn lock(
    session: &Session<'_>,
    changes: &[Change],
    places: &[usize],
) -> Result<HashMap<JobId, Found>, VerbError> {
    let mut missing: Vec<Uuid> = places.iter().map(|place| uuid(changes[*place].job)).collect();
    let is_redrive = |place: &usize| matches!(changes[*place].what, ChangeVerb::Redrive { .. });
    let tables: [&'static Sql; 3] = match places.iter().all(is_redrive) {
        true => [&LOCK_DEADS, &LOCK_LIVES, &FIND_FINISHED],
        false => [&LOCK_LIVES, &LOCK_DEADS, &FIND_FINISHED],
    };
    let mut found = HashMap::with_capacity(missing.len());
    // Search the tables twice: a job that is redriven meanwhile moves to a table that was already searched.
    for sql in tables.into_iter().chain(tables) {
        if missing.is_empty() {
            break;
        }
        let rows = session.query(sql, &[&missing]).await?;
        let lanes = super::read::lanes(session, &rows, LANE).await?;
        for row in &rows {
            let number: i32 = row.try_get(LANE)?;
            let lane = super::read::lane(&lanes, row, LANE)?;
            let job = read_job(row, lane)?;
            found.insert(job.id, Found { job, lane: number });
        }
        missing.retain(|id| !found.contains_key(&job_id(*id)));
    }
    Ok(found)
}

/// The writes to make, by sort.
struct Batch<'a> {
    now: Timestamp,
    keep: Retain,
    redriven: Vec<Job>,
    lives: Vec<Job>,
    cancelled_dead: Vec<&'a Found>,
    cancelled_live: Vec<Uuid>,
    notes: Vec<(&'static str, &'a Job, AuditFields, AuditFields)>,
}

impl<'a> Batch<'a> {
    fn new(now: Timestamp, keep: Retain) -> Batch<'a> {
        Batch {
            now,
            keep,
            redriven: Vec::new(),
            lives: Vec::new(),
            cancelled_dead: Vec::new(),
            cancelled_live: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Decides about one job, and collects what to write.
    fn apply(&mut self, change: &Change, found: &'a HashMap<JobId, Found>) -> Changed {
        let Some(found) = found.get(&change.job) else { return Changed::NotFound };
        let before = &found.job;
        if change.if_version.is_some_and(|version| version != before.version) {
            return Changed::VersionChanged(before.version);
        }
        let after = match change.apply(before, self.now, PAYLOAD_BYTES_MAX) {
            Ok(after) => after,
            Err(answer) => return answer,
        };
        let (old, new) = change.what.facts(before, &after);
        self.notes.push((change.what.as_str(), before, old, new));
        let (state, version) = (after.state(), before.version.next());
        let answer = match after.status.wanted() {
            Some(_) => Changed::Wanted { version },
            None => Changed::Applied { state, version },
        };
        match (before.state(), state) {
            (State::Dead, State::Cancelled) => self.cancelled_dead.push(found),
            (State::Dead, _) => self.redriven.push(after),
            (_, State::Cancelled) => self.cancelled_live.push(uuid(before.id)),
            (_, _) => self.lives.push(after),
        }
        answer
    }

    /// Returns the lanes that may have a new first job.
    fn lanes(&self) -> impl Iterator<Item = &Lane> {
        self.redriven.iter().chain(&self.lives).map(|job| &job.lane)
    }

    async fn write(self, session: &Session<'_>, by: &Actor) -> Result<Freed, VerbError> {
        redrive(session, &self.redriven).await?;
        change_lives(session, &self.lives).await?;
        let (now, keep) = (self.now, self.keep);
        let mut writes = Writes::default();
        if !self.cancelled_live.is_empty() {
            for row in session.query(&SETTLE_FIND, &[&self.cancelled_live]).await? {
                writes.end(Live::read(&row)?, State::Cancelled, None, None, (now, keep));
            }
        }
        cancel_dead(session, &self.cancelled_dead, (now, keep)).await?;
        for Found { job, lane } in self.cancelled_dead {
            if job.group.is_some() {
                writes.leave_group(job.id);
            }
            if let Some(key) = &job.key {
                let until = now.plus(keep.key);
                writes.end_key(*lane, key.to_string(), job.id, State::Cancelled, until);
            }
        }
        let mut freed = writes.flush(session, now, None).await?;
        freed.look_at(self.redriven.iter().chain(&self.lives));
        let mut lines = Vec::with_capacity(self.notes.len());
        for (what, job, before, after) in &self.notes {
            let (job, kind) = (Some(job.id), Some(&job.lane.kind));
            lines.push(Line { who: by, what, job, kind, before, after });
        }
        if !lines.is_empty() {
            audit(session, now, &lines).await?;
        }
        Ok(freed)
    }
}

fn ids(jobs: &[Job]) -> Vec<Uuid> {
    jobs.iter().map(|job| uuid(job.id)).collect()
}

async fn redrive(session: &Session<'_>, jobs: &[Job]) -> Result<(), VerbError> {
    if jobs.is_empty() {
        return Ok(());
    }
    let params: [Param<'_>; 3] = [
        &ids(jobs),
        &jobs.iter().map(|job| job.due.as_millis()).collect::<Vec<_>>(),
        &jobs.iter().map(|job| job.deadline.map(Timestamp::as_millis)).collect::<Vec<_>>(),
    ];
    session.execute_returning(&REDRIVE, &params).await
}

async fn change_lives(session: &Session<'_>, jobs: &[Job]) -> Result<(), VerbError> {
    if jobs.is_empty() {
        return Ok(());
    }
    let params: [Param<'_>; 6] = [
        &ids(jobs),
        &jobs.iter().map(|job| job.state().as_str()).collect::<Vec<_>>(),
        &jobs.iter().map(|job| job.due.as_millis()).collect::<Vec<_>>(),
        &jobs.iter().map(|job| job.because.as_str()).collect::<Vec<_>>(),
        &jobs.iter().map(|job| job.deadline.map(Timestamp::as_millis)).collect::<Vec<_>>(),
        &jobs.iter().map(|job| job.status.wanted().map(Wanted::as_str)).collect::<Vec<_>>(),
    ];
    session.execute_returning(&CHANGE_LIVES, &params).await
}

async fn cancel_dead(
    session: &Session<'_>,
    dead: &[&Found],
    (now, keep): (Timestamp, Retain),
) -> Result<(), VerbError> {
    if dead.is_empty() {
        return Ok(());
    }
    let ids: Vec<Uuid> = dead.iter().map(|found| uuid(found.job.id)).collect();
    if keep.job.is_zero() {
        session.execute(&DROP_DEAD, &[&ids]).await?;
        let pruned = count(ids.len() as u64);
        session.execute(&INSERT_LEDGER, &[&now.as_millis(), &0_i64, &pruned]).await?;
    } else {
        let params: [Param<'_>; 3] = [&ids, &now.as_millis(), &now.plus(keep.job).as_millis()];
        session.execute(&CANCEL_DEAD, &params).await?;
    }
    Ok(())
}
