//! Takes in what attempts report when they end.

use super::super::answer::Suspect;
use super::super::bucket::Bucket;
use super::super::kind::Evidence;
use super::{KindId, Machine, Probed, ToldToWait};
use rewheel::{BreakerState, Moment};
use rewheel_core::{KindName, Tenant};
use std::time::Duration;

impl Machine {
    /// Frees the slot of an attempt.
    pub(in super::super) fn end(
        &mut self,
        kind: KindId,
        outages: u64,
        tenant: Option<&Tenant>,
        suspect: Suspect,
    ) {
        self.running = self.running.saturating_sub(1);
        self.freed += 1;
        if suspect != Suspect::No {
            self.suspects = self.suspects.saturating_sub(1);
            self.is_alone &= suspect != Suspect::Alone;
        }
        if let Some(kind) = self.kinds.get_mut(kind.0) {
            let old = kind.load.old();
            kind.load.end(outages);
            kind.ended += 1;
            self.old -= old - kind.load.old();
        }
        if let Some(tenant) = self.tenants.known(tenant) {
            tenant.load.end(0);
            tenant.ended += 1;
        }
    }

    /// Returns what an attempt took that was not made.
    pub(in super::super) fn refund(
        &mut self,
        kind: KindId,
        is_paid: bool,
        tenant: Option<&Tenant>,
    ) {
        if let Some(kind) = self.kind(kind) {
            kind.bucket.iter_mut().for_each(Bucket::refund);
            if let Some(budget) = kind.budget.as_mut().filter(|_| is_paid) {
                budget.undo();
            }
        }
        if let Some(tenant) = self.tenants.known(tenant) {
            tenant.refund_pass();
        }
    }

    /// Records what an attempt says about the dependency of its kind. Returns whether the fleet should know it.
    pub(in super::super) fn spoke(
        &mut self,
        id: KindId,
        evidence: Option<Evidence>,
        spoke: Option<Result<(), &str>>,
    ) -> bool {
        let slots = self.slots;
        let Some(kind) = self.kinds.get_mut(id.0) else { return false };
        if let Some(spoke) = spoke {
            kind.went(spoke.err(), slots);
        }
        match (evidence, spoke) {
            (Some(Evidence::Own(permit)), Some(Ok(()))) => {
                let was_open = kind.is_suspected().is_some_and(|seen| seen != BreakerState::Closed);
                permit.success();
                let is_closed = kind.is_suspected() == Some(BreakerState::Closed);
                if was_open && is_closed {
                    kind.load.ramp_up();
                }
                was_open
            }
            (Some(Evidence::Own(permit)), Some(Err(_))) => {
                let was_open = kind.is_suspected() == Some(BreakerState::Open);
                permit.failure();
                let is_open = kind.is_suspected() == Some(BreakerState::Open);
                if is_open && !was_open && !kind.is_parked() {
                    // Running attempts are from before the outage, and may hang. Later failures belong to a known outage: the
                    // attempts that run then may include the probe.
                    let old = kind.load.old();
                    kind.load.set_aside();
                    self.old += kind.load.old() - old;
                }
                is_open
            }
            // A probe without a result leaves the right to another.
            (Some(Evidence::Probe(generation)), spoke) => {
                let is_back = matches!(spoke, Some(Ok(())));
                let why = kind.health.as_ref().map(|health| health.why()).unwrap_or_default();
                let name = kind.name.clone();
                self.probed.push_back(Probed { kind: name, generation, is_back, why });
                true
            }
            (Some(Evidence::Own(_)) | None, _) => false,
        }
    }

    /// Returns which targets of a job may be called now, or how long to wait for the first of them.
    pub(in super::super) fn open_targets(
        &self,
        kind: &KindName,
        targets: &[String],
        now: Moment,
        chance: impl FnOnce() -> u64,
    ) -> Result<Vec<usize>, Duration> {
        let heeds = self.find(kind).is_some_and(|kind| kind.heeds_hosts());
        let is_open = |target: &String| !heeds || self.hosts.until(target, now).is_none();
        let open: Vec<usize> =
            (0..targets.len()).filter(|place| is_open(&targets[*place])).collect();
        if !open.is_empty() {
            return Ok(open);
        }
        let chance = chance();
        let waits = targets.iter().filter_map(|target| self.hosts.put_off(target, now, chance));
        waits.min().map_or(Ok(open), Err)
    }

    /// Returns the first hold of a kind that the store does not know yet.
    pub(in super::super) fn first_told(&self) -> Option<ToldToWait> {
        self.told.front().cloned()
    }

    pub(in super::super) fn forget_told(&mut self, told: &ToldToWait) {
        self.told.retain(|known| known != told);
    }

    /// Returns the first probe result that is not stored yet.
    pub(in super::super) fn first_probed(&self) -> Option<Probed> {
        self.probed.front().cloned()
    }

    pub(in super::super) fn forget_first_probed(&mut self) {
        self.probed.pop_front();
    }
}
