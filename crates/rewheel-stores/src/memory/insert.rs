//! Stores new jobs.

use super::Weakness;
use super::groups::line_of;
use super::verbs::PAYLOAD_BYTES_MAX;
use super::world::{KeyName, KeyRow, Note, Row, World};
use crate::duplicates::{GONE, REPLACE, SUBMIT, has_twins, wakes};
use crate::groups::Release;
use crate::payload::payload_hash;
use rewheel_core::store::{
    Direct, IfRefused, Insert, Inserted, Refusal, Sent, StoreError, StoreResult,
};
use rewheel_core::{
    Actor, AuditEntry, Format, Holder, Job, JobId, NewJob, OnDuplicate, OnKey, State, Timestamp,
    Waits, replaced_facts,
};
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
    /// It replaces a job that waits, perhaps an earlier one of the same batch.
    Replace(JobId),
    /// It replaced this job when it was sent before.
    ReplacedBefore(JobId),
    Refuse(Refusal),
}

/// The ids and keys that this batch is about to store.
#[derive(Default)]
struct Batch {
    ids: HashSet<JobId>,
    keys: HashMap<KeyName, (JobId, [u8; 32])>,
}

/// The job that has a key.
#[derive(Clone, Copy)]
struct Known {
    job: JobId,
    payload_hash: [u8; 32],
    waits: Waits,
    /// Whether it is an earlier job of the same batch, which is not stored yet.
    is_within: bool,
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
        let direct = insert.direct.filter(|_| !has_twins(insert.jobs));
        let answers = insert.jobs.iter().zip(plans).map(|(new, plan)| match plan {
            Plan::Duplicate { job, state } => Inserted::Duplicate { job, state },
            Plan::ReplacedBefore(job) => {
                let state = self.jobs.get(&job).map(|row| row.job.state());
                Inserted::Replaced { job, state: state.unwrap_or(GONE) }
            }
            Plan::Refuse(why) => Inserted::Refused(why),
            Plan::Store | Plan::DuplicateWithin(_) | Plan::Replace(_) if stores_nothing => {
                Inserted::LeftOut
            }
            Plan::Store => self.store(new, direct, now),
            Plan::Replace(job) => self.replace(job, new, now),
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
            if let Some(job) = self.replaced_by(new) {
                return Ok(Plan::ReplacedBefore(job));
            }
        }
        if let Some(why) = self.refusal(new) {
            return Ok(Plan::Refuse(why));
        }
        let key = key_name(new).map(|name| (name, payload_hash(&new.payload)));
        if let Some((name, hash)) = &key
            && let Some(known) = self.known(name, batch, now)
        {
            match self.decide(new.duplicates, known.waits) {
                OnKey::Answer => return Ok(self.answer(name, *hash, known)),
                OnKey::Replace => return Ok(self.plan_replace(new, name, *hash, known, batch, now)),
                OnKey::Take => {}
            }
        }
        if new.is_too_late(now) {
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

    /// Returns the job that has a key.
    fn known(&self, name: &KeyName, batch: &Batch, now: Timestamp) -> Option<Known> {
        if let Some((job, payload_hash)) = batch.keys.get(name) {
            // No job of a batch is leased before a later one with its key was looked at.
            let is_within = batch.ids.contains(job);
            let (job, payload_hash, waits) = (*job, *payload_hash, Waits::Yes);
            return Some(Known { job, payload_hash, waits, is_within });
        }
        let key = self.keys.get(name).filter(|key| !key.has_expired(now))?;
        let waits = |row: &Row| match self.is_weak(Weakness::ReplacesClaimed) {
            true if row.job.state().is_live() => Waits::Yes,
            true | false => row.job.waits(),
        };
        let waits = self.jobs.get(&key.job).map_or(Waits::No, waits);
        Some(Known { job: key.job, payload_hash: key.payload_hash, waits, is_within: false })
    }

    /// Answers with the job that has the key, if it has the same payload.
    fn answer(&self, name: &KeyName, hash: [u8; 32], known: Known) -> Plan {
        let job = known.job;
        if known.payload_hash != hash {
            return Plan::Refuse(Refusal::KeyReused { job });
        }
        if known.is_within {
            return Plan::DuplicateWithin(job);
        }
        let state = match self.keys[name].ended {
            Some((state, _)) => state,
            None => self.jobs[&job].job.state(),
        };
        Plan::Duplicate { job, state }
    }

    fn plan_replace(
        &self,
        new: &NewJob,
        name: &KeyName,
        hash: [u8; 32],
        known: Known,
        batch: &mut Batch,
        now: Timestamp,
    ) -> Plan {
        let is_too_late = match self.jobs.get(&known.job) {
            Some(row) => new.in_place_of(&row.job, now).is_too_late(now),
            None => new.is_too_late(now),
        };
        if is_too_late {
            return Plan::Refuse(Refusal::DeadlineTooEarly);
        }
        batch.keys.insert(name.clone(), (known.job, hash));
        Plan::Replace(known.job)
    }

    /// Returns the job that a submit replaced when it was sent before.
    fn replaced_by(&self, new: &NewJob) -> Option<JobId> {
        if new.duplicates.on_duplicate() != OnDuplicate::Replace {
            return None;
        }
        let id = new.id.to_string();
        let is_his = |entry: &&AuditEntry| {
            let mut facts = entry.after.iter();
            entry.what == REPLACE && facts.any(|fact| fact == ("submit", Some(&id)))
        };
        self.audit.iter().rev().find(is_his)?.job
    }

    /// Replaces what a job that waits will run.
    fn replace(&mut self, id: JobId, new: &NewJob, now: Timestamp) -> Inserted {
        let before = self.jobs[&id].whole();
        let after = new.in_place_of(&before, now).replaced(&before);
        let (old, facts) = replaced_facts(&before, &after, new.id);
        let (who, kind) = (Actor::new(SUBMIT), Some(before.lane.kind.clone()));
        let note =
            Note { who: &who, what: REPLACE, job: Some(id), kind, before: old, after: facts };
        self.note(note, now);
        let report = self.report.get_or_insert_default();
        if wakes(&before, &after) {
            report.add(&after.lane);
        }
        if let Some(row) = key_name(new).and_then(|name| self.keys.get_mut(&name)) {
            row.payload_hash = payload_hash(&new.payload);
        }
        let state = after.state();
        self.write(id, |row| {
            row.payload = new.payload.clone();
            row.job = Job { payload: None, ..after };
        });
        Inserted::Replaced { job: id, state }
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
        self.format = self.format.max(Some(new.format()));
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
            self.release(&line, Release::WithInsert(&[new.id]), now);
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
        succeeded: None,
    }
}
