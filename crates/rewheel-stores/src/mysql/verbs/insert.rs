//! Stores new jobs.

use super::super::Shared;
use super::super::error::VerbError;
use super::super::lane_rows::Apart;
use super::super::places;
use super::super::row::{bytes, get, id16};
use super::super::transaction::Transaction;
use super::super::tries::Tries;
use super::groups;
use super::keys::Keys;
use super::replace;
use super::rows::{self, NewRow};
use crate::batch::{check_backoff, leave_out};
use crate::duplicates::{GONE, has_twins};
use crate::groups::{Line, Release};
use crate::payload::payload_hash;
use mysql_async::Value;
use rewheel_core::store::{IfRefused, Insert, Inserted, Refusal, Sent, StoreChange, StoreError};
use rewheel_core::{Fence, Format, JobId, Key, Lane, NewJob, OnKey, State, Timestamp};
use std::collections::{BTreeSet, HashMap};

/// Whether a new job of a group is released at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Lines {
    /// In this transaction.
    Release,
    /// By housekeeping: a user's transaction may stay open for long, and must not lock lines.
    Leave,
}

pub(in super::super) async fn insert(
    tx: &mut Transaction<'_>,
    insert: &Insert<'_>,
    lines: Lines,
) -> Result<Vec<Inserted>, VerbError> {
    insert.jobs.iter().try_for_each(check_backoff)?;
    let all_or_nothing = insert.if_refused == IfRefused::StoreNothing;
    if all_or_nothing {
        tx.command("SAVEPOINT rewheel_batch").await?;
    }
    let mut insertion = Insertion::new(tx, insert).await?;
    let mut answers = Vec::with_capacity(insert.jobs.len());
    for job in insert.jobs {
        answers.push(insertion.one(tx, job).await?);
    }
    insertion.write(tx).await?;
    insertion.keys.write(tx).await?;
    if all_or_nothing {
        let refused = answers.iter().any(|answer| matches!(answer, Inserted::Refused(_)));
        if refused {
            tx.command("ROLLBACK TO rewheel_batch").await?;
            tx.forget_new_lanes();
            tx.report = None;
            leave_out(insert.jobs, &mut answers);
        }
        tx.command("RELEASE SAVEPOINT rewheel_batch").await?;
    }
    if lines == Lines::Release {
        release(tx, insert.jobs, &answers).await?;
    }
    let stored = answers.iter().filter(|answer| matches!(answer, Inserted::Created { .. })).count();
    tx.submitted += stored as u64;
    if stored > 0 {
        report(tx.report.get_or_insert_default(), insert.jobs, &answers);
    }
    Ok(answers)
}

/// Releases the new jobs whose groups have no other job that may run.
async fn release(
    tx: &mut Transaction<'_>,
    jobs: &[NewJob],
    answers: &[Inserted],
) -> Result<(), VerbError> {
    let stored =
        jobs.iter().zip(answers).filter(|(_, answer)| matches!(answer, Inserted::Created { .. }));
    let stored = stored.filter_map(|(job, _)| Some((job.id, Line::of_new(job)?)));
    let (stored, lines): (Vec<JobId>, BTreeSet<Line>) = stored.unzip();
    for line in &lines {
        groups::release(tx, line, Release::WithInsert(&stored)).await?;
    }
    Ok(())
}

/// Reports the lanes that got jobs which can be claimed.
fn report(report: &mut StoreChange, jobs: &[NewJob], answers: &[Inserted]) {
    let mut last: Option<&NewJob> = None;
    for (job, answer) in jobs.iter().zip(answers) {
        let is_claimable = matches!(answer, Inserted::Created { leased: None, .. });
        // Most jobs of a batch are in the same lane as the job before.
        if is_claimable && last.is_none_or(|last| !last.is_beside(job)) {
            report.add(&job.lane());
            last = Some(job);
        }
    }
}

/// Data that is the same for all jobs of a batch, looked up once.
struct Insertion<'a> {
    insert: &'a Insert<'a>,
    /// The holder of the direct path, if it is alive.
    holder: Option<i64>,
    kinds: HashMap<String, Open>,
    keys: Keys,
    /// Jobs of the batch that exist already, if it was sent before.
    stored: HashMap<JobId, State>,
    formats: HashMap<Format, Option<Refusal>>,
    lanes_busy: HashMap<i64, bool>,
    /// The rows to write, with as few statements as possible.
    rows: Vec<NewRow<'a>>,
}

/// Whether a kind that exists may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Open {
    /// It is paused or parked: no holder may run its jobs now.
    Held,
    Free,
}

impl<'a> Insertion<'a> {
    async fn new(
        tx: &mut Transaction<'_>,
        insert: &'a Insert<'a>,
    ) -> Result<Insertion<'a>, VerbError> {
        let holder = match &insert.direct {
            Some(direct) if !has_twins(insert.jobs) => tx.alive(direct.holder).await?,
            Some(_) | None => None,
        };
        let kinds = find_kinds(tx, insert.jobs).await?;
        tx.check_lanes(lanes(insert.jobs)).await?;
        let stored = match insert.sent {
            Sent::First => HashMap::new(),
            Sent::Again => {
                let ids: Vec<JobId> = insert.jobs.iter().map(|job| job.id).collect();
                find_states(tx, &ids).await?
            }
        };
        Ok(Insertion {
            insert,
            holder,
            kinds,
            keys: Keys::find(tx, insert.jobs).await?,
            stored,
            formats: HashMap::new(),
            lanes_busy: HashMap::new(),
            rows: Vec::with_capacity(insert.jobs.len()),
        })
    }

    async fn one(
        &mut self,
        tx: &mut Transaction<'_>,
        job: &'a NewJob,
    ) -> Result<Inserted, VerbError> {
        let now = tx.now;
        let (bytes, bytes_max) = (job.payload.len(), tx.shared.payload_bytes_max);
        if bytes > bytes_max {
            return Ok(Inserted::Refused(Refusal::TooLarge { bytes, bytes_max }));
        }
        let Some(open) = self.kinds.get(job.kind.as_str()).copied() else {
            return Ok(Inserted::Refused(Refusal::UnknownKind));
        };
        if let Some(why) = self.holder_too_old(tx, job).await? {
            return Ok(Inserted::Refused(why));
        }
        // Look for an existing job first: it must not get a refusal whose reason arose later.
        if let Some(known) = self.known(tx, job).await? {
            return Ok(known);
        }
        let due = job.due.resolve(now);
        let deadline = job.deadline.map(|deadline| deadline.resolve(now));
        if job.is_too_late(now) {
            return Ok(Inserted::Refused(Refusal::DeadlineTooEarly));
        }
        let lane = self.lane(tx, job).await?;
        let may_run = open == Open::Free && due <= now && job.group_key.is_none();
        let is_direct = may_run && self.is_direct(tx, lane).await?;
        let lease = self.lease(job, now).filter(|_| is_direct);
        if let Some(key) = &job.key {
            self.keys.take(tx, job, key).await?;
        }
        self.rows.push(NewRow { job, lane, due, deadline, lease });
        if self.insert.sent == Sent::Again {
            self.stored.insert(job.id, lease.map_or(State::Scheduled, |_| State::Leased));
        }
        let fence = Fence::new(u64::try_from(tx.shared.epoch.fence_floor() + 1).unwrap_or(1));
        Ok(Inserted::Created { due, leased: lease.map(|_| fence) })
    }

    /// Refuses a job that the release of a living holder would damage.
    async fn holder_too_old(
        &mut self,
        tx: &mut Transaction<'_>,
        job: &NewJob,
    ) -> Result<Option<Refusal>, VerbError> {
        let format = job.format();
        if format == Format::FIRST {
            return Ok(None);
        }
        if let Some(known) = self.formats.get(&format) {
            return Ok(known.clone());
        }
        let refusal = use_format(tx, format).await?;
        self.formats.insert(format, refusal.clone());
        Ok(refusal)
    }

    async fn write(&mut self, tx: &mut Transaction<'_>) -> Result<(), VerbError> {
        rows::write(tx, &self.rows).await?;
        self.rows.clear();
        Ok(())
    }

    /// Returns the holder of the direct path, and when the job becomes overdue.
    fn lease(&self, job: &NewJob, now: Timestamp) -> Option<(i64, Timestamp)> {
        let (holder, direct) = (self.holder?, self.insert.direct?);
        let timeout = job.attempt_timeout.unwrap_or(direct.attempt_timeout);
        Some((holder, now.plus(timeout).plus(direct.grace)))
    }

    /// Returns the lane of a job. Most jobs of a batch are in the same lane as the job before.
    async fn lane(&self, tx: &mut Transaction<'_>, job: &NewJob) -> Result<i64, VerbError> {
        if let Some(last) = self.rows.last()
            && last.job.is_beside(job)
        {
            return Ok(last.lane);
        }
        tx.lane_or_new(&job.lane()).await
    }

    /// Returns the result for a job whose key or id exists already, unless it is stored nevertheless.
    async fn known(
        &mut self,
        tx: &mut Transaction<'_>,
        job: &NewJob,
    ) -> Result<Option<Inserted>, VerbError> {
        if self.insert.sent == Sent::Again {
            if let Some(state) = self.stored.get(&job.id) {
                return Ok(Some(Inserted::Duplicate { job: job.id, state: *state }));
            }
            if let Some(job) = replace::replaced_by(tx, job).await? {
                let state = self.find_state(tx, job).await?.unwrap_or(GONE);
                return Ok(Some(Inserted::Replaced { job, state }));
            }
        }
        match &job.key {
            None => Ok(None),
            Some(key) => self.known_key(tx, job, key).await,
        }
    }

    async fn known_key(
        &mut self,
        tx: &mut Transaction<'_>,
        job: &NewJob,
        key: &Key,
    ) -> Result<Option<Inserted>, VerbError> {
        let Some(found) = self.keys.get(job, key).cloned() else { return Ok(None) };
        if !job.duplicates.is_default() {
            // It may be a job of this same batch.
            self.write(tx).await?;
            let waits = replace::waits(tx, found.job).await?;
            match job.duplicates.decide(waits) {
                OnKey::Answer => {}
                OnKey::Replace => {
                    return replace::replace(tx, found.job, job, &mut self.keys).await.map(Some);
                }
                OnKey::Take => return Ok(None),
            }
        }
        let known = found.job;
        if found.payload_hash != payload_hash(&job.payload) {
            return Ok(Some(Inserted::Refused(Refusal::KeyReused { job: known })));
        }
        let state = match found.ended {
            Some(state) => state,
            None => self.find_state(tx, known).await?.ok_or_else(|| lost_job(known))?,
        };
        Ok(Some(Inserted::Duplicate { job: known, state }))
    }

    async fn find_state(
        &mut self,
        tx: &mut Transaction<'_>,
        job: JobId,
    ) -> Result<Option<State>, VerbError> {
        // It may be a job of this same batch.
        self.write(tx).await?;
        Ok(find_states(tx, &[job]).await?.remove(&job))
    }

    /// Returns whether the direct path is open: the holder is alive, and no due job waits in the lane.
    async fn is_direct(&mut self, tx: &mut Transaction<'_>, lane: i64) -> Result<bool, VerbError> {
        if self.holder.is_none() {
            return Ok(false);
        }
        if let Some(busy) = self.lanes_busy.get(&lane) {
            return Ok(!busy);
        }
        let values = vec![lane.into(), places::last(tx.now).into()];
        let busy = tx.find(include_str!("../sql/lane_is_busy.sql"), values).await?.is_some();
        self.lanes_busy.insert(lane, busy);
        Ok(!busy)
    }
}

/// Returns the lanes of jobs. Most jobs of a batch are in the same lane as the job before.
fn lanes(jobs: &[NewJob]) -> Vec<Lane> {
    let parts = jobs.chunk_by(|one, other| one.is_beside(other));
    parts.filter_map(|part| part.first().map(NewJob::lane)).collect()
}

async fn find_kinds(
    tx: &mut Transaction<'_>,
    jobs: &[NewJob],
) -> Result<HashMap<String, Open>, VerbError> {
    let mut names: Vec<&str> = jobs.iter().map(|job| job.kind.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let list: Vec<Value> = names.into_iter().map(Value::from).collect();
    let sql = if tx.is_theirs() {
        include_str!("../sql/share_kinds.sql")
    } else {
        include_str!("../sql/find_kinds.sql")
    };
    let rows = tx.run_list(sql, &[], &list, &[]).await?.rows;
    let mut kinds = HashMap::with_capacity(rows.len());
    for row in rows {
        let is_held = get::<bool>(&row, 1)? || get::<bool>(&row, 2)?;
        kinds.insert(get(&row, 0)?, if is_held { Open::Held } else { Open::Free });
    }
    Ok(kinds)
}

/// Notes that a format is used, or says which holder is too old for it.
async fn use_format(
    tx: &mut Transaction<'_>,
    format: Format,
) -> Result<Option<Refusal>, VerbError> {
    let read = |row: Option<mysql_async::Row>| row.map_or(Ok(0), |row| get::<u32>(&row, 0));
    let used = read(tx.find(include_str!("../sql/find_format.sql"), vec![]).await?)?;
    if used >= format.get() {
        return Ok(None);
    }
    if tx.is_theirs() {
        return use_format_apart(tx.shared, format).await;
    }
    let used = read(tx.find(include_str!("../sql/lock_format.sql"), vec![]).await?)?;
    let older = include_str!("../sql/older_holder.sql");
    if let Some(row) = tx.find(older, vec![format.get().into()]).await? {
        return Ok(Some(Refusal::HolderTooOld { holder: get(&row, 0)? }));
    }
    if used < format.get() {
        tx.execute(include_str!("../sql/use_format.sql"), vec![format.get().into()]).await?;
    }
    Ok(None)
}

/// Notes that a format is used, in a transaction of its own: holders that register wait for the lock.
fn use_format_apart(shared: &Shared, format: Format) -> Apart<'_, Option<Refusal>> {
    Box::pin(async move {
        let mut tries = Tries::default();
        loop {
            let mut tx = Transaction::write(shared, &shared.work).await?;
            let refusal = use_format(&mut tx, format).await;
            if let Some(refusal) = tx.commit(refusal, &mut tries).await {
                return Ok(refusal?);
            }
        }
    })
}

/// Returns the states of those jobs that exist.
pub(super) async fn find_states(
    tx: &mut Transaction<'_>,
    jobs: &[JobId],
) -> Result<HashMap<JobId, State>, VerbError> {
    let mut states = HashMap::new();
    for sql in [
        include_str!("../sql/find_states.sql"),
        include_str!("../sql/find_states_dead.sql"),
        include_str!("../sql/find_states_finished.sql"),
        // Each statement sees another moment: a dead letter may have been redriven after the first one.
        include_str!("../sql/find_states.sql"),
    ] {
        let left = jobs.iter().filter(|job| !states.contains_key(*job));
        let list: Vec<Value> = left.map(|job| id16(job.to_bytes())).collect();
        for row in tx.run_list(sql, &[], &list, &[]).await?.rows {
            let state: String = get(&row, 1)?;
            if let Ok(state) = state.parse() {
                states.insert(JobId::from_bytes(bytes(&row, 0)?), state);
            }
        }
    }
    Ok(states)
}

fn lost_job(job: JobId) -> VerbError {
    VerbError::Said(StoreError::Broken {
        what: format!(
            "an idempotency key refers to job {job}, which does not exist: run `rewheel doctor`"
        ),
        source: None,
    })
}
