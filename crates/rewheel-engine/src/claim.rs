//! The loop that fetches jobs: as many as there is room for, lane by lane.

mod turns;

use self::turns::{Candidate, Given, Turns};
use crate::shared::{Command, Shared, Waiting};
use crate::supervise;
use rewheel_core::store::{Claim, LaneHead, Leased, StoreError, Visit, Watch};
use rewheel_core::{KindName, Lane, Limits, State, Tenant};
use std::collections::BTreeMap;
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
    on_the_way: JoinSet<Claimed>,
    /// How many jobs those may bring.
    asked: usize,
    /// How many claims may be on their way at once.
    hands: usize,
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
}

impl Claims {
    pub(crate) fn new(shared: Arc<Shared>) -> Claims {
        Claims {
            watch: shared.store.watch(),
            shared,
            batch: Batch::default(),
            after: None,
            turns: Turns::default(),
            on_the_way: JoinSet::new(),
            asked: 0,
            hands: 1,
        }
    }

    pub(crate) async fn run(mut self) {
        let mut rest = Duration::ZERO;
        while !self.shared.is_stopping() {
            let has_hand = self.on_the_way.len() < self.hands;
            if has_hand && rest.is_zero() {
                rest = self.tick().await;
                continue;
            }
            tokio::select! {
                biased;
                Some(claimed) = self.on_the_way.join_next() => {
                    rest = self.note(supervise::pass_on(claimed)).unwrap_or(rest);
                }
                () = self.shared.look.notified(), if has_hand => rest = Duration::ZERO,
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
                tracing::debug!(%error, "lanes cannot be read");
                poll
            }
        }
    }

    /// How many more jobs this engine wants in its hands: one for each free place, and as many again
    /// so that no place waits for a round trip.
    fn room(&self) -> usize {
        let places = self.shared.settings.places;
        let running = places - self.shared.places.available_permits().min(places);
        let ready = self.shared.ready.load(Ordering::Relaxed);
        let waiting = self.shared.waiting.load(Ordering::Relaxed);
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
        self.shared.tenants.note(due.iter().map(|head| head.lane.tenant.as_ref()));
        let limit = self.batch.next(room.min(Limits::BATCH_MAX));
        let plan = self.plan(&due, limit);
        // A probe is one more: what others have must not take the place of what unparks a kind.
        let probes = plan.visits.iter().filter(|visit| self.is_probe(visit)).count();
        let limit = limit + probes;
        // The next lanes are read at once: those who wait there have waited as long.
        let rest = if self.after.is_some() { Duration::ZERO } else { rest };
        if !plan.visits.is_empty() {
            self.asked += limit;
            self.on_the_way.spawn(claim(Arc::clone(&self.shared), plan, limit));
        }
        Ok(rest)
    }

    fn is_probe(&self, visit: &Visit) -> bool {
        let holder = self.shared.holder();
        self.shared.kind(&visit.lane.kind).is_some_and(|kind| kind.is_probed_by(holder))
    }

    async fn heads(&mut self, kinds: &[KindName]) -> Result<Vec<LaneHead>, StoreError> {
        let store = &self.shared.store;
        let heads = store.lanes(kinds, self.after.as_ref(), LANES_READ).await?;
        let full = heads.len() >= LANES_READ;
        self.after = heads.last().filter(|_| full).map(|head| head.lane.clone());
        Ok(heads)
    }

    /// Which lanes to visit, and for how many jobs each: as [`Turns`] has it, as far as kind and tenant have room.
    fn plan(&mut self, due: &[&LaneHead], limit: usize) -> Plan {
        let (living, now) = (self.shared.living(), self.shared.clock.now());
        let most = self.shared.tenants.places_of_one(self.shared.settings.places);
        let mut free_of: BTreeMap<Option<&Tenant>, Left> = BTreeMap::new();
        let mut lanes = Vec::with_capacity(due.len());
        for head in due {
            let tenant = head.lane.tenant.as_ref();
            let left_of = free_of.entry(tenant).or_insert_with(|| {
                let room = self.shared.tenants.of(tenant).room(most, living, now);
                Left { all: room, rest: room }
            });
            let kind = self.shared.kind(&head.lane.kind);
            let is_closed = left_of.all == 0 || kind.is_none_or(|kind| kind.is_closed());
            let is_foreign = self.shared.shards.is_foreign(head.lane.shard);
            let weight = f64::from(self.shared.tenants.weight(tenant));
            lanes.push(Candidate { lane: &head.lane, is_closed, is_foreign, weight });
        }
        turns::share_weights(&mut lanes);
        let offers = self.turns.offers(lanes, limit);
        let mut free: BTreeMap<KindName, Left> = BTreeMap::new();
        let holder = self.shared.holder();
        let mut plan = Plan::default();
        // Where a probe is asked for, the others together get no more than the limit: it must have room behind them.
        let probes = offers.iter().any(|offer| {
            self.shared.kind(&offer.lane.kind).is_some_and(|kind| kind.is_probed_by(holder))
        });
        let mut rest = limit;
        for offer in offers {
            let Some(kind) = self.shared.kind(&offer.lane.kind) else { continue };
            let left = free.entry(offer.lane.kind.clone()).or_insert_with(|| {
                let room = kind.room(holder, self.shared.places_of_one(), living);
                Left { all: room, rest: room }
            });
            let left_of = free_of.entry(offer.lane.tenant.as_ref()).or_default();
            let is_probe = kind.is_probed_by(holder);
            let limit = match is_probe {
                true => 1.min(left.rest),
                false => offer.jobs.min(left.rest).min(left_of.rest).min(rest),
            };
            left.rest -= limit;
            left_of.rest = left_of.rest.saturating_sub(limit);
            rest -= if is_probe || !probes { 0 } else { limit };
            if left.all > 0 && left_of.all > 0 {
                plan.turns.push(Given::nothing_yet(&offer, limit));
            }
            if limit > 0 {
                plan.visits.push(Visit {
                    lane: offer.lane.clone(),
                    limit,
                    attempt_timeout: kind.settings.attempt_timeout,
                    grace: self.shared.settings.grace,
                });
            }
        }
        plan
    }
}

/// What one claim is to bring.
#[derive(Default)]
struct Plan {
    visits: Vec<Visit>,
    /// Lanes that could give something, those among them that others leave no room for.
    turns: Vec<Given>,
}

/// Room for jobs of a kind or a tenant.
#[derive(Default)]
struct Left {
    all: usize,
    rest: usize,
}

/// Claims once, and hands what it gets to whoever dispatches.
async fn claim(shared: Arc<Shared>, plan: Plan, limit: usize) -> Claimed {
    let Plan { visits, turns } = plan;
    let call = shared.calls.begin();
    let holder = shared.holder();
    let claim = Claim { holder, visits: &visits, horizon: shared.settings.horizon, limit };
    let leased = match shared.store.claim(&claim).await {
        Ok(leased) => leased,
        Err(error) => {
            if let StoreError::HolderDead(_) = error {
                // The heartbeat finds out too, and joins again.
                tracing::warn!(%holder, "claim refused: this holder is dead");
            } else {
                tracing::debug!(%error, "claim failed");
            }
            call.end();
            let given = Vec::new();
            return Claimed { asked: limit, count: 0, has_more: false, has_failed: true, given };
        }
    };
    let count = leased.len();
    shared.meters.claim_batch.note(count as u64);
    let given = given(turns, &leased);
    let has_more = count > 0 && (count >= limit || is_deep(&shared, &given));
    let jobs: Vec<Waiting> = leased
        .into_iter()
        .map(|leased| {
            shared.hold(leased.lease());
            shared.waiting(leased.job, holder, leased.due_in, leased.deadline_in)
        })
        .collect();
    if count > 0 {
        let (from, to) = (Some(State::Scheduled), State::Leased);
        let leased = jobs.iter().map(|waiting| &waiting.job);
        shared.events.tell(leased.map(|job| (job.id, &job.lane.kind, from, to)));
        let _ = shared.to_dispatch.send(Command::Leased(jobs));
    }
    call.end();
    Claimed { asked: limit, count, has_more, has_failed: false, given }
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
/// empty, or closed, which only the store knows. A kind with places of its own is asked again
/// when one of them is free.
fn is_deep(shared: &Shared, given: &[Given]) -> bool {
    let has_more = |one: &&Given| one.asked > 0 && one.given == one.asked;
    given
        .iter()
        .filter(has_more)
        .any(|one| shared.kind(&one.lane.kind).is_some_and(|kind| kind.places.is_none()))
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
