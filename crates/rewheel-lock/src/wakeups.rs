//! Wakes requests of this process whose turn has come.

use crate::backend::{Release, RequestId};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// The requests of this process that wait. Clones share it.
///
/// A wake-up is a hint: a request that gets none looks at the lock from time to time.
#[derive(Clone, Debug, Default)]
pub struct Wakeups {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    waiting: Mutex<HashMap<RequestId, Arc<Notify>>>,
    listens: AtomicBool,
}

impl Wakeups {
    /// Wakes one request, if it waits in this process.
    pub fn wake(&self, id: RequestId) {
        if let Some(notify) = self.waiting().get(&id) {
            notify.notify_one();
        }
    }

    /// Wakes every request: wake-ups may have been missed.
    pub fn wake_all(&self) {
        self.waiting().values().for_each(|notify| notify.notify_one());
    }

    /// Says whether releases by other processes wake requests here. While they do not, requests look more often.
    pub fn set_listening(&self, listens: bool) {
        self.shared.listens.store(listens, Ordering::Relaxed);
    }

    /// Returns whether releases by other processes wake requests here.
    pub fn is_listening(&self) -> bool {
        self.shared.listens.load(Ordering::Relaxed)
    }

    /// Wakes the request that may take a lock now.
    pub(crate) fn wake_next(&self, released: Release) {
        if let Some(next) = released.next {
            self.wake(next);
        }
    }

    pub(crate) fn register(&self, id: RequestId) -> Registration {
        let notify = Arc::new(Notify::new());
        self.waiting().insert(id, Arc::clone(&notify));
        Registration { wakeups: self.clone(), id, notify }
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<RequestId, Arc<Notify>>> {
        self.shared.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that can be woken, until this value is dropped.
#[derive(Debug)]
pub(crate) struct Registration {
    wakeups: Wakeups,
    id: RequestId,
    notify: Arc<Notify>,
}

impl Registration {
    /// Waits for a wake-up; one that came before counts. Cancel safe.
    pub(crate) async fn woken(&self) {
        self.notify.notified().await;
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.wakeups.waiting().remove(&self.id);
    }
}
