//! Settle requests: the results of attempts.

use crate::decision::Decision;
use crate::failure::Failure;
use crate::id::{Fence, HolderId};
use crate::job::{NewJob, Retain};
use crate::job_result::{GivenResult, SuccessCode};
use crate::lease::Lease;
use crate::state::State;
use crate::timestamp::Timestamp;
use std::time::Duration;

/// The result of an attempt, and what happens next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settlement {
    /// The lease of the holder.
    pub lease: Lease,
    /// What happens next.
    pub decision: Decision,
    /// When the attempt ran.
    pub ran: AttemptTiming,
    /// The failure of the attempt, kept in the job's history; `None` leaves no record.
    pub failure: Option<Failure>,
    /// For a sticky retry: the time after the due time within which the holder must settle the job.
    pub hold: Duration,
    /// Retention of the job, if this result ends the job.
    pub keep: Retain,
    /// New jobs (follow-ups), stored in the same transaction: the store adds them if and only if it applies this settlement
    /// ([`Settled::Applied`]). Follow-ups get the tenant of the settled job, and the settled job becomes their parent. If the settled
    /// job is one of the engine's own, they keep their tenant. A duplicate of an existing job is not stored. A follow-up that cannot be stored becomes a dead letter with the code
    /// [`Failure::FOLLOW_UP_REFUSED`]; the settlement is applied in any case. At most
    /// [`Limits::FOLLOW_UPS_MAX`](crate::Limits::FOLLOW_UPS_MAX), with payloads of at most
    /// [`Limits::FOLLOW_UPS_BYTES_MAX`](crate::Limits::FOLLOW_UPS_BYTES_MAX) together; follow-ups beyond these limits are refused.
    pub follow_ups: Vec<NewJob>,
    /// The code of an attempt that succeeded without a failure.
    pub code: Option<SuccessCode>,
    /// The result of the job. Stored if this settlement is [`Settled::Applied`], the job succeeds and it is kept; ignored otherwise.
    pub result: Option<GivenResult>,
    /// A new payload for the job, written in the same transaction, like a checkpoint.
    pub payload: Option<Vec<u8>>,
}

impl Settlement {
    /// Settles an attempt that succeeded, with default retention.
    pub fn succeed(lease: Lease) -> Settlement {
        Settlement {
            lease,
            decision: Decision::Succeed,
            ran: AttemptTiming::default(),
            failure: None,
            hold: Duration::ZERO,
            keep: Retain::default(),
            follow_ups: Vec::new(),
            code: None,
            result: None,
            payload: None,
        }
    }

    /// Returns whether this attempt succeeded without a failure: then its record is kept with the job, not in its history.
    pub fn is_plain_success(&self) -> bool {
        self.decision == Decision::Succeed && self.failure.is_none()
    }

    /// Returns whether it writes nothing but its job's own end: no other jobs, no payload.
    pub const fn is_plain(&self) -> bool {
        self.follow_ups.is_empty() && self.payload.is_none()
    }
}

/// When an attempt ran, in durations that do not depend on a shared clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AttemptTiming {
    /// How long ago it started.
    pub started_ago: Duration,
    /// How long it took.
    pub duration: Duration,
}

/// Result of writing a settlement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// Written now.
    Applied(Outcome),
    /// Written before, and the response was lost; or the job no longer exists, so there is nothing
    /// to overwrite.
    AlreadyApplied(Outcome),
    /// The holder no longer has the job: nothing was written.
    Lost,
}

/// A job after it was settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The job stays with its holder, under a new fence.
    Kept {
        /// The new fence.
        fence: Fence,
        /// Time until it runs again.
        due_in: Duration,
    },
    /// The job has no holder; contains its state.
    LetGo(State),
    /// The job no longer exists.
    Gone,
}

/// One settled attempt of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptRecord {
    /// Number of the attempt, from 1. An attempt that does not count has the same number as the next attempt.
    pub attempt: u32,
    /// The fence of the job during this attempt.
    pub fence: Fence,
    /// The holder that ran it.
    pub holder: HolderId,
    /// When it started, by the store's clock.
    pub started: Timestamp,
    /// How long it took.
    pub duration: Duration,
    /// How it ended.
    pub ended: AttemptEnd,
    /// The name of the [`Decision`].
    pub decision: String,
    /// The delay before the next attempt.
    pub delay: Option<Duration>,
    /// Number of dropped records between the previous one and this one, see
    /// [`Limits::ATTEMPTS_LAST_KEPT`](crate::Limits::ATTEMPTS_LAST_KEPT).
    pub dropped: u64,
}

impl AttemptRecord {
    /// Returns the failure of an attempt that failed.
    pub const fn failure(&self) -> Option<&Failure> {
        match &self.ended {
            AttemptEnd::Failed(failure) => Some(failure),
            AttemptEnd::Succeeded(_) => None,
        }
    }
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttemptEnd {
    /// It failed.
    Failed(Failure),
    /// It succeeded, with this code.
    Succeeded(Option<SuccessCode>),
}
