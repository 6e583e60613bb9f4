//! Changes that users make to jobs: pause, resume, cancel, redrive and others.

mod apply;

use crate::id::{JobId, Version};
use crate::job::When;
use crate::priority::Priority;
use crate::state::{Cause, State};

/// A change of one job by a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Which job.
    pub job: JobId,
    /// What to do with it.
    pub what: What,
    /// Only if this is still its version.
    pub if_version: Option<Version>,
}

impl Change {
    /// Changes a job whatever its version.
    pub const fn new(job: JobId, what: What) -> Change {
        Change { job, what, if_version: None }
    }
}

/// What a person does to a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// Lets it wait. A leased one is wanted to be paused.
    Pause,
    /// Lets it go on, when it is due.
    Resume,
    /// Stops it. A leased one is wanted to be cancelled.
    Cancel,
    /// Lets it run now. A dead letter is redriven.
    Retry,
    /// Puts a dead letter back to work, with all its attempts before it.
    Redrive {
        /// A new deadline: needed where the old one has passed.
        deadline: Option<When>,
    },
    /// Changes what it says. A leased one must be paused first.
    Edit(Box<Edit>),
    /// Stops a job of the engine's own. It is the only change that such a job takes, and it is for no other job.
    Abort,
}

impl What {
    /// Returns the name used in the audit log.
    pub const fn as_str(&self) -> &'static str {
        match self {
            What::Pause => "pause",
            What::Resume => "resume",
            What::Cancel => "cancel",
            What::Retry => "retry",
            What::Redrive { .. } => "redrive",
            What::Edit(_) => "edit",
            What::Abort => "abort",
        }
    }

    /// Returns what it does to a job in `state`: the state that it becomes, or `None` where it may
    /// not be done. A leased job that is wanted to be paused or cancelled stays leased.
    pub const fn leads_to(&self, state: State) -> Option<State> {
        let (cause, to) = match self {
            What::Pause => (Cause::Pause, State::Paused),
            What::Resume => (Cause::Resume, State::Scheduled),
            What::Cancel | What::Abort => (Cause::Cancel, State::Cancelled),
            What::Retry => (Cause::Retry, State::Scheduled),
            What::Redrive { .. } => (Cause::Redrive, State::Scheduled),
            What::Edit(_) => {
                return match state {
                    State::Scheduled | State::Paused | State::Dead => Some(state),
                    State::Leased | State::Succeeded | State::Failed | State::Cancelled => None,
                };
            }
        };
        if state.may_become(to, cause) { Some(to) } else { None }
    }
}

/// New values; what is `None` stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edit {
    /// The input.
    pub payload: Option<Vec<u8>>,
    /// How urgent.
    pub priority: Option<Priority>,
    /// When it may next run.
    pub due: Option<When>,
    /// When nobody wants it any more; `Some(None)` takes the deadline away.
    pub deadline: Option<Option<When>>,
    /// How many attempts it gets.
    pub attempts_max: Option<u32>,
}

/// What became of a [`Change`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changed {
    /// It is done.
    Applied {
        /// What the job is now.
        state: State,
        /// Its new version.
        version: Version,
    },
    /// A holder has the job, and will obey.
    Wanted {
        /// Its new version.
        version: Version,
    },
    /// It was so already.
    Unchanged {
        /// What the job is.
        state: State,
        /// Its version.
        version: Version,
    },
    /// It may not be done to a job in this state.
    WrongState(State),
    /// Another changed it first.
    VersionChanged(Version),
    /// Its deadline has passed, or would come before it is due: it needs another.
    NeedsDeadline,
    /// The new payload is larger than the store takes.
    TooLarge {
        /// What the store takes.
        bytes_max: usize,
    },
    /// The kind is reserved for the engine: only [`What::Abort`] changes its jobs, and nothing else.
    Reserved,
    /// There is no such job.
    NotFound,
}
