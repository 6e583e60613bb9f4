//! Decides whether a transaction that met another one is repeated, and with which places.

use super::error::VerbError;
use super::places::Places;
use std::time::Duration;

/// Maximum number of tries of a transaction that others keep overtaking.
const TRIES_MAX: u32 = 30;

/// Counts the tries of a transaction.
#[derive(Debug, Default)]
pub(super) struct Tries {
    count: u32,
    /// How many of them met a value that was taken.
    collisions: u32,
}

impl Tries {
    /// Returns whether there was a try before.
    pub(super) fn is_repetition(&self) -> bool {
        self.count > 0
    }

    /// Returns the places of the next try, if an earlier one met a taken value.
    pub(super) fn places(&self) -> Option<Places> {
        (self.collisions > 0).then(|| Places::anew(&rewheel::Random::thread(), self.collisions))
    }

    /// Returns whether there is another try. The first ones follow at once, later ones after a moment that grows. A wait for a lock has
    /// taken long already.
    pub(super) async fn again(&mut self, trouble: &VerbError) -> bool {
        self.collisions += u32::from(trouble.is_duplicate());
        self.count += if trouble.is_lock() { TRIES_MAX / 3 } else { 1 };
        if self.count >= TRIES_MAX {
            return false;
        }
        tracing::debug!(code = trouble.code(), "transaction repeated: another one was in its way");
        if self.count > 3 {
            let most = u64::from(self.count) * 2;
            let wait = rewheel::Random::thread().next() % most;
            tokio::time::sleep(Duration::from_millis(wait)).await;
        }
        true
    }
}
