//! Stores new jobs.

use super::groups::line_of;
use super::verbs::PAYLOAD_BYTES_MAX;
use super::world::{KeyName, KeyRow, Row, World};
use crate::groups::Release;
use crate::payload::payload_hash;
use rewheel_core::store::{
    Direct, IfRefused, Insert, Inserted, Refusal, Sent, StoreError, StoreResult,
};
use rewheel_core::{Format, Holder, Job, JobId, NewJob, State, Timestamp};
use std::collections::{HashMap, HashSet};

/// What to do with one job of a batch.
enum Plan {
    Store,
    Duplicate {
        job: JobId,
        state: State,
    },
    /// A duplicate of an earlier job in the same batch.
    DuplicateWithin(JobId),
    Refuse(Refusal),
}

/// The ids and keys that this batch is about to store.
#[derive(Default)]
struct Batch {
    ids: HashSet<JobId>,
    keys: HashMap<KeyName, (JobId, [u8; 32])>,
}

impl World {
    pub(super) fn insert(
        &mut self,
        insert: &Insert<'_>,
        now: Timestamp,
    ) -> StoreResult<Vec<Inserted>> {
        let mut batch = Batch::default();
        let mut plans = Vec::with_capacity(insert.jobs.len());
        for new in insert.jobs {
            plans.push(self.plan(new, insert.sent, &mut batch, now)?);
        }
        let is_refused = plans.iter().any(|plan| matches!(plan, Plan::Refuse(_)));
        let stores_nothing = is_refused && insert.if_refused == IfRefused::StoreNothing;
        let answers = insert.jobs.iter().zip(plans).map(|(new, plan)| match plan {
            Plan::Duplicate { job, state } => Inserted::Duplicate { job, state },
            Plan::Refuse(why) => Inserted::Refused(why),
            Plan::Store | Plan::DuplicateWithin(_) if stores_nothing => Inserted::LeftOut,
            Plan::Store => self.store(new, insert.direct, now),
            Plan::DuplicateWithin(job) => {
                Inserted::Duplicate { job, state: self.jobs[&job].job.state() }
            }
        });
        Ok(answers.collect())
    }

    /// Decides what to do with one job, without writing anything.
    fn plan(
        &self,
        new: &NewJob,
        sent: Sent,
        batch: &mut Batch,
        now: Timestamp,
    ) -> StoreResult<Plan> {
        // Check this first: a job that is already stored must not get a refusal whose reason arose
        // later, such as a deadline that has passed since.
        if sent == Sent::Again {
            if let Some(row) = self.jobs.get(&new.id) {
                return Ok(Plan::Duplicate { job: new.id, state: row.job.state() });
            }
            if batch.ids.contains(&new.id) {
                return Ok(Plan::DuplicateWithin(new.id));
            }
        }
        if let Some(why) = self.refusal(new) {
            return Ok(Plan::Refuse(why));
        }
        let key = key_name(new).map(|name| (name, payload_hash(&new.payload)));
        if let Some((name, hash)) = &key
            && let Some(known) = self.known(name, *hash, batch, now)
        {
            return Ok(known);
        }
        if is_too_late(new, now) {
            return Ok(Plan::Refuse(Refusal::DeadlineTooEarly));
        }
        if let Some((name, hash)) = key {
            batch.keys.insert(name, (new.id, hash));
        }
        if self.jobs.contains_key(&new.id) || !batch.ids.insert(new.id) {
            let why = format!("a job with id {} already exists: use a new id for each job", new.id);
            return Err(StoreError::Rejected(why.into()));
        }
        Ok(Plan::Store)
    }

    /// Returns what is wrong with the job itself, if anything.
    fn refusal(&self, new: &NewJob) -> Option<Refusal> {
        let bytes = new.payload.len();
        if bytes > PAYLOAD_BYTES_MAX {
            Some(Refusal::TooLarge { bytes, bytes_max: PAYLOAD_BYTES_MAX })
        } else if !self.kinds.contains_key(&new.kind) {
            Some(Refusal::UnknownKind)
        } else {
            self.holder_too_old(new)
        }
    }

    /// Refuses a job that the release of a living holder would damage.
    fn holder_too_old(&self, new: &NewJob) -> Option<Refusal> {
        let format = new.format();
        if format == Format::FIRST {
            return None;
        }
        let is_older = |holder: &&Holder| holder.died.is_none() && holder.format < format;
        let older = self.holders.values().find(is_older)?;
        Some(Refusal::HolderTooOld { holder: older.name.clone() })
    }

    /// Decides what to do with a job whose key may exist already.
    fn known(&self, name: &KeyName, hash: [u8; 32], batch: &Batch, now: Timestamp) -> Option<Plan> {
        if let Some((job, first)) = batch.keys.get(name) {
            let reused = Plan::Refuse(Refusal::KeyReused { job: *job });
            return Some(if *first == hash { Plan::DuplicateWithin(*job) } else { reused });
        }
        let key = self.keys.get(name).filter(|key| !key.has_expired(now))?;
        let job = key.job;
        if key.payload_hash != hash {
            return Some(Plan::Refuse(Refusal::KeyReused { job }));
        }
        let state = match key.ended {
            Some((state, _)) => state,
            None => self.jobs[&job].job.state(),
        };
        Some(Plan::Duplicate { job, state })
    }

    pub(super) fn store(
        &mut self,
        new: &NewJob,
        direct: Option<Direct>,
        now: Timestamp,
    ) -> Inserted {
        if let Some(name) = key_name(new) {
            let payload_hash = payload_hash(&new.payload);
            self.keys.insert(name, KeyRow { job: new.id, payload_hash, ended: None });
        }
        self.inserted += 1;
        let mut row = new_row(new, self.inserted, now);
        self.join_line(&mut row);
        let line = line_of(&row);
        let due = row.job.due;
        let mut leased = None;
        if let Some(direct) = direct.filter(|direct| self.may_lease(direct, &row.job, now)) {
            let timeout = new.attempt_timeout.unwrap_or(direct.attempt_timeout);
            let overdue = now.max(due).plus(timeout).plus(direct.grace);
            row.lease(direct.holder, overdue, now);
            leased = Some(row.job.fence);
        }
        let report = self.report.get_or_insert_default();
        if leased.is_none() {
            report.add(&row.job.lane);
        }
        self.add(row);
        if let Some(line) = line {
            self.release(&line, Release::WithInsert, now);
        }
        self.line.submitted += 1;
        Inserted::Created { due, leased }
    }

    /// Returns whether a new job may be leased at once because no other job of its lane is waiting.
    fn may_lease(&self, direct: &Direct, job: &Job, now: Timestamp) -> bool {
        let is_open = self
            .kinds
            .get(&job.lane.kind)
            .is_some_and(|row| !row.kind.paused && row.kind.parked.is_none());
        let first = self.lanes.get(&job.lane).and_then(|lane| lane.first());
        let is_first = first.is_none_or(|(due, ..)| *due > now);
        let is_alone = job.group.is_none();
        self.is_alive(direct.holder) && is_open && job.due <= now && is_first && is_alone
    }
}

impl KeyRow {
    pub(super) fn has_expired(&self, now: Timestamp) -> bool {
        self.ended.is_some_and(|(_, expires)| expires <= now)
    }
}

fn is_too_late(new: &NewJob, now: Timestamp) -> bool {
    let deadline = new.deadline.map(|deadline| deadline.resolve(now));
    deadline.is_some_and(|deadline| deadline <= now || deadline < new.due.resolve(now))
}

fn key_name(new: &NewJob) -> Option<KeyName> {
    new.key.clone().map(|key| (new.tenant.clone(), new.kind.clone(), key))
}

fn new_row(new: &NewJob, inserted: u64, now: Timestamp) -> Row {
    let job = Job { payload: None, ..new.to_job(now) };
    Row {
        job,
        payload: new.payload.clone(),
        inserted,
        place: None,
        leased: now,
        leased_by: 0,
        started: None,
        settled: None,
        expires: None,
        announced: None,
        attempts: Vec::new(),
    }
}
