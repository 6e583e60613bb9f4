//! Tracks the keys that this process is working on, so that waiters need not poll the store.

use super::key::IdempotencyKey;
use super::store::RunId;
use crate::cancel::CancelToken;
use crate::sync::{Mutex, lock};
use std::collections::HashMap;
use std::sync::Arc;

/// The runs of this process, one for each request in progress.
#[derive(Clone, Debug, Default)]
pub(super) struct Flights(Arc<Mutex<HashMap<IdempotencyKey, (RunId, CancelToken)>>>);

impl Flights {
    /// Records a run until the returned value is dropped.
    pub(super) fn depart(&self, key: IdempotencyKey, run: RunId) -> Flight {
        let landed = CancelToken::new();
        lock(&self.0).insert(key, (run, landed.clone()));
        Flight { flights: self.clone(), key, run, landed }
    }

    /// Returns a token that is cancelled when the run of a key ends, if it is a run of this
    /// process.
    pub(super) fn find(&self, key: &IdempotencyKey) -> Option<CancelToken> {
        lock(&self.0).get(key).map(|(_, landed)| landed.clone())
    }
}

/// A run of this process.
#[derive(Debug)]
pub(super) struct Flight {
    flights: Flights,
    key: IdempotencyKey,
    run: RunId,
    landed: CancelToken,
}

impl Drop for Flight {
    fn drop(&mut self) {
        let mut flights = lock(&self.flights.0);
        // A run that outlived its lease must not remove a newer one.
        if flights.get(&self.key).is_some_and(|(run, _)| *run == self.run) {
            flights.remove(&self.key);
        }
        drop(flights);
        self.landed.cancel();
    }
}
