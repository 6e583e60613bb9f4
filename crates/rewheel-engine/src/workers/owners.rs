//! Caches the owner of each remote worker, so that most requests need not ask the store.

use rewheel_core::{HolderId, WorkerOwner};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// Maximum number of cached workers: more than a fleet has. Beyond that, the cache is cleared and filled again.
const REMEMBERED_MAX: usize = 10_000;

/// Owners of workers. A worker's owner never changes, so the cache stays correct.
#[derive(Debug, Default)]
pub(crate) struct Owners(Mutex<HashMap<HolderId, WorkerOwner>>);

impl Owners {
    pub(super) fn find(&self, worker: HolderId) -> Option<WorkerOwner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&worker).copied()
    }

    pub(super) fn remember(&self, worker: HolderId, owner: WorkerOwner) {
        let mut owners = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if owners.len() >= REMEMBERED_MAX {
            owners.clear();
        }
        owners.insert(worker, owner);
    }
}
