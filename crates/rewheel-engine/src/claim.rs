//! The loop that fetches jobs: as many as there is room for, lane by lane.

use crate::shared::{Command, Shared, Waiting};
use rewheel_core::store::{Claim, LaneHead, StoreError, Visit, Watch};
use rewheel_core::{KindName, Lane, Limits};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Lanes that are read at once. More are read in turns.
const LANES_READ: usize = 1_000;

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
                tracing::warn!(%error, "claim failed");
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
        if visits.is_empty() {
            return Ok(rest);
        }
        let holder = self.shared.holder();
        let claim = Claim { holder, visits: &visits, horizon, limit };
        let leased = self.shared.ask(self.shared.store.claim(&claim)).await?;
        let count = leased.len();
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
        // A full batch: there is more. Lanes that gave less than they were asked for are empty, or
        // closed, which only the store knows.
        Ok(if count >= limit.min(room) && count > 0 { Duration::ZERO } else { rest })
    }

    async fn heads(&mut self, kinds: &[KindName]) -> Result<Vec<LaneHead>, StoreError> {
        let heads = {
            let call = self.shared.store.lanes(kinds, self.after.as_ref(), LANES_READ);
            self.shared.ask(call).await?
        };
        let full = heads.len() >= LANES_READ;
        self.after = heads.last().filter(|_| full).map(|head| head.lane.clone());
        Ok(heads)
    }

    /// Which lanes to visit, and for how many jobs each: the urgent ones first, then in turns. Every
    /// lane is offered an equal share; what one does not use is the next visit's.
    fn visits(&mut self, due: &[&LaneHead], limit: usize) -> Vec<Visit> {
        if due.is_empty() || limit == 0 {
            return Vec::new();
        }
        self.turn = self.turn.wrapping_add(1);
        let mut lanes: Vec<&LaneHead> = due.to_vec();
        let start = self.turn % lanes.len();
        lanes.rotate_left(start);
        lanes.sort_by_key(|head| std::cmp::Reverse(head.lane.priority));
        lanes.truncate(Limits::LANES_MAX);
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
