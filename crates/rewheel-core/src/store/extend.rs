//! Requests that extend the timeout of a running attempt.

use crate::lease::Lease;
use crate::timestamp::Timestamp;
use std::time::Duration;

/// A request for more time, see [`WorkStore::extend`](super::WorkStore::extend).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extension {
    /// The job and its fence.
    pub lease: Lease,
    /// How much longer the attempt may take, from now.
    pub timeout: Duration,
    /// Maximum total time of the attempt since it was leased: an attempt cannot be extended forever.
    pub total_max: Duration,
    /// Additional time after the timeout. When it has passed, the job is overdue.
    pub grace: Duration,
}

impl Extension {
    /// Returns when the attempt is overdue, given the time of its lease and its previous overdue time. An extension never
    /// shortens the time.
    ///
    /// ```
    /// use rewheel::{Random, seconds};
    /// use rewheel_core::store::Extension;
    /// use rewheel_core::{Fence, JobId, Lease, Timestamp};
    ///
    /// let at = |seconds: i64| Timestamp::from_millis(seconds * 1_000);
    /// let lease = Lease { job: JobId::new(at(0), &Random::seeded(1)), fence: Fence::new(1) };
    /// let extension =
    ///     Extension { lease, timeout: seconds(60), total_max: seconds(100), grace: seconds(5) };
    /// assert_eq!(extension.overdue(at(0), at(35), at(20)), at(85));
    /// assert_eq!(extension.overdue(at(0), at(35), at(90)), at(105), "the total is limited");
    /// assert_eq!(extension.overdue(at(0), at(500), at(20)), at(500), "no time is taken away");
    /// ```
    pub fn overdue(&self, leased: Timestamp, overdue: Timestamp, now: Timestamp) -> Timestamp {
        let ends = now.plus(self.timeout).min(leased.plus(self.total_max));
        ends.plus(self.grace).max(overdue)
    }
}
