//! Heartbeats and expiry of holders, and sweeps that free the jobs of dead holders.

use crate::failure::Failure;
use crate::id::{HolderId, JobId, Version};
use crate::job::{Lane, Retain, Wanted};
use crate::lease::Lease;
use crate::timestamp::Timestamp;
use std::time::Duration;

/// A request to free jobs of holders that no longer act on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sweep {
    /// The sweeping holder.
    pub by: HolderId,
    /// Maximum number of jobs.
    pub limit: usize,
    /// Retention of jobs that end.
    pub keep: Retain,
    /// How long the sweeper has watched the store's clock.
    pub watched: Watched,
}

impl Sweep {
    /// Sweeps for `by`, and trusts the store's clock.
    pub const fn new(by: HolderId, limit: usize, keep: Retain) -> Sweep {
        Sweep { by, limit, keep, watched: Watched::ALWAYS }
    }
}

/// The period in which the sweeping holder has seen no forward jump of the store's clock.
///
/// A clock that jumps ahead by an hour makes every leased job look overdue. So an overdue job is taken from a live holder only if
/// the clock was watched for at least as long as the lease of the job lasts. Then the time of the lease has certainly passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watched {
    /// The latest reading of the store's clock. Jobs that become overdue later are not taken.
    pub until: Timestamp,
    /// How long the clock was watched until then, by the sweeper's own clock.
    pub since: Duration,
}

impl Watched {
    /// Assumes that the clock never jumps.
    pub const ALWAYS: Watched =
        Watched { until: Timestamp::from_millis(i64::MAX), since: Duration::MAX };

    /// Returns whether a lease from `leased` to `overdue` has certainly passed.
    pub fn has_passed(&self, leased: Timestamp, overdue: Timestamp) -> bool {
        overdue <= self.until && overdue.since(leased) <= self.since
    }
}

/// Result of a successful renewal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renewed {
    /// When it was renewed, by the store's clock.
    pub at: Timestamp,
    /// Number of renewals so far.
    pub renewals: u64,
    /// What users requested for its jobs; at most [`Limits::BATCH_MAX`](crate::Limits::BATCH_MAX).
    pub wanted: Vec<WantedJob>,
}

/// What a user requested for a leased job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WantedJob {
    /// The lease of the job.
    pub lease: Lease,
    /// The request.
    pub wanted: Wanted,
}

/// Result of expiring a holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HolderExpiry {
    /// The holder is now marked as dead.
    Expired,
    /// The holder has renewed its lease since then, or its lease has not expired.
    Alive,
    /// The holder was already dead, or was never registered.
    Dead,
}

/// A dead letter to announce.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// The job.
    pub job: JobId,
    /// The version tells apart several dead letters of the same job: the job may have been redriven
    /// and may have become dead again.
    pub version: Version,
    /// Its kind, tenant, priority and shard.
    pub lane: Lane,
    /// Number of used attempts.
    pub attempt: u32,
    /// When it died.
    pub died: Timestamp,
    /// The last failure.
    pub failure: Option<Failure>,
}
