//! Job events, published after the change is durable.

use crate::id::{HolderId, JobId};
use crate::name::KindName;
use crate::state::{Cause, State};
use crate::timestamp::Timestamp;

/// A job changed its state, or a lease of it changed hands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobEvent {
    /// Which job.
    pub job: JobId,
    /// Of what kind.
    pub kind: KindName,
    /// What it was.
    pub from: State,
    /// What it is.
    pub to: State,
    /// Why.
    pub cause: Cause,
    /// Who held it before.
    pub holder: Option<HolderId>,
    /// When, by the store's clock.
    pub at: Timestamp,
}
