//! Hands jobs to workers elsewhere: in other processes, in other languages.
//!
//! A worker is a holder of its own, with a lease that it keeps alive. Whatever this engine knows of it
//! is in the store, so that a worker may talk to any engine of a fleet.

use crate::attempt;
use crate::engine::Engine;
use crate::kinds::KindEntry;
use crate::settings::RunnerKind;
use crate::shared::Shared;
use rewheel_core::store::{
    Answer, Claim, LaneHead, Leased, Outcome, Settled, Settlement, StoreError, Visit, halving,
};
use rewheel_core::{
    HolderId, Job, JobId, KindName, Lane, Lease, Limits, NewHolder, Report, Role, State, Wanted,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// Lanes that are read for one claim.
const LANES_READ: usize = 1_000;

/// What became of an attempt that a worker made.
#[derive(Clone, Debug)]
pub struct WorkerResult {
    /// Which job, under which fence.
    pub lease: Lease,
    /// What the worker says.
    pub report: Report,
    /// How long it took, where the worker says so.
    pub took: Duration,
}

/// What became of a [`WorkerResult`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerSettled {
    /// It is durable, and the job is this now.
    Settled(State),
    /// The job was another's by then, or is gone: what the worker did is not what counts.
    Lost,
}

/// What a worker hears when it says that it lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerHeard {
    /// Jobs that it should stop: a person wants them cancelled or paused.
    pub cancel: Vec<JobId>,
    /// How many jobs were given back that it did not name: it never got them, or has lost them.
    pub given_back: usize,
}

impl Engine {
    /// Brings a worker to life. It is heard of by others as long as it says so itself, see
    /// [`Engine::worker_lives`].
    ///
    /// # Errors
    /// Passes on what the store says.
    pub async fn worker_joins(&self, name: &str) -> Answer<HolderId> {
        let shared = self.shared();
        let id = shared.new_holder_id();
        let lease_ttl = shared.settings.lease_ttl;
        let holder = NewHolder { id, name: name.to_owned(), role: Role::Worker, lease_ttl };
        shared.store.join(&holder).await?;
        Ok(id)
    }

    /// Leases jobs that are due to a worker, at most `limit`: of the urgent lanes first, and in turns
    /// among those that are alike.
    ///
    /// # Errors
    /// [`StoreError::HolderDead`] for a worker that was silent for too long; what else the store says.
    pub async fn worker_claims(
        &self,
        worker: HolderId,
        kinds: &[KindName],
        limit: usize,
    ) -> Answer<Vec<Leased>> {
        let shared = self.shared();
        let known: BTreeMap<&KindName, Arc<KindEntry>> = kinds
            .iter()
            .filter_map(|name| Some((name, shared.kind(name)?)))
            .filter(|(_, kind)| kind.settings.runner == RunnerKind::Worker)
            .collect();
        let names: Vec<KindName> = known.keys().map(|name| (*name).clone()).collect();
        if names.is_empty() || limit == 0 {
            return Ok(Vec::new());
        }
        let heads = shared.store.lanes(&names, None, LANES_READ).await?;
        let due: Vec<LaneHead> = heads.into_iter().filter(|head| head.due_in.is_zero()).collect();
        if due.is_empty() {
            return Ok(Vec::new());
        }
        let held = self.held_by_kind(worker, &known).await?;
        let visits = visits(shared, &known, &held, due, limit);
        if visits.is_empty() {
            return Ok(Vec::new());
        }
        let claim = Claim { holder: worker, visits: &visits, horizon: Duration::ZERO, limit };
        let leased = shared.store.claim(&claim).await;
        give_passes_back(&known, &visits, leased.as_deref().unwrap_or_default());
        let leased = leased?;
        // A takeover counts against a suspect only if its start was recorded.
        let is_suspect = |leased: &&Leased| leased.job.is_suspect();
        let suspects: Vec<Lease> = leased.iter().filter(is_suspect).map(Leased::lease).collect();
        if !suspects.is_empty() {
            shared.store.start(worker, &suspects).await?;
        }
        let (from, to) = (Some(State::Scheduled), State::Leased);
        shared.meters.claim_batch.note(leased.len() as u64);
        for leased in &leased {
            if let Some(kind) = known.get(&leased.job.lane.kind) {
                // A worker starts what it gets.
                kind.meters.starts(leased.job.attempt);
            }
        }
        let jobs = leased.iter().map(|leased| &leased.job);
        shared.events.tell(jobs.map(|job| (job.id, &job.lane.kind, from, to)));
        Ok(leased)
    }

    /// How many jobs of each kind a worker has, where its kind says how many it may have.
    async fn held_by_kind(
        &self,
        worker: HolderId,
        known: &BTreeMap<&KindName, Arc<KindEntry>>,
    ) -> Answer<BTreeMap<KindName, usize>> {
        let mut held = BTreeMap::new();
        if known.values().all(|kind| kind.settings.concurrency_max.is_none()) {
            return Ok(held);
        }
        let store = &self.shared().store;
        for lease in store.held(worker, Duration::ZERO, None, Limits::BATCH_MAX).await? {
            if let Some(job) = store.get(lease.job).await? {
                *held.entry(job.lane.kind).or_default() += 1;
            }
        }
        Ok(held)
    }

    /// Keeps a worker alive, and tells what people want of its jobs. Jobs that it has had for longer
    /// than `older_than` and does not name are given back.
    ///
    /// # Errors
    /// [`StoreError::HolderDead`] for a worker that was silent for too long: it drops all work, and
    /// joins again. What else the store says.
    pub async fn worker_lives(
        &self,
        worker: HolderId,
        jobs: &BTreeSet<JobId>,
        older_than: Option<Duration>,
    ) -> Answer<WorkerHeard> {
        let shared = self.shared();
        let renewed = shared.store.renew(worker).await?;
        let cancel = |wanted: Wanted| matches!(wanted, Wanted::Cancel | Wanted::Pause);
        let wanted = renewed.wanted.iter().filter(|one| cancel(one.wanted));
        let cancel = wanted.map(|one| one.lease.job).collect();
        let mut given_back = 0;
        if let Some(older_than) = older_than {
            let mut after = None;
            loop {
                let held = shared.store.held(worker, older_than, after, Limits::BATCH_MAX).await?;
                after = held.last().map(|lease| lease.job);
                let is_full = held.len() == Limits::BATCH_MAX;
                let lost: Vec<Lease> =
                    held.into_iter().filter(|lease| !jobs.contains(&lease.job)).collect();
                if !lost.is_empty() {
                    shared.store.give_back(worker, &lost, shared.keep_ended()).await?;
                    given_back += lost.len();
                }
                if !is_full {
                    break;
                }
            }
        }
        Ok(WorkerHeard { cancel, given_back })
    }

    /// Writes what became of attempts that a worker made, by the rules and the policy of their kinds.
    /// One answer for each, in order.
    ///
    /// # Errors
    /// Passes on what the store says; what was written is known when it is sent again.
    pub async fn worker_settles(
        &self,
        worker: HolderId,
        results: Vec<WorkerResult>,
    ) -> Answer<Vec<WorkerSettled>> {
        let shared = self.shared();
        let mut settlements: Vec<Settlement> = Vec::with_capacity(results.len());
        let mut kinds = BTreeMap::new();
        for result in results {
            let settlement = match shared.store.get(result.lease.job).await? {
                Some(job) => {
                    kinds.insert(job.id, job.lane.kind.clone());
                    self.settlement(&job, result).await?
                }
                // It is gone, or never was: the store says what it knows.
                None => Settlement::succeed(result.lease),
            };
            settlements.push(settlement);
        }
        let answers = halving(&settlements, |part| shared.store.settle(worker, part)).await?;
        let mut settled = Vec::with_capacity(settlements.len());
        for (settlement, answer) in settlements.iter().zip(answers) {
            settled.push(self.settled(settlement, answer, &kinds)?);
        }
        Ok(settled)
    }

    async fn settlement(&self, job: &Job, result: WorkerResult) -> Answer<Settlement> {
        let shared = self.shared();
        let deadline_in = match job.deadline {
            Some(deadline) => Some(deadline.since(shared.store.now().await?)),
            None => None,
        };
        let name = &job.lane.kind;
        if shared.kind(name).is_none() {
            shared.learn(&shared.store.kinds().await?);
        }
        let kind = shared.kind(name).ok_or_else(|| StoreError::Broken {
            what: format!("there are jobs of the kind `{name}`, but no such kind: name it again"),
            source: None,
        })?;
        let WorkerResult { lease, report, took } = result;
        let settlement = attempt::settlement_of(shared, &kind, job, deadline_in, report, took);
        Ok(Settlement { lease, ..settlement })
    }

    fn settled(
        &self,
        settlement: &Settlement,
        answer: Result<Settled, StoreError>,
        kinds: &BTreeMap<JobId, KindName>,
    ) -> Answer<WorkerSettled> {
        let shared = self.shared();
        let (outcome, is_news) = match answer? {
            Settled::Applied(outcome) => (outcome, true),
            Settled::AlreadyApplied(outcome) => (outcome, false),
            Settled::Lost => return Ok(WorkerSettled::Lost),
        };
        let state = match outcome {
            Outcome::LetGo(state) => state,
            Outcome::Kept { .. } => State::Leased,
            Outcome::Gone if kinds.contains_key(&settlement.lease.job) => State::Succeeded,
            Outcome::Gone => return Ok(WorkerSettled::Lost),
        };
        if !is_news {
            // It was counted when it was new, and told.
            return Ok(WorkerSettled::Settled(state));
        }
        if state == State::Dead {
            shared.note_dead([settlement.lease.job]);
        }
        if let Some(kind) = kinds.get(&settlement.lease.job) {
            let meters = shared.meters.kind(kind);
            meters.settled.count(settlement);
            meters.duration.took(settlement.ran.duration);
            if state == State::Dead {
                meters.died_of(settlement);
            }
            shared.events.tell([(settlement.lease.job, kind, Some(State::Leased), state)]);
        }
        Ok(WorkerSettled::Settled(state))
    }
}

/// Takes back what rates let pass for jobs that did not come.
fn give_passes_back(
    known: &BTreeMap<&KindName, Arc<KindEntry>>,
    visits: &[Visit],
    leased: &[Leased],
) {
    for (name, kind) in known {
        let Some(gate) = &kind.gate else { continue };
        let of_it = |visit: &&Visit| visit.lane.kind == **name;
        let passed: usize = visits.iter().filter(of_it).map(|visit| visit.limit).sum();
        let came = leased.iter().filter(|leased| leased.job.lane.kind == **name).count();
        (came..passed).for_each(|_| gate.give_back());
    }
}

/// Which lanes to visit for a worker, and for how many jobs each.
fn visits(
    shared: &Shared,
    known: &BTreeMap<&KindName, Arc<KindEntry>>,
    held: &BTreeMap<KindName, usize>,
    mut due: Vec<LaneHead>,
    limit: usize,
) -> Vec<Visit> {
    // Chance is as fair as turns, and needs no memory that engines would have to share.
    let mut chance: BTreeMap<Lane, u64> = BTreeMap::new();
    for head in &due {
        chance.insert(head.lane.clone(), shared.random.next());
    }
    due.sort_by_key(|head| {
        (std::cmp::Reverse(head.lane.priority), chance.get(&head.lane).copied())
    });
    due.truncate(Limits::LANES_MAX);
    let share = limit.div_ceil(due.len().max(1)).max(1);
    let mut visits = Vec::with_capacity(due.len());
    let mut room: BTreeMap<&KindName, usize> = BTreeMap::new();
    for head in &due {
        let Some((name, kind)) = known.get_key_value(&head.lane.kind) else { continue };
        let left = room.entry(*name).or_insert_with(|| {
            let held = held.get(*name).copied().unwrap_or_default();
            kind.settings.concurrency_max.map_or(limit, |most| most.saturating_sub(held))
        });
        let wanted = share.min(*left);
        let passed = match &kind.gate {
            Some(gate) => (0..wanted).take_while(|_| gate.pass(shared.living())).count(),
            None => wanted,
        };
        *left -= passed;
        if passed > 0 {
            visits.push(Visit {
                lane: head.lane.clone(),
                limit: passed,
                attempt_timeout: kind.settings.attempt_timeout,
                grace: shared.settings.grace,
            });
        }
    }
    visits
}
