//! A kind of work, as the fleet shares it.

use crate::id::HolderId;
use crate::name::KindName;
use crate::timestamp::Timestamp;

/// A kind as it is written by config, a person or an engine that has its handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewKind {
    /// What it is called.
    pub name: KindName,
    /// Its settings, in a form that only their readers understand.
    pub settings: String,
    /// How many processes a job of it may take with it. Stored apart, since the sweep obeys it for
    /// kinds that the sweeping node does not know.
    pub takeovers_max: u32,
}

/// A kind as the store knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    /// What it is called.
    pub name: KindName,
    /// Its settings, as they were written.
    pub settings: String,
    /// How many processes a job of it may take with it.
    pub takeovers_max: u32,
    /// Whether a person paused it: nobody claims it.
    pub paused: bool,
    /// Set while its dependency is taken to be down: nobody claims it but the prober.
    pub parked: Option<Parked>,
    /// Grows at every change of `parked`, so that two holders never act on the same one.
    pub generation: u64,
}

/// Why nobody claims a kind, and who may try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parked {
    /// Since when. Time alone never unparks.
    pub since: Timestamp,
    /// What people are told.
    pub reason: String,
    /// Who may claim one job to see whether the dependency is back.
    pub prober: Option<HolderId>,
}

/// A change of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KindChange {
    /// A person pauses it.
    Pause,
    /// A person lets it go on.
    Resume,
    /// Its dependency is taken to be down. A prober that failed parks it again, which frees the
    /// right to probe.
    Park {
        /// What the caller saw.
        generation: u64,
        /// What people are told.
        reason: String,
    },
    /// A holder takes the right to probe.
    Probe {
        /// What the caller saw.
        generation: u64,
        /// Who.
        holder: HolderId,
    },
    /// Its dependency is back.
    Unpark {
        /// What the caller saw.
        generation: u64,
    },
}

impl KindChange {
    /// Returns the name used in the audit log.
    pub const fn as_str(&self) -> &'static str {
        match self {
            KindChange::Pause => "pause kind",
            KindChange::Resume => "resume kind",
            KindChange::Park { .. } => "park kind",
            KindChange::Probe { .. } => "probe kind",
            KindChange::Unpark { .. } => "unpark kind",
        }
    }
}

/// What became of a [`KindChange`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KindChanged {
    /// It is as wanted.
    Applied(Kind),
    /// Another was first: here is what they left.
    Refused(Kind),
    /// There is no such kind.
    NotFound,
}
