//! Claim requests.

use crate::id::HolderId;
use crate::job::{Job, Lane};
use crate::lease::Lease;
use crate::name::{KindName, Tenant};
use crate::timestamp::Timestamp;
use std::time::Duration;

/// What a holder could run now or soon.
#[derive(Clone, Debug)]
pub struct Claim<'a> {
    /// Who asks; must be alive.
    pub holder: HolderId,
    /// The lanes to look into, in this order; at most
    /// [`Limits::LANES_MAX`](crate::Limits::LANES_MAX).
    pub visits: &'a [Visit],
    /// How far ahead: what is due within it waits in the holder's wheel.
    pub horizon: Duration,
    /// How many at most, over all lanes.
    pub limit: usize,
}

/// One lane of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visit {
    /// Which.
    pub lane: Lane,
    /// How many at most.
    pub limit: usize,
    /// The attempt timeout of jobs that do not have their own.
    pub attempt_timeout: Duration,
    /// How long after due and attempt timeout a job is overdue: the holder must have settled it by
    /// then.
    pub grace: Duration,
}

/// The jobs that count against one limit. Claims lock limits in this order, so that no two wait for each other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LimitOf {
    /// All jobs of a kind.
    Kind(KindName),
    /// All jobs of a tenant.
    Tenant(Tenant),
}

impl LimitOf {
    /// Returns what sort of limit it is: `kind` or `tenant`.
    pub const fn scope(&self) -> &'static str {
        match self {
            LimitOf::Kind(_) => "kind",
            LimitOf::Tenant(_) => "tenant",
        }
    }

    /// Returns the name of the kind or the tenant.
    pub fn name(&self) -> &str {
        match self {
            LimitOf::Kind(kind) => kind.as_str(),
            LimitOf::Tenant(tenant) => tenant.as_str(),
        }
    }

    /// Returns whether the jobs of a lane count.
    pub fn covers(&self, lane: &Lane) -> bool {
        match self {
            LimitOf::Kind(kind) => lane.kind == *kind,
            LimitOf::Tenant(tenant) => lane.tenant.as_ref() == Some(tenant),
        }
    }
}

/// A limit that holds for the whole fleet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetLimit {
    /// Whose jobs.
    pub of: LimitOf,
    /// How many jobs may be leased at the same time, by all holders together. With zero none is.
    pub concurrency_max: Option<u32>,
    /// The shortest time between two starts, for a slow rate; at most
    /// [`Limits::FLEET_INTERVAL_MAX`](crate::Limits::FLEET_INTERVAL_MAX). A start is the lease of a job by a limited claim.
    pub interval: Option<Duration>,
}

/// A claim of lanes whose kind or tenant has a limit over the fleet. It takes only jobs that are due now.
#[derive(Clone, Debug)]
pub struct LimitedClaim<'a> {
    /// Who asks; must be alive.
    pub holder: HolderId,
    /// The lanes to look into, in this order; at most
    /// [`Limits::LANES_MAX`](crate::Limits::LANES_MAX).
    pub visits: &'a [Visit],
    /// How many at most, over all lanes.
    pub limit: usize,
    /// The limits to keep. A lane may be under several, all of which hold; a lane under none is claimed without a limit.
    pub limits: &'a [FleetLimit],
}

/// What a limited claim brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitedClaimed {
    /// The jobs, in the order of their visits.
    pub leased: Vec<Leased>,
    /// For each limit of the claim, in its order: why no more jobs may be leased under it now. `None` if more may be, or if the
    /// lanes under it gave all that is due.
    pub waits: Vec<Option<LimitWait>>,
}

/// Why a job waits for a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitWait {
    /// As many jobs are leased as may be.
    Concurrency,
    /// The next start is allowed after this time.
    Rate(Duration),
}

/// A holder with a free place, to which a new job may be leased by the insert itself.
///
/// That happens when the holder is alive, the kind is neither paused nor parked, the job is due and
/// no other of its lane is. Meant for all jobs of an insert: a caller with fewer places, or with a
/// handler for some kinds only, inserts twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Direct {
    /// Who.
    pub holder: HolderId,
    /// The attempt timeout of jobs that do not have their own.
    pub attempt_timeout: Duration,
    /// How long after due and attempt timeout a job is overdue.
    pub grace: Duration,
}

/// A job that was leased.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leased {
    /// The job, with its payload; its fence is the lease's.
    pub job: Job,
    /// How long until it may run; zero if it may.
    pub due_in: Duration,
    /// How long until nobody wants it any more.
    pub deadline_in: Option<Duration>,
}

impl Leased {
    /// Returns what its holder names with every write.
    pub const fn lease(&self) -> Lease {
        Lease { job: self.job.id, fence: self.job.fence }
    }
}

/// A lane that has scheduled jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneHead {
    /// Which.
    pub lane: Lane,
    /// When the first of them is due.
    pub due: Timestamp,
    /// How long until then; zero if it is.
    pub due_in: Duration,
}
