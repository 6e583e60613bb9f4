//! Remembers the numbers of lanes, which never change.

use rewheel_core::Lane;
use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

/// Maximum number of cached lanes. They are short; a lane that is not cached costs a lookup.
const LANES_REMEMBERED_MAX: usize = 100_000;

/// Lanes by number and numbers by lane.
#[derive(Debug, Default)]
pub(super) struct Lanes(RwLock<Known>);

#[derive(Debug, Default)]
struct Known {
    numbers: HashMap<Lane, i64>,
    names: HashMap<i64, Lane>,
}

impl Lanes {
    pub(super) fn number(&self, lane: &Lane) -> Option<i64> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).numbers.get(lane).copied()
    }

    pub(super) fn lane(&self, number: i64) -> Option<Lane> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).names.get(&number).cloned()
    }

    pub(super) fn remember(&self, number: i64, lane: &Lane) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if known.names.len() >= LANES_REMEMBERED_MAX {
            *known = Known::default();
        }
        known.numbers.insert(lane.clone(), number);
        known.names.insert(number, lane.clone());
    }

    /// Forgets all: the store was restored or promoted, and may have lost lanes.
    pub(super) fn forget(&self) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Known::default();
    }
}
