//! The claim loop: claims as many jobs as the engine has capacity for, lane by lane.

pub(crate) mod limited;
mod turns;

use self::limited::{Asked, Found, Limited};
use self::turns::{Candidate, Given, Turns};
use crate::admission::{Fact, Reservation};
use crate::shared::{Command, Shared, Waiting};
use crate::supervise;
use rewheel_core::store::{
    Answer, Claim, FleetLimit, LaneHead, Leased, LimitedClaim, LimitedClaimed, StoreError, Visit,
    Watch,
};
use rewheel_core::{KindName, Lane, Limits, State};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::task::JoinSet;

/// Lanes that are read at once. More are read in turns.
const LANES_READ: usize = 1_000;

/// From so many jobs on, more of them are fetched while they are on their way.
const MANY: usize = 256;

pub(crate) struct Claims {
    shared: Arc<Shared>,
    watch: Box<dyn Watch>,
    batch: Batch,
    /// Where the last reading of lanes ended.
    after: Option<Lane>,
    turns: Turns,
    limited: Limited,
    on_the_way: JoinSet<Claimed>,
    /// How many jobs those may bring.
    asked: usize,
    /// How many claims may be on their way at once, beside one of lanes with limits over the fleet.
    hands: usize,
    is_limited_on_the_way: bool,
}

/// What a claim brought.
struct Claimed {
    asked: usize,
    count: usize,
    /// Whether there is more where that came from.
    has_more: bool,
    has_failed: bool,
    /// By lanes.
    given: Vec<Given>,
    /// What was found out about limits over the fleet; nothing for a claim of lanes without them.
    found: Option<Vec<Found>>,
}

impl Claims {
    pub(crate) fn new(shared: Arc<Shared>) -> Claims {
        Claims {
            watch: shared.store.watch(),
            shared,
            batch: Batch::default(),
            after: None,
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
            // A limited claim may wait for other engines: it keeps no other claim waiting.
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
                () = self.watch.changed(), if has_hand => rest = Duration::ZERO,
                () = self.shared.clock.sleep(rest), if has_hand => rest = Duration::ZERO,
            }
        }
        // What they bring is given back, not forgotten.
        while self.on_the_way.join_next().await.is_some() {}
    }

    /// Takes note of what a claim brought. Returns how long to rest, if that says something about it.
    fn note(&mut self, claimed: Option<Claimed>) -> Option<Duration> {
        let claimed = claimed?;
        self.asked -= claimed.asked;
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

    /// Begins a claim. Returns how long to rest unless something happens, or it brings all it asked for.
    async fn tick(&mut self) -> Duration {
        let poll = self.shared.settings.poll;
        let room = self.room();
        if room == 0 || self.shared.is_doubtful() {
            return poll;
        }
        match self.begin(room).await {
            Ok(next) => next.min(poll),
            Err(error) => {
                tracing::debug!(%error, "failed to read lanes");
                poll
            }
        }
    }

    /// How many more jobs this engine wants in its hands: one for each free place, and as many again
    /// so that no place waits for a round trip.
    fn room(&self) -> usize {
        let places = self.shared.settings.places;
        let running = self.shared.admission.running();
        let ready = self.shared.signals.ready.load(Ordering::Relaxed);
        let waiting = self.shared.signals.waiting.load(Ordering::Relaxed);
        let wheel_left = (self.shared.settings.wheel_max as usize).saturating_sub(waiting);
        (2 * places).saturating_sub(running + ready).min(wheel_left).saturating_sub(self.asked)
    }

    async fn begin(&mut self, room: usize) -> Result<Duration, StoreError> {
        let kinds = self.shared.runnable();
        if kinds.is_empty() {
            return Ok(Duration::MAX);
        }
        let heads = self.heads(&kinds).await?;
        let horizon = self.shared.settings.horizon;
        let due: Vec<&LaneHead> = heads.iter().filter(|head| head.due_in <= horizon).collect();
        let later = heads.iter().map(|head| head.due_in).filter(|due| *due > horizon).min();
        // A job that is further away is claimed when it comes near.
        let rest = later.map_or(Duration::MAX, |due| due - horizon + Duration::from_millis(1));
        let mut tenants = due.iter().map(|head| head.lane.tenant.as_ref());
        let first = tenants.next();
        let are_several = first.is_some_and(|first| tenants.any(|other| other != first));
        self.shared.admission.apply(Fact::TenantsDue { are_several });
        let limit = self.batch.next(room.min(Limits::BATCH_MAX));
        let [plain, limited] = self.plan(&due, limit);
        // The next lanes are read at once: those who wait there have waited as long.
        let rest = if self.after.is_some() { Duration::ZERO } else { rest };
        let rest = self.limited.next(self.shared.clock.now()).unwrap_or(rest).min(rest);
        // A probe is one more: what others have must not take the room of what unparks a kind.
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

    async fn heads(&mut self, kinds: &[KindName]) -> Result<Vec<LaneHead>, StoreError> {
        let store = &self.shared.store;
        let heads = store.lanes(kinds, self.after.as_ref(), LANES_READ).await?;
        let full = heads.len() >= LANES_READ;
        self.after = heads.last().filter(|_| full).map(|head| head.lane.clone());
        Ok(heads)
    }

    /// Which lanes to visit, and for how many jobs each: as [`Turns`] has it, as far as admission has room. Lanes with limits over
    /// the fleet are claimed apart, since such a claim waits for others.
    fn plan(&mut self, due: &[&LaneHead], limit: usize) -> [Plan; 2] {
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
                    // A lease is a slot of the fleet: none is taken before a job is due.
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
        turns::share_weights(&mut lanes);
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
                    grace: shared.settings.grace,
                });
            }
        }
        plain.leave_room_for_probes(limit);
        [plain, limited]
    }
}

/// What one claim is to bring.
struct Plan {
    visits: Vec<Visit>,
    /// Lanes that could give something, including those that other lanes leave no room for.
    turns: Vec<Given>,
    /// Limits over the fleet that hold for the lanes.
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

    /// Where a probe is asked for, the other visits together get no more than the limit: what is above it is for the probe.
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

/// Claims once, and hands what it gets to the loop that dispatches.
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
                // The heartbeat finds out too, and joins again.
                tracing::warn!(%holder, "claim rejected: this holder has expired");
            } else {
                tracing::debug!(%error, "claim failed");
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

/// What a claim brought, and what it found out about limits over the fleet.
type Brought = (Vec<Leased>, Option<Vec<Found>>);

async fn fetch(
    shared: &Shared,
    visits: &[Visit],
    asked: Vec<Asked>,
    limit: usize,
) -> Answer<Brought> {
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

/// What each lane gave.
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

/// Whether a lane gave all that it was asked for, so that there is more. One that gave less is
/// empty, or closed, which only the store knows. A kind with a limit of its own is asked again
/// when one of its attempts has ended.
fn is_deep(shared: &Shared, given: &[Given]) -> bool {
    let has_more = |one: &&Given| one.asked > 0 && one.given == one.asked;
    let is_unlimited = |one: &Given| {
        let kind = shared.kind(&one.lane.kind);
        kind.is_some_and(|kind| kind.settings.concurrency_max.is_none())
    };
    given.iter().filter(has_more).any(is_unlimited)
}

/// How many jobs to claim at once. Follows the room: down at once, since a lease that cannot be
/// served helps nobody; up by half, since a burst of free places is often gone a moment later.
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
