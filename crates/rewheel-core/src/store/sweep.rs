//! What holders learn about themselves, each other, the dead.

use crate::failure::Failure;
use crate::id::{JobId, Version};
use crate::job::{Lane, Wanted};
use crate::lease::Lease;
use crate::timestamp::Timestamp;

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
