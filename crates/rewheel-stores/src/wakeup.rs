//! Wakes waiting tasks of this process when there may be something to do.

use async_trait::async_trait;
use rewheel_core::store::Watch;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::Notify;

/// A counter of changes that wakes waiting tasks, in the order in which they began to wait.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wakeup(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    count: AtomicU64,
    waiting: Notify,
}

impl Wakeup {
    pub(crate) fn wake(&self) {
        self.0.count.fetch_add(1, Ordering::SeqCst);
        self.0.waiting.notify_waiters();
    }

    #[cfg(test)]
    pub(crate) fn count(&self) -> u64 {
        self.0.count.load(Ordering::SeqCst)
    }

    pub(crate) fn watch(&self) -> Box<dyn Watch> {
        let seen = self.0.count.load(Ordering::SeqCst);
        Box::new(Watcher { shared: Arc::clone(&self.0), seen })
    }
}

struct Watcher {
    shared: Arc<Shared>,
    seen: u64,
}

#[async_trait]
impl Watch for Watcher {
    async fn changed(&mut self) {
        loop {
            // Start waiting before checking the counter, so that no wakeup is missed.
            let woken = self.shared.waiting.notified();
            let count = self.shared.count.load(Ordering::SeqCst);
            if count != self.seen {
                self.seen = count;
                return;
            }
            woken.await;
        }
    }
}
