//! Settle requests: the results of attempts.

use crate::decision::Decision;
use crate::failure::Failure;
use crate::id::{Fence, HolderId};
use crate::job::Keep;
use crate::lease::Lease;
use crate::state::State;
use crate::timestamp::Timestamp;
use std::time::Duration;

/// What became of an attempt, and what is to follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settlement {
    /// What the holder got.
    pub lease: Lease,
    /// What is to follow.
    pub decision: Decision,
    /// When it ran.
    pub ran: Ran,
    /// What went wrong in it. Kept in the job's history; `None` leaves no record.
    pub failure: Option<Failure>,
    /// For a sticky retry: how long after its due the holder must have settled it.
    pub hold: Duration,
    /// How long to keep it, if this ends it.
    pub keep: Keep,
}

impl Settlement {
    /// Settles an attempt that succeeded, and keeps the job as long as usual.
    pub fn succeed(lease: Lease) -> Settlement {
        Settlement {
            lease,
            decision: Decision::Succeed,
            ran: Ran::default(),
            failure: None,
            hold: Duration::ZERO,
            keep: Keep::default(),
        }
    }
}

/// When an attempt ran, told without a clock that others would have to agree on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ran {
    /// How long ago it started.
    pub started_ago: Duration,
    /// How long it took.
    pub duration: Duration,
}

/// What a store did with a settlement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// It was written now.
    Applied(Outcome),
    /// It had been written before, and the answer was lost; or nothing is left of the job, so that
    /// there is nothing to overwrite.
    AlreadyApplied(Outcome),
    /// The job is not this holder's any more: nothing was written.
    Lost,
}

/// What a job is after it was settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It stays with its holder, under a new fence.
    Kept {
        /// The new fence.
        fence: Fence,
        /// How long until it runs again.
        due_in: Duration,
    },
    /// It is nobody's.
    LetGo(State),
    /// Nothing is left of it.
    Gone,
}

/// One failed attempt of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptRecord {
    /// Counted from 1. One that does not count has the number of the one that follows.
    pub attempt: u32,
    /// Under which fence it ran.
    pub fence: Fence,
    /// Who ran it.
    pub holder: HolderId,
    /// When it started, by the store's clock.
    pub started: Timestamp,
    /// How long it took.
    pub duration: Duration,
    /// What went wrong.
    pub failure: Failure,
    /// What was decided: the name of a [`Decision`].
    pub decision: String,
    /// How long the next one had to wait.
    pub delay: Option<Duration>,
    /// How many records between the previous one and this one the store has dropped, see
    /// [`Limits::ATTEMPTS_LAST_KEPT`](crate::Limits::ATTEMPTS_LAST_KEPT).
    pub dropped: u64,
}
