//! Counts decisions by failure category.

use rewheel::Category;
use rewheel_core::store::Settlement;
use std::sync::atomic::{AtomicU64, Ordering};

/// The names of all decisions.
const DECISIONS: [&str; 7] = ["succeed", "retry", "snooze", "dead", "fail", "pause", "cancel"];

/// Every category, and none.
const COLUMNS: usize = Category::ALL.len() + 1;

/// Number of decisions about failures of a category, since the engine started.
///
/// ```
/// use rewheel_engine::Engine;
/// use rewheel_engine::Report;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let engine = Engine::builder(rewheel_stores::connect("memory://").await?)
///     .raw_handler("work", |_| async { Report::dead("no") })
///     .start()
///     .await?;
/// engine.submit_raw("work", Vec::new()).await?;
/// # while engine.decisions().is_empty() { tokio::task::yield_now().await }
/// for count in engine.decisions() {
///     let category = count.category.map_or("none", |category| category.as_str());
///     println!("decided{{decision={:?},category={category:?}}} {}", count.decision, count.count);
/// #   assert_eq!((count.decision, category, count.count), ("dead", "unknown", 1));
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecisionCount {
    /// The name of a [`Decision`](rewheel_core::Decision).
    pub decision: &'static str,
    /// The category of the failure; `None` if nothing failed, or the handler did not report it.
    pub category: Option<Category>,
    /// The number.
    pub count: u64,
}

impl DecisionCount {
    /// Adds up the counts of several kinds.
    pub(crate) fn together(counts: impl Iterator<Item = DecisionCount>) -> Vec<DecisionCount> {
        let mut sums: Vec<DecisionCount> = Vec::new();
        for one in counts {
            let is_same = |sum: &&mut DecisionCount| {
                (sum.decision, sum.category) == (one.decision, one.category)
            };
            match sums.iter_mut().find(is_same) {
                Some(sum) => sum.count += one.count,
                None => sums.push(one),
            }
        }
        sums
    }
}

/// A small table that any number of tasks can update.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    table: [[AtomicU64; COLUMNS]; DECISIONS.len()],
}

impl Counts {
    /// Counts a settlement: once for each decision that is durable.
    pub(crate) fn count(&self, settlement: &Settlement) {
        let failure = settlement.decision.failure().or(settlement.failure.as_ref());
        let category = failure.map(rewheel_core::Failure::category);
        let known = |category| Category::ALL.iter().position(|known| *known == category);
        let column = category.and_then(known).unwrap_or(COLUMNS - 1);
        let name = settlement.decision.as_str();
        if let Some(row) = DECISIONS.iter().position(|decision| *decision == name) {
            self.table[row][column].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns all counts that are not zero.
    pub(crate) fn read(&self) -> Vec<DecisionCount> {
        let mut counts = Vec::new();
        for (decision, row) in DECISIONS.into_iter().zip(&self.table) {
            let columns = Category::ALL.iter().copied().map(Some).chain([None]);
            for (category, cell) in columns.zip(row) {
                let count = cell.load(Ordering::Relaxed);
                if count > 0 {
                    counts.push(DecisionCount { decision, category, count });
                }
            }
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::{Category, Counts, DECISIONS, DecisionCount, Settlement};
    use rewheel::{Random, seconds};
    use rewheel_core::{Decision, DueReason, Failure, Fence, JobId, Lease, Timestamp};

    fn settlement(decision: Decision, failure: Option<Failure>) -> Settlement {
        let job = JobId::new(Timestamp::from_millis(1), &Random::seeded(1));
        let lease = Lease { job, fence: Fence::new(1) };
        Settlement { decision, failure, ..Settlement::succeed(lease) }
    }

    #[test]
    fn every_decision_is_counted_under_every_category() {
        let counts = Counts::default();
        let mut expected = Vec::new();
        for category in Category::ALL.iter().copied().map(Some).chain([None]) {
            let failure = category.map(|category| Failure::new(category, None, ""));
            let given_up = || Failure::new(category.unwrap_or(Category::Unknown), None, "");
            let because = DueReason::Backoff;
            for decision in [
                Decision::Succeed,
                Decision::Retry { after: seconds(1), sticky: true, because },
                Decision::Snooze { after: seconds(1), because: DueReason::Snooze },
                Decision::Dead { failure: given_up() },
                Decision::Fail { failure: given_up() },
                Decision::Pause,
                Decision::Cancel,
            ] {
                let category = decision.failure().map(Failure::category).or(category);
                expected.push((decision.as_str(), category));
                counts.count(&settlement(decision, failure.clone()));
            }
        }
        let counted = counts.read();
        assert_eq!(counted.iter().map(|count| count.count).sum::<u64>(), 7 * 14);
        for (decision, category) in expected {
            let is_it =
                |count: &&DecisionCount| count.decision == decision && count.category == category;
            assert!(counted.iter().any(|count| is_it(&count)), "{decision} {category:?}");
        }
        assert_eq!(DECISIONS.len(), 7);
    }

    #[test]
    fn what_it_was_given_up_for_counts_before_what_the_attempt_died_of() {
        let counts = Counts::default();
        let dead = Decision::Dead { failure: Failure::new(Category::Deadline, None, "") };
        counts.count(&settlement(dead, Some(Failure::new(Category::Io, None, ""))));
        let counted =
            DecisionCount { decision: "dead", category: Some(Category::Deadline), count: 1 };
        assert_eq!(counts.read(), [counted]);
    }
}
