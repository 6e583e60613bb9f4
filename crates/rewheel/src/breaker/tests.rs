//! Tests of the circuit breaker.

#[cfg(not(loom))]
mod reference;
#[cfg(not(loom))]
mod model;
#[cfg(not(loom))]
mod half_open;
#[cfg(not(loom))]
mod control;
#[cfg(not(loom))]
mod windows;
#[cfg(not(loom))]
mod calls;
#[cfg(not(loom))]
mod keyed;
#[cfg(not(loom))]
mod retry_after;
#[cfg(loom)]
mod loom_breaker;

use crate::breaker::BreakerState;
use crate::observer::{Event, Observer};
use std::sync::Mutex;

/// Records the state changes of a breaker.
#[derive(Debug, Default)]
struct Changes(Mutex<Vec<(String, BreakerState, BreakerState)>>);

impl Observer for Changes {
    fn observe(&self, event: &Event<'_>) {
        if let Event::BreakerChanged { name, from, to, .. } = *event {
            self.0.lock().unwrap().push((name.to_owned(), from, to));
        }
    }
}

impl Changes {
    fn list(&self) -> Vec<(BreakerState, BreakerState)> {
        self.0.lock().unwrap().iter().map(|(_, from, to)| (*from, *to)).collect()
    }
}
