//! Queue depth: how many jobs wait, run, are paused or are dead letters, in total and of each kind.

use crate::engine::Engine;
use crate::job_counts::JobCounts;
use rewheel_core::store::{StoreResult, Tally};
use rewheel_core::{KindName, State, Timestamp};
use std::collections::BTreeMap;
use std::time::Duration;

/// The depth of all queues, see [`Engine::depth`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Depth {
    /// The jobs of all kinds.
    pub total: KindDepth,
    /// The jobs of each kind. Contains every kind that the store knows, also those without jobs.
    pub kinds: BTreeMap<KindName, KindDepth>,
    /// When the jobs were counted, by the store's clock.
    pub as_of: Timestamp,
    /// Time from the count until it was read.
    pub age: Duration,
    /// Whether jobs may have changed state since they were counted. If not, every change that the store has acknowledged is included.
    pub approximate: bool,
}

/// Jobs of one kind, or of all, by state. Finished jobs are not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KindDepth {
    /// Jobs that wait: for their due time, for a free slot, or for an earlier job of their group.
    pub scheduled: u64,
    /// Jobs that a node or worker holds: they run, or are about to.
    pub leased: u64,
    /// Paused jobs.
    pub paused: u64,
    /// Dead letters.
    pub dead: u64,
    /// The earliest due time of a scheduled job; in the past if jobs wait for a slot.
    pub oldest_due: Option<Timestamp>,
}

impl KindDepth {
    /// Returns how long the oldest job had been waiting for a slot at this time; zero if no job was due.
    ///
    /// ```
    /// use rewheel_engine::{KindDepth, Timestamp};
    /// use std::time::Duration;
    ///
    /// let oldest_due = Some(Timestamp::from_millis(1_000));
    /// let depth = KindDepth { scheduled: 3, oldest_due, ..KindDepth::default() };
    /// assert_eq!(depth.lag(Timestamp::from_millis(5_000)), Duration::from_secs(4));
    /// assert_eq!(depth.lag(Timestamp::from_millis(500)), Duration::ZERO);
    /// ```
    pub fn lag(&self, as_of: Timestamp) -> Duration {
        self.oldest_due.map_or(Duration::ZERO, |due| as_of.since(due))
    }

    fn new(tally: &Tally) -> KindDepth {
        let jobs = |state| tally.jobs.get(&state).copied().unwrap_or_default();
        KindDepth {
            scheduled: jobs(State::Scheduled),
            leased: jobs(State::Leased),
            paused: jobs(State::Paused),
            dead: jobs(State::Dead),
            oldest_due: tally.oldest_due,
        }
    }

    fn and(self, other: KindDepth) -> KindDepth {
        KindDepth {
            scheduled: self.scheduled + other.scheduled,
            leased: self.leased + other.leased,
            paused: self.paused + other.paused,
            dead: self.dead + other.dead,
            oldest_due: self.oldest_due.into_iter().chain(other.oldest_due).min(),
        }
    }
}

impl Depth {
    fn new(counts: &JobCounts) -> Depth {
        let kinds: BTreeMap<KindName, KindDepth> = counts
            .tallies
            .iter()
            .map(|tally| (tally.kind.clone(), KindDepth::new(tally)))
            .collect();
        let total = kinds.values().copied().fold(KindDepth::default(), KindDepth::and);
        let JobCounts { as_of, age, approximate, .. } = *counts;
        Depth { total, kinds, as_of, age, approximate }
    }
}

impl Engine {
    /// Returns how many jobs wait, run, are paused or dead, and since when the oldest one waits, in total and for each kind: for
    /// dashboards, autoscaling and backpressure. `/v1/stats` and the metrics `rewheel_jobs` show the same counts.
    ///
    /// Call it as often as you like: the cost does not grow with the number of jobs. A store with at most 10,000 live jobs and
    /// dead letters is counted for the call (with more than 1,000, once per second). For a larger store the call reads the latest
    /// count, one row, which one node of the fleet repeats: at most every 15 seconds, and for at most 5 % of the time. Then
    /// [`approximate`](Depth::approximate) is set, and [`age`](Depth::age) says how old the count is.
    ///
    /// # Errors
    /// Returns the error of the store.
    ///
    /// ```
    /// # use rewheel_engine::{Engine, Report};
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = Engine::builder(rewheel_stores::connect("memory://").await?)
    /// #     .raw_handler("mail", |_| async { Report::Done }).start().await?;
    /// engine.submit_raw("mail", Vec::new()).delay(Duration::from_secs(60)).await?;
    /// let depth = engine.depth().await?;
    /// assert_eq!(depth.total.scheduled, 1);
    /// for (kind, jobs) in &depth.kinds {
    ///     println!("{kind}: {} wait, the oldest for {:?}", jobs.scheduled, jobs.lag(depth.as_of));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn depth(&self) -> StoreResult<Depth> {
        Ok(Depth::new(&*self.job_counts().await?))
    }
}
