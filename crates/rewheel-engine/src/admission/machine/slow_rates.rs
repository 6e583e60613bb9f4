//! Reserves slots for jobs of slow rates.
//!
//! The claim of a job with a slow rate uses up a start in the store, which cannot be returned: without a free slot the start
//! would be lost. So a claim takes only as many of these jobs as there are free slots, and other jobs do not use these slots.

use super::super::answer::Ask;
use super::super::kind::FleetRule;
use super::super::load::Load;
use super::{KindId, Machine};
use rewheel::Moment;
use rewheel_core::Tenant;
use std::time::Duration;

/// How long the next free slot is kept for a job of a slow rate, after a claim found none for it. The end of an attempt leads to
/// the next claim, so it comes well within this time.
const KEPT: Duration = Duration::from_secs(2);

impl Machine {
    /// Returns how many jobs of a slow rate a claim may take. If there is no slot, the next one is kept: otherwise a busy engine
    /// would never run such jobs.
    pub(super) fn promise(&mut self, wanted: usize, now: Moment) -> usize {
        let free = self.slots.saturating_sub(self.running + self.promised);
        let jobs = wanted.min(free);
        if wanted > 0 {
            self.kept_until = (jobs == 0).then(|| now.plus(KEPT));
        }
        jobs
    }

    /// Changes the counts of a kind and of a tenant.
    pub(super) fn change_loads(
        &mut self,
        kind: Option<KindId>,
        tenant: Option<&Tenant>,
        change: impl Fn(&mut Load),
    ) {
        let mut promised = self.promised;
        let mut one = |fleet: FleetRule, load: &mut Load| {
            let needed = fleet.slots_for(load);
            change(load);
            promised = promised + fleet.slots_for(load) - needed;
        };
        if let Some(kind) = kind.and_then(|kind| self.kinds.get_mut(kind.0)) {
            one(kind.fleet, &mut kind.load);
        }
        if let Some(tenant) = self.tenants.known(tenant) {
            one(tenant.fleet, &mut tenant.load);
        }
        self.promised = promised;
    }

    /// Returns how many free slots a job may not have, because they are promised to others.
    pub(super) fn promised_to_others(&mut self, ask: &Ask<'_>, now: Moment) -> usize {
        let is_kept = self.kept_until.is_some_and(|until| now < until);
        if self.promised == 0 && !is_kept {
            return 0;
        }
        let of_kind = self.find(ask.kind).is_some_and(|kind| kind.fleet.is_slow());
        let of_tenant = self.tenants.of(ask.tenant, now).fleet.is_slow();
        match ask.is_within_fleet && (of_kind || of_tenant) {
            true => 0,
            false => self.promised + usize::from(is_kept),
        }
    }
}
