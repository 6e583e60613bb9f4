//! Claims due jobs within fleet-wide limits.

use super::Weakness;
use super::world::World;
use rewheel_core::Timestamp;
use rewheel_core::store::{
    FleetLimit, FleetSlots, LimitUse, LimitedClaim, LimitedClaimed, StoreResult,
};

impl World {
    pub(super) fn claim_limited(
        &mut self,
        claim: &LimitedClaim<'_>,
        now: Timestamp,
    ) -> StoreResult<LimitedClaimed> {
        if !self.is_weak(Weakness::NoLiveHolder) {
            self.must_be_alive(claim.holder)?;
        }
        let used = claim.limits.iter().map(|limit| self.limit_use(limit)).collect();
        let mut slots = FleetSlots::new(claim, used, now);
        let mut claimed = Vec::new();
        for visit in claim.visits {
            let taken = slots.take(&visit.lane, visit.limit);
            let leased = self.visit(visit, claim.holder, now, taken, now);
            slots.give_back(&visit.lane, taken, leased.len());
            if leased.len() == taken {
                slots.has_more(&visit.lane);
            }
            claimed.extend(leased);
        }
        let (starts, at) = slots.starts();
        self.starts.extend(starts.into_iter().map(|of| (of.clone(), at)));
        Ok(LimitedClaimed { leased: claimed, waits: slots.waits() })
    }

    /// Returns how much of a limit is in use.
    pub(super) fn limit_use(&self, limit: &FleetLimit) -> LimitUse {
        let leased = self.jobs.values().filter(|row| row.holder().is_some());
        let counted = limit.concurrency_max.map_or(0, |max| max as usize);
        LimitUse {
            leased: leased.filter(|row| limit.of.covers(&row.job.lane)).take(counted).count(),
            last: self.starts.get(&limit.of).copied(),
        }
    }
}
