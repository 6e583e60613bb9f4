//! Insert requests.

use crate::id::{Fence, JobId};
use crate::job::NewJob;
use crate::limits::Limits;
use crate::state::State;
use crate::store::{Direct, StoreError, StoreResult};
use crate::timestamp::Timestamp;

/// New jobs, and how to store them.
#[derive(Clone, Debug)]
pub struct Insert<'a> {
    /// At most [`Limits::SUBMIT_MAX`]; a store rejects more, see [`Insert::check`].
    pub jobs: &'a [NewJob],
    /// What happens to the other jobs when one is refused.
    pub if_refused: IfRefused,
    /// Whether the batch was sent before.
    pub sent: Sent,
    /// Leases jobs that may run at once to this holder, see [`Direct`].
    pub direct: Option<Direct>,
}

impl<'a> Insert<'a> {
    /// Stores as many as possible, for the first time, without leasing any.
    pub const fn new(jobs: &'a [NewJob]) -> Insert<'a> {
        Insert { jobs, if_refused: IfRefused::StoreOthers, sent: Sent::First, direct: None }
    }

    /// Checks the number of jobs. Every store does this first.
    ///
    /// # Errors
    /// More than [`Limits::SUBMIT_MAX`] jobs are [`StoreError::Rejected`].
    pub fn check(&self) -> StoreResult<()> {
        let (count, count_max) = (self.jobs.len(), Limits::SUBMIT_MAX);
        if count <= count_max {
            return Ok(());
        }
        let why = format!("an insert of {count} jobs is too large: the limit is {count_max}");
        Err(StoreError::Rejected(why.into()))
    }
}

/// What happens to the other jobs of a batch when one is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfRefused {
    /// The others are stored.
    StoreOthers,
    /// Nothing is stored.
    StoreNothing,
}

/// Whether a batch is sent for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// Sent for the first time: no job of the batch can be stored already.
    First,
    /// Sent before, and the response was lost: jobs that are stored already are not stored again.
    /// If a job has no key, and has succeeded since then without retention, the store no longer knows the job.
    Again,
}

/// Result of inserting one job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Inserted {
    /// The job is durable.
    Created {
        /// Earliest time of the first attempt.
        due: Timestamp,
        /// Set if the job was leased directly to the holder of [`Direct`].
        leased: Option<Fence>,
    },
    /// The key or the id exists already: nothing was stored.
    Duplicate {
        /// The existing job; it may be deleted by now.
        job: JobId,
        /// The state of that job, or its final state.
        state: State,
    },
    /// The key belongs to a job that was never claimed, and the new job has replaced what that job will run. See
    /// [`OnDuplicate::Replace`](crate::OnDuplicate::Replace).
    Replaced {
        /// The job that was replaced. Its id stays.
        job: JobId,
        /// Its state: scheduled or paused. The state that it has now, or its final state, if the batch was sent again.
        state: State,
    },
    /// The job cannot be stored.
    Refused(Refusal),
    /// The job was not stored because another job of the batch was refused.
    LeftOut,
}

/// Why a new job cannot be stored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The kind does not exist.
    #[error(
        "the kind does not exist: define it in the config, with PUT /v1/kinds, or with a handler"
    )]
    UnknownKind,
    /// The key belongs to a job with another payload.
    #[error("the key is used by job {job} with a different payload: use a new key")]
    KeyReused {
        /// The job that has the key.
        job: JobId,
    },
    /// The deadline has passed, or is before the due time.
    #[error("the deadline is in the past, or before the job is due: set a later deadline")]
    DeadlineTooEarly,
    /// The payload is larger than the store accepts.
    #[error("the payload has {bytes} bytes; the limit of the store is {bytes_max}")]
    TooLarge {
        /// Size of the payload.
        bytes: usize,
        /// The largest payload that the store accepts.
        bytes_max: usize,
    },
    /// A living holder runs a release that would damage the job.
    #[error(
        "the node or worker `{holder}` runs an older release, which cannot handle this job: upgrade it"
    )]
    HolderTooOld {
        /// The name of that holder.
        holder: String,
    },
    /// The payload is larger than the engine's settings allow. Engines return this refusal, not stores.
    #[error("the payload has {bytes} bytes; the limit is {bytes_max} (engine.payload_bytes_max)")]
    AbovePayloadLimit {
        /// Size of the payload.
        bytes: usize,
        /// The limit in the settings.
        bytes_max: usize,
    },
    /// The tenant has reached its limit of live jobs. Engines return this refusal, not stores.
    #[error(
        "the tenant is at its limit of {jobs_max} live jobs: submit the job again when other jobs of the tenant have ended"
    )]
    TenantFull {
        /// The limit.
        jobs_max: u64,
    },
}
