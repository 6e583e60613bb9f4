//! Ends the scan of a page after a time.

use rewheel::{Clock, Moment};
use rewheel_core::store::PageRequest;

/// How long a page may be scanned for.
#[derive(Clone, Debug)]
pub(crate) struct Patience {
    clock: Clock,
    ends: Option<Moment>,
}

impl Patience {
    /// Begins to wait for a page.
    pub(crate) fn new(page: &PageRequest) -> Patience {
        let clock = Clock::system();
        let ends = page.scan_time.map(|time| clock.now().plus(time));
        Patience { clock, ends }
    }

    /// Returns whether the page ends after this many rows of a table.
    pub(crate) fn is_over(&self, scanned: usize) -> bool {
        // Reading the clock for every row would cost more than some rows.
        let is_checked = scanned >= PageRequest::SCANNED_MIN && scanned.is_multiple_of(50);
        is_checked && self.ends.is_some_and(|ends| self.clock.now() >= ends)
    }
}
