//! Lanes with limits over the fleet: when it is worth to ask for them again.

use crate::admission::FleetRule;
use crate::shared::Shared;
use rewheel::Moment;
use rewheel_core::Lane;
use rewheel_core::store::{FleetLimit, LimitOf, LimitWait};
use std::collections::HashMap;
use std::time::Duration;

/// The first wait after a claim found all slots of the fleet taken. It doubles up to the time between two polls: another engine
/// may free one at any time, and says so to none.
const FULL_FIRST: Duration = Duration::from_millis(20);

/// Limits that are remembered before those that are over are forgotten.
const REMEMBERED_MAX: usize = 10_000;

/// Limits that held up a claim.
#[derive(Debug, Default)]
pub(super) struct Limited {
    held: HashMap<LimitOf, Held>,
    /// When the first job is due of those that are claimed only then.
    due: Option<Moment>,
}

#[derive(Clone, Copy, Debug)]
struct Held {
    until: Moment,
    /// How long it was waited for a slot of the fleet.
    wait: Duration,
    /// How many attempts of the kind had ended here: one more may have freed a slot.
    ended: Option<u64>,
}

impl Limited {
    /// Takes note of what a claim found.
    pub(super) fn note(&mut self, shared: &Shared, waits: &[(FleetLimit, Option<LimitWait>)]) {
        let now = shared.clock.now();
        for (limit, wait) in waits {
            let held = match wait {
                None => {
                    self.held.remove(&limit.of);
                    continue;
                }
                // Counted in whole milliseconds by the store.
                Some(LimitWait::Rate(wait)) => {
                    let wait = wait.saturating_add(Duration::from_millis(1));
                    Held { until: now.plus(wait), wait: Duration::ZERO, ended: None }
                }
                Some(LimitWait::Concurrency) => {
                    let before = self.held.get(&limit.of).map_or(Duration::ZERO, |held| held.wait);
                    let wait = (2 * before).clamp(FULL_FIRST, shared.settings.poll.max(FULL_FIRST));
                    Held { until: now.plus(wait), wait, ended: Some(ended(shared, &limit.of)) }
                }
            };
            self.held.insert(limit.of.clone(), held);
        }
        if self.held.len() > REMEMBERED_MAX {
            self.held.retain(|_, held| held.until > now);
        }
    }

    /// Returns whether asking for a lane would be for nothing.
    pub(super) fn holds(&self, shared: &Shared, lane: &Lane, now: Moment) -> bool {
        if self.held.is_empty() {
            return false;
        }
        let kind = LimitOf::Kind(lane.kind.clone());
        let tenant = lane.tenant.clone().map(LimitOf::Tenant);
        let mut limits = std::iter::once(kind).chain(tenant);
        limits.any(|of| {
            let held = self.held.get(&of).filter(|held| now < held.until);
            held.is_some_and(|held| held.ended.is_none_or(|seen| seen == ended(shared, &of)))
        })
    }

    /// Takes note of when a job is due.
    pub(super) fn awaits(&mut self, due: Moment) {
        let due = due.plus(Duration::from_millis(1));
        self.due = Some(self.due.map_or(due, |known| known.min(due)));
    }

    pub(super) fn awaits_nothing(&mut self) {
        self.due = None;
    }

    /// Returns how long until the first of the limits is over.
    pub(super) fn next(&self, now: Moment) -> Option<Duration> {
        let ends = self.held.values().map(|held| held.until).chain(self.due);
        ends.filter(|end| *end > now).map(|end| end.since(now)).min()
    }
}

fn ended(shared: &Shared, of: &LimitOf) -> u64 {
    match of {
        LimitOf::Kind(kind) => shared.admission.ended(kind),
        // How many of a tenant have ended is not counted.
        LimitOf::Tenant(_) => 0,
    }
}

/// Adds the limits of a lane to those of a claim, each once.
pub(crate) fn add(limits: &mut Vec<FleetLimit>, lane: &Lane, [kind, tenant]: [FleetRule; 2]) {
    let of_kind = (LimitOf::Kind(lane.kind.clone()), kind);
    let of_tenant = lane.tenant.clone().map(|name| (LimitOf::Tenant(name), tenant));
    for (of, rule) in std::iter::once(of_kind).chain(of_tenant) {
        if !rule.is_none() && !limits.iter().any(|known| known.of == of) {
            let FleetRule { concurrency_max, interval } = rule;
            limits.push(FleetLimit { of, concurrency_max, interval });
        }
    }
}
