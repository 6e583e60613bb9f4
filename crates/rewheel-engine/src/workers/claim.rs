//! Leases jobs to a worker.

use super::{RemoteWorker, WorkerError};
use crate::kinds::KindEntry;
use crate::settings::RunnerKind;
use crate::shared::Shared;
use rewheel_core::store::{Answer, Claim, LaneHead, Leased, Visit};
use rewheel_core::{JobId, KindName, Lane, Lease, Limits, State};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Lanes that are read at once.
const LANES_READ: usize = 1_000;

/// How often one claim reads lanes before it answers that nothing is due: the next one goes on from there.
const PAGES_MAX: usize = 16;

/// Sets of kinds for which it is remembered where the last claim stopped.
const REMEMBERED_MAX: usize = 1_000;

/// Where the claims for each set of kinds stopped to read lanes.
#[derive(Debug, Default)]
pub(crate) struct LaneTurns(Mutex<HashMap<Vec<KindName>, Lane>>);

impl LaneTurns {
    fn after(&self, kinds: &[KindName]) -> Option<Lane> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(kinds).cloned()
    }

    fn set(&self, kinds: &[KindName], after: Option<Lane>) {
        let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match after {
            Some(lane) => {
                if turns.len() >= REMEMBERED_MAX {
                    turns.clear();
                }
                turns.insert(kinds.to_vec(), lane);
            }
            None => {
                turns.remove(kinds);
            }
        }
    }
}

impl RemoteWorker<'_> {
    /// Leases jobs that are due to a worker, at most `limit`: of the urgent lanes first, and in turns
    /// among those that are alike.
    ///
    /// # Errors
    /// [`WorkerError::Expired`] for a worker whose lease ran out.
    pub async fn claim(
        &self,
        kinds: &[KindName],
        limit: usize,
    ) -> Result<Vec<Leased>, WorkerError> {
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
        let due = self.due_lanes(&names).await?;
        if due.is_empty() {
            return Ok(Vec::new());
        }
        let held = self.held_by_kind(&known).await?;
        let visits = visits(shared, &known, &held, due, limit);
        if visits.is_empty() {
            return Ok(Vec::new());
        }
        let claim = Claim { holder: self.id, visits: &visits, horizon: Duration::ZERO, limit };
        let leased = shared.store.claim(&claim).await;
        give_passes_back(&known, &visits, leased.as_deref().unwrap_or_default());
        let leased = leased?;
        // A takeover counts against a suspect only if its start was recorded.
        let is_suspect = |leased: &&Leased| leased.job.is_suspect();
        let suspects: Vec<Lease> = leased.iter().filter(is_suspect).map(Leased::lease).collect();
        if !suspects.is_empty()
            && let Err(error) = shared.store.start(self.id, &suspects).await
        {
            // The worker hears of none of them.
            let leases: Vec<Lease> = leased.iter().map(Leased::lease).collect();
            let _ = shared.store.give_back(self.id, &leases, shared.keep_ended()).await;
            return Err(error.into());
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

    /// Finds lanes with due jobs, where the last claim for these kinds stopped. Lanes whose jobs are due later may be many:
    /// they must not hide the others.
    async fn due_lanes(&self, kinds: &[KindName]) -> Answer<Vec<LaneHead>> {
        let shared = self.shared();
        let mut after = shared.lane_turns.after(kinds);
        let mut is_first_round = after.is_some();
        let mut due = Vec::new();
        for _ in 0..PAGES_MAX {
            let page = shared.store.lanes(kinds, after.as_ref(), LANES_READ).await?;
            let is_last = page.len() < LANES_READ;
            after = if is_last { None } else { page.last().map(|head| head.lane.clone()) };
            due.extend(page.into_iter().filter(|head| head.due_in.is_zero()));
            if !due.is_empty() || (is_last && !is_first_round) {
                break;
            }
            // From the first lane on, once.
            is_first_round &= !is_last;
        }
        shared.lane_turns.set(kinds, after);
        Ok(due)
    }

    /// How many jobs of each kind a worker has, where its kind says how many it may have.
    async fn held_by_kind(
        &self,
        known: &BTreeMap<&KindName, Arc<KindEntry>>,
    ) -> Answer<BTreeMap<KindName, usize>> {
        let mut held = BTreeMap::new();
        if known.values().all(|kind| kind.settings.concurrency_max.is_none()) {
            return Ok(held);
        }
        let store = &self.shared().store;
        let leases = store.held(self.id, Duration::ZERO, None, Limits::BATCH_MAX).await?;
        let jobs: Vec<JobId> = leases.iter().map(|lease| lease.job).collect();
        for job in store.live(&jobs).await? {
            *held.entry(job.lane.kind).or_default() += 1;
        }
        Ok(held)
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
