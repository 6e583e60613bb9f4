//! The loop that fetches jobs: as many as there is room for, lane by lane.

use crate::shared::{Command, Shared, Waiting};
use rewheel_core::store::{Claim, LaneHead, Leased, StoreError, Visit, Watch};
use rewheel_core::{KindName, Lane, Limits, State, Tenant};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::task::JoinSet;

/// Lanes that are read at once. More are read in turns.
const LANES_READ: usize = 1_000;

/// How many of the lanes that are visited are not chosen for their urgency.
const LANES_IN_TURN: usize = Limits::LANES_MAX / 5;

/// From so many jobs on, more of them are fetched while they are on their way.
const MANY: usize = 256;

pub(crate) struct Claims {
    shared: Arc<Shared>,
    watch: Box<dyn Watch>,
    batch: Batch,
    /// Where the last reading of lanes ended.
    after: Option<Lane>,
    /// Which lane comes first this time, so that none always does.
    turn: usize,
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
}

impl Claims {
    pub(crate) fn new(shared: Arc<Shared>) -> Claims {
        Claims {
            watch: shared.store.watch(),
            shared,
            batch: Batch::default(),
            after: None,
            turn: 0,
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
                    rest = self.note(claimed.ok()).unwrap_or(rest);
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
        let visits = self.visits(&due, limit);
        // A probe is one more: what others have must not take the place of what unparks a kind.
        let probes = visits.iter().filter(|visit| self.is_probe(visit)).count();
        let limit = limit + probes;
        // The next lanes are read at once: those who wait there have waited as long.
        let rest = if self.after.is_some() { Duration::ZERO } else { rest };
        if !visits.is_empty() {
            self.asked += limit;
            self.on_the_way.spawn(claim(Arc::clone(&self.shared), visits, limit));
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

    /// Which lanes to visit, and for how many jobs each: the urgent ones first, then in turns; those
    /// that will give nothing last, so that they take no other's visit. Every
    /// lane is offered an equal share; what one does not use is the next visit's.
    fn visits(&mut self, due: &[&LaneHead], limit: usize) -> Vec<Visit> {
        if due.is_empty() || limit == 0 {
            return Vec::new();
        }
        self.turn = self.turn.wrapping_add(1);
        let mut lanes: Vec<&LaneHead> = due.to_vec();
        let start = self.turn % lanes.len();
        lanes.rotate_left(start);
        lanes.sort_by_cached_key(|head| {
            let is_closed = self.shared.kind(&head.lane.kind).is_none_or(|kind| kind.is_closed());
            (is_closed, Reverse(head.lane.priority))
        });
        if lanes.len() > Limits::LANES_MAX {
            // However many are more urgent, or closed without our knowing: each lane has its turn.
            let others = &mut lanes[Limits::LANES_MAX - LANES_IN_TURN..];
            let start = self.turn.wrapping_mul(LANES_IN_TURN) % others.len();
            others.rotate_left(start);
            lanes.truncate(Limits::LANES_MAX);
        }
        let share = limit.div_ceil(lanes.len()).max(1);
        let mut free: BTreeMap<KindName, usize> = BTreeMap::new();
        let holder = self.shared.holder();
        let mut free_of: BTreeMap<Option<&Tenant>, usize> = BTreeMap::new();
        let most = self.shared.tenants.places_of_one(self.shared.settings.places);
        let (living, now) = (self.shared.living(), self.shared.clock.now());
        let mut visits = Vec::with_capacity(lanes.len());
        // Where a probe is asked for, the others together get no more than the limit: it must have room behind them.
        let probes = lanes.iter().any(|head| {
            self.shared.kind(&head.lane.kind).is_some_and(|kind| kind.is_probed_by(holder))
        });
        let mut rest = limit;
        for head in lanes {
            let Some(kind) = self.shared.kind(&head.lane.kind) else { continue };
            let left = free
                .entry(head.lane.kind.clone())
                .or_insert_with(|| kind.room(holder, self.shared.places_of_one(), living));
            let tenant = head.lane.tenant.as_ref();
            let left_of = free_of
                .entry(tenant)
                .or_insert_with(|| self.shared.tenants.of(tenant).room(most, living, now));
            let is_probe = kind.is_probed_by(holder);
            let limit =
                if is_probe { 1.min(*left) } else { share.min(*left).min(*left_of).min(rest) };
            *left -= limit;
            *left_of = left_of.saturating_sub(limit);
            rest -= if is_probe || !probes { 0 } else { limit };
            if limit > 0 {
                visits.push(Visit {
                    lane: head.lane.clone(),
                    limit,
                    attempt_timeout: kind.settings.attempt_timeout,
                    grace: self.shared.settings.grace,
                });
            }
        }
        visits
    }
}

/// Claims once, and hands what it gets to whoever dispatches.
async fn claim(shared: Arc<Shared>, visits: Vec<Visit>, limit: usize) -> Claimed {
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
            return Claimed { asked: limit, count: 0, has_more: false, has_failed: true };
        }
    };
    let count = leased.len();
    let has_more = count > 0 && (count >= limit || is_deep(&shared, &visits, &leased));
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
    Claimed { asked: limit, count, has_more, has_failed: false }
}

/// Whether a lane gave all that it was asked for, so that there is more. One that gave less is
/// empty, or closed, which only the store knows. A kind with places of its own is asked again
/// when one of them is free.
fn is_deep(shared: &Shared, visits: &[Visit], leased: &[Leased]) -> bool {
    let mut given: BTreeMap<&Lane, usize> = BTreeMap::new();
    for leased in leased {
        *given.entry(&leased.job.lane).or_default() += 1;
    }
    let has_more = |visit: &&Visit| given.get(&visit.lane) == Some(&visit.limit);
    visits
        .iter()
        .filter(has_more)
        .any(|visit| shared.kind(&visit.lane.kind).is_some_and(|kind| kind.places.is_none()))
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
