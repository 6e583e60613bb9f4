//! Retry budget of a kind: limits retries to a small share of first attempts in the whole fleet.
//!
//! [`admission`](crate::admission) keeps one engine's share of the budget. This module contains the settings, the heartbeat's
//! request for grants, and the handling of a retry without a grant.

use crate::admission::Fact;
use crate::rate::Rate;
use crate::settings::SettingError;
use crate::shared::{Finished, Shared, Waiting};
use rewheel_core::store::{AttemptTiming, Settlement, StoreError};
use rewheel_core::{Decision, DueReason, Floor, Job, RetryPool};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Retry budget of a kind for the whole fleet.
///
/// ```
/// use rewheel_engine::BudgetSettings;
///
/// let budget: BudgetSettings = serde_json::from_str(r#"{"ratio":0.2}"#)?;
/// assert_eq!((budget.ratio, budget.floor.to_string().as_str()), (0.2, "10/s"));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BudgetSettings {
    /// Number of retries that each first attempt adds to the budget, 0 to 1.
    pub ratio: f64,
    /// Number of retries that are always allowed, independent of traffic.
    pub floor: Rate,
}

impl Default for BudgetSettings {
    fn default() -> BudgetSettings {
        BudgetSettings { ratio: 0.1, floor: Rate::new(10, Duration::from_secs(1)) }
    }
}

impl BudgetSettings {
    pub(crate) fn check(&self) -> Result<(), SettingError> {
        let wrong = |name, why: &'static str| Err(SettingError { name, why: why.into() });
        if !(0.0..=1.0).contains(&self.ratio) {
            return wrong(
                "retry_budget.ratio",
                "must be 0 to 1: 0.1 allows one retry per ten first attempts",
            );
        }
        let Floor { retries, period } = self.floor();
        if retries > Floor::RETRIES_MAX {
            return wrong("retry_budget.floor", "must be 1000000 or fewer");
        }
        if period > Duration::from_secs(60) * retries {
            // With none at all, a retry could wait forever.
            return wrong("retry_budget.floor", "must be `1/m` or more");
        }
        Ok(())
    }

    pub(crate) fn floor(&self) -> Floor {
        let (retries, period) = self.floor.parts();
        Floor { retries, period }
    }

    /// Returns what a first attempt earns, in units of a retry.
    pub(crate) fn earns(&self) -> u64 {
        (self.ratio.clamp(0.0, 1.0) * RetryPool::RETRY as f64).round() as u64
    }
}

/// Returns whether an earlier attempt was made since the job was last redriven. A job that an operator runs now is not a retry.
pub(crate) fn is_retry(job: &Job) -> bool {
    job.attempt > job.attempts_before && job.because != DueReason::Person
}

impl Shared {
    /// Reports to the store what was earned, and takes its grants: one call for all kinds with a budget, none without such kinds.
    /// If the store does not answer, nothing is granted.
    pub(crate) async fn ask_for_grants(&self) {
        let asks = self.admission.retry_asks();
        if asks.is_empty() {
            return;
        }
        match self.store.grant(&asks).await {
            Ok(granted) => {
                for (ask, retries) in asks.into_iter().zip(granted) {
                    self.admission.apply(Fact::Granted { kind: ask.kind, retries });
                }
            }
            Err(StoreError::Unavailable(error)) => {
                tracing::debug!(%error, "failed to read the retry budget: retries wait until the store answers");
                self.admission.unsay(&asks);
            }
            // The store may have received the report: it must not count twice.
            Err(error) => {
                tracing::debug!(%error, "failed to read the retry budget: retries wait until the store answers")
            }
        }
    }

    /// Returns a due job to the store without starting it, to come back when its retry may be granted.
    pub(crate) fn put_off(&self, mut waiting: Waiting) {
        let now = self.clock.now();
        let deadline = waiting.deadline.map(|deadline| deadline.since(now));
        let (kind, chance) = (&waiting.job.lane.kind, self.random.next());
        // A grant that arrived meanwhile is used at once.
        let after = self.admission.put_off(kind, Duration::ZERO, deadline, chance);
        let after = after.unwrap_or(Duration::ZERO);
        waiting.in_hand = None;
        let settlement = Settlement {
            lease: waiting.lease(),
            decision: Decision::Snooze { after, because: DueReason::RetryBudget },
            ran: AttemptTiming::default(),
            failure: None,
            hold: Duration::ZERO,
            keep: self.retain_ended(),
            follow_ups: Vec::new(),
            code: None,
            result: None,
            payload: None,
        };
        // The receiver ends only with the engine.
        let _ = self.signals.to_settle.send(Finished { waiting, settlement, slot: None });
    }

    /// Lets a retry without a grant wait longer, in the store: another engine may have a grant for it.
    pub(crate) fn afford(&self, decision: &mut Decision, waiting: &Waiting) {
        let Decision::Retry { after, sticky, because } = decision else { return };
        let now = self.clock.now();
        let deadline = waiting.deadline.map(|deadline| deadline.since(now));
        let (kind, chance) = (&waiting.job.lane.kind, self.random.next());
        let Some(wait) = self.admission.put_off(kind, *after, deadline, chance) else { return };
        if wait > *after {
            (*after, *sticky, *because) = (wait, false, DueReason::RetryBudget);
        }
    }
}
