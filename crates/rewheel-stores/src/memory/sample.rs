//! Caches job counts that one engine takes for all.

use super::MemoryStore;
use super::world::World;
use async_trait::async_trait;
use rewheel_core::store::{Sample, SampleStore, SampleTurn, StoreResult};
use rewheel_core::{State, Timestamp};
use std::time::Duration;

#[async_trait]
impl SampleStore for MemoryStore {
    async fn sample_now(&self, rows_max: usize) -> StoreResult<Option<Sample>> {
        self.run(|world, now| {
            let is_small = world.counted_jobs().nth(rows_max).is_none();
            Ok(is_small.then(|| world.count_all(now)))
        })
    }

    async fn sample(&self) -> StoreResult<Option<Sample>> {
        self.run(|world, now| {
            let sample = world.sample.clone();
            Ok(sample.map(|sample| Sample { age: now.since(sample.taken), ..sample }))
        })
    }

    async fn take_sample(&self) -> StoreResult<bool> {
        self.run(|world, now| {
            let begun = world.sample.as_ref().map(|sample| sample.taken);
            // The count happens under the lock, so no caller sees one in progress.
            let turn = SampleTurn { begun, counting: false, cost: Duration::ZERO };
            let is_due = turn.is_due(now);
            if is_due {
                world.sample = Some(world.count_all(now));
            }
            Ok(is_due)
        })
    }
}

impl World {
    fn counted_jobs(&self) -> impl Iterator<Item = State> {
        self.jobs.values().map(|row| row.job.state()).filter(|state| !state.is_final())
    }

    fn count_all(&self, now: Timestamp) -> Sample {
        Sample { taken: now, age: Duration::ZERO, tallies: self.tally() }
    }
}
