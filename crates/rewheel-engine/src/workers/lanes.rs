//! The lanes with due jobs for remote workers, shared by all workers of this engine.

use crate::lanes::{LaneCache, LaneTime};
use crate::shared::Shared;
use futures_util::FutureExt;
use rewheel_core::store::{StoreResult, Watch};
use rewheel_core::{KindName, Lane};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;
use tokio::sync::Mutex;

/// How often one claim reads lanes before it returns that nothing is due: the next one continues from there.
const READS_MAX: usize = 16;

/// The lanes of all kinds that workers run. What one worker's claim has read serves the others too.
#[derive(Default)]
pub(crate) struct WorkerLanes(Mutex<Option<Watched>>);

struct Watched {
    watch: Box<dyn Watch>,
    cache: LaneCache,
}

impl WorkerLanes {
    /// Returns lanes of these kinds with due jobs: the next ones in turn.
    pub(super) async fn due<T>(
        &self,
        shared: &Shared,
        kinds: &BTreeMap<&KindName, T>,
    ) -> StoreResult<Vec<LaneTime>> {
        let mut lanes = self.0.lock().await;
        let Watched { watch, cache } = lanes.get_or_insert_with(|| Watched {
            watch: shared.store.watch(),
            // Workers that wait ask again after the configured interval.
            cache: LaneCache::new(shared.clock.clone(), shared.settings.poll, None),
        });
        while let Some(change) = watch.changed().now_or_never() {
            cache.hear(change);
        }
        let mut due = Vec::new();
        for _ in 0..READS_MAX {
            let has_more = cache.refresh(&*shared.store, shared.kinds_for_workers()).await?;
            // Another worker's claim may have ended anywhere: go round once.
            let mut ends = 0;
            while due.is_empty() && ends < 2 {
                let (lanes, is_end) = cache.due(Duration::ZERO);
                due.extend(lanes.into_iter().filter(|one| kinds.contains_key(&one.lane.kind)));
                ends += usize::from(is_end);
            }
            if !due.is_empty() || !has_more {
                break;
            }
        }
        Ok(due)
    }

    /// Notes lanes that gave fewer jobs than were asked for.
    pub(super) async fn emptied(&self, emptied: impl Iterator<Item = &Lane>) {
        if let Some(lanes) = &mut *self.0.lock().await {
            emptied.for_each(|lane| lanes.cache.emptied(lane));
        }
    }
}

impl fmt::Debug for WorkerLanes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerLanes").finish_non_exhaustive()
    }
}
