//! Stores new jobs.

use super::super::error::VerbError;
use super::super::row::column;
use super::super::transaction::{Transaction, tenant_text};
use super::groups;
use super::replace;
use super::rows::{self, NewRow};
use crate::batch::{check_backoff, leave_out};
use crate::duplicates::{GONE, has_twins};
use crate::groups::{Line, Release};
use crate::payload::payload_hash;
use rewheel_core::store::{Direct, IfRefused, Inserted, Refusal, Sent, StoreChange, StoreError};
use rewheel_core::{Fence, Format, JobId, Key, NewJob, OnKey, State, Timestamp};
use std::collections::{BTreeSet, HashMap};

/// The largest payload: the memory for a few of them at once. SQLite could store more.
pub(in super::super) const PAYLOAD_BYTES_MAX: usize = 16 * 1024 * 1024;

/// An owned [`Insert`](rewheel_core::store::Insert) that can be sent to another thread.
pub(in super::super) struct Batch {
    pub(in super::super) jobs: Vec<NewJob>,
    pub(in super::super) if_refused: IfRefused,
    pub(in super::super) sent: Sent,
    pub(in super::super) direct: Option<Direct>,
}

pub(in super::super) fn insert(
    tx: &mut Transaction<'_, '_>,
    batch: &Batch,
) -> Result<Vec<Inserted>, VerbError> {
    batch.jobs.iter().try_for_each(check_backoff)?;
    let all_or_nothing = batch.if_refused == IfRefused::StoreNothing;
    if all_or_nothing {
        tx.statements.run("SAVEPOINT batch")?;
    }
    let mut insert = Insertion::new(tx, batch)?;
    let mut answers = Vec::with_capacity(batch.jobs.len());
    for job in &batch.jobs {
        answers.push(insert.one(tx, job)?);
    }
    insert.write(tx)?;
    if all_or_nothing {
        let refused = answers.iter().any(|answer| matches!(answer, Inserted::Refused(_)));
        if refused {
            tx.statements.run("ROLLBACK TO batch")?;
            tx.lanes.forget();
            leave_out(&batch.jobs, &mut answers);
        }
        tx.statements.run("RELEASE batch")?;
    }
    release(tx, &batch.jobs, &answers)?;
    let stored = answers.iter().filter(|answer| matches!(answer, Inserted::Created { .. })).count();
    tx.submitted += stored as u64;
    if stored > 0 {
        report(tx.report.get_or_insert_default(), &batch.jobs, &answers);
    }
    Ok(answers)
}

/// Releases the new jobs whose groups have no other job that may run.
fn release(
    tx: &mut Transaction<'_, '_>,
    jobs: &[NewJob],
    answers: &[Inserted],
) -> Result<(), VerbError> {
    let stored =
        jobs.iter().zip(answers).filter(|(_, answer)| matches!(answer, Inserted::Created { .. }));
    let stored = stored.filter_map(|(job, _)| Some((job.id, Line::of_new(job)?)));
    let (stored, lines): (Vec<JobId>, BTreeSet<Line>) = stored.unzip();
    for line in &lines {
        groups::release(tx, line, Release::WithInsert(&stored))?;
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
    batch: &'a Batch,
    /// The holder of the direct path, if it is alive.
    holder: Option<i64>,
    kinds: HashMap<&'a str, Open>,
    lanes_busy: HashMap<i64, bool>,
    /// The rows to write, with as few statements as possible.
    rows: Vec<NewRow<'a>>,
}

/// Whether a kind exists and may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Open {
    /// It does not exist.
    Unknown,
    /// It is paused or parked: no holder may run its jobs now.
    Held,
    Free,
}

impl<'a> Insertion<'a> {
    fn new(tx: &Transaction<'_, '_>, batch: &'a Batch) -> Result<Insertion<'a>, VerbError> {
        let holder = match &batch.direct {
            Some(direct) if !has_twins(&batch.jobs) => tx.alive(direct.holder)?,
            Some(_) | None => None,
        };
        let (kinds, lanes_busy) = (HashMap::new(), HashMap::new());
        let rows = Vec::with_capacity(batch.jobs.len());
        Ok(Insertion { batch, holder, kinds, lanes_busy, rows })
    }

    fn one(
        &mut self,
        tx: &mut Transaction<'_, '_>,
        job: &'a NewJob,
    ) -> Result<Inserted, VerbError> {
        let now = tx.now;
        let bytes = job.payload.len();
        if bytes > PAYLOAD_BYTES_MAX {
            let bytes_max = PAYLOAD_BYTES_MAX;
            return Ok(Inserted::Refused(Refusal::TooLarge { bytes, bytes_max }));
        }
        let open = self.kind(tx, job)?;
        if open == Open::Unknown {
            return Ok(Inserted::Refused(Refusal::UnknownKind));
        }
        if let Some(why) = self.holder_too_old(tx, job)? {
            return Ok(Inserted::Refused(why));
        }
        // Look for an existing job first: it must not get a refusal whose reason arose later.
        if let Some(known) = self.known(tx, job)? {
            return Ok(known);
        }
        let due = job.due.resolve(now);
        let deadline = job.deadline.map(|deadline| deadline.resolve(now));
        if job.is_too_late(now) {
            return Ok(Inserted::Refused(Refusal::DeadlineTooEarly));
        }
        let lane = self.lane(tx, job)?;
        let is_direct = open == Open::Free && due <= now && self.is_direct(tx, lane)?;
        let lease = self.lease(job, now).filter(|_| is_direct && job.group_key.is_none());
        if let Some(key) = &job.key {
            take_key(tx, job, key)?;
        }
        self.rows.push(NewRow { job, lane, due, deadline, lease });
        Ok(Inserted::Created { due, leased: lease.map(|_| Fence::new(1)) })
    }

    /// Refuses a job that the release of a living holder would damage.
    fn holder_too_old(
        &self,
        tx: &Transaction<'_, '_>,
        job: &NewJob,
    ) -> Result<Option<Refusal>, VerbError> {
        let format = job.format();
        if format == Format::FIRST {
            return Ok(None);
        }
        let older = tx.find(include_str!("../sql/older_holder.sql"), [format.get()], column)?;
        if older.is_none() {
            tx.execute(include_str!("../sql/use_format.sql"), [format.get()])?;
        }
        Ok(older.map(|holder| Refusal::HolderTooOld { holder }))
    }

    fn write(&mut self, tx: &Transaction<'_, '_>) -> Result<(), VerbError> {
        rows::write(tx, &self.rows)?;
        self.rows.clear();
        Ok(())
    }

    /// Returns the holder of the direct path, and when the job becomes overdue.
    fn lease(&self, job: &NewJob, now: Timestamp) -> Option<(i64, Timestamp)> {
        let (holder, direct) = (self.holder?, self.batch.direct?);
        let timeout = job.attempt_timeout.unwrap_or(direct.attempt_timeout);
        Some((holder, now.plus(timeout).plus(direct.grace)))
    }

    /// Returns the lane of a job. Most jobs of a batch are in the same lane as the job before.
    fn lane(&self, tx: &mut Transaction<'_, '_>, job: &NewJob) -> Result<i64, VerbError> {
        if let Some(last) = self.rows.last()
            && last.job.is_beside(job)
        {
            return Ok(last.lane);
        }
        tx.lane_or_new(&job.lane())
    }

    fn kind(&mut self, tx: &Transaction<'_, '_>, job: &'a NewJob) -> Result<Open, VerbError> {
        if let Some(open) = self.kinds.get(job.kind.as_str()) {
            return Ok(*open);
        }
        let held = tx.find(include_str!("../sql/find_kind.sql"), [job.kind.as_str()], |row| {
            Ok(row.get::<_, bool>(0)? || row.get::<_, bool>(1)?)
        })?;
        let open = match held {
            None => Open::Unknown,
            Some(true) => Open::Held,
            Some(false) => Open::Free,
        };
        self.kinds.insert(job.kind.as_str(), open);
        Ok(open)
    }

    /// Returns the result for a job whose key or id exists already, unless it is stored nevertheless.
    fn known(
        &mut self,
        tx: &mut Transaction<'_, '_>,
        job: &NewJob,
    ) -> Result<Option<Inserted>, VerbError> {
        if self.batch.sent == Sent::Again {
            if let Some(state) = self.find_state(tx, job.id)? {
                return Ok(Some(Inserted::Duplicate { job: job.id, state }));
            }
            if let Some(job) = replace::replaced_by(tx, job)? {
                let state = self.find_state(tx, job)?.unwrap_or(GONE);
                return Ok(Some(Inserted::Replaced { job, state }));
            }
        }
        match &job.key {
            None => Ok(None),
            Some(key) => self.known_key(tx, job, key),
        }
    }

    fn known_key(
        &mut self,
        tx: &mut Transaction<'_, '_>,
        job: &NewJob,
        key: &Key,
    ) -> Result<Option<Inserted>, VerbError> {
        let Some(found) = find_key(tx, job, key)? else { return Ok(None) };
        if !job.duplicates.is_default() {
            // It may be a job of this same batch.
            self.write(tx)?;
            let waits = replace::waits(tx, found.job)?;
            match job.duplicates.decide(waits) {
                OnKey::Answer => {}
                OnKey::Replace => return replace::replace(tx, found.job, job).map(Some),
                OnKey::Take => return Ok(None),
            }
        }
        let known = found.job;
        if found.payload_hash != payload_hash(&job.payload) {
            return Ok(Some(Inserted::Refused(Refusal::KeyReused { job: known })));
        }
        let state = match found.ended {
            Some(state) => state,
            None => self.find_state(tx, known)?.ok_or_else(|| lost_job(known))?,
        };
        Ok(Some(Inserted::Duplicate { job: known, state }))
    }

    fn find_state(
        &mut self,
        tx: &Transaction<'_, '_>,
        job: JobId,
    ) -> Result<Option<State>, VerbError> {
        // It may be a job of this same batch.
        self.write(tx)?;
        let text: Option<String> =
            tx.find(include_str!("../sql/find_state.sql"), [job.to_bytes()], column)?;
        Ok(text.and_then(|text| text.parse().ok()))
    }

    /// Returns whether the direct path is open: the holder is alive, and no due job waits in the
    /// lane.
    fn is_direct(&mut self, tx: &Transaction<'_, '_>, lane: i64) -> Result<bool, VerbError> {
        if self.holder.is_none() {
            return Ok(false);
        }
        if let Some(busy) = self.lanes_busy.get(&lane) {
            return Ok(!busy);
        }
        let busy: bool = tx
            .find(include_str!("../sql/lane_is_busy.sql"), (lane, tx.now.as_millis()), column)?
            .unwrap_or(false);
        self.lanes_busy.insert(lane, busy);
        Ok(!busy)
    }
}

/// Takes a key for a job, also from the job that has it, and stores the hash of its payload.
pub(super) fn take_key(tx: &Transaction<'_, '_>, job: &NewJob, key: &Key) -> Result<(), VerbError> {
    let tenant = tenant_text(job.tenant.as_ref());
    let hash = payload_hash(&job.payload);
    let values = (job.kind.as_str(), tenant, key.as_str(), job.id.to_bytes(), hash);
    tx.execute(include_str!("../sql/insert_key.sql"), values)?;
    Ok(())
}

/// The job that has a key.
struct Found {
    job: JobId,
    payload_hash: [u8; 32],
    /// The final state of the job, if it has reached one.
    ended: Option<State>,
}

fn find_key(tx: &Transaction<'_, '_>, job: &NewJob, key: &Key) -> Result<Option<Found>, VerbError> {
    let tenant = tenant_text(job.tenant.as_ref());
    let name = (job.kind.as_str(), tenant, key.as_str(), tx.now.as_millis());
    tx.find(include_str!("../sql/find_key.sql"), name, |row| {
        let ended: Option<String> = row.get(2)?;
        Ok(Found {
            job: JobId::from_bytes(row.get(0)?),
            payload_hash: row.get(1)?,
            ended: ended.and_then(|state| state.parse().ok()),
        })
    })
}

fn lost_job(job: JobId) -> VerbError {
    VerbError::Said(StoreError::Broken {
        what: format!(
            "an idempotency key refers to job {job}, which does not exist: run `rewheel doctor`"
        ),
        source: None,
    })
}
