//! Job counts, taken by one node for the whole fleet.

use super::{StoreResult, Tally};
use crate::timestamp::Timestamp;
use async_trait::async_trait;
use std::time::Duration;

/// Counts jobs for users and monitoring. Counting a large store is expensive, so one node counts at a time and all others read
/// its result.
#[async_trait]
pub trait SampleStore: Send + Sync {
    /// Counts the jobs now, if there are at most `rows_max` live jobs and dead letters. Returns
    /// `None` for a larger store. Reads a bounded number of rows.
    async fn sample_now(&self, rows_max: usize) -> StoreResult<Option<Sample>>;

    /// Returns the latest stored sample. The cost depends on the number of kinds, not of jobs.
    async fn sample(&self) -> StoreResult<Option<Sample>>;

    /// Counts the jobs and stores the result, if a sample is due and no other node is counting, see
    /// [`SampleTurn::is_due`]. Returns whether it counted. May take minutes on a large store.
    async fn take_sample(&self) -> StoreResult<bool>;
}

/// Job counts of all kinds, as they were at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// When the count began, by the store's clock.
    pub taken: Timestamp,
    /// How long ago that was.
    pub age: Duration,
    /// One for each kind, ordered by name.
    pub tallies: Vec<Tally>,
}

impl Sample {
    /// Shortest time from one count to the next.
    pub const INTERVAL_MIN: Duration = Duration::from_secs(15);

    /// Counting takes at most 1/20 of the time: about 5 %.
    pub const COST_FACTOR: u32 = 20;

    /// Longest time that a count may take. After this time another node may count.
    pub const COUNT_MAX: Duration = Duration::from_secs(300);

    /// Returns how many jobs it counted.
    pub fn jobs(&self) -> u64 {
        self.tallies.iter().flat_map(|tally| tally.jobs.values()).sum()
    }
}

/// What a store remembers of the latest count, to decide which node counts next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleTurn {
    /// When the latest count began; `None` if there was none.
    pub begun: Option<Timestamp>,
    /// Whether the count is marked as running. A node that crashed does not remove this mark.
    pub counting: bool,
    /// Duration of the latest completed count.
    pub cost: Duration,
}

impl SampleTurn {
    /// Returns whether a node may count now.
    ///
    /// ```
    /// use rewheel_core::Timestamp;
    /// use rewheel_core::store::SampleTurn;
    /// use std::time::Duration;
    ///
    /// let (begun, cost) = (Timestamp::from_millis(0), Duration::from_secs(2));
    /// let turn = SampleTurn { begun: Some(begun), counting: false, cost };
    /// assert!(!turn.is_due(Timestamp::from_millis(39_999)));
    /// assert!(turn.is_due(Timestamp::from_millis(40_000)), "twenty times what it took");
    /// ```
    pub fn is_due(&self, now: Timestamp) -> bool {
        let Some(begun) = self.begun else { return true };
        let interval = Sample::INTERVAL_MIN.max(self.cost.saturating_mul(Sample::COST_FACTOR));
        let wait = if self.counting { interval.max(Sample::COUNT_MAX) } else { interval };
        // A clock that was set back must not stop the counts.
        now.since(begun) >= wait || begun > now
    }
}
