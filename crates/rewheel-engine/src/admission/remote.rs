//! Admission of remote workers.
//!
//! The slots of a remote worker are its leases in the store, so it has no tickets. It takes rate tokens when it claims. The
//! engine that settles a result counts it for the breaker; this may be another engine than the engine of the claim.

use super::Admission;
use super::answer::{Ask, Held, HeldReason};
use super::budget::Budget;
use super::kind::{Condition, Evidence, FleetRule, KindState};
use rewheel::Moment;
use rewheel_core::{Failure, HolderId, KindName, Lane};
use std::collections::VecDeque;
use std::time::Duration;

/// What a worker may claim from a lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WorkerGrant {
    pub(crate) jobs: usize,
    /// Whether its one job is the probe of a parked kind.
    pub(crate) is_probe: bool,
    /// Fleet-wide limits: of its kind and of its tenant.
    pub(crate) fleet: [FleetRule; 2],
}

/// Attempts that workers started while their kind recovers from an outage. One counts until it is settled here, or for
/// [`Recovery::LAPSE`]: another node may settle it, or its worker may die.
#[derive(Debug, Default)]
pub(super) struct Recovery {
    starts: VecDeque<Moment>,
}

impl Recovery {
    /// How long an attempt counts that is not settled. Recovery goes on without its result.
    pub(super) const LAPSE: Duration = Duration::from_secs(10);

    /// Returns how many more attempts may start, where `most` may run.
    pub(super) fn room(&mut self, most: usize, now: Moment) -> usize {
        while self.starts.front().is_some_and(|start| now.since(*start) >= Self::LAPSE) {
            self.starts.pop_front();
        }
        most.saturating_sub(self.starts.len())
    }

    fn start(&mut self, attempts: usize, now: Moment) {
        self.starts.extend(std::iter::repeat_n(now, attempts));
    }

    fn end(&mut self, attempts: usize) {
        self.starts.drain(..attempts.min(self.starts.len()));
    }
}

/// How an attempt of a worker was paid for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Paid {
    /// It needs no grant.
    Nothing,
    /// It used a grant.
    WithGrant,
    /// It needs a grant, and there is none: it may not run.
    NotYet,
}

/// How many jobs a worker has: of the kind and of the tenant of a lane.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WorkerHas {
    pub(crate) of_kind: usize,
    pub(crate) of_tenant: usize,
}

impl Admission {
    /// Returns how many jobs of a lane a worker may claim, at most `wanted`, and takes rate tokens for them.
    pub(crate) fn worker_takes(
        &self,
        worker: HolderId,
        lane: &Lane,
        wanted: usize,
        has: WorkerHas,
    ) -> WorkerGrant {
        let now = self.now();
        let mut machine = self.machine();
        let Some(kind) = machine.find_mut(&lane.kind) else { return WorkerGrant::default() };
        kind.wake(now);
        let wanted = match kind.condition(worker, now) {
            Condition::Closed(..) => 0,
            // The store gives a prober one job.
            Condition::Probing if kind.is_parked() => wanted.min(1),
            // A kind whose breaker is half open, or that recovers from an outage, gets few attempts, however many workers ask.
            Condition::Probing => wanted.min(kind.recovery.room(1, now)),
            Condition::Well => wanted.min(kind.worker_room(has.of_kind, now)),
        };
        let is_probe = kind.is_probed_by(worker);
        let (of_kind, passes) = (kind.fleet, kind.bucket.as_mut().map(|bucket| bucket.whole(now)));
        let tenant = machine.tenants.of(lane.tenant.as_ref(), now);
        let of_tenant = tenant.fleet;
        let most = tenant.concurrency_max().unwrap_or(usize::MAX).saturating_sub(has.of_tenant);
        let jobs = wanted.min(passes.unwrap_or(usize::MAX)).min(most).min(tenant.passes(now));
        (0..jobs).for_each(|_| tenant.take_pass());
        if let Some(kind) = machine.find_mut(&lane.kind) {
            if let Some(bucket) = &mut kind.bucket {
                (0..jobs).for_each(|_| bucket.take());
            }
            if kind.is_recovering() {
                kind.recovery.start(jobs, now);
            }
        }
        WorkerGrant { jobs, is_probe, fleet: [of_kind, of_tenant] }
    }

    /// Returns why a worker would get no job of a lane now, and until when. Takes nothing.
    pub(crate) fn why_for_workers(&self, worker: HolderId, ask: &Ask<'_>) -> Option<Held> {
        let now = self.now();
        let mut machine = self.machine();
        let kind = machine.find_mut(ask.kind)?;
        if let Condition::Closed(because, left) = kind.condition(worker, now) {
            return Some(Held { because, until: left.map(|left| now.plus(left)) });
        }
        let rate = kind.bucket.as_mut().map(|bucket| bucket.wait(now));
        if let Some(wait) = rate.filter(|wait| !wait.is_zero()) {
            return Some(Held::for_a_while(HeldReason::RateLimit, now, wait));
        }
        let tenant = machine.tenants.of(ask.tenant, now);
        let refused = tenant.refuses(usize::MAX, (true, true), now)?;
        Some(refused.held())
    }

    /// Returns the generation of a parked kind that the next worker may probe. Returns it only once: the worker then takes the
    /// right in the store.
    pub(crate) fn takes_probe(&self, kind: &KindName) -> Option<u64> {
        let mut machine = self.machine();
        let kind = machine.find_mut(kind).filter(|kind| kind.is_parked())?;
        std::mem::take(&mut kind.is_probe_due).then(|| kind.generation())
    }

    /// Returns whether a worker's claim needs to know how many jobs the worker has.
    pub(crate) fn counts_workers<'k>(&self, mut kinds: impl Iterator<Item = &'k KindName>) -> bool {
        let machine = self.machine();
        kinds.any(|kind| machine.find(kind).is_some_and(KindState::counts_workers))
    }

    /// Returns the rate tokens of jobs that were not claimed.
    pub(crate) fn worker_returns(&self, lane: &Lane, jobs: usize) {
        let mut machine = self.machine();
        if let Some(id) = machine.id_of(&lane.kind) {
            (0..jobs).for_each(|_| machine.refund(id, false, lane.tenant.as_ref()));
            machine.kind(id).into_iter().for_each(|kind| kind.recovery.end(jobs));
        }
    }

    /// Pays for an attempt of a worker: a first attempt earns, a retry needs a grant.
    pub(crate) fn worker_pays(&self, worker: HolderId, kind: &KindName, is_retry: bool) -> Paid {
        let now = self.now();
        let mut machine = self.machine();
        let Some(kind) = machine.find_mut(kind) else { return Paid::Nothing };
        let is_probe = kind.condition(worker, now) == Condition::Probing;
        match (&mut kind.budget, is_retry) {
            (None, _) => Paid::Nothing,
            (Some(budget), true) => match budget.pay() {
                true => Paid::WithGrant,
                false if is_probe => Paid::Nothing,
                false => Paid::NotYet,
            },
            (Some(budget), false) => {
                budget.earn();
                Paid::Nothing
            }
        }
    }

    /// Returns the grant of a retry that its worker did not get.
    pub(crate) fn worker_unpays(&self, kind: &KindName) {
        let mut machine = self.machine();
        machine.find_mut(kind).and_then(|kind| kind.budget.as_mut()).map(Budget::undo);
    }

    /// Records what a worker's attempt says about the dependency of its kind.
    pub(crate) fn worker_spoke(
        &self,
        worker: HolderId,
        kind: &KindName,
        spoke: Option<&Result<(), Failure>>,
    ) {
        let failure = spoke.and_then(|spoke| spoke.as_ref().err()).map(ToString::to_string);
        let spoke = spoke.map(|_| failure.as_deref().map_or(Ok(()), Err));
        let mut machine = self.machine();
        let Some(id) = machine.id_of(kind) else { return };
        let slots = machine.slots();
        let Some(kind) = machine.kind(id) else { return };
        kind.recovery.end(1);
        if let (Some(budget), Some(spoke)) = (&mut kind.budget, spoke) {
            budget.note(spoke.is_ok());
        }
        if spoke.is_none() {
            // Its dependency works.
            kind.load.succeeded(slots);
        }
        let evidence = if kind.is_probed_by(worker) {
            Some(Evidence::Probe(kind.generation()))
        } else if kind.is_parked() {
            // It began before the kind was parked.
            None
        } else {
            kind.judged().and_then(|health| health.begin()).map(Evidence::Own)
        };
        let is_news = machine.spoke(id, evidence, spoke);
        drop(machine);
        if is_news {
            self.parking.notify_one();
        }
    }

    /// Records that a retry of a worker succeeded. The engine that settles does not know which attempts were granted, because
    /// another engine may have done that.
    pub(crate) fn worker_succeeded(&self, kind: &KindName) {
        let mut machine = self.machine();
        machine.find_mut(kind).and_then(|kind| kind.budget.as_mut()).map(Budget::refund);
    }
}

#[cfg(test)]
mod tests {
    use super::Recovery;
    use rewheel::{Clock, ManualClock};

    #[test]
    fn a_ramp_holds_for_all_workers_and_goes_on_without_those_that_died() {
        let manual = ManualClock::new();
        let clock = Clock::from(&manual);
        let mut recovery = Recovery::default();
        assert_eq!(recovery.room(1, clock.now()), 1);
        recovery.start(1, clock.now());
        assert_eq!(recovery.room(1, clock.now()), 0, "a second worker waits");
        recovery.end(1);
        assert_eq!(recovery.room(2, clock.now()), 2, "a success made the ramp larger");
        recovery.start(2, clock.now());
        manual.advance(Recovery::LAPSE);
        assert_eq!(recovery.room(2, clock.now()), 2, "their results never came");
    }
}
