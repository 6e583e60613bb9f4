//! Explains why a job waits, computed on request; nothing is stored per job.

use crate::admission::{Ask, HeldReason, Suspect};
use crate::budget;
use crate::claim::limited;
use crate::engine::Engine;
use crate::kinds::KindEntry;
use rewheel_core::store::{FleetLimit, LimitOf, LimitWait, StoreResult};
use rewheel_core::{DueReason, HolderId, Job, Lease, Role, Status, Timestamp};
use std::time::Duration;

/// Why a live job does not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldJob {
    /// The reason.
    pub because: HeldReason,
    /// The latest end of the wait, by the store's clock, if it is known.
    pub until: Option<Timestamp>,
    /// The reason as a sentence.
    pub text: String,
}

/// Data that is read once for all requested jobs.
struct Seen {
    now: Timestamp,
    /// Whether any worker is connected.
    has_workers: bool,
    /// Whether another engine is alive. It may run kinds that this engine does not run.
    has_others: bool,
    limits: Vec<(FleetLimit, Option<LimitWait>)>,
}

impl Engine {
    /// Returns for each job why it waits, as far as this engine knows. `now` is the time of the store's clock. The result is
    /// `None` for a job that runs, has ended, will run at once, or only waits until it is due.
    ///
    /// A job that this engine has claimed and not started waits for a slot or a limit here, so it has a reason. If another
    /// holder has claimed a job, only that holder knows why the job waits, so the result is `None`.
    ///
    /// # Errors
    /// Returns the error of the store, which counts the fleet-wide limits.
    ///
    /// ```
    /// # use rewheel_engine::{Actor, KindChange, KindName, Report};
    /// # use rewheel_engine::{Engine, HeldReason};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = Engine::builder(rewheel_stores::connect("memory://").await?)
    /// #     .raw_handler("mail", |_| async { Report::Done }).start().await?;
    /// let mail = KindName::parse("mail")?;
    /// engine.change_kind(&mail, &KindChange::Pause, &Actor::new("ops")).await?;
    /// let job = engine.submit_raw("mail", Vec::new()).await?;
    /// let (job, now) = (engine.store().get(job.id).await?.unwrap(), engine.store().now().await?);
    /// let held = engine.held(&[&job], now).await?.remove(0).unwrap();
    /// assert_eq!(held.because, HeldReason::Paused);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn held(&self, jobs: &[&Job], now: Timestamp) -> StoreResult<Vec<Option<HeldJob>>> {
        let shared = self.shared();
        let mut limits = Vec::new();
        let (mut for_workers, mut for_others) = (false, false);
        let is_due = |job: &&&Job| matches!(job.status, Status::Scheduled) && job.due <= now;
        for job in jobs.iter().filter(is_due) {
            limited::add(&mut limits, &job.lane, shared.admission.fleet_rules(&job.lane));
            let kind = shared.kind(&job.lane.kind);
            for_workers |= kind.as_ref().is_some_and(|kind| kind.is_for_workers());
            for_others |= kind.is_none_or(|kind| kind.runner.is_none());
        }
        let waits = match limits.is_empty() {
            true => Vec::new(),
            false => shared.store.limit_waits(&limits).await?,
        };
        let mut holders = match for_workers || for_others {
            true => shared.store.holders().await?,
            false => Vec::new(),
        };
        holders.retain(|one| one.died.is_none() && one.id != shared.holder());
        let has_workers = holders.iter().any(|one| one.role != Role::Engine);
        let has_others = holders.iter().any(|one| one.role == Role::Engine);
        let limits = limits.into_iter().zip(waits).collect();
        let seen = Seen { now, has_workers, has_others, limits };
        Ok(jobs.iter().map(|job| self.held_one(job, &seen)).collect())
    }

    fn held_one(&self, job: &Job, seen: &Seen) -> Option<HeldJob> {
        match job.status {
            Status::Paused => {
                return Some(held(HeldReason::Hold, None, "an operator or a rule paused the job"));
            }
            Status::Scheduled => {}
            Status::Leased { holder, .. } if self.waits_here(job, holder) => {}
            Status::Leased { .. }
            | Status::Succeeded(_)
            | Status::Failed(_)
            | Status::Dead(_)
            | Status::Cancelled(_) => return None,
        }
        if let Some(group) = job.group.as_ref().filter(|group| group.blocked) {
            let text = format!("an earlier job of the group `{}` has not ended", group.key);
            return Some(held(HeldReason::Group, None, &text));
        }
        let kind = self.shared().kind(&job.lane.kind);
        let Some(kind) = kind.filter(|kind| kind.runner.is_some() || kind.is_for_workers()) else {
            let text = match seen.has_others {
                true => "this node cannot run jobs of this kind; another node may run the job",
                false => "no node can run jobs of this kind",
            };
            return Some(held(HeldReason::NoRunner, None, text));
        };
        let by_kind = of_kind(&kind);
        if by_kind.is_some() {
            return by_kind;
        }
        if job.due > seen.now {
            if job.because == DueReason::RetryAfter
                && let Some(by_host) = self.of_hosts(job, &kind, seen.now)
            {
                return Some(by_host);
            }
            let is_put_off = job.because == DueReason::RetryBudget;
            let text = "the retry budget of the kind is used up";
            return is_put_off.then(|| held(HeldReason::Budget, Some(job.due), text));
        }
        if kind.is_for_workers() && !seen.has_workers {
            return Some(held(HeldReason::NoRunner, None, "no worker for this kind is connected"));
        }
        let is_scheduled = matches!(job.status, Status::Scheduled);
        // A leased job has what it needs of the fleet.
        let of_fleet = is_scheduled.then(|| self.of_fleet(job, seen)).flatten();
        of_fleet
            .or_else(|| self.of_engine(job, &kind, seen.now))
            .or_else(|| self.of_hosts(job, &kind, seen.now))
    }

    /// Returns the reason by the hosts that a job may call.
    fn of_hosts(&self, job: &Job, kind: &KindEntry, now: Timestamp) -> Option<HeldJob> {
        let shared = self.shared();
        let targets = kind.runner.as_ref()?.targets(job);
        let until = shared.admission.targets_held(&job.lane.kind, &targets)?;
        let until = now.plus(until.since(shared.clock.now())).max(job.due);
        let text = "the called host asked its clients to wait";
        Some(held(HeldReason::Hold, Some(until), text))
    }

    /// Returns whether this engine holds a job and has not started it.
    fn waits_here(&self, job: &Job, holder: HolderId) -> bool {
        let (shared, lease) = (self.shared(), Lease { job: job.id, fence: job.fence });
        holder == shared.holder() && shared.leases.is_waiting(lease)
    }

    /// Returns the reason by fleet-wide limits.
    fn of_fleet(&self, job: &Job, seen: &Seen) -> Option<HeldJob> {
        let limits = seen.limits.iter().filter(|(limit, _)| limit.of.covers(&job.lane));
        let (limit, wait) =
            limits.filter_map(|(limit, wait)| Some((limit, wait.as_ref()?))).next()?;
        let is_tenant = matches!(limit.of, LimitOf::Tenant(_));
        let whose = if is_tenant { "tenant" } else { "kind" };
        Some(match wait {
            LimitWait::Concurrency => {
                let because =
                    if is_tenant { HeldReason::TenantLimit } else { HeldReason::Concurrency };
                let most = limit.concurrency_max.unwrap_or_default();
                let text = format!(
                    "the {whose} is at its limit of {most} running jobs in all nodes together"
                );
                HeldJob { because, until: None, text }
            }
            LimitWait::Rate(wait) => {
                let because =
                    if is_tenant { HeldReason::TenantLimit } else { HeldReason::RateLimit };
                let text = format!("the {whose} is at its rate limit for all nodes together");
                HeldJob { because, until: Some(seen.now.plus(*wait)), text }
            }
        })
    }

    /// Returns the reason by this engine's admission.
    fn of_engine(&self, job: &Job, kind: &KindEntry, now: Timestamp) -> Option<HeldJob> {
        let shared = self.shared();
        let ask = Ask {
            kind: &job.lane.kind,
            tenant: job.lane.tenant.as_ref(),
            is_retry: budget::is_retry(job),
            suspect: Suspect::No,
            is_within_fleet: true,
        };
        let found = match kind.is_for_workers() {
            true => shared.admission.why_for_workers(HolderId::from_bytes([0; 16]), &ask),
            false => shared.admission.why(&ask),
        }?;
        let left = found.until.map(|until| until.since(shared.clock.now()));
        // The store counts whole milliseconds.
        let until = left.map(|left| now.plus(left.max(Duration::from_millis(1))));
        let text = match found.because {
            HeldReason::RateLimit => "the kind is at its rate limit",
            HeldReason::Parked => {
                "too many attempts of this kind failed on this node; the node tries again soon"
            }
            HeldReason::Paused => "an operator paused the kind",
            HeldReason::TenantLimit => "a limit of the tenant is reached",
            HeldReason::Concurrency => "all slots for running jobs are in use",
            HeldReason::Budget => "the retry budget of the kind is used up",
            HeldReason::Hold => "the called service asked to wait",
            HeldReason::Group => "an earlier job of the group has not ended",
            HeldReason::NoRunner => "no node can run jobs of this kind",
        };
        Some(held(found.because, until, text))
    }
}

/// Returns a reason that applies to every job of a kind, due or not.
fn of_kind(kind: &KindEntry) -> Option<HeldJob> {
    if kind.is_paused() {
        return Some(held(HeldReason::Paused, None, "an operator paused the kind"));
    }
    let parked = kind.parked.as_ref()?;
    if let Some(until) = parked.until.filter(|_| kind.is_held()) {
        let text = parked.reason.clone();
        return Some(HeldJob { because: HeldReason::Hold, until: Some(until), text });
    }
    let text = match kind.forced {
        true => {
            format!("an operator parked the kind (opened its circuit breaker): {}", parked.reason)
        }
        false => format!(
            "the kind is parked (its circuit breaker is open) until a probe attempt succeeds: {}",
            parked.reason
        ),
    };
    Some(HeldJob { because: HeldReason::Parked, until: None, text })
}

fn held(because: HeldReason, until: Option<Timestamp>, text: &str) -> HeldJob {
    HeldJob { because, until, text: text.to_owned() }
}
