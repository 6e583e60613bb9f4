//! Job counts for users and monitoring, shared by all requests of a node.
//!
//! A small store is counted for each read. A large one is counted by one node at a time for the whole fleet, in the background;
//! requests read that sample and report its age.

use crate::engine::Engine;
use crate::shared::Shared;
use rewheel::{CancelToken, Moment};
use rewheel_core::store::{Sample, Store, StoreError, StoreResult, Tally};
use rewheel_core::{KindName, Timestamp};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;

/// Up to this many jobs are counted for each request: no more work than listing a page of them.
const TINY_MAX: u64 = 1_000;

/// Up to this many jobs are counted directly, at most once per [`SHARED_FOR`] and node.
const SMALL_MAX: usize = 10_000;

/// How long all requests of a node share one result.
const SHARED_FOR: Duration = Duration::from_secs(1);

/// Jobs of each kind by state, and when they were counted.
#[derive(Clone, Debug)]
pub struct JobCounts {
    /// One for each kind, ordered by name.
    pub tallies: Vec<Tally>,
    /// When they were counted, by the store's clock.
    pub as_of: Timestamp,
    /// Time from the count until this value was read.
    pub age: Duration,
    /// Whether jobs may have changed state since then, because the counts come from a sample.
    pub approximate: bool,
}

impl JobCounts {
    fn new(sample: Sample, approximate: bool) -> JobCounts {
        let Sample { taken, age, tallies } = sample;
        JobCounts { tallies, as_of: taken, age, approximate }
    }

    /// Returns the counts of one kind.
    pub fn of(&self, kind: &KindName) -> Option<&Tally> {
        let found = self.tallies.binary_search_by(|tally| tally.kind.cmp(kind));
        found.ok().and_then(|at| self.tallies.get(at))
    }

    fn jobs(&self) -> u64 {
        self.tallies.iter().flat_map(|tally| tally.jobs.values()).sum()
    }
}

/// The latest counts that a node read.
#[derive(Debug, Default)]
pub(crate) struct JobCountsCache(Mutex<Option<(Moment, Arc<JobCounts>)>>);

impl JobCountsCache {
    async fn read(&self, shared: &Shared) -> StoreResult<Arc<JobCounts>> {
        // Held during the request to the store: concurrent requests share the result.
        let mut cached = self.0.lock().await;
        let now = shared.clock.now();
        let last = cached.as_ref().map(|(_, counts)| Arc::clone(counts));
        if let (Some((at, _)), Some(last)) = (&*cached, &last)
            && now.since(*at) < SHARED_FOR
            && last.jobs() > TINY_MAX
        {
            return Ok(Arc::clone(last));
        }
        let was_large = last.is_some_and(|last| last.approximate);
        let counts = Arc::new(read(&*shared.store, was_large).await?);
        *cached = Some((now, Arc::clone(&counts)));
        Ok(counts)
    }
}

/// Reads the counts of a store that was large or small at the last read.
async fn read(store: &dyn Store, was_large: bool) -> StoreResult<JobCounts> {
    let is_large = |sample: &Sample| sample.jobs() > SMALL_MAX as u64;
    if was_large && let Some(sample) = store.sample().await?.filter(is_large) {
        return Ok(JobCounts::new(sample, true));
    }
    if let Some(sample) = store.sample_now(SMALL_MAX).await? {
        return Ok(JobCounts::new(sample, false));
    }
    if let Some(sample) = store.sample().await? {
        return Ok(JobCounts::new(sample, true));
    }
    // Only once per store: nothing was ever counted.
    store.take_sample().await?;
    let sample = store.sample().await?.ok_or_else(|| {
        let why = "another node is counting the jobs for the first time: try again in a moment";
        StoreError::Unavailable(why.into())
    })?;
    Ok(JobCounts::new(sample, true))
}

impl Engine {
    /// Returns the number of jobs of each kind in each state. A store of at most ten thousand jobs is counted directly; for
    /// a larger store, one node counts from time to time for all nodes, so the counts may be some seconds old.
    ///
    /// # Errors
    /// Returns the error of the store.
    ///
    /// ```
    /// # use rewheel_engine::{Report, State};
    /// # use rewheel_engine::Engine;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = Engine::builder(rewheel_stores::connect("memory://").await?)
    /// #     .raw_handler("mail", |_| async { Report::Done }).start().await?;
    /// let counts = engine.job_counts().await?;
    /// assert_eq!((counts.tallies[0].jobs[&State::Scheduled], counts.approximate), (0, false));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn job_counts(&self) -> StoreResult<Arc<JobCounts>> {
        self.shared().reports.job_counts.read(self.shared()).await
    }
}

/// The loop that counts for the fleet when it is this node's turn.
pub(crate) async fn sample(shared: Arc<Shared>, stop: CancelToken) {
    while !stop.is_cancelled() {
        if let Err(error) = shared.store.take_sample().await {
            tracing::debug!(%error, "failed to count jobs: metrics show the previous counts");
        }
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            () = shared.clock.sleep(Sample::INTERVAL_MIN) => {}
        }
    }
}
