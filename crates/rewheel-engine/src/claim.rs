//! The loop that fetches jobs: as many as there is room for, lane by lane.

use crate::shared::{Command, Shared, Waiting};
use rewheel_core::store::{Claim, LaneHead, Leased, StoreError, Visit, Watch};
use rewheel_core::{KindName, Lane, Limits};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Lanes that are read at once. More are read in turns.
const LANES_READ: usize = 1_000;

/// How many of the lanes that are visited are not chosen for their urgency.
const LANES_IN_TURN: usize = Limits::LANES_MAX / 5;

pub(crate) struct Claims {
    shared: Arc<Shared>,
    watch: Box<dyn Watch>,
    batch: Batch,
    /// Where the last reading of lanes ended.
    after: Option<Lane>,
    /// Which lane comes first this time, so that none always does.
    turn: usize,
}

impl Claims {
    pub(crate) fn new(shared: Arc<Shared>) -> Claims {
        let watch = shared.store.watch();
        Claims { shared, watch, batch: Batch::default(), after: None, turn: 0 }
    }

    pub(crate) async fn run(mut self) {
        while !self.shared.is_stopping() {
            let rest = self.tick().await;
            if rest.is_zero() {
                continue;
            }
            tokio::select! {
                biased;
                () = self.shared.look.notified() => {}
                () = self.watch.changed() => {}
                () = self.shared.clock.sleep(rest) => {}
            }
        }
    }

    /// Claims once. Returns how long to rest unless something happens.
    async fn tick(&mut self) -> Duration {
        let poll = self.shared.settings.poll;
        let room = self.room();
        if room == 0 || self.shared.is_doubtful() {
            return poll;
        }
        match self.claim(room).await {
            Ok(next) => next.min(poll),
            Err(StoreError::HolderDead(holder)) => {
                // The heartbeat finds out too, and joins again.
                tracing::warn!(%holder, "claim refused: this holder is dead");
                poll
            }
            Err(error) => {
                tracing::debug!(%error, "claim failed");
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
        (2 * places).saturating_sub(running + ready).min(wheel_left)
    }

    async fn claim(&mut self, room: usize) -> Result<Duration, StoreError> {
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
        let limit = self.batch.next(room.min(Limits::BATCH_MAX));
        let visits = self.visits(&due, limit);
        // The next lanes are read at once: those who wait there have waited as long.
        let rest = if self.after.is_some() { Duration::ZERO } else { rest };
        if visits.is_empty() {
            return Ok(rest);
        }
        let holder = self.shared.holder();
        let claim = Claim { holder, visits: &visits, horizon, limit };
        let leased = self.shared.store.claim(&claim).await?;
        let count = leased.len();
        let is_full = count > 0 && count >= limit.min(room);
        let has_more = is_full || self.is_deep(&visits, &leased);
        let jobs: Vec<Waiting> = leased
            .into_iter()
            .map(|leased| {
                self.shared.hold(leased.lease());
                self.shared.waiting(leased.job, holder, leased.due_in, leased.deadline_in)
            })
            .collect();
        if count > 0 {
            let _ = self.shared.to_dispatch.send(Command::Leased(jobs));
        }
        Ok(if has_more { Duration::ZERO } else { rest })
    }

    /// Whether a lane gave all that it was asked for, so that there is more. One that gave less is
    /// empty, or closed, which only the store knows. A kind with places of its own is asked again
    /// when one of them is free.
    fn is_deep(&self, visits: &[Visit], leased: &[Leased]) -> bool {
        let mut given: BTreeMap<&Lane, usize> = BTreeMap::new();
        for leased in leased {
            *given.entry(&leased.job.lane).or_default() += 1;
        }
        let has_more = |visit: &&Visit| given.get(&visit.lane) == Some(&visit.limit);
        visits.iter().filter(has_more).any(|visit| {
            self.shared.kind(&visit.lane.kind).is_some_and(|kind| kind.places.is_none())
        })
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
        let mut visits = Vec::with_capacity(lanes.len());
        for head in lanes {
            let Some(kind) = self.shared.kind(&head.lane.kind) else { continue };
            let left = free.entry(head.lane.kind.clone()).or_insert_with(|| {
                kind.places.as_ref().map_or(usize::MAX, |places| places.available_permits())
            });
            let limit = share.min(*left);
            *left -= limit;
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
