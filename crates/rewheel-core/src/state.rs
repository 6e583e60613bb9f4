//! Job states and every allowed transition between them.

use std::fmt;
use std::str::FromStr;

/// State of a job.
///
/// ```text
///             ┌────────────────── retry, give back, takeover ──────────────────┐
///             ▼                                                                │
///   submit ─► scheduled ─── claim ──► leased ─── settle ──► succeeded │ failed │ dead │ cancelled
///             │   ▲                   │                                        │
///             │   └──── resume ─── paused ◄── pause                            └─ redrive ─► scheduled
///             └── cancel, deadline ──► cancelled, dead
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// Waits until it is due and a holder claims it.
    Scheduled,
    /// Leased to one holder.
    Leased,
    /// Paused until an operator resumes it.
    Paused,
    /// Succeeded.
    Succeeded,
    /// Given up; no operator action is needed.
    Failed,
    /// Dead letter: given up, and an operator must handle it.
    Dead,
    /// Cancelled.
    Cancelled,
}

/// What moves a job from one state to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// A holder claims the job.
    Claim,
    /// A holder writes the result of an attempt, and keeps or releases the job.
    Settle,
    /// A holder gives the job back without starting it.
    GiveBack,
    /// The holder of the job died, or did not settle the job in time.
    Takeover,
    /// The deadline of the job has passed.
    Deadline,
    /// An operator pauses the job.
    Pause,
    /// An operator resumes the job.
    Resume,
    /// An operator cancels the job.
    Cancel,
    /// An operator runs the job now.
    Retry,
    /// An operator redrives a dead letter.
    Redrive,
}

impl State {
    /// Every state.
    pub const ALL: [State; 7] = [
        State::Scheduled,
        State::Leased,
        State::Paused,
        State::Succeeded,
        State::Failed,
        State::Dead,
        State::Cancelled,
    ];

    /// Returns the name used in SQL, JSON, metrics and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            State::Scheduled => "scheduled",
            State::Leased => "leased",
            State::Paused => "paused",
            State::Succeeded => "succeeded",
            State::Failed => "failed",
            State::Dead => "dead",
            State::Cancelled => "cancelled",
        }
    }

    /// Returns whether a job in this state is live: it waits, runs or is paused.
    pub const fn is_live(self) -> bool {
        match self {
            State::Scheduled | State::Leased | State::Paused => true,
            State::Succeeded | State::Failed | State::Dead | State::Cancelled => false,
        }
    }

    /// Returns whether a job never leaves this state. A dead letter can be redriven.
    pub const fn is_final(self) -> bool {
        match self {
            State::Succeeded | State::Failed | State::Cancelled => true,
            State::Scheduled | State::Leased | State::Paused | State::Dead => false,
        }
    }

    /// Returns whether `cause` may move a job from this state to another. This is the only table of legal transitions.
    ///
    /// ```
    /// use rewheel_core::{Cause, State};
    ///
    /// assert!(State::Dead.may_become(State::Scheduled, Cause::Redrive));
    /// assert!(!State::Failed.may_become(State::Scheduled, Cause::Redrive));
    /// ```
    pub const fn may_become(self, to: State, cause: Cause) -> bool {
        use State::{Cancelled, Dead, Failed, Leased, Paused, Scheduled, Succeeded};
        match (cause, self) {
            (Cause::Claim, Scheduled) => matches!(to, Leased),
            // Kept for a sticky retry, released for a stored one, or ended. A pause or cancel requested meanwhile is applied
            // here.
            (Cause::Settle, Leased) => true,
            (Cause::GiveBack, Leased) => matches!(to, Scheduled | Paused | Cancelled),
            // Dead after too many takeovers.
            (Cause::Takeover, Leased) => matches!(to, Scheduled | Paused | Cancelled | Dead),
            (Cause::Deadline, Scheduled | Leased | Paused) => matches!(to, Dead),
            (Cause::Pause, Scheduled) => matches!(to, Paused),
            (Cause::Resume, Paused) => matches!(to, Scheduled),
            (Cause::Cancel, Scheduled | Paused | Dead) => matches!(to, Cancelled),
            (Cause::Retry, Scheduled | Paused) => matches!(to, Scheduled),
            (Cause::Retry | Cause::Redrive, Dead) => matches!(to, Scheduled),
            // A pause or cancel of a leased job is only requested: its holder applies it.
            (
                Cause::Claim
                | Cause::Settle
                | Cause::GiveBack
                | Cause::Takeover
                | Cause::Deadline
                | Cause::Pause
                | Cause::Resume
                | Cause::Cancel
                | Cause::Retry
                | Cause::Redrive,
                Scheduled | Leased | Paused | Succeeded | Failed | Dead | Cancelled,
            ) => false,
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for State {
    type Err = UnknownState;

    fn from_str(text: &str) -> Result<State, UnknownState> {
        State::ALL
            .into_iter()
            .find(|state| state.as_str() == text)
            .ok_or_else(|| UnknownState(text.to_owned()))
    }
}

/// Error: the text is not the name of a [`State`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a state: use scheduled, leased, paused, succeeded, failed, dead or cancelled"
)]
pub struct UnknownState(String);

#[cfg(test)]
mod tests;
