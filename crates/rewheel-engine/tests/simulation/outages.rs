//! Follows which attempts of an engine began before an outage of their dependency.
//!
//! Attempts that hang from before an outage do not keep their kind from testing whether the dependency is back: if only such
//! attempts run, one more may run beyond the limits.

use crate::model::{Model, Who};
use rewheel::BreakerState;
use rewheel_core::{Job, KindName};
use rewheel_engine::{Engine, KindHealth, RunnerKind};
use std::collections::BTreeMap;

/// What was last seen of the kinds with a breaker, in each engine.
#[derive(Debug, Default)]
pub(crate) struct Outages {
    engines: BTreeMap<Who, Engine>,
    seen: BTreeMap<(Who, KindName), KindHealth>,
}

/// Running attempts of one kind in one engine.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Load {
    /// Those from before an outage.
    pub(crate) old: usize,
    pub(crate) fresh: usize,
}

/// An attempt that begins, compared with the others of its kind in its engine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Begin {
    /// Whether it was admitted before an outage, and begins only now.
    pub(crate) is_old: bool,
    /// Whether all others that run are from before an outage, and there is one: then it may exceed the slots.
    pub(crate) is_beside_hung: bool,
    /// Whether it tests the dependency: then it may exceed the slots of its tenant. Those that hang may have ended here, and
    /// their results may not be stored yet.
    pub(crate) is_test: bool,
}

impl Model {
    /// An engine runs.
    pub(crate) fn watch(&self, who: Who, engine: Engine) {
        self.outages().engines.insert(who, engine);
    }

    /// An engine was killed.
    pub(crate) fn unwatch(&self, who: Who) {
        self.outages().engines.remove(&who);
    }

    /// Looks at the breakers of an engine. If one has opened, the running attempts are from before this outage. An engine learns
    /// of the others' outages with store calls, and of its own with attempts: so it is enough to look before each of them.
    pub(crate) fn look_at_breakers(&self, who: Who) {
        let mut begun = Vec::new();
        {
            let mut outages = self.outages();
            let Some(engine) = outages.engines.get(&who).cloned() else { return };
            for (name, settings) in &self.fleet.kinds {
                if settings.breaker.is_none() || settings.runner == RunnerKind::Worker {
                    continue;
                }
                let kind = KindName::parse(name).expect("a good name");
                let now = engine.health(&kind);
                let before = outages.seen.insert((who, kind.clone()), now);
                if is_new_outage(before.unwrap_or_default(), now) {
                    begun.push(kind);
                }
            }
        }
        for kind in begun {
            self.tell(&format!("an outage of {kind} begins for {who:?}"));
            self.grow_old(who, &kind);
        }
    }

    /// An attempt begins, which is not counted yet.
    pub(crate) fn begins(&self, who: Who, job: &Job) -> Begin {
        let kind = &job.lane.kind;
        let health = self.outages().seen.get(&(who, kind.clone())).copied().unwrap_or_default();
        let is_open = match health {
            KindHealth { parked: true, probing, .. } => !probing,
            KindHealth { breaker, .. } => breaker == Some(BreakerState::Open),
        };
        let is_testing = health.probing || health.breaker == Some(BreakerState::HalfOpen);
        let others = self.load_of(who, kind);
        // Nothing is admitted while the breaker is open, and only one attempt at a time while it is half open.
        let is_old = is_open || (is_testing && others.fresh > 0);
        Begin {
            is_old,
            is_beside_hung: others.fresh == 0 && others.old > 0,
            is_test: others.fresh == 0 && (is_testing || is_old),
        }
    }
}

/// Whether the kind was parked for all engines, or the breaker of this one opened. Unparking closes the breaker.
fn is_new_outage(before: KindHealth, now: KindHealth) -> bool {
    if now.parked {
        return !before.parked;
    }
    let is_down = |health: KindHealth| {
        matches!(health.breaker, Some(BreakerState::Open | BreakerState::HalfOpen))
    };
    is_down(now) && (before.parked || !is_down(before))
}
