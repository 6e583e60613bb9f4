//! Retry budget of a kind: limits retries to a small share of first attempts in the whole fleet.
//!
//! What one engine has of the budget is kept by [`admission`](crate::admission); here are its settings, the heartbeat's call that
//! asks for grants, and what becomes of a retry that cannot be paid for.

use crate::admission::Fact;
use crate::rate::Rate;
use crate::settings::SettingError;
use crate::shared::{Finished, Shared, Waiting};
use rewheel_core::store::{Ran, Settlement, StoreError};
use rewheel_core::{Because, Decision, Floor, Job, RetryPool};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How many retries a kind may make, in the whole fleet.
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
    /// How many retries each first attempt earns, 0 to 1.
    pub ratio: f64,
    /// How many retries there are however little is tried.
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
                "must be 0 to 1: 0.1 allows one retry per ten attempts",
            );
        }
        let Floor { retries, period } = self.floor();
        if retries > Floor::RETRIES_MAX {
            return wrong("retry_budget.floor", "must be 1000000 or fewer");
        }
        if period > Duration::from_secs(60) * retries {
            // With none at all, a retry could wait for ever.
            return wrong("retry_budget.floor", "must be `1/m` or more");
        }
        Ok(())
    }

    pub(crate) fn floor(&self) -> Floor {
        let (retries, period) = self.floor.parts();
        Floor { retries, period }
    }

    /// What a first attempt earns, in parts of a retry.
    pub(crate) fn earns(&self) -> u64 {
        (self.ratio.clamp(0.0, 1.0) * RetryPool::RETRY as f64).round() as u64
    }
}

/// Whether an attempt was made before that a person has not judged since: what a person wants to run now runs now.
pub(crate) fn is_retry(job: &Job) -> bool {
    job.attempt > job.attempts_before && job.because != Because::Person
}

impl Shared {
    /// Says in the store what was earned, and takes what it grants: one call for all kinds that have a budget, none where no kind
    /// has one. A store that does not answer grants nothing.
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
                tracing::debug!(%error, "failed to read the retry budget: no retries granted");
                self.admission.unsay(&asks);
            }
            // What was earned may have been heard: it must not count twice.
            Err(error) => {
                tracing::debug!(%error, "failed to read the retry budget: no retries granted")
            }
        }
    }

    /// Sends a job that is due back to the store, unstarted, to come back when its retry may be paid for.
    pub(crate) fn put_off(&self, mut waiting: Waiting) {
        let now = self.clock.now();
        let deadline = waiting.deadline.map(|deadline| deadline.since(now));
        let (kind, chance) = (&waiting.job.lane.kind, self.random.next());
        // A grant that came meanwhile pays for it at once.
        let after = self.admission.put_off(kind, Duration::ZERO, deadline, chance);
        let after = after.unwrap_or(Duration::ZERO);
        waiting.in_hand = None;
        let settlement = Settlement {
            lease: waiting.lease(),
            decision: Decision::Snooze { after, because: Because::RetryBudget },
            ran: Ran::default(),
            failure: None,
            hold: Duration::ZERO,
            keep: self.keep_ended(),
        };
        // The other side ends only with the engine.
        let _ = self.signals.to_settle.send(Finished { waiting, settlement, slot: None });
    }

    /// Lets a retry that cannot be paid for wait for longer, in the store: another engine may have a grant for it.
    pub(crate) fn afford(&self, decision: &mut Decision, waiting: &Waiting) {
        let Decision::Retry { after, sticky, because } = decision else { return };
        let now = self.clock.now();
        let deadline = waiting.deadline.map(|deadline| deadline.since(now));
        let (kind, chance) = (&waiting.job.lane.kind, self.random.next());
        let Some(wait) = self.admission.put_off(kind, *after, deadline, chance) else { return };
        if wait > *after {
            (*after, *sticky, *because) = (wait, false, Because::RetryBudget);
        }
    }
}
