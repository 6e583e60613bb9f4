//! The claim loop: claims as many jobs as the engine has capacity for, lane by lane.

pub(crate) mod limited;
mod fairness;

use self::fairness::{Candidate, Given, Turns};
use self::limited::{Asked, Found, Limited};
use crate::admission::{Fact, Reservation};
use crate::lanes::{LaneCache, LaneTime};
use crate::shared::{Command, Shared, Waiting};
use crate::supervise;
use futures_util::FutureExt;
use rewheel_core::store::{
    Claim, FleetLimit, Leased, LimitedClaim, LimitedClaimed, StoreError, StoreResult, Visit, Watch,
};
use rewheel_core::{Lane, Limits, State};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::task::JoinSet;

/// From this many jobs on, another claim starts while they are being claimed.
const MANY: usize = 256;

pub(crate) struct Claims {
    shared: Arc<Shared>,
    watch: Box<dyn Watch>,
    batch: Batch,
    lanes: LaneCache,
    turns: Turns,
    limited: Limited,
    on_the_way: JoinSet<Claimed>,
    /// Number of jobs that those may return.
    asked: usize,
    /// Number of concurrent claims, besides one from lanes with fleet-wide limits.
    hands: usize,
    is_limited_on_the_way: bool,
}

/// Result of a claim.
struct Claimed {
    asked: usize,
    count: usize,
    /// Whether the lanes have more jobs.
    has_more: bool,
    has_failed: bool,
    /// By lane.
    given: Vec<Given>,
    /// What the claim found out about fleet-wide limits; `None` for a claim from lanes without them.
    found: Option<Vec<Found>>,
}

impl Claims {
    pub(crate) fn new(shared: Arc<Shared>) -> Claims {
        Claims {
            watch: shared.store.watch(),
            lanes: LaneCache::new(
                shared.clock.clone(),
                shared.settings.poll,
                Some(&shared.store.capabilities()),
            ),
            shared,
            batch: Batch::default(),
            turns: Turns::default(),
            limited: Limited::default(),
            on_the_way: JoinSet::new(),
            asked: 0,
            hands: 1,
            is_limited_on_the_way: false,
        }
    }

    pub(crate) async fn run(mut self) {
        let mut rest = Duration::ZERO;
        while !self.shared.is_stopping() {
            // A limited claim may wait for other engines, but must not delay other claims.
            let plain = self.on_the_way.len() - usize::from(self.is_limited_on_the_way);
            let has_hand = plain < self.hands;
            if has_hand && rest.is_zero() {
                rest = self.tick().await;
                continue;
            }
            tokio::select! {
                biased;
                Some(claimed) = self.on_the_way.join_next() => {
                    rest = self.note(supervise::pass_on(claimed)).unwrap_or(rest);
                    let limited = self.limited.next(self.shared.clock.now());
                    rest = limited.unwrap_or(rest).min(rest);
                }
                () = self.shared.signals.look.notified(), if has_hand => rest = Duration::ZERO,
                change = self.watch.changed(), if has_hand => {
                    self.lanes.hear(change);
                    rest = Duration::ZERO;
                }
                () = self.shared.clock.sleep(rest), if has_hand => rest = Duration::ZERO,
            }
        }
        // Jobs that they return are given back, not lost.
        while self.on_the_way.join_next().await.is_some() {}
    }

    /// Records the result of a claim. Returns how long to rest, if the result determines it.
    fn note(&mut self, claimed: Option<Claimed>) -> Option<Duration> {
        let claimed = claimed?;
        self.asked -= claimed.asked;
        // Behind a claim that got all it asked for, some lanes were not visited.
        let were_all_visited = claimed.count < claimed.asked;
        for given in &claimed.given {
            if given.given < given.asked && given.given > 0 {
                self.lanes.emptied(&given.lane);
            } else if given.given < given.asked && were_all_visited {
                self.lanes.gave_nothing(&given.lane);
            }
        }
        self.turns.note(&claimed.given, claimed.asked);
        if let Some(found) = &claimed.found {
            self.is_limited_on_the_way = false;
            self.limited.note(&self.shared, found);
            return (claimed.has_failed || claimed.has_more).then_some(match claimed.has_failed {
                true => self.shared.settings.poll,
                false => Duration::ZERO,
            });
        }
        self.hands = if claimed.has_more && claimed.count >= MANY { 2 } else { 1 };
        match claimed {
            Claimed { has_failed: true, .. } => Some(self.shared.settings.poll),
            Claimed { has_more: true, .. } => Some(Duration::ZERO),
            Claimed { .. } => None,
        }
    }

    /// Begins a claim. Returns how long to rest unless an event occurs, or the claim returns everything it asked for.
    async fn tick(&mut self) -> Duration {
        let poll = self.shared.settings.poll;
        let room = self.room();
        if room == 0 || self.shared.is_lease_expired() {
            return poll;
        }
        match self.begin(room).await {
            Ok(next) => next.min(poll),
            Err(error) => {
                tracing::debug!(%error, "failed to read the lanes (groups of jobs to claim from): retrying at the next poll");
                poll
            }
        }
    }

    /// Returns how many more jobs this engine wants: one for each free slot, and as many again so that no slot waits for a round
    /// trip.
    fn room(&self) -> usize {
        let slots = self.shared.settings.concurrency;
        let running = self.shared.admission.running();
        let ready = self.shared.signals.ready.load(Ordering::Relaxed);
        let waiting = self.shared.signals.waiting.load(Ordering::Relaxed);
        let wheel_left = (self.shared.settings.wheel_max as usize).saturating_sub(waiting);
        (2 * slots).saturating_sub(running + ready).min(wheel_left).saturating_sub(self.asked)
    }

    async fn begin(&mut self, room: usize) -> Result<Duration, StoreError> {
        let kinds = self.shared.runnable();
        if kinds.is_empty() {
            return Ok(Duration::MAX);
        }
        let mut has_more = self.lanes.refresh(&*self.shared.store, kinds).await?;
        // What this process has stored meanwhile is no sign that others store jobs.
        while let Some(change) = self.watch.changed().now_or_never() {
            self.lanes.hear(change);
            has_more = true;
        }
        let next_look = self.lanes.rest();
        let horizon = self.shared.settings.horizon;
        let (due, is_end) = self.lanes.due(horizon);
        // A job that is due later is claimed when it is within the horizon.
        let later = self.lanes.next_due(horizon);
        let rest = later.map_or(next_look, |wait| next_look.min(wait + Duration::from_millis(1)));
        let mut tenants = due.iter().map(|head| head.lane.tenant.as_ref());
        let first = tenants.next();
        let are_several = first.is_some_and(|first| tenants.any(|other| other != first));
        self.shared.admission.apply(Fact::TenantsDue { are_several });
        let limit = self.batch.next(room.min(Limits::BATCH_MAX));
        let [plain, limited] = self.plan(&due, limit);
        // The next lanes have their turn at once: their jobs have waited as long.
        let rest = if has_more || !is_end { Duration::ZERO } else { rest };
        let rest = self.limited.next(self.shared.clock.now()).unwrap_or(rest).min(rest);
        // A probe is added: other jobs must not take the capacity of the probe that can unpark a kind.
        let limit = limit + plain.probe_count();
        self.send(plain, limit);
        let limit = limited.visits.iter().map(|visit| visit.limit).sum::<usize>();
        if !self.is_limited_on_the_way && limit > 0 {
            self.is_limited_on_the_way = true;
            self.send(limited, limit.min(Limits::BATCH_MAX));
        }
        Ok(rest)
    }

    fn send(&mut self, plan: Plan, limit: usize) {
        if !plan.visits.is_empty() {
            self.asked += limit;
            self.on_the_way.spawn(claim(Arc::clone(&self.shared), plan, limit));
        }
    }

    /// Chooses the lanes to visit, and the number of jobs for each: in the order of [`Turns`], as far as admission has capacity.
    /// Lanes with fleet-wide limits are claimed separately, since such a claim waits for others.
    fn plan(&mut self, due: &[LaneTime], limit: usize) -> [Plan; 2] {
        let shared = &self.shared;
        let now = shared.clock.now();
        self.limited.awaits_nothing();
        let heads: Vec<&Lane> = due.iter().map(|head| &head.lane).collect();
        let rooms = shared.admission.rooms(&heads);
        let mut limited_lanes = BTreeSet::new();
        let mut lanes = Vec::with_capacity(due.len());
        for (head, room) in due.iter().zip(rooms) {
            let lane = &head.lane;
            if room.is_limited {
                limited_lanes.insert(lane);
                if !head.due_in.is_zero() {
                    // A lease takes a slot of the fleet: none is taken before a job is due.
                    self.limited.awaits(now.plus(head.due_in));
                    continue;
                }
                if self.limited.holds(shared, lane, now) {
                    continue;
                }
            }
            let is_foreign = shared.intake.shards.is_foreign(lane.shard);
            let weight = f64::from(room.weight);
            lanes.push(Candidate { lane, is_closed: !room.is_open, is_foreign, weight });
        }
        fairness::share_weights(&mut lanes);
        let offers = self.turns.offers(lanes, limit);
        let mut plain = Plan::new(shared.admission.plan());
        let mut limited = Plan::new(shared.admission.plan());
        for offer in offers {
            let is_limited = limited_lanes.contains(offer.lane);
            let plan = if is_limited { &mut limited } else { &mut plain };
            let Some(kind) = shared.kind(&offer.lane.kind) else { continue };
            let grant = plan.reservation.reserve(offer.lane, offer.jobs);
            if offer.is_open {
                plan.turns.push(Given::nothing_yet(&offer, grant.jobs));
            }
            if grant.jobs > 0 {
                plan.probes.push(grant.is_probe);
                limited::add(&mut plan.limits, offer.lane, grant.fleet);
                plan.visits.push(Visit {
                    lane: offer.lane.clone(),
                    limit: grant.jobs,
                    attempt_timeout: kind.settings.attempt_timeout,
                    attempt_timeout_ceiling: kind.ceilings.attempt_timeout(),
                    grace: shared.settings.overdue_grace,
                });
            }
        }
        plain.leave_room_for_probes(limit);
        [plain, limited]
    }
}

/// The plan of one claim.
struct Plan {
    visits: Vec<Visit>,
    /// Lanes that could return jobs, including those for which other lanes leave no capacity.
    turns: Vec<Given>,
    /// Fleet-wide limits that apply to the lanes.
    limits: Vec<FleetLimit>,
    /// Which of the visits are probes of parked kinds.
    probes: Vec<bool>,
    reservation: Reservation,
}

impl Plan {
    fn new(reservation: Reservation) -> Plan {
        let (visits, turns, limits, probes) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Plan { visits, turns, limits, probes, reservation }
    }

    fn probe_count(&self) -> usize {
        self.probes.iter().filter(|is_probe| **is_probe).count()
    }

    /// If there is a probe, the other visits together get at most the limit: the rest is for the probe.
    fn leave_room_for_probes(&mut self, limit: usize) {
        if self.probe_count() == 0 {
            return;
        }
        let mut rest = limit;
        for (visit, is_probe) in self.visits.iter_mut().zip(&self.probes) {
            if !is_probe {
                visit.limit = visit.limit.min(rest);
                rest -= visit.limit;
            }
        }
        self.visits.retain(|visit| visit.limit > 0);
    }
}

/// Claims once, and passes the jobs to the dispatch loop.
async fn claim(shared: Arc<Shared>, plan: Plan, limit: usize) -> Claimed {
    let Plan { visits, turns, limits, reservation, .. } = plan;
    let call = shared.leases.calls.begin();
    let holder = shared.holder();
    let is_within_fleet = !limits.is_empty();
    let asked: Vec<Asked> = limits
        .into_iter()
        .map(|limit| (limit.clone(), limited::ended(&shared, &limit.of)))
        .collect();
    let (leased, found) = match fetch(&shared, &visits, asked, limit).await {
        Ok(brought) => brought,
        Err(error) => {
            if let StoreError::HolderDead(_) = error {
                // The heartbeat notices it too, and registers again.
                tracing::warn!(%holder, "claim rejected because this holder has expired: registering again");
            } else {
                tracing::debug!(%error, "claim failed: retrying");
            }
            call.end();
            let (given, found) = (Vec::new(), is_within_fleet.then(Vec::new));
            return Claimed {
                asked: limit,
                count: 0,
                has_more: false,
                has_failed: true,
                given,
                found,
            };
        }
    };
    let count = leased.len();
    shared.reports.meters.claim_batch.note(count as u64);
    let given = given(turns, &leased);
    let has_more = count > 0 && (count >= limit || is_deep(&shared, &given));
    let in_hand = reservation.came(leased.iter().map(|one| (&one.job, one.due_in.is_zero())));
    let jobs = leased.into_iter().zip(in_hand).map(|(leased, in_hand)| {
        let waiting = shared.waiting(leased.job, holder, leased.due_in, leased.deadline_in);
        Waiting { in_hand, is_within_fleet, ..waiting }
    });
    let jobs: Vec<Waiting> = jobs.collect();
    if count > 0 {
        let (from, to) = (Some(State::Scheduled), State::Leased);
        let leased = jobs.iter().map(|waiting| &waiting.job);
        shared.reports.events.tell(leased.map(|job| (job.id, &job.lane.kind, from, to)));
        jobs.iter().for_each(|waiting| shared.leases.hold(waiting.lease()));
        let _ = shared.signals.to_dispatch.send(Command::Leased(jobs));
    }
    call.end();
    Claimed { asked: limit, count, has_more, has_failed: false, given, found }
}

/// Result of a claim, and what it found out about fleet-wide limits.
type Brought = (Vec<Leased>, Option<Vec<Found>>);

async fn fetch(
    shared: &Shared,
    visits: &[Visit],
    asked: Vec<Asked>,
    limit: usize,
) -> StoreResult<Brought> {
    let holder = shared.holder();
    if asked.is_empty() {
        let claim = Claim { holder, visits, horizon: shared.settings.horizon, limit };
        return Ok((shared.store.claim(&claim).await?, None));
    }
    let limits: Vec<FleetLimit> = asked.iter().map(|(limit, _)| limit.clone()).collect();
    let claim = LimitedClaim { holder, visits, limit, limits: &limits };
    let LimitedClaimed { leased, waits } = shared.store.claim_limited(&claim).await?;
    let found = asked.into_iter().zip(waits).map(|(asked, wait)| Found {
        has_leased: leased.iter().any(|one| asked.0.of.covers(&one.job.lane)),
        asked,
        wait,
    });
    let found = found.collect();
    Ok((leased, Some(found)))
}

/// Returns what each lane returned.
fn given(mut turns: Vec<Given>, leased: &[Leased]) -> Vec<Given> {
    let mut counts: BTreeMap<&Lane, usize> = BTreeMap::new();
    for leased in leased {
        *counts.entry(&leased.job.lane).or_default() += 1;
    }
    for turn in &mut turns {
        turn.given = counts.get(&turn.lane).copied().unwrap_or(0);
    }
    turns
}

/// Returns whether a lane returned everything that was asked for, so that there is more. A lane that returned less is empty, or
/// closed, which only the store knows. A kind with its own limit is claimed again when one of its attempts has ended.
fn is_deep(shared: &Shared, given: &[Given]) -> bool {
    let has_more = |one: &&Given| one.asked > 0 && one.given == one.asked;
    let is_unlimited = |one: &Given| {
        let kind = shared.kind(&one.lane.kind);
        kind.is_some_and(|kind| kind.settings.concurrency_max.is_none())
    };
    given.iter().filter(has_more).any(is_unlimited)
}

/// Number of jobs to claim at once. Follows the free capacity: down at once, since a lease without a slot is useless; up by half,
/// since a burst of free slots is often short.
#[derive(Debug, Default)]
struct Batch {
    size: usize,
}

impl Batch {
    fn next(&mut self, room: usize) -> usize {
        let grown = self.size + self.size.div_ceil(2).max(16);
        self.size = room.min(grown);
        self.size
    }
}

#[cfg(test)]
mod tests {
    use super::Batch;

    #[test]
    fn a_batch_shrinks_at_once_and_grows_smoothly() {
        let mut batch = Batch::default();
        let sizes: Vec<usize> = [500, 500, 500, 500, 3, 500].map(|room| batch.next(room)).into();
        assert_eq!(sizes, [16, 32, 48, 72, 3, 19]);
    }
}
