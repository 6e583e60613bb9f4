//! Changes that users make to jobs: pause, resume, cancel, redrive and others.

mod apply;

use crate::id::{JobId, Version};
use crate::job::When;
use crate::priority::Priority;
use crate::state::{Cause, State};

/// A user's change of one job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The job.
    pub job: JobId,
    /// The change.
    pub what: ChangeVerb,
    /// Apply only if the job still has this version.
    pub if_version: Option<Version>,
    /// Whose jobs it may change.
    pub scope: ChangeScope,
}

impl Change {
    /// Changes a job at any version.
    pub const fn new(job: JobId, what: ChangeVerb) -> Change {
        Change { job, what, if_version: None, scope: ChangeScope::Users }
    }
}

/// Whose jobs a change may change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChangeScope {
    /// Jobs of users. Of the engine's own jobs, it may only [abort](ChangeVerb::Abort) one.
    #[default]
    Users,
    /// Jobs of the engine: kinds that are reserved for it. It makes the change on behalf of a user, such as the pause of a schedule.
    Engine,
}

/// The type of a user's change of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeVerb {
    /// Pauses the job. For a leased job, requests a pause.
    Pause,
    /// Resumes the job; it runs when it is due.
    Resume,
    /// Cancels the job. For a leased job, requests a cancellation.
    Cancel,
    /// Runs the job now. A dead letter is redriven.
    Retry,
    /// Redrives a dead letter, with a full set of attempts.
    Redrive {
        /// A new deadline; required if the old one has passed.
        deadline: Option<When>,
    },
    /// Changes values of the job. A leased job must be paused first.
    Edit(Box<Edit>),
    /// Cancels one of the engine's own jobs. This is the only change by a user that such a job accepts, and it applies to no other
    /// job.
    Abort,
}

impl ChangeVerb {
    /// Returns the name used in the audit log.
    pub const fn as_str(&self) -> &'static str {
        match self {
            ChangeVerb::Pause => "pause",
            ChangeVerb::Resume => "resume",
            ChangeVerb::Cancel => "cancel",
            ChangeVerb::Retry => "retry",
            ChangeVerb::Redrive { .. } => "redrive",
            ChangeVerb::Edit(_) => "edit",
            ChangeVerb::Abort => "abort",
        }
    }

    /// Returns the state after the change of a job in `state`, or `None` if the change is not allowed. A leased job stays leased
    /// when a pause or cancellation is requested.
    pub const fn leads_to(&self, state: State) -> Option<State> {
        let (cause, to) = match self {
            ChangeVerb::Pause => (Cause::Pause, State::Paused),
            ChangeVerb::Resume => (Cause::Resume, State::Scheduled),
            ChangeVerb::Cancel | ChangeVerb::Abort => (Cause::Cancel, State::Cancelled),
            ChangeVerb::Retry => (Cause::Retry, State::Scheduled),
            ChangeVerb::Redrive { .. } => (Cause::Redrive, State::Scheduled),
            ChangeVerb::Edit(_) => {
                return match state {
                    State::Scheduled | State::Paused | State::Dead => Some(state),
                    State::Leased | State::Succeeded | State::Failed | State::Cancelled => None,
                };
            }
        };
        if state.may_become(to, cause) { Some(to) } else { None }
    }
}

/// New values; `None` leaves a value unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edit {
    /// The input.
    pub payload: Option<Vec<u8>>,
    /// Priority.
    pub priority: Option<Priority>,
    /// Earliest time of the next attempt.
    pub due: Option<When>,
    /// No attempt starts after this time; `Some(None)` removes the deadline.
    pub deadline: Option<Option<When>>,
    /// Maximum number of attempts.
    pub attempts_max: Option<u32>,
}

/// Result of a [`Change`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changed {
    /// The change was made.
    Applied {
        /// The new state.
        state: State,
        /// The new version.
        version: Version,
    },
    /// The change was requested; the holder of the job will apply it.
    Wanted {
        /// The new version.
        version: Version,
    },
    /// The job was already in this state.
    Unchanged {
        /// The state.
        state: State,
        /// The version.
        version: Version,
    },
    /// The change is not allowed in this state.
    WrongState(State),
    /// Another change came first. Contains the current version.
    VersionChanged(Version),
    /// The deadline has passed, or is before the due time: a new deadline is required.
    NeedsDeadline,
    /// The new payload is larger than the store accepts.
    TooLarge {
        /// The largest payload that the store accepts.
        bytes_max: usize,
    },
    /// The kind is reserved for the engine: [`ChangeVerb::Abort`] is the only change of its jobs by users, and changes no other
    /// jobs. Or a change of the engine is about a job of a user.
    Reserved,
    /// The job does not exist.
    NotFound,
}
