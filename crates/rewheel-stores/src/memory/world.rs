//! The tables of a memory store.

use super::groups::Groups;
use super::results::ResultRow;
use rewheel_core::store::{
    AttemptRecord, HistoryPosition, HistoryRow, LimitOf, Sample, StoreChange, StoreError,
};
use rewheel_core::{
    Actor, AuditEntry, AuditFields, Cause, Fence, Format, Holder, HolderId, Job, JobId, Key, Kind,
    KindName, Lane, Retain, RetryPool, State, Status, Tenant, Timestamp, Token, TokenId,
    Transition, Wanted,
};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// All tables of the store.
#[derive(Default)]
pub(super) struct World {
    /// Every job, in any state.
    pub(super) jobs: BTreeMap<JobId, Row>,
    /// The scheduled jobs of each lane, the next one to claim first. No lane is empty.
    pub(super) lanes: BTreeMap<Lane, BTreeSet<Place>>,
    /// The results of jobs that succeeded.
    pub(super) results: BTreeMap<JobId, ResultRow>,
    pub(super) keys: HashMap<KeyName, KeyRow>,
    /// The lines of groups.
    pub(super) groups: Groups,
    /// Room under a tenant's job cap that holders have reserved.
    pub(super) reserved: BTreeMap<(Tenant, HolderId), u64>,
    /// The number of live jobs of each tenant that has any.
    pub(super) live: HashMap<Tenant, u64>,
    pub(super) holders: BTreeMap<HolderId, Holder>,
    /// The newest format that a stored job has used.
    pub(super) format: Option<Format>,
    pub(super) kinds: BTreeMap<KindName, KindRow>,
    /// The number of the latest change of any kind, and of the latest change that deleted one.
    pub(super) kind_changes: (u64, u64),
    /// The retry budget of each kind.
    pub(super) budgets: BTreeMap<KindName, RetryPool>,
    /// When a job was last leased under each fleet-wide limit.
    pub(super) starts: BTreeMap<LimitOf, Timestamp>,
    pub(super) tokens: BTreeMap<TokenId, Token>,
    /// The latest job counts.
    pub(super) sample: Option<Sample>,
    /// What nodes counted per kind and minute.
    pub(super) history: BTreeMap<HistoryPosition, HistoryRow>,
    pub(super) audit: Vec<AuditEntry>,
    /// The number of the latest audit entry.
    pub(super) audit_seq: u64,
    pub(super) ledger: Vec<Line>,
    /// What the running verb adds to the ledger.
    pub(super) line: Line,
    /// The number of jobs ever stored.
    pub(super) inserted: u64,
    /// What the running verb reports to watchers.
    pub(super) report: Option<StoreChange>,
    /// The number of verbs run.
    pub(super) verbs: u64,
    /// The number of the verb that ended each dead holder.
    pub(super) deaths: BTreeMap<HolderId, u64>,
    pub(super) closed: bool,
    pub(super) weakness: Option<super::Weakness>,
}

/// A job, with the fields that only the store needs.
pub(super) struct Row {
    /// The job, without its payload.
    pub(super) job: Job,
    pub(super) payload: Vec<u8>,
    /// The insertion order, which breaks ties between jobs that are due at the same time.
    pub(super) inserted: u64,
    /// Its place in the line of its group.
    pub(super) place: Option<u64>,
    /// When it was last leased.
    pub(super) leased: Timestamp,
    /// The number of the verb that leased it: clocks may go back.
    pub(super) leased_by: u64,
    /// The fence under which a start was last recorded.
    pub(super) started: Option<Fence>,
    /// The holder that last settled it or gave it back.
    pub(super) settled: Option<SettledBy>,
    /// When its retention ends.
    pub(super) expires: Option<Timestamp>,
    /// When its death was announced.
    pub(super) announced: Option<Timestamp>,
    /// Its failed attempts.
    pub(super) attempts: Vec<AttemptRecord>,
    /// The attempt that succeeded.
    pub(super) succeeded: Option<AttemptRecord>,
}

/// The latest settle of a job, to recognize a repeated one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct SettledBy {
    pub(super) holder: HolderId,
    /// The fence that the holder named, not the one that followed.
    pub(super) fence: Fence,
    pub(super) how: LetGo,
}

/// How a holder released a job.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum LetGo {
    /// It settled the job and kept the lease.
    Kept,
    /// It settled the job.
    Settled,
    /// It gave the job back: a result that arrives later does not count.
    GivenBack,
}

/// The position of a scheduled job in its lane: by due time, then by insertion order.
pub(super) type Place = (Timestamp, u64, JobId);

/// The scope in which a key is unique.
pub(super) type KeyName = (Option<Tenant>, KindName, Key);

/// The stored state of a key.
pub(super) struct KeyRow {
    pub(super) job: JobId,
    /// The hash of the payload as it was submitted.
    pub(super) payload_hash: [u8; 32],
    /// The final state of the job, and when the key expires.
    pub(super) ended: Option<(State, Timestamp)>,
}

pub(super) struct KindRow {
    pub(super) kind: Kind,
    /// The job that the prober claimed as its probe.
    pub(super) probe: Option<JobId>,
    /// The number of its latest change.
    pub(super) changed: u64,
}

/// A line of the ledger.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) submitted: u64,
    pub(super) pruned: u64,
}

/// An action for the audit log.
pub(super) struct Note<'a> {
    pub(super) who: &'a Actor,
    pub(super) what: &'a str,
    pub(super) job: Option<JobId>,
    pub(super) kind: Option<KindName>,
    pub(super) before: AuditFields,
    pub(super) after: AuditFields,
}

impl Row {
    /// Returns the job with its payload.
    pub(super) fn whole(&self) -> Job {
        Job { payload: Some(self.payload.clone()), ..self.job.clone() }
    }

    /// Returns whether a holder has the job under this fence. Guards every write by a holder.
    pub(super) fn is_leased_as(&self, by: HolderId, fence: Fence) -> bool {
        self.holder() == Some(by) && self.job.fence == fence
    }

    /// Leases the job to a holder, under a new fence.
    pub(super) fn lease(&mut self, holder: HolderId, overdue: Timestamp, now: Timestamp) {
        self.job.status = Status::Leased { holder, overdue, wanted: None };
        self.job.fence = self.job.fence.next();
        self.leased = now;
    }

    /// Returns the holder of the job, if it is leased.
    pub(super) fn holder(&self) -> Option<HolderId> {
        let Status::Leased { holder, .. } = self.job.status else { return None };
        Some(holder)
    }

    /// Returns what an operator wants of the job while it is leased.
    pub(super) fn wanted(&self) -> Option<Wanted> {
        let Status::Leased { wanted, .. } = self.job.status else { return None };
        wanted
    }

    /// Describes what the engine is about to do to the job.
    pub(super) fn transition(&self, to: State, cause: Cause) -> Transition<'static> {
        Transition {
            cause,
            from: self.job.state(),
            to,
            holder: self.holder(),
            fence: self.job.fence,
            wanted: self.wanted(),
            takeovers: self.job.takeovers,
            takeovers_counted: self.job.takeovers_counted,
            failure: None,
        }
    }

    fn tenant_while_live(&self) -> Option<&Tenant> {
        self.job.lane.tenant.as_ref().filter(|_| self.job.state().is_live())
    }

    fn lane_place(&self) -> Option<Place> {
        let place = (self.job.due, self.inserted, self.job.id);
        (self.job.state() == State::Scheduled && !self.job.is_blocked()).then_some(place)
    }
}

impl World {
    /// Stores a new row.
    pub(super) fn add(&mut self, mut row: Row) {
        let id = row.job.id;
        row.leased_by = self.verbs;
        self.enter_lane(&row);
        let old = self.jobs.insert(id, row);
        debug_assert!(old.is_none(), "job {id} was stored twice");
    }

    /// Lets `change` modify an existing row, and keeps the lanes consistent with it.
    pub(super) fn write<T>(&mut self, id: JobId, change: impl FnOnce(&mut Row) -> T) -> T {
        let mut row = self.jobs.remove(&id).expect("only rows that were found are written");
        self.leave_lane(&row);
        let fence = row.job.fence;
        let answer = change(&mut row);
        if row.job.fence != fence {
            row.leased_by = self.verbs;
        }
        self.enter_lane(&row);
        self.jobs.insert(id, row);
        answer
    }

    fn enter_lane(&mut self, row: &Row) {
        if let Some(place) = row.lane_place() {
            self.lanes.entry(row.job.lane.clone()).or_default().insert(place);
        }
        if let Some(tenant) = row.tenant_while_live() {
            *self.live.entry(tenant.clone()).or_default() += 1;
        }
    }

    fn leave_lane(&mut self, row: &Row) {
        if let Some(tenant) = row.tenant_while_live()
            && let Some(live) = self.live.get_mut(tenant)
        {
            *live -= 1;
            if *live == 0 {
                self.live.remove(tenant);
            }
        }
        let Some(place) = row.lane_place() else { return };
        let lane = self.lanes.get_mut(&row.job.lane).expect("a scheduled job is in its lane");
        lane.remove(&place);
        if lane.is_empty() {
            self.lanes.remove(&row.job.lane);
        }
    }

    /// Moves a job into a state without a holder.
    pub(super) fn let_go(&mut self, id: JobId, to: State, keep: Retain, now: Timestamp) {
        let status = match to {
            State::Scheduled => Status::Scheduled,
            State::Paused => Status::Paused,
            State::Dead => Status::Dead(now),
            State::Succeeded => Status::Succeeded(now),
            State::Failed => Status::Failed(now),
            State::Cancelled => Status::Cancelled(now),
            State::Leased => unreachable!("a released job is not leased"),
        };
        let is_behind = self.jobs.get(&id).is_some_and(|row| self.is_behind(row));
        self.write(id, |row| {
            row.job.status = status;
            row.job.version = row.job.version.next();
            row.announced = None;
            if let Some(group) = &mut row.job.group {
                group.blocked = to == State::Scheduled && is_behind;
            }
        });
        self.after_let_go(id, to, now);
        if to.is_final() {
            self.finish(id, to, keep, now);
        }
    }

    /// Sets the retention of an ended job and of its key.
    fn finish(&mut self, id: JobId, state: State, keep: Retain, now: Timestamp) {
        let key = self.write(id, |row| {
            row.expires = Some(now.plus(keep.job));
            let Lane { kind, tenant, .. } = row.job.lane.clone();
            row.job.key.clone().map(|key| (tenant, kind, key))
        });
        // Another job may have the key by now: it took the key when this one was claimed.
        let key = key.and_then(|name| self.keys.get_mut(&name));
        if let Some(key) = key.filter(|key| key.job == id) {
            key.ended = Some((state, now.plus(keep.key)));
        }
        if keep.job.is_zero() {
            self.jobs.remove(&id);
            self.line.pruned += 1;
        }
    }

    pub(super) fn is_alive(&self, holder: HolderId) -> bool {
        self.holders.get(&holder).is_some_and(|holder| holder.died.is_none())
    }

    /// Returns an error unless the holder is alive.
    pub(super) fn must_be_alive(&self, holder: HolderId) -> Result<(), StoreError> {
        if self.is_alive(holder) { Ok(()) } else { Err(StoreError::HolderDead(holder)) }
    }

    pub(super) fn note(&mut self, note: Note<'_>, now: Timestamp) {
        self.audit_seq += 1;
        self.audit.push(AuditEntry {
            seq: self.audit_seq,
            at: now,
            who: note.who.clone(),
            what: note.what.to_owned(),
            job: note.job,
            kind: note.kind,
            before: note.before,
            after: note.after,
        });
    }

    /// Adds an audit entry for a stored job, by a holder or by the engine.
    pub(super) fn note_fate(
        &mut self,
        job: JobId,
        transition: &Transition<'_>,
        by: Option<HolderId>,
        now: Timestamp,
    ) {
        for note in transition.notes() {
            let who = by.map_or_else(Actor::engine, |holder| self.actor(holder));
            let kind = Some(self.jobs[&job].job.lane.kind.clone());
            let (what, before, after) = (note.what, note.before, note.after);
            self.note(Note { who: &who, what, job: Some(job), kind, before, after }, now);
        }
    }

    fn actor(&self, holder: HolderId) -> Actor {
        match self.holders.get(&holder) {
            Some(known) => Actor::of_holder(&known.name),
            None => Actor::of_holder(&holder.to_string()),
        }
    }

    /// Appends the changes of the last verb to the ledger.
    pub(super) fn append_to_ledger(&mut self) {
        let line = std::mem::take(&mut self.line);
        if line != Line::default() {
            self.ledger.push(line);
        }
    }
}
