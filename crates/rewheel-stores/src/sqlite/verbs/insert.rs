//! Stores new jobs.

use super::super::error::Trouble;
use super::super::row::{column, millis};
use super::super::transaction::{Transaction, tenant_text};
use crate::payload::payload_hash;
use rewheel_core::store::{Direct, IfRefused, Inserted, Refusal, Sent, StoreError};
use rewheel_core::{Fence, JobId, Key, NewJob, State, Timestamp};
use rusqlite::types::ToSql;
use std::collections::{HashMap, HashSet};

/// The longest payload: a page of memory for each of a few in flight. SQLite could take more.
pub(in super::super) const PAYLOAD_BYTES_MAX: usize = 16 * 1024 * 1024;

/// An [`Insert`](rewheel_core::store::Insert) that may go to another thread.
pub(in super::super) struct Batch {
    pub(in super::super) jobs: Vec<NewJob>,
    pub(in super::super) if_refused: IfRefused,
    pub(in super::super) sent: Sent,
    pub(in super::super) direct: Option<Direct>,
}

pub(in super::super) fn insert(
    tx: &mut Transaction<'_, '_>,
    batch: &Batch,
) -> Result<Vec<Inserted>, Trouble> {
    let all_or_nothing = batch.if_refused == IfRefused::StoreNothing;
    if all_or_nothing {
        tx.statements.run("SAVEPOINT batch")?;
    }
    let mut insert = Insertion::new(tx, batch)?;
    let mut answers = Vec::with_capacity(batch.jobs.len());
    for job in &batch.jobs {
        answers.push(insert.one(tx, job)?);
    }
    if all_or_nothing {
        let refused = answers.iter().any(|answer| matches!(answer, Inserted::Refused(_)));
        if refused {
            tx.statements.run("ROLLBACK TO batch")?;
            tx.lanes.forget();
            leave_out(&batch.jobs, &mut answers);
        }
        tx.statements.run("RELEASE batch")?;
    }
    let stored = answers.iter().filter(|answer| matches!(answer, Inserted::Created { .. })).count();
    tx.submitted += stored as u64;
    tx.woke |= stored > 0;
    Ok(answers)
}

/// Takes back what was said of jobs that are not stored after all, and of their duplicates.
fn leave_out(jobs: &[NewJob], answers: &mut [Inserted]) {
    let stored: HashSet<JobId> = jobs
        .iter()
        .zip(&*answers)
        .filter(|(_, answer)| matches!(answer, Inserted::Created { .. }))
        .map(|(job, _)| job.id)
        .collect();
    for answer in answers {
        match answer {
            Inserted::Created { .. } => *answer = Inserted::LeftOut,
            Inserted::Duplicate { job, .. } if stored.contains(job) => *answer = Inserted::LeftOut,
            Inserted::Duplicate { .. } | Inserted::Refused(_) | Inserted::LeftOut => {}
        }
    }
}

/// What is the same for all jobs of a batch, looked up once.
struct Insertion<'a> {
    batch: &'a Batch,
    /// The holder of the direct path, if it is alive.
    holder: Option<i64>,
    kinds: HashMap<&'a str, Open>,
    lanes_busy: HashMap<i64, bool>,
}

/// What a kind lets in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Open {
    /// It does not exist.
    Unknown,
    /// It is paused or parked: nobody may run it now.
    Held,
    Free,
}

impl<'a> Insertion<'a> {
    fn new(tx: &Transaction<'_, '_>, batch: &'a Batch) -> Result<Insertion<'a>, Trouble> {
        let holder = match &batch.direct {
            Some(direct) => tx.alive(direct.holder)?,
            None => None,
        };
        Ok(Insertion { batch, holder, kinds: HashMap::new(), lanes_busy: HashMap::new() })
    }

    fn one(&mut self, tx: &mut Transaction<'_, '_>, job: &'a NewJob) -> Result<Inserted, Trouble> {
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
        // First what is known: a job that is stored is not refused for what has passed since.
        if let Some(known) = self.known(tx, job)? {
            return Ok(known);
        }
        let due = job.due.resolve(now);
        let deadline = job.deadline.map(|deadline| deadline.resolve(now));
        if deadline.is_some_and(|deadline| deadline <= now || deadline < due) {
            return Ok(Inserted::Refused(Refusal::DeadlineTooEarly));
        }
        let lane = tx.lane_or_new(&job.lane())?;
        let leased = open == Open::Free && due <= now && self.is_direct(tx, lane)?;
        let fence = Fence::new(u64::from(leased));
        store(tx, job, lane, due, deadline, leased.then_some((self.holder, self.batch.direct)))?;
        Ok(Inserted::Created { due, leased: leased.then_some(fence) })
    }

    fn kind(&mut self, tx: &Transaction<'_, '_>, job: &'a NewJob) -> Result<Open, Trouble> {
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

    /// Answers for a job whose key or id is known.
    fn known(&self, tx: &Transaction<'_, '_>, job: &NewJob) -> Result<Option<Inserted>, Trouble> {
        if self.batch.sent == Sent::Again
            && let Some(state) = find_state(tx, job.id)?
        {
            return Ok(Some(Inserted::Duplicate { job: job.id, state }));
        }
        match &job.key {
            None => Ok(None),
            Some(key) => known_key(tx, job, key),
        }
    }

    /// Whether the direct path is open: a live holder, and nobody in the lane to overtake.
    fn is_direct(&mut self, tx: &Transaction<'_, '_>, lane: i64) -> Result<bool, Trouble> {
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

fn store(
    tx: &Transaction<'_, '_>,
    job: &NewJob,
    lane: i64,
    due: Timestamp,
    deadline: Option<Timestamp>,
    direct: Option<(Option<i64>, Option<Direct>)>,
) -> Result<(), Trouble> {
    let now = tx.now.as_millis();
    let (state, fence, holder, overdue) = match direct {
        Some((holder, Some(direct))) => {
            let timeout = job.attempt_timeout.unwrap_or(direct.attempt_timeout);
            let overdue = tx.now.plus(timeout).plus(direct.grace);
            (State::Leased, 1, holder, Some(overdue.as_millis()))
        }
        Some((_, None)) | None => (State::Scheduled, 0, None, None),
    };
    let id = job.id.to_bytes();
    let backoff = job.backoff.map(|backoff| backoff.to_string());
    let values: [&dyn ToSql; 17] = [
        &id,
        &lane,
        &state.as_str(),
        &due.as_millis(),
        &fence,
        &holder,
        &holder.map(|_| now),
        &overdue,
        &now,
        &deadline.map(Timestamp::as_millis),
        &job.attempts_max,
        &job.attempt_timeout.map(millis),
        &backoff,
        &job.key.as_ref().map(Key::as_str),
        &job.shard_key.as_ref().map(rewheel_core::ShardKey::as_str),
        &job.traceparent,
        &job.payload,
    ];
    tx.execute(include_str!("../sql/insert.sql"), &values[..])?;
    if let Some(key) = &job.key {
        let name = (job.kind.as_str(), tenant_text(job.tenant.as_ref()), key.as_str());
        let hash = payload_hash(&job.payload);
        let values = (name.0, name.1, name.2, id, hash);
        tx.execute(include_str!("../sql/insert_key.sql"), values)?;
    }
    Ok(())
}

fn known_key(
    tx: &Transaction<'_, '_>,
    job: &NewJob,
    key: &Key,
) -> Result<Option<Inserted>, Trouble> {
    let name =
        (job.kind.as_str(), tenant_text(job.tenant.as_ref()), key.as_str(), tx.now.as_millis());
    let found = tx.find(include_str!("../sql/find_key.sql"), name, |row| {
        let state: Option<String> = row.get(2)?;
        Ok((JobId::from_bytes(row.get(0)?), row.get::<_, [u8; 32]>(1)?, state))
    })?;
    let Some((known, hash, ended)) = found else { return Ok(None) };
    if hash != payload_hash(&job.payload) {
        return Ok(Some(Inserted::Refused(Refusal::KeyReused { job: known })));
    }
    let ended = ended.and_then(|state| state.parse().ok());
    let state = match ended {
        Some(state) => state,
        None => find_state(tx, known)?.ok_or_else(|| {
            Trouble::Said(StoreError::Broken {
                what: format!(
                    "a key names job {known}, which does not exist: run `rewheel doctor`"
                ),
                source: None,
            })
        })?,
    };
    Ok(Some(Inserted::Duplicate { job: known, state }))
}

fn find_state(tx: &Transaction<'_, '_>, job: JobId) -> Result<Option<State>, Trouble> {
    let text: Option<String> =
        tx.find(include_str!("../sql/find_state.sql"), [job.to_bytes()], column)?;
    Ok(text.and_then(|text| text.parse().ok()))
}
