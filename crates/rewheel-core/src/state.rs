//! Job states and every allowed transition between them.

use std::fmt;
use std::str::FromStr;

/// What a job is doing.
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
    /// Waits for its time, and for a holder.
    Scheduled,
    /// One holder may act on it.
    Leased,
    /// Waits for a person.
    Paused,
    /// Done.
    Succeeded,
    /// Given up, and nobody is waiting for it.
    Failed,
    /// Given up, and asks for a person.
    Dead,
    /// Stopped: nobody wants it.
    Cancelled,
}

/// What moves a job from one state to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// A holder takes it.
    Claim,
    /// A holder writes what became of an attempt, and keeps it or lets go of it.
    Settle,
    /// A holder returns it unstarted.
    GiveBack,
    /// Another holder's death frees it.
    Takeover,
    /// Its deadline has passed.
    Deadline,
    /// A person pauses it.
    Pause,
    /// A person lets it go on.
    Resume,
    /// A person stops it.
    Cancel,
    /// A person wants it tried now.
    Retry,
    /// A person puts a dead letter back to work.
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

    /// Returns whether something is still to happen to the job by itself or by a holder: it is in
    /// the hot table.
    pub const fn is_live(self) -> bool {
        match self {
            State::Scheduled | State::Leased | State::Paused => true,
            State::Succeeded | State::Failed | State::Dead | State::Cancelled => false,
        }
    }

    /// Returns whether the job never leaves this state. A dead letter may.
    pub const fn is_final(self) -> bool {
        match self {
            State::Succeeded | State::Failed | State::Cancelled => true,
            State::Scheduled | State::Leased | State::Paused | State::Dead => false,
        }
    }

    /// Returns whether `cause` may move a job from this state to another. The one table of legal
    /// transitions.
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
            // Kept for a sticky retry, let go for a stored one, or ended. What a person wanted
            // meanwhile (pause, cancel) is obeyed here.
            (Cause::Settle, Leased) => true,
            (Cause::GiveBack, Leased) => matches!(to, Scheduled | Paused | Cancelled),
            // Dead, when it has taken too many holders with it.
            (Cause::Takeover, Leased) => matches!(to, Scheduled | Paused | Cancelled | Dead),
            (Cause::Deadline, Scheduled | Leased | Paused) => matches!(to, Dead),
            (Cause::Pause, Scheduled) => matches!(to, Paused),
            (Cause::Resume, Paused) => matches!(to, Scheduled),
            (Cause::Cancel, Scheduled | Paused | Dead) => matches!(to, Cancelled),
            (Cause::Retry, Scheduled | Paused) => matches!(to, Scheduled),
            (Cause::Retry | Cause::Redrive, Dead) => matches!(to, Scheduled),
            // A leased job is only wanted to be paused or cancelled: its holder obeys.
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

/// The text is not the name of a [`State`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a state: use scheduled, leased, paused, succeeded, failed, dead or cancelled"
)]
pub struct UnknownState(String);

#[cfg(test)]
mod tests;
