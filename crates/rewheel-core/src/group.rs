//! Groups: jobs of a group run one at a time, in the order in which they were accepted.

use crate::id::Turn;
use crate::name::GroupKey;

/// The group of a job, and what the store knows of the job's place in it.
///
/// A *line* is all unfinished jobs of one kind and tenant with the same group key. The store gives each job of a line a place when it
/// stores the job. One job of a line, its *head*, can be leased; the others are blocked. When the head ends, the store releases the
/// job with the smallest place: it becomes the head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobGroup {
    /// The name of the group, unique per tenant and kind.
    pub key: GroupKey,
    /// Whether the job is scheduled and waits for other jobs of its group.
    pub blocked: bool,
    /// The number of the latest release of the job; `None` before the first. A later release in the same group has a larger number.
    pub turn: Option<Turn>,
}

impl JobGroup {
    /// Returns the group of a job that has just been stored and not been released.
    pub const fn new(key: GroupKey) -> JobGroup {
        JobGroup { key, blocked: true, turn: None }
    }
}

/// Whether a dead letter holds up the other jobs of its group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnDead {
    /// The next job of the group runs.
    #[default]
    Continue,
    /// The other jobs of the group wait until the dead letter is redriven or cancelled.
    Block,
}

impl OnDead {
    /// Returns the name used in settings and JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            OnDead::Continue => "continue",
            OnDead::Block => "block",
        }
    }

    /// Returns whether a dead letter keeps its place in the line.
    pub const fn blocks(self) -> bool {
        matches!(self, OnDead::Block)
    }

    /// Returns the value from how a store keeps it.
    pub const fn of(blocks: bool) -> OnDead {
        if blocks { OnDead::Block } else { OnDead::Continue }
    }
}
