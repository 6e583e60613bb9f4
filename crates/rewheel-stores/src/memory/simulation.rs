//! Extras for simulations: a simulated clock, invariant checks and deliberate defects.

use super::world::{Row, World};
use super::{MemoryStore, Shared};
use rewheel_core::store::ClockOffset;
use rewheel_core::{Duplicates, Fence, OnKey, Timestamp, Waits};
use std::sync::{Arc, PoisonError};

/// The source of the time.
pub(super) type Time = Box<dyn Fn() -> Timestamp + Send + Sync>;

/// A guarantee that a test store violates on purpose, to prove that a test detects the violation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weakness {
    /// A settle is applied with any fence.
    NoFence,
    /// Dead holders may claim jobs.
    NoLiveHolder,
    /// An overdue job stays with its holder.
    NoOverdue,
    /// A settle stores the jobs that it submits even if the store rejects the result.
    FollowUpsOfAnySettle,
    /// A settle that counts loses the jobs that it submits.
    FollowUpsLost,
    /// A submit replaces a job that was claimed.
    ReplacesClaimed,
    /// A submit takes the key of a job that was never claimed.
    TakesKeysOfWaiting,
    /// Debounced jobs are claimed before they are due.
    DebouncedEarly,
    /// A settle stores its result even if it does not count.
    ResultOfAnySettle,
    /// A settle that counts stores the job of an instant twice.
    InstantTwice,
    /// A settle that counts loses its result.
    ResultLost,
    /// A settle does not store the new payload of its job.
    NoSettledPayload,
    /// All jobs of a group may run at once.
    NoLine,
    /// A group runs its newest job first.
    NoOrder,
    /// Ending a job releases no other job of its group, as if the process died in between.
    NoReleaseAtEnd,
}

impl MemoryStore {
    /// Opens an empty store that takes its time from `time`, moved by `clock`.
    pub fn with_time(
        time: impl Fn() -> Timestamp + Send + Sync + 'static,
        clock: ClockOffset,
    ) -> MemoryStore {
        let shared = Shared { clock, time: Some(Box::new(time)), ..Shared::default() };
        MemoryStore { shared: Arc::new(shared) }
    }

    /// Makes the store break a guarantee.
    pub fn weaken(&self, weakness: Weakness) {
        self.world().weakness = Some(weakness);
    }

    /// Returns violated invariants of the tables.
    pub fn violations(&self) -> Vec<String> {
        let world = self.world();
        let leased = world.jobs.values().filter_map(|row| Some((row, row.holder()?)));
        leased
            .filter(|(row, holder)| {
                world.deaths.get(holder).is_some_and(|died| row.leased_by > *died)
            })
            .map(|(row, holder)| {
                format!("job {} was leased to holder {holder}, which is dead", row.job.id)
            })
            .chain(world.claimed_early())
            .collect()
    }

    fn world(&self) -> std::sync::MutexGuard<'_, World> {
        self.shared.world.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl World {
    /// Records the order of holder deaths and leases. Timestamps cannot tell it, since clocks may
    /// go back.
    pub(super) fn note_deaths(&mut self) {
        let dead = self.holders.values().filter(|holder| holder.died.is_some());
        for holder in dead {
            self.deaths.entry(holder.id).or_insert(self.verbs);
        }
    }

    /// Returns the debounced jobs that were claimed before they were due for the first time.
    fn claimed_early(&self) -> impl Iterator<Item = String> {
        let is_early = |row: &&Row| {
            let job = &row.job;
            let is_first = row.holder().is_some() && (job.fence, job.attempt) == (Fence::new(1), 0);
            is_first && job.lane.shard.is_debounced() && row.leased < job.due
        };
        let early = self.jobs.values().filter(is_early);
        early.map(|row| format!("debounced job {} was claimed before it was due", row.job.id))
    }

    /// Decides about the job that has the key of a new one, unless this store does it wrong.
    pub(super) fn decide(&self, duplicates: Duplicates, waits: Waits) -> OnKey {
        match (duplicates.decide(waits), waits) {
            (OnKey::Replace, Waits::Yes) if self.is_weak(Weakness::TakesKeysOfWaiting) => {
                OnKey::Take
            }
            (decision, _) => decision,
        }
    }

    pub(super) fn is_weak(&self, weakness: Weakness) -> bool {
        self.weakness == Some(weakness)
    }
}
