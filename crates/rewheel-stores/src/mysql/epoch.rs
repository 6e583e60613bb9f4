//! Notices a failover or restore, see the decision record 0054.

use std::sync::atomic::{AtomicI64, Ordering};

/// The epoch of the server. Fences of epoch n are above n times 2^32.
#[derive(Debug, Default)]
pub(super) struct Epoch(AtomicI64);

impl Epoch {
    /// Returns the number above which all new fences are.
    pub(super) fn fence_floor(&self) -> i64 {
        self.0.load(Ordering::Acquire) << 32
    }
}
