//! Wakes waiting tasks of this process when there may be something to do.

use async_trait::async_trait;
use rewheel_core::Lane;
use rewheel_core::store::{StoreChange, Watch};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Number of changed lanes to keep. A watcher that missed a forgotten one hears that any lane may have changed.
const REMEMBERED_MAX: usize = 4 * StoreChange::LANES_MAX;

/// The latest changes. Wakes waiting tasks, in the order in which they began to wait.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wakeup(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    changes: Mutex<Changes>,
    waiting: Notify,
}

#[derive(Debug, Default)]
struct Changes {
    /// The number of the latest change.
    count: u64,
    /// Changed lanes by the number of their latest change, and the reverse.
    lanes: BTreeMap<u64, Lane>,
    numbers: HashMap<Lane, u64>,
    /// The latest change whose lane is not known any more, or that concerns any lane.
    any: u64,
    /// When the store was last found to be promoted or restored.
    replaced: u64,
}

impl Changes {
    fn add(&mut self, change: StoreChange) {
        self.count += 1;
        if change == StoreChange::Replaced {
            self.replaced = self.count;
        }
        let StoreChange::Lanes(lanes) = change else {
            self.any = self.count;
            self.lanes.clear();
            self.numbers.clear();
            return;
        };
        for lane in lanes {
            // One number per lane: the first number is taken by the report itself.
            self.count += 1;
            if let Some(before) = self.numbers.insert(lane.clone(), self.count) {
                self.lanes.remove(&before);
            }
            self.lanes.insert(self.count, lane);
        }
        while self.lanes.len() > REMEMBERED_MAX {
            let Some((number, lane)) = self.lanes.pop_first() else { return };
            self.numbers.remove(&lane);
            self.any = number;
        }
    }

    fn since(&self, seen: u64) -> StoreChange {
        if self.replaced > seen {
            return StoreChange::Replaced;
        }
        if self.any > seen {
            return StoreChange::AnyLane;
        }
        self.lanes.range(seen + 1..).map(|(_, lane)| lane).collect()
    }
}

impl Wakeup {
    pub(crate) fn wake(&self, change: StoreChange) {
        self.0.changes().add(change);
        self.0.waiting.notify_waiters();
    }

    #[cfg(test)]
    pub(crate) fn count(&self) -> u64 {
        self.0.changes().count
    }

    pub(crate) fn watch(&self) -> Box<dyn Watch> {
        let seen = self.0.changes().count;
        Box::new(Watcher { shared: Arc::clone(&self.0), seen })
    }
}

impl Shared {
    fn changes(&self) -> MutexGuard<'_, Changes> {
        // Nothing that can panic runs under this lock.
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Watcher {
    shared: Arc<Shared>,
    seen: u64,
}

#[async_trait]
impl Watch for Watcher {
    async fn changed(&mut self) -> StoreChange {
        loop {
            // Start waiting before checking the counter, so that no wakeup is missed.
            let woken = self.shared.waiting.notified();
            {
                let changes = self.shared.changes();
                if changes.count != self.seen {
                    let change = changes.since(self.seen);
                    self.seen = changes.count;
                    return change;
                }
            }
            woken.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{REMEMBERED_MAX, Wakeup};
    use futures_util::FutureExt;
    use rewheel_core::store::{StoreChange, Watch};
    use rewheel_core::{KindName, Lane, Priority, Shard, Tenant};

    fn lane(tenant: usize) -> Lane {
        Lane {
            kind: KindName::parse("charge").unwrap(),
            tenant: Tenant::parse(&tenant.to_string()).ok(),
            priority: Priority::default(),
            shard: Shard::NONE,
        }
    }

    fn lanes(tenants: impl IntoIterator<Item = usize>) -> StoreChange {
        StoreChange::Lanes(tenants.into_iter().map(lane).collect())
    }

    fn heard(watch: &mut Box<dyn Watch>) -> Option<StoreChange> {
        watch.changed().now_or_never()
    }

    #[test]
    fn a_watcher_hears_each_lane_that_changed_since_it_last_heard() {
        let woken = Wakeup::default();
        let mut watch = woken.watch();
        assert_eq!(heard(&mut watch), None);
        woken.wake(lanes([1, 2]));
        woken.wake(lanes([2, 3]));
        let mut late = woken.watch();
        assert_eq!(heard(&mut watch), Some(lanes([1, 2, 3])));
        assert_eq!(heard(&mut watch), None);
        woken.wake(lanes([1]));
        woken.wake(StoreChange::default());
        assert_eq!(heard(&mut watch), Some(lanes([1])));
        assert_eq!(heard(&mut late), Some(lanes([1])));
    }

    #[test]
    fn a_report_without_a_lane_wakes() {
        let woken = Wakeup::default();
        let mut watch = woken.watch();
        woken.wake(StoreChange::default());
        assert_eq!(heard(&mut watch), Some(lanes([])));
    }

    #[test]
    fn a_watcher_that_missed_too_much_hears_of_any_lane() {
        let woken = Wakeup::default();
        let mut watch = woken.watch();
        (0..=REMEMBERED_MAX).for_each(|one| woken.wake(lanes([one])));
        assert_eq!(heard(&mut watch), Some(StoreChange::AnyLane));
        woken.wake(lanes([7]));
        assert_eq!(heard(&mut watch), Some(lanes([7])));
        woken.wake(StoreChange::AnyLane);
        assert_eq!(heard(&mut watch), Some(StoreChange::AnyLane));
    }

    #[test]
    fn a_watcher_hears_that_the_store_was_replaced_whatever_else_it_hears() {
        let woken = Wakeup::default();
        let mut watch = woken.watch();
        woken.wake(StoreChange::Replaced);
        woken.wake(StoreChange::AnyLane);
        woken.wake(lanes([7]));
        assert_eq!(heard(&mut watch), Some(StoreChange::Replaced));
        woken.wake(lanes([7]));
        assert_eq!(heard(&mut watch), Some(lanes([7])));
    }
}
