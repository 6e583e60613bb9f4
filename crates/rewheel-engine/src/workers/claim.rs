//! Claims jobs for a remote worker.

use super::{RemoteWorker, WorkerError};
use crate::admission::{Ask, Paid, Suspect, WorkerHas};
use crate::kinds::KindEntry;
use crate::lanes::LaneTime;
use crate::shared::Shared;
use crate::{budget, claim};
use rewheel_core::store::{
    AttemptTiming, Claim, FleetLimit, Leased, LimitedClaim, Settlement, StoreResult, Visit,
};
use rewheel_core::{
    Actor, Decision, DueReason, HolderId, Job, JobId, KindChange, KindChanged, KindName, Lane,
    Lease, Limits, State, Tenant,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// How long a suspect job waits that cannot run at the same time as another one in the same worker.
const SUSPECT_LATER: Duration = Duration::from_secs(2);

impl RemoteWorker<'_> {
    /// Leases due jobs to a worker, at most `limit`: lanes with a higher priority first, in random order among equal ones.
    ///
    /// # Errors
    /// Fails with [`WorkerError::Expired`] if the worker's lease has expired.
    pub async fn claim(
        &self,
        kinds: &[KindName],
        limit: usize,
    ) -> Result<Vec<Leased>, WorkerError> {
        let shared = self.shared();
        let known: BTreeMap<&KindName, Arc<KindEntry>> = kinds
            .iter()
            .filter_map(|name| Some((name, shared.kind(name)?)))
            .filter(|(_, kind)| kind.is_for_workers())
            .collect();
        if known.is_empty() || limit == 0 {
            return Ok(Vec::new());
        }
        self.take_probes(known.keys().copied()).await?;
        let due = shared.workers.lanes.due(shared, &known).await?;
        if due.is_empty() {
            return Ok(Vec::new());
        }
        let has = self.has(&known).await?;
        let plan = plan(shared, self.id, &known, &has, due, limit);
        if plan.is_empty() {
            return Ok(Vec::new());
        }
        let leased = self.fetch(&plan, limit).await;
        give_passes_back(shared, &plan, leased.as_deref().unwrap_or_default());
        let leased = leased?;
        shared.workers.lanes.emptied(plan.emptied(&leased)).await;
        let all: Vec<(Lane, Lease)> =
            leased.iter().map(|one| (one.job.lane.clone(), one.lease())).collect();
        let mut paid = Vec::new();
        let leased = match self.keep(leased, &known, &mut paid).await {
            Ok(kept) => kept,
            Err(error) => {
                // The worker receives none of them, so none of them uses up a rate or a budget.
                all.iter().for_each(|(lane, _)| shared.admission.worker_returns(lane, 1));
                paid.iter().for_each(|kind| shared.admission.worker_unpays(kind));
                let leases: Vec<Lease> = all.into_iter().map(|(_, lease)| lease).collect();
                let _ = shared.store.give_back(self.id, &leases, shared.retain_ended()).await;
                return Err(error);
            }
        };
        let (from, to) = (Some(State::Scheduled), State::Leased);
        shared.reports.meters.claim_batch.note(leased.len() as u64);
        for leased in &leased {
            if let Some(kind) = known.get(&leased.job.lane.kind) {
                // A worker starts every job that it gets.
                kind.meters.starts(leased.job.attempt);
            }
        }
        let jobs = leased.iter().map(|leased| &leased.job);
        shared.reports.events.tell(jobs.map(|job| (job.id, &job.lane.kind, from, to)));
        Ok(leased)
    }

    /// Takes the right to probe parked kinds whose open time has passed.
    async fn take_probes(&self, kinds: impl Iterator<Item = &KindName>) -> StoreResult<()> {
        let shared = self.shared();
        for name in kinds {
            let Some(generation) = shared.admission.takes_probe(name) else { continue };
            let (change, asked) =
                (KindChange::Probe { generation, holder: self.id }, shared.clock.now());
            let by = Actor::of_holder(&shared.settings.name);
            let changed = shared.store.change_kind(name, &change, &by).await?;
            if let KindChanged::Applied(kind) | KindChanged::Refused(kind) = changed {
                shared.learn_one(&kind, asked);
            }
        }
        Ok(())
    }

    async fn fetch(&self, plan: &Plan, limit: usize) -> StoreResult<Vec<Leased>> {
        let (shared, holder) = (self.shared(), self.id);
        let mut leased = Vec::new();
        if !plan.probes.is_empty() {
            // First, and separately: other lanes must not take the capacity of the job that can unpark a kind.
            let (visits, limit) = (&plan.probes, plan.probes.len().min(limit));
            let claim = Claim { holder, visits, horizon: Duration::ZERO, limit };
            leased = shared.store.claim(&claim).await?;
        }
        let left = limit.saturating_sub(leased.len());
        if !plan.limited.is_empty() && left > 0 {
            let (visits, limits) = (&plan.limited, &plan.limits);
            let claim = LimitedClaim { holder, visits, limit: left, limits };
            match shared.store.claim_limited(&claim).await {
                Ok(more) => leased.extend(more.leased),
                // The others are leased, so the worker must receive them.
                Err(error) if leased.is_empty() => return Err(error),
                Err(error) => {
                    tracing::debug!(%error, "part of a claim for a worker failed: the worker gets fewer jobs than it asked for")
                }
            }
        }
        let limit = limit.saturating_sub(leased.len());
        if !plan.visits.is_empty() && limit > 0 {
            let visits = &plan.visits;
            let claim = Claim { holder, visits, horizon: Duration::ZERO, limit };
            match shared.store.claim(&claim).await {
                Ok(more) => leased.extend(more),
                // The others are leased, so the worker must receive them.
                Err(error) if leased.is_empty() => return Err(error),
                Err(error) => {
                    tracing::debug!(%error, "part of a claim for a worker failed: the worker gets fewer jobs than it asked for")
                }
            }
        }
        Ok(leased)
    }

    /// Returns the jobs that the worker may start. Retries without a grant, and suspect jobs that must not run at the same time,
    /// go back to the store with a later due time. Adds to `paid` the kind of each retry that used a grant.
    async fn keep(
        &self,
        leased: Vec<Leased>,
        known: &BTreeMap<&KindName, Arc<KindEntry>>,
        paid: &mut Vec<KindName>,
    ) -> Result<Vec<Leased>, WorkerError> {
        let shared = self.shared();
        let mut later = self.suspects_apart(&leased, known).await?;
        let unpaid =
            self.unpaid(leased.iter().filter(|one| !later.contains_key(&one.job.id)), paid);
        later.extend(unpaid);
        if !later.is_empty() {
            let settlements: Vec<Settlement> = later.values().cloned().collect();
            shared.store.settle(self.id, &settlements).await?;
        }
        let is_kept = |one: &Leased| !later.contains_key(&one.job.id);
        let (leased, put_off): (Vec<_>, Vec<_>) = leased.into_iter().partition(is_kept);
        // A takeover counts against a suspect job only if its start was recorded.
        let is_suspect = |leased: &&Leased| leased.job.is_suspect();
        let suspects: Vec<Lease> = leased.iter().filter(is_suspect).map(Leased::lease).collect();
        if !suspects.is_empty() {
            shared.store.start(self.id, &suspects).await?;
        }
        // Last: after an error all of them are returned.
        put_off.iter().for_each(|one| shared.admission.worker_returns(&one.job.lane, 1));
        Ok(leased)
    }

    /// Returns the retries without a grant. Adds to `paid` the kind of each retry that used one.
    fn unpaid<'l>(
        &self,
        leased: impl Iterator<Item = &'l Leased>,
        paid: &mut Vec<KindName>,
    ) -> BTreeMap<JobId, Settlement> {
        let shared = self.shared();
        let mut unpaid = BTreeMap::new();
        for one in leased {
            let kind = &one.job.lane.kind;
            match shared.admission.worker_pays(self.id, kind, budget::is_retry(&one.job)) {
                Paid::WithGrant => {
                    paid.push(kind.clone());
                    continue;
                }
                Paid::Nothing => continue,
                Paid::NotYet => {}
            }
            let chance = shared.random.next();
            let wait = shared.admission.put_off(kind, Duration::ZERO, one.deadline_in, chance);
            let later = self.later(one, wait.unwrap_or_default(), DueReason::RetryBudget);
            unpaid.insert(one.job.id, later);
        }
        unpaid
    }

    /// Returns the suspect jobs to put back: a job whose next takeover makes it a dead letter runs without another suspect job in
    /// the same worker, so that it is not blamed for another job's crash.
    async fn suspects_apart(
        &self,
        leased: &[Leased],
        known: &BTreeMap<&KindName, Arc<KindEntry>>,
    ) -> StoreResult<BTreeMap<JobId, Settlement>> {
        let mut apart = BTreeMap::new();
        let is_suspect = |leased: &&Leased| leased.job.is_suspect();
        let suspects: Vec<&Leased> = leased.iter().filter(is_suspect).collect();
        if suspects.is_empty() {
            return Ok(apart);
        }
        let store = &self.shared().store;
        let is_new = |job: &JobId| leased.iter().any(|leased| leased.job.id == *job);
        let mut held = self.all_held().await?;
        held.retain(|job| !is_new(job));
        let is_alone = |job: &Job| {
            let most = known.get(&job.lane.kind).map(|kind| kind.settings.takeovers_max);
            most.is_some_and(|most| job.takeovers_counted + 1 >= most)
        };
        let mut running: Vec<bool> = Vec::new();
        for held in held.chunks(Limits::BATCH_MAX) {
            let live = store.live(held).await?;
            running.extend(live.iter().filter(|job| job.is_suspect()).map(is_alone));
        }
        for one in suspects {
            let must_be_alone = is_alone(&one.job);
            if running.contains(&true) || (must_be_alone && !running.is_empty()) {
                apart.insert(one.job.id, self.later(one, SUSPECT_LATER, DueReason::Snooze));
            } else {
                running.push(must_be_alone);
            }
        }
        Ok(apart)
    }

    /// Builds the settlement of a job that the worker does not start.
    fn later(&self, leased: &Leased, after: Duration, because: DueReason) -> Settlement {
        Settlement {
            lease: leased.lease(),
            decision: Decision::Snooze { after, because },
            ran: AttemptTiming::default(),
            failure: None,
            hold: Duration::ZERO,
            keep: self.shared().retain_ended(),
            follow_ups: Vec::new(),
            code: None,
            result: None,
            payload: None,
        }
    }

    /// Counts the jobs that a worker has, if its kinds or tenants have a limit per worker.
    async fn has(&self, known: &BTreeMap<&KindName, Arc<KindEntry>>) -> StoreResult<Has> {
        let shared = self.shared();
        let mut has = Has::default();
        let counts = shared.admission.counts_workers(known.keys().copied());
        if !counts && !shared.intake.caps.limit_concurrency() {
            return Ok(has);
        }
        for jobs in self.all_held().await?.chunks(Limits::BATCH_MAX) {
            for job in shared.store.live(jobs).await? {
                has.count(&job.lane, 1);
            }
        }
        Ok(has)
    }

    /// Returns every job that the worker has.
    async fn all_held(&self) -> StoreResult<Vec<JobId>> {
        let (store, mut all) = (&self.shared().store, Vec::new());
        loop {
            let after = all.last().copied();
            let page = store.held(self.id, Duration::ZERO, after, Limits::BATCH_MAX).await?;
            all.extend(page.iter().map(|lease| lease.job));
            if page.len() < Limits::BATCH_MAX {
                return Ok(all);
            }
        }
    }
}

/// Number of jobs that a worker has.
#[derive(Debug, Default)]
struct Has {
    kinds: BTreeMap<KindName, usize>,
    tenants: BTreeMap<Tenant, usize>,
}

impl Has {
    fn count(&mut self, lane: &Lane, jobs: usize) {
        *self.kinds.entry(lane.kind.clone()).or_default() += jobs;
        if let Some(tenant) = &lane.tenant {
            *self.tenants.entry(tenant.clone()).or_default() += jobs;
        }
    }

    fn of(&self, lane: &Lane) -> WorkerHas {
        let of_tenant = lane.tenant.as_ref().and_then(|tenant| self.tenants.get(tenant));
        WorkerHas {
            of_kind: self.kinds.get(&lane.kind).copied().unwrap_or_default(),
            of_tenant: of_tenant.copied().unwrap_or_default(),
        }
    }
}

/// The plan of a worker's claim. Rate tokens were taken for all of it.
#[derive(Debug, Default)]
struct Plan {
    visits: Vec<Visit>,
    /// Lanes of parked kinds that the worker may probe.
    probes: Vec<Visit>,
    /// Lanes with fleet-wide limits.
    limited: Vec<Visit>,
    limits: Vec<FleetLimit>,
}

impl Plan {
    fn is_empty(&self) -> bool {
        self.visits.is_empty() && self.probes.is_empty() && self.limited.is_empty()
    }

    fn visits(&self) -> impl Iterator<Item = &Visit> {
        self.visits.iter().chain(&self.probes).chain(&self.limited)
    }

    /// Returns the lanes from which fewer jobs came than were asked for.
    fn emptied<'p>(&'p self, leased: &'p [Leased]) -> impl Iterator<Item = &'p Lane> {
        self.visits().filter(|visit| came(visit, leased) < visit.limit).map(|visit| &visit.lane)
    }
}

/// Returns the rate tokens of jobs that were not claimed.
fn give_passes_back(shared: &Shared, plan: &Plan, leased: &[Leased]) {
    for visit in plan.visits() {
        let unused = visit.limit.saturating_sub(came(visit, leased));
        shared.admission.worker_returns(&visit.lane, unused);
    }
}

fn came(visit: &Visit, leased: &[Leased]) -> usize {
    leased.iter().filter(|leased| leased.job.lane == visit.lane).count()
}

/// Chooses the lanes to visit for a worker, and the number of jobs for each.
fn plan(
    shared: &Shared,
    worker: HolderId,
    known: &BTreeMap<&KindName, Arc<KindEntry>>,
    has: &Has,
    mut due: Vec<LaneTime>,
    limit: usize,
) -> Plan {
    // A random order is as fair as turns, and needs no state that engines would have to share.
    due.sort_by_cached_key(|head| (std::cmp::Reverse(head.lane.priority), shared.random.next()));
    // Lanes that would return nothing must not hide others.
    due.retain(|head| {
        let (kind, tenant) = (&head.lane.kind, head.lane.tenant.as_ref());
        let suspect = Suspect::No;
        let ask = Ask { kind, tenant, is_retry: false, suspect, is_within_fleet: true };
        shared.admission.why_for_workers(worker, &ask).is_none()
    });
    due.truncate(Limits::LANES_MAX);
    let share = limit.div_ceil(due.len().max(1)).max(1);
    let mut plan = Plan::default();
    let mut asked = Has::default();
    for head in due {
        let Some(kind) = known.get(&head.lane.kind) else { continue };
        let (now, before) = (asked.of(&head.lane), has.of(&head.lane));
        let has = WorkerHas {
            of_kind: before.of_kind + now.of_kind,
            of_tenant: before.of_tenant + now.of_tenant,
        };
        let grant = shared.admission.worker_takes(worker, &head.lane, share, has);
        if grant.jobs == 0 {
            continue;
        }
        asked.count(&head.lane, grant.jobs);
        let is_limited = grant.fleet.iter().any(|rule| !rule.is_none());
        claim::limited::add(&mut plan.limits, &head.lane, grant.fleet);
        let visits = match (is_limited, grant.is_probe) {
            (true, _) => &mut plan.limited,
            (false, true) => &mut plan.probes,
            (false, false) => &mut plan.visits,
        };
        visits.push(Visit {
            lane: head.lane,
            limit: grant.jobs,
            attempt_timeout: kind.settings.attempt_timeout,
            attempt_timeout_ceiling: kind.ceilings.attempt_timeout(),
            grace: shared.settings.overdue_grace,
        });
    }
    plan
}
