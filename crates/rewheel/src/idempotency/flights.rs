//! Tracks the keys that this process is working on, so that waiters need not poll the store.

use super::key::IdempotencyKey;
use super::store::RunId;
use crate::cancel::CancelToken;
use crate::sync::{Mutex, lock};
use std::collections::HashMap;
use std::sync::Arc;

/// The runs of this process. There are as many as requests at work.
#[derive(Clone, Debug, Default)]
pub(super) struct Flights(Arc<Mutex<HashMap<IdempotencyKey, (RunId, CancelToken)>>>);

impl Flights {
    /// Notes a run, until what it returns is dropped.
    pub(super) fn depart(&self, key: IdempotencyKey, run: RunId) -> Flight {
        let landed = CancelToken::new();
        lock(&self.0).insert(key, (run, landed.clone()));
        Flight { flights: self.clone(), key, run, landed }
    }

    /// Returns what ends when the run of a key does, if it is a run of this process.
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
        // A run that outlived its lease leaves the newer one alone.
        if flights.get(&self.key).is_some_and(|(run, _)| *run == self.run) {
            flights.remove(&self.key);
        }
        drop(flights);
        self.landed.cancel();
    }
}
