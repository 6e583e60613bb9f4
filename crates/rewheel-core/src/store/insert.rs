//! Asks for new jobs to be stored.

use crate::id::{Fence, JobId};
use crate::job::NewJob;
use crate::limits::Limits;
use crate::state::State;
use crate::store::{Answer, Direct, StoreError};
use crate::timestamp::Timestamp;

/// New jobs, and how to store them.
#[derive(Clone, Debug)]
pub struct Insert<'a> {
    /// At most [`Limits::SUBMIT_MAX`]; a store rejects more, see [`Insert::check`].
    pub jobs: &'a [NewJob],
    /// What becomes of the others when one is refused.
    pub if_refused: IfRefused,
    /// Whether an earlier answer was lost.
    pub sent: Sent,
    /// Leases what may run at once to this holder, see [`Direct`].
    pub direct: Option<Direct>,
}

impl<'a> Insert<'a> {
    /// Stores all that can be, for the first time, and leases none.
    pub const fn new(jobs: &'a [NewJob]) -> Insert<'a> {
        Insert { jobs, if_refused: IfRefused::StoreOthers, sent: Sent::First, direct: None }
    }

    /// Checks the number of jobs. Every store does this first.
    ///
    /// # Errors
    /// More than [`Limits::SUBMIT_MAX`] jobs are [`StoreError::Rejected`].
    pub fn check(&self) -> Answer<()> {
        let (count, count_max) = (self.jobs.len(), Limits::SUBMIT_MAX);
        if count <= count_max {
            return Ok(());
        }
        let why = format!("an insert of {count} jobs is too large: the limit is {count_max}");
        Err(StoreError::Rejected(why.into()))
    }
}

/// What becomes of the other jobs of a batch when one is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfRefused {
    /// They are stored.
    StoreOthers,
    /// Nothing is stored.
    StoreNothing,
}

/// Whether this is the first time that a batch is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// It is: no job of it can be known.
    First,
    /// It was sent before, and the answer was lost: jobs that are known are not stored again. One
    /// that has no key, and that succeeded meanwhile without being kept, is not known any more.
    Again,
}

/// What became of one new job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Inserted {
    /// It is durable.
    Created {
        /// When it may run.
        due: Timestamp,
        /// Set when it was leased to the holder of [`Direct`] at once.
        leased: Option<Fence>,
    },
    /// Its key, or its id, is known: nothing was stored.
    Duplicate {
        /// The job that has it; may be gone by now.
        job: JobId,
        /// What that job is, or was at its end.
        state: State,
    },
    /// It cannot be stored.
    Refused(Refusal),
    /// It could have been, but another of the batch was refused.
    LeftOut,
}

/// Why a new job cannot be stored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Nobody has named its kind.
    #[error(
        "the kind does not exist: define it in the config, with PUT /v1/kinds, or with a handler"
    )]
    UnknownKind,
    /// Its key belongs to a job with another payload.
    #[error("the key is used by job {job} with a different payload")]
    KeyReused {
        /// The job that has it.
        job: JobId,
    },
    /// Its deadline has passed, or comes before it is due.
    #[error("the deadline ends before the job can run")]
    DeadlineTooEarly,
    /// Its payload is larger than the store takes.
    #[error("the payload has {bytes} bytes; the limit of the store is {bytes_max}")]
    TooLarge {
        /// What it has.
        bytes: usize,
        /// What the store takes.
        bytes_max: usize,
    },
    /// Its payload is larger than the engine's settings allow. Not said by stores, but by engines.
    #[error("the payload has {bytes} bytes; the limit is {bytes_max} (engine.payload_bytes_max)")]
    AbovePayloadLimit {
        /// What it has.
        bytes: usize,
        /// What the setting allows.
        bytes_max: usize,
    },
    /// Its tenant has as many live jobs as it may have. Not said by stores, but by engines.
    #[error(
        "the tenant is at its limit of {jobs_max} live jobs: submit it again when some have ended"
    )]
    TenantFull {
        /// How many that is.
        jobs_max: u64,
    },
}
