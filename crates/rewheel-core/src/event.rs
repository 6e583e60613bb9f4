//! Job events, published after the change is durable.

use crate::id::{HolderId, JobId};
use crate::name::KindName;
use crate::state::{Cause, State};
use crate::timestamp::Timestamp;

/// A change of a job's state or of its lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobEvent {
    /// The job.
    pub job: JobId,
    /// Its kind.
    pub kind: KindName,
    /// The state before.
    pub from: State,
    /// The state after.
    pub to: State,
    /// The cause of the change.
    pub cause: Cause,
    /// The holder before the change.
    pub holder: Option<HolderId>,
    /// When it happened, by the store's clock.
    pub at: Timestamp,
}
