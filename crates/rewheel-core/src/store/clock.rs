//! Moves the clock of a store, for tests.

use crate::timestamp::Timestamp;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// Offset of a store's clock from its source. Zero in production; a test that opens the store with
/// a clone of it can move the store's time without waiting.
///
/// ```
/// use rewheel_core::Timestamp;
/// use rewheel_core::store::ClockOffset;
/// use std::time::Duration;
///
/// let offset = ClockOffset::default();
/// let store_has = offset.clone();
/// offset.advance(Duration::from_secs(60));
/// let source = Timestamp::from_millis(1_000);
/// assert_eq!(store_has.apply(source), Timestamp::from_millis(61_000));
/// ```
#[derive(Clone, Debug, Default)]
pub struct ClockOffset(Arc<AtomicI64>);

impl ClockOffset {
    /// Moves the clock forward.
    pub fn advance(&self, by: Duration) {
        self.0.fetch_add(millis(by), Ordering::SeqCst);
    }

    /// Moves the clock back, like a wrong clock that is corrected.
    pub fn turn_back(&self, by: Duration) {
        self.0.fetch_sub(millis(by), Ordering::SeqCst);
    }

    /// Returns the store's time, if its source shows `source`.
    pub fn apply(&self, source: Timestamp) -> Timestamp {
        Timestamp::from_millis(source.as_millis().saturating_add(self.as_millis()))
    }

    /// Returns the offset to add to the time of the store's server, in milliseconds.
    pub fn as_millis(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }
}

fn millis(by: Duration) -> i64 {
    i64::try_from(by.as_millis()).unwrap_or(i64::MAX)
}
