//! Decides when to claim again from a lane that a fleet-wide limit held back.

use crate::admission::FleetRule;
use crate::shared::Shared;
use rewheel::Moment;
use rewheel_core::Lane;
use rewheel_core::store::{FleetLimit, LimitOf, LimitWait};
use std::collections::HashMap;
use std::time::Duration;

/// The first delay after a claim found all slots of the fleet taken. It doubles up to the poll interval: another engine may free
/// a slot at any time, without a notification.
const FULL_FIRST: Duration = Duration::from_millis(20);

/// Number of limits to keep before those that have passed are removed.
const REMEMBERED_MAX: usize = 10_000;

/// Limits that held back a claim.
#[derive(Debug, Default)]
pub(super) struct Limited {
    held: HashMap<LimitOf, Held>,
    /// When the first job is due of those that are claimed only when due.
    due: Option<Moment>,
}

#[derive(Clone, Copy, Debug)]
struct Held {
    /// The limit at that time: once it changes, the wait is over.
    rule: FleetRule,
    until: Moment,
    /// How long it has waited for a slot of the fleet.
    wait: Duration,
    /// Number of attempts under the limit that had ended here before the claim: one more may have freed a slot.
    ended: Option<u64>,
}

/// A limit of a claim in progress, and the number of attempts under it that had ended here by then.
pub(super) type Asked = (FleetLimit, u64);

/// What a claim found out about a limit.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) asked: Asked,
    pub(super) wait: Option<LimitWait>,
    /// Whether it leased jobs under the limit.
    pub(super) has_leased: bool,
}

impl Limited {
    /// Records what a claim found out.
    pub(super) fn note(&mut self, shared: &Shared, all: &[Found]) {
        let now = shared.clock.now();
        for Found { asked: (limit, ended), wait, has_leased } in all {
            let rule =
                FleetRule { concurrency_max: limit.concurrency_max, interval: limit.interval };
            let held = match wait {
                None => {
                    self.held.remove(&limit.of);
                    continue;
                }
                // The store counts in whole milliseconds.
                Some(LimitWait::Rate(wait)) => {
                    let until = now.plus(wait.saturating_add(Duration::from_millis(1)));
                    Held { rule, until, wait: Duration::ZERO, ended: None }
                }
                Some(LimitWait::Concurrency) => {
                    let before = self.held.get(&limit.of).filter(|_| !has_leased);
                    let before = before.map_or(Duration::ZERO, |held| held.wait);
                    let wait = (2 * before).clamp(FULL_FIRST, shared.settings.poll.max(FULL_FIRST));
                    Held { rule, until: now.plus(wait), wait, ended: Some(*ended) }
                }
            };
            self.held.insert(limit.of.clone(), held);
        }
        if self.held.len() > REMEMBERED_MAX {
            self.held.retain(|_, held| held.until > now);
        }
    }

    /// Returns whether claiming from a lane would return nothing.
    pub(super) fn holds(&self, shared: &Shared, lane: &Lane, now: Moment) -> bool {
        if self.held.is_empty() {
            return false;
        }
        let [of_kind, of_tenant] = shared.admission.fleet_rules(lane);
        let kind = (LimitOf::Kind(lane.kind.clone()), of_kind);
        let tenant = lane.tenant.clone().map(|tenant| (LimitOf::Tenant(tenant), of_tenant));
        std::iter::once(kind).chain(tenant).any(|(of, rule)| {
            let held = self.held.get(&of).filter(|held| held.rule == rule && now < held.until);
            held.is_some_and(|held| held.ended.is_none_or(|seen| seen == ended(shared, &of)))
        })
    }

    /// Records when a job is due.
    pub(super) fn awaits(&mut self, due: Moment) {
        let due = due.plus(Duration::from_millis(1));
        self.due = Some(self.due.map_or(due, |known| known.min(due)));
    }

    pub(super) fn awaits_nothing(&mut self) {
        self.due = None;
    }

    /// Returns how long until the first of the limits has passed.
    pub(super) fn next(&self, now: Moment) -> Option<Duration> {
        let ends = self.held.values().map(|held| held.until).chain(self.due);
        ends.filter(|end| *end > now).map(|end| end.since(now)).min()
    }
}

/// Returns the number of attempts under a limit that have ended here.
pub(super) fn ended(shared: &Shared, of: &LimitOf) -> u64 {
    match of {
        LimitOf::Kind(kind) => shared.admission.ended(kind),
        LimitOf::Tenant(tenant) => shared.admission.ended_of(tenant),
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
