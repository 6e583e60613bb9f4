//! Claim requests.

use crate::id::HolderId;
use crate::job::{Job, Lane};
use crate::lease::Lease;
use crate::name::{KindName, Tenant};
use crate::timestamp::Timestamp;
use std::time::Duration;

/// A request for jobs that a holder can run now or soon.
#[derive(Clone, Debug)]
pub struct Claim<'a> {
    /// The claiming holder; must be alive.
    pub holder: HolderId,
    /// The lanes to visit, in this order; at most [`Limits::LANES_MAX`](crate::Limits::LANES_MAX).
    pub visits: &'a [Visit],
    /// How long before the due time of a job the holder may claim the job. Until the due time, the job waits in the holder's memory.
    pub horizon: Duration,
    /// Maximum number of jobs over all lanes.
    pub limit: usize,
}

/// One lane of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visit {
    /// The lane.
    pub lane: Lane,
    /// Maximum number of jobs.
    pub limit: usize,
    /// Attempt timeout of jobs that do not set their own timeout.
    pub attempt_timeout: Duration,
    /// Maximum attempt timeout that a job may set for itself. A job inserted by SQL may contain any timeout; a longer timeout counts as this maximum.
    pub attempt_timeout_ceiling: Duration,
    /// Additional time after the attempt timeout, which counts from the due time, or from the claim if that is later. When it has passed, the job is overdue: the holder must have settled it by then.
    pub grace: Duration,
}

impl Visit {
    /// Returns the attempt timeout of a job; `own` is the timeout that the job itself sets.
    ///
    /// ```
    /// # use rewheel_core::{KindName, Lane, Priority, Shard};
    /// # use rewheel_core::store::Visit;
    /// # use std::time::Duration;
    /// # let kind = KindName::parse("mail")?;
    /// # let lane = Lane { kind, tenant: None, priority: Priority::DEFAULT, shard: Shard::NONE };
    /// let (timeout, hour) = (Duration::from_secs(30), Duration::from_secs(3_600));
    /// let visit = Visit {
    ///     lane,
    ///     limit: 1,
    ///     attempt_timeout: timeout,
    ///     attempt_timeout_ceiling: hour,
    ///     grace: timeout,
    /// };
    /// assert_eq!(visit.timeout(None), timeout);
    /// assert_eq!(visit.timeout(Some(Duration::MAX)), hour);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn timeout(&self, own: Option<Duration>) -> Duration {
        own.map_or(self.attempt_timeout, |own| own.min(self.attempt_timeout_ceiling))
    }
}

/// The jobs that count against one limit. Claims lock limits in this order, so that they cannot deadlock.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LimitOf {
    /// All jobs of a kind.
    Kind(KindName),
    /// All jobs of a tenant.
    Tenant(Tenant),
}

impl LimitOf {
    /// Returns the type of the limit: `kind` or `tenant`.
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

    /// Returns whether the jobs of a lane count against this limit.
    pub fn covers(&self, lane: &Lane) -> bool {
        match self {
            LimitOf::Kind(kind) => lane.kind == *kind,
            LimitOf::Tenant(tenant) => lane.tenant.as_ref() == Some(tenant),
        }
    }
}

/// A fleet-wide limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetLimit {
    /// The jobs that count.
    pub of: LimitOf,
    /// Maximum number of leased jobs of all holders together. Zero allows none.
    pub concurrency_max: Option<u32>,
    /// The minimum time between two starts, for a slow rate; at most
    /// [`Limits::FLEET_INTERVAL_MAX`](crate::Limits::FLEET_INTERVAL_MAX). A start is the lease of a job by a limited claim.
    pub interval: Option<Duration>,
}

/// A claim from lanes whose kind or tenant has a fleet-wide limit. Such a claim returns only jobs that are due now.
#[derive(Clone, Debug)]
pub struct LimitedClaim<'a> {
    /// The claiming holder; must be alive.
    pub holder: HolderId,
    /// The lanes to visit, in this order; at most [`Limits::LANES_MAX`](crate::Limits::LANES_MAX).
    pub visits: &'a [Visit],
    /// Maximum number of jobs over all lanes.
    pub limit: usize,
    /// The limits to enforce. If a lane is under several limits, all of them apply. If a lane is under no limit, it is
    /// claimed without a limit.
    pub limits: &'a [FleetLimit],
}

/// Result of a limited claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitedClaimed {
    /// The leased jobs, in the order of the visits.
    pub leased: Vec<Leased>,
    /// For each limit of the claim, in order: why no more jobs may be leased under it now. `None` if more may be leased, or if
    /// its lanes have no more due jobs.
    pub waits: Vec<Option<LimitWait>>,
}

/// Why a job waits for a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitWait {
    /// The maximum number of jobs is leased.
    Concurrency,
    /// The next start is allowed after this time.
    Rate(Duration),
}

/// A holder with a free slot, to which an insert may lease new jobs directly.
///
/// The insert leases a job if the holder is alive, the kind is neither paused nor parked, the job is due and no other job of its
/// lane is due. Applies to all jobs of an insert. A caller that can run only some of the jobs must use two inserts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Direct {
    /// The holder.
    pub holder: HolderId,
    /// Attempt timeout of jobs that do not set their own timeout.
    pub attempt_timeout: Duration,
    /// Additional time after the attempt timeout, which counts from the due time, or from the claim if that is later. When it has passed, the job is overdue.
    pub grace: Duration,
}

/// A leased job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leased {
    /// The job, with its payload; its fence is the fence of the lease.
    pub job: Job,
    /// Time until the job is due; zero if it is due.
    pub due_in: Duration,
    /// Time until the deadline.
    pub deadline_in: Option<Duration>,
}

impl Leased {
    /// Returns the lease, which every write of the holder contains.
    pub const fn lease(&self) -> Lease {
        Lease { job: self.job.id, fence: self.job.fence }
    }
}

/// A lane that has scheduled jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneHead {
    /// The lane.
    pub lane: Lane,
    /// When the first of its jobs is due.
    pub due: Timestamp,
    /// Time until this job is due; zero if it is due.
    pub due_in: Duration,
}
