//! Heartbeats and expiry of holders, and sweeps that free the jobs of dead holders.

use crate::failure::Failure;
use crate::id::{HolderId, JobId, Version};
use crate::job::{Keep, Lane, Wanted};
use crate::lease::Lease;
use crate::timestamp::Timestamp;
use std::time::Duration;

/// Which jobs to take from holders that no longer act on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sweep {
    /// The sweeper.
    pub by: HolderId,
    /// How many jobs at most.
    pub limit: usize,
    /// How long to keep those that end.
    pub keep: Keep,
    /// What the sweeper knows of the store's clock.
    pub watched: Watched,
}

impl Sweep {
    /// Takes jobs for `by`, and trusts the store's clock.
    pub const fn new(by: HolderId, limit: usize, keep: Keep) -> Sweep {
        Sweep { by, limit, keep, watched: Watched::ALWAYS }
    }
}

/// How long the store's clock has not jumped ahead, as far as a sweeper knows.
///
/// A clock that jumps ahead by an hour makes every leased job look overdue. So an overdue job is taken from a living holder only if
/// its lease was for no longer than the clock was watched: whether it began before that or after, its time has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watched {
    /// The latest reading of the store's clock. What is overdue later is not taken.
    pub until: Timestamp,
    /// How long the clock was watched up to then, by the sweeper's own clock.
    pub since: Duration,
}

impl Watched {
    /// The clock never jumps.
    pub const ALWAYS: Watched =
        Watched { until: Timestamp::from_millis(i64::MAX), since: Duration::MAX };

    /// Returns whether a lease from `leased` to `overdue` has certainly passed.
    pub fn has_passed(&self, leased: Timestamp, overdue: Timestamp) -> bool {
        overdue <= self.until && overdue.since(leased) <= self.since
    }
}

/// A holder lives on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renewed {
    /// When, by the store's clock.
    pub at: Timestamp,
    /// Its renewals so far.
    pub renewals: u64,
    /// What people want of its jobs; at most [`Limits::BATCH_MAX`](crate::Limits::BATCH_MAX).
    pub wanted: Vec<WantedJob>,
}

/// What a person wants of a job that a holder has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WantedJob {
    /// The job.
    pub lease: Lease,
    /// What.
    pub wanted: Wanted,
}

/// What came of burying a holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Burial {
    /// It is dead from now on.
    Buried,
    /// It has renewed since, or its lease has not run out.
    Alive,
    /// It was dead already, or never joined.
    Dead,
}

/// A dead letter that somebody should hear of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// The job.
    pub job: JobId,
    /// Which of its deaths: it may have been redriven and died again.
    pub version: Version,
    /// Of what kind, on whose behalf.
    pub lane: Lane,
    /// How many attempts it used up.
    pub attempt: u32,
    /// When it died.
    pub died: Timestamp,
    /// What finally happened.
    pub failure: Option<Failure>,
}
