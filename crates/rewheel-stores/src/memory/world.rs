//! The tables of a memory store.

use rewheel_core::store::{AttemptRecord, LimitOf, Sample, StoreError};
use rewheel_core::{
    Actor, AuditEntry, Cause, Facts, Fate, Fence, Holder, HolderId, Job, JobId, Keep, Key, Kind,
    KindName, Lane, RetryPool, State, Status, Tenant, Timestamp, Token, TokenId, Wanted,
};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Everything that a store knows.
#[derive(Default)]
pub(super) struct World {
    /// Every job, whatever its state.
    pub(super) jobs: BTreeMap<JobId, Row>,
    /// The scheduled jobs of each lane, the one to be claimed first at the front. No lane is empty.
    pub(super) lanes: BTreeMap<Lane, BTreeSet<Place>>,
    pub(super) keys: HashMap<KeyName, KeyRow>,
    /// Room that holders have set aside for jobs of a tenant.
    pub(super) reserved: BTreeMap<(Tenant, HolderId), u64>,
    /// The live jobs of each tenant that has any.
    pub(super) live: HashMap<Tenant, u64>,
    pub(super) holders: BTreeMap<HolderId, Holder>,
    pub(super) kinds: BTreeMap<KindName, KindRow>,
    /// The numbers of the latest change of any kind, and of the latest that deleted one.
    pub(super) kind_changes: (u64, u64),
    /// The retries that each kind has earned.
    pub(super) budgets: BTreeMap<KindName, RetryPool>,
    /// When a job was last leased under each limit over the fleet.
    pub(super) starts: BTreeMap<LimitOf, Timestamp>,
    pub(super) tokens: BTreeMap<TokenId, Token>,
    /// The latest job counts.
    pub(super) sample: Option<Sample>,
    pub(super) audit: Vec<AuditEntry>,
    /// The number of the latest audit entry.
    pub(super) audit_seq: u64,
    pub(super) ledger: Vec<Line>,
    /// What the verb that runs adds to the ledger.
    pub(super) line: Line,
    /// Counts the jobs that were ever stored.
    pub(super) inserted: u64,
    /// Whether the verb that runs did what watchers wait for.
    pub(super) is_reason_to_look: bool,
    /// Counts the verbs.
    pub(super) verbs: u64,
    /// By which verb each of the dead died.
    pub(super) deaths: BTreeMap<HolderId, u64>,
    pub(super) closed: bool,
    pub(super) weakness: Option<super::Weakness>,
}

/// A job, and what only the store knows of it.
pub(super) struct Row {
    /// The job, without its payload.
    pub(super) job: Job,
    pub(super) payload: Vec<u8>,
    /// Tells which of two jobs that are due at once was stored first.
    pub(super) inserted: u64,
    /// When it was last leased.
    pub(super) leased: Timestamp,
    /// By which verb, counted: clocks may go back.
    pub(super) leased_by: u64,
    /// Under which fence a start was last recorded.
    pub(super) started: Option<Fence>,
    /// By whom it was last settled or given back.
    pub(super) settled: Option<SettledBy>,
    /// When it need not be kept any longer.
    pub(super) expires: Option<Timestamp>,
    /// When somebody was told of its death.
    pub(super) announced: Option<Timestamp>,
    /// Its failed attempts.
    pub(super) attempts: Vec<AttemptRecord>,
}

/// Who settled a job, so that a repetition is known as one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct SettledBy {
    pub(super) holder: HolderId,
    /// What the holder named, not what it got.
    pub(super) fence: Fence,
    pub(super) how: LetGo,
}

/// How a holder let go of a job.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum LetGo {
    /// It settled the job, which stayed with it.
    Kept,
    /// It settled the job.
    Settled,
    /// It gave the job back: a result that comes later does not count.
    GivenBack,
}

/// Where a scheduled job stands in its lane: by due, then in the order they were stored.
pub(super) type Place = (Timestamp, u64, JobId);

/// What a key is unique within.
pub(super) type KeyName = (Option<Tenant>, KindName, Key);

/// What a key remembers.
pub(super) struct KeyRow {
    pub(super) job: JobId,
    /// Of the payload as it was submitted.
    pub(super) payload_hash: [u8; 32],
    /// What the job was at its end, and when that need not be known any longer.
    pub(super) ended: Option<(State, Timestamp)>,
}

pub(super) struct KindRow {
    pub(super) kind: Kind,
    /// The job that the prober got for its right to probe.
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

/// What somebody did, for the audit log.
pub(super) struct Note<'a> {
    pub(super) who: &'a Actor,
    pub(super) what: &'a str,
    pub(super) job: Option<JobId>,
    pub(super) kind: Option<KindName>,
    pub(super) before: Facts,
    pub(super) after: Facts,
}

impl Row {
    /// Returns the job with its payload.
    pub(super) fn whole(&self) -> Job {
        Job { payload: Some(self.payload.clone()), ..self.job.clone() }
    }

    /// The guard of every write by a holder.
    pub(super) fn is_leased_as(&self, by: HolderId, fence: Fence) -> bool {
        self.holder() == Some(by) && self.job.fence == fence
    }

    /// Hands the job to a holder, under a new fence.
    pub(super) fn lease(&mut self, holder: HolderId, overdue: Timestamp, now: Timestamp) {
        self.job.status = Status::Leased { holder, overdue, wanted: None };
        self.job.fence = self.job.fence.next();
        self.leased = now;
    }

    /// Who holds the job.
    pub(super) fn holder(&self) -> Option<HolderId> {
        let Status::Leased { holder, .. } = self.job.status else { return None };
        Some(holder)
    }

    /// What a person wants of the job, while somebody holds it.
    pub(super) fn wanted(&self) -> Option<Wanted> {
        let Status::Leased { wanted, .. } = self.job.status else { return None };
        wanted
    }

    /// What the engine is about to make of the job.
    pub(super) fn fate(&self, to: State, cause: Cause) -> Fate<'static> {
        Fate {
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

    fn place(&self) -> Option<Place> {
        let place = (self.job.due, self.inserted, self.job.id);
        (self.job.state() == State::Scheduled).then_some(place)
    }
}

impl World {
    /// Stores a row that is new.
    pub(super) fn add(&mut self, mut row: Row) {
        let id = row.job.id;
        row.leased_by = self.verbs;
        self.enter_lane(&row);
        let old = self.jobs.insert(id, row);
        debug_assert!(old.is_none(), "job {id} was stored twice");
    }

    /// Lets `change` write a row that exists, and keeps the lanes in step with it.
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
        if let Some(place) = row.place() {
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
        let Some(place) = row.place() else { return };
        let lane = self.lanes.get_mut(&row.job.lane).expect("a scheduled job is in its lane");
        lane.remove(&place);
        if lane.is_empty() {
            self.lanes.remove(&row.job.lane);
        }
    }

    /// Leaves a job in a state in which nobody holds it.
    pub(super) fn let_go(&mut self, id: JobId, to: State, keep: Keep, now: Timestamp) {
        let status = match to {
            State::Scheduled => Status::Scheduled,
            State::Paused => Status::Paused,
            State::Dead => Status::Dead(now),
            State::Succeeded => Status::Succeeded(now),
            State::Failed => Status::Failed(now),
            State::Cancelled => Status::Cancelled(now),
            State::Leased => unreachable!("a job that is let go of is not leased"),
        };
        self.write(id, |row| {
            row.job.status = status;
            row.job.version = row.job.version.next();
            row.announced = None;
        });
        if to.is_final() {
            self.finish(id, to, keep, now);
        }
    }

    /// Decides how long to keep what is left of a job.
    fn finish(&mut self, id: JobId, state: State, keep: Keep, now: Timestamp) {
        let key = self.write(id, |row| {
            row.expires = Some(now.plus(keep.job));
            let Lane { kind, tenant, .. } = row.job.lane.clone();
            row.job.key.clone().map(|key| (tenant, kind, key))
        });
        if let Some(key) = key.and_then(|name| self.keys.get_mut(&name)) {
            debug_assert!(key.job == id, "the key of job {id} is held by job {}", key.job);
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

    /// Refuses what only a live holder may do.
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

    /// Notes what became of a job that is still there, by a holder or by whichever of the engine's.
    pub(super) fn note_fate(
        &mut self,
        job: JobId,
        fate: &Fate<'_>,
        by: Option<HolderId>,
        now: Timestamp,
    ) {
        for note in fate.notes() {
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

    /// Writes down what the verb that ran did to the books.
    pub(super) fn append_to_ledger(&mut self) {
        let line = std::mem::take(&mut self.line);
        if line != Line::default() {
            self.ledger.push(line);
        }
    }
}
