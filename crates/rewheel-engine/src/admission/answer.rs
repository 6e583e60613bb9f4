//! The answers of admission: run, or the reason to wait.

use super::ticket::Ticket;
use rewheel::Moment;
use std::time::Duration;

/// Why a due job does not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HeldReason {
    /// The rate of its kind is used up.
    RateLimit,
    /// Its kind is parked, the breaker of its kind is open, or the kind starts slowly after an outage.
    Parked,
    /// An operator paused its kind.
    Paused,
    /// Its tenant has reached its rate or concurrency limit.
    TenantLimit,
    /// All slots of its kind or of the engine are in use.
    Concurrency,
    /// The retry budget of its kind is used up.
    Budget,
    /// The called service asked to wait, or an operator paused the job.
    Hold,
    /// It waits for other jobs of its group.
    Group,
    /// No engine and no worker runs its kind.
    NoRunner,
}

impl HeldReason {
    /// Every reason.
    pub const ALL: [HeldReason; 9] = [
        HeldReason::RateLimit,
        HeldReason::Parked,
        HeldReason::Paused,
        HeldReason::TenantLimit,
        HeldReason::Concurrency,
        HeldReason::Budget,
        HeldReason::Hold,
        HeldReason::Group,
        HeldReason::NoRunner,
    ];

    /// Returns the name used in JSON.
    ///
    /// ```
    /// use rewheel_engine::HeldReason;
    ///
    /// assert_eq!(HeldReason::RateLimit.as_str(), "rate_limit");
    /// ```
    pub const fn as_str(self) -> &'static str {
        match self {
            HeldReason::RateLimit => "rate_limit",
            HeldReason::Parked => "parked",
            HeldReason::Paused => "paused",
            HeldReason::TenantLimit => "tenant_limit",
            HeldReason::Concurrency => "concurrency",
            HeldReason::Budget => "budget",
            HeldReason::Hold => "hold",
            HeldReason::Group => "group",
            HeldReason::NoRunner => "no_runner",
        }
    }
}

/// A job does not run now: the reason, and until when, if known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) because: HeldReason,
    pub(crate) until: Option<Moment>,
}

impl Held {
    pub(super) const fn by(because: HeldReason) -> Held {
        Held { because, until: None }
    }

    pub(super) fn for_a_while(because: HeldReason, now: Moment, wait: Duration) -> Held {
        Held { because, until: Some(now.plus(wait)) }
    }
}

/// Whether a job may run now.
#[derive(Debug)]
pub(crate) enum Admit {
    /// It may run. Boxed, because a busy engine mostly gives the other answers.
    Run(Box<Ticket>),
    /// Not yet: it waits here.
    Wait(Held),
    /// Not here, or not soon: it goes back to the store, and no other job of its kind or tenant is claimed until then.
    Return(Held),
    /// Its retry has no grant: it goes back to the store, with a later due time.
    PutOff(Held),
}

/// Why an attempt was refused, and what happens to the job.
#[derive(Clone, Copy, Debug)]
pub(super) enum Refused {
    Wait(Held),
    /// Another suspect job runs. Later suspects wait too, otherwise a job that must run alone would never start.
    WaitAlone,
    Return(Held),
    PutOff(Held),
}

impl Refused {
    /// Returns why the job waits.
    pub(super) const fn held(&self) -> Held {
        match self {
            Refused::Wait(held) | Refused::Return(held) | Refused::PutOff(held) => *held,
            Refused::WaitAlone => Held::by(HeldReason::Concurrency),
        }
    }
}

/// A job that wants to run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask<'a> {
    pub(crate) kind: &'a rewheel_core::KindName,
    pub(crate) tenant: Option<&'a rewheel_core::Tenant>,
    /// Whether its attempt is a retry, which needs a grant of the budget.
    pub(crate) is_retry: bool,
    pub(crate) suspect: Suspect,
    /// Whether the claim that leased it enforced the fleet-wide limits.
    pub(crate) is_within_fleet: bool,
}

/// Whether a job may have crashed a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Suspect {
    No,
    /// It may run at the same time as other suspect jobs.
    Together,
    /// One more takeover makes it a dead letter: it runs without other suspect jobs, so that it is not blamed for their crash.
    Alone,
}
