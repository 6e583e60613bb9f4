//! What the metrics remember of each name: its label, and which event is the latest.

use opentelemetry::KeyValue;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// Names come from code, so there are few. Beyond this number, nothing is remembered.
const KNOWN_MAX: usize = 1_000;

/// The label `name` of each name, so that an event does not allocate.
#[derive(Debug, Default)]
pub(super) struct Names {
    known: RwLock<HashMap<Box<str>, KeyValue>>,
}

impl Names {
    pub(super) fn label(&self, name: &str) -> KeyValue {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(label) = known.get(name) {
            // Shared text: a clone only counts.
            return label.clone();
        }
        let is_full = known.len() >= KNOWN_MAX;
        drop(known);
        let label = KeyValue::new("name", Arc::<str>::from(name));
        if !is_full {
            let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
            known.insert(name.into(), label.clone());
        }
        label
    }
}

/// The serial number of the latest event of each name. Two threads may deliver their events in the wrong order, and a gauge keeps
/// what it was told last.
#[derive(Debug, Default)]
pub(super) struct Latest {
    known: Mutex<HashMap<Box<str>, u64>>,
}

impl Latest {
    /// Records a value, unless a later one of this name was recorded.
    pub(super) fn unless_old(&self, name: &str, serial: u64, record: impl FnOnce()) {
        // Held while the value is recorded, so that a later one waits for it. Such events are rare.
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = known.len() >= KNOWN_MAX;
        match known.get_mut(name) {
            Some(latest) if *latest > serial => return,
            Some(latest) => *latest = serial,
            None if !is_full => {
                known.insert(name.into(), serial);
            }
            None => {}
        }
        record();
    }
}
