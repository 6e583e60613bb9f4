//! Waiting for the end of a job, and its result.

use crate::engine::Engine;
use crate::waiters::{Refused, WaitEnd};
use rewheel::{Category, Class, Classify, duration};
use rewheel_core::store::StoreError;
use rewheel_core::{Failure, Job, JobId, JobResult, State, StoredResult};
use std::time::Duration;

/// Error: this engine has as many waiters as it allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{waiters_max} callers already wait for the end of a job, which is the limit: try again later, or use another node"
)]
pub struct TooManyWaiters {
    /// [`EngineSettings::waiters_max`](crate::EngineSettings::waiters_max)
    pub waiters_max: usize,
}

/// A wait for the end of a job that has begun.
#[derive(Debug)]
pub struct EndOfJob<'a> {
    engine: &'a Engine,
    /// `None` if the engine stops.
    waiter: Option<crate::waiters::Waiter>,
}

impl EndOfJob<'_> {
    /// Returns once the job has ended, the time is over or the engine stops.
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing.
    pub async fn wait(&mut self, time_max: Duration) -> Waited {
        let Some(waiter) = &mut self.waiter else { return Waited::ShutDown };
        tokio::select! {
            biased;
            end = waiter.end() => match end {
                WaitEnd::Ended => Waited::Ended,
                WaitEnd::Stopping => Waited::ShutDown,
            },
            () = self.engine.shared().clock.sleep(time_max) => Waited::TimedOut,
        }
    }
}

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// The job has ended.
    Ended,
    /// The time is over.
    TimedOut,
    /// The engine shuts down.
    ShutDown,
}

/// Error: a job has no result to return.
#[derive(Debug, thiserror::Error)]
pub enum ResultError {
    /// The job has not ended in this time. It still runs, or waits: ask again with its id.
    #[error("job {job} has not ended within {}: it is {state}, and this wait did not change it", duration::text(*time_max))]
    TimedOut {
        /// The job.
        job: JobId,
        /// Its state.
        state: State,
        /// The time.
        time_max: Duration,
    },
    /// The job ended without success.
    #[error("job {job} ended as {state}{}", failure.as_ref().map(|failure| format!(": {failure}")).unwrap_or_default())]
    Failed {
        /// The job.
        job: JobId,
        /// Its state: failed, dead or cancelled.
        state: State,
        /// Its latest failure.
        failure: Option<Failure>,
    },
    /// The job succeeded, and no result is stored.
    #[error("job {job} succeeded without a result: {why}")]
    NoResult {
        /// The job.
        job: JobId,
        /// The reason.
        why: String,
    },
    /// The result is not a value of the expected type.
    #[error("the result of job {job} cannot be read as the requested type: {why}")]
    Unreadable {
        /// The job.
        job: JobId,
        /// The reason.
        why: String,
    },
    /// The job does not exist: it was never submitted, or was deleted after its retention.
    #[error("job {job} does not exist: it was never submitted, or was deleted after its retention")]
    NotFound {
        /// The job.
        job: JobId,
    },
    /// Too many callers wait already.
    #[error(transparent)]
    TooManyWaiters(#[from] TooManyWaiters),
    /// The engine shut down before the job ended. The job runs on another node, or later.
    #[error(
        "the engine shut down before job {job} ended: another node runs the job, or this node runs it after its next start"
    )]
    ShutDown {
        /// The job.
        job: JobId,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Classify for ResultError {
    fn classify(&self) -> Class {
        match self {
            ResultError::TimedOut { .. } => Class::retry(Category::Timeout),
            ResultError::TooManyWaiters(_) => Class::retry(Category::Throttled),
            ResultError::ShutDown { .. } => Class::retry(Category::Transient),
            ResultError::Failed { .. }
            | ResultError::NoResult { .. }
            | ResultError::Unreadable { .. }
            | ResultError::NotFound { .. } => Class::stop(Category::Rejected),
            ResultError::Store(error) => error.classify(),
        }
    }
}

impl Engine {
    /// Begins to wait for the end of a job. Read the job after this call: if it is live then, its end is not missed. All waiters
    /// share one query of the store, four times in a second; a job that ends in this engine is noticed at once.
    ///
    /// # Errors
    /// If as many callers wait as [`waiters_max`](crate::EngineSettings::waiters_max) allows.
    pub fn wait_for(&self, job: JobId) -> Result<EndOfJob<'_>, TooManyWaiters> {
        let shared = self.shared();
        match shared.reports.waiters.begin(job) {
            Ok(waiter) => Ok(EndOfJob { engine: self, waiter: Some(waiter) }),
            Err(Refused::Stopping) => Ok(EndOfJob { engine: self, waiter: None }),
            Err(Refused::Full) => Err(TooManyWaiters { waiters_max: shared.settings.waiters_max }),
        }
    }

    /// Waits until a job has succeeded, at most this long, and returns its result.
    ///
    /// # Errors
    /// See [`ResultError`].
    pub async fn result(&self, job: JobId, time_max: Duration) -> Result<JobResult, ResultError> {
        let mut found = self.found(job).await?;
        if found.state().is_live() && !time_max.is_zero() {
            let mut end = self.wait_for(job)?;
            found = self.found(job).await?;
            if found.state().is_live() {
                let waited = end.wait(time_max).await;
                found = self.found(job).await?;
                if waited == Waited::ShutDown && found.state().is_live() {
                    return Err(ResultError::ShutDown { job });
                }
            }
        }
        match found.state() {
            state @ (State::Scheduled | State::Leased | State::Paused) => {
                Err(ResultError::TimedOut { job, state, time_max })
            }
            state @ (State::Failed | State::Dead | State::Cancelled) => {
                Err(ResultError::Failed { job, state, failure: found.failure })
            }
            State::Succeeded => self.stored(&found).await,
        }
    }

    async fn found(&self, job: JobId) -> Result<Job, ResultError> {
        self.store().get(job).await?.ok_or(ResultError::NotFound { job })
    }

    async fn stored(&self, job: &Job) -> Result<JobResult, ResultError> {
        let no_result = |why: &str| ResultError::NoResult { job: job.id, why: why.to_owned() };
        match self.store().result(job.id).await? {
            Some(StoredResult::Kept(result)) => Ok(result),
            Some(StoredResult::Dropped(why)) => Err(no_result(why.as_str())),
            Some(StoredResult::Pruned) => Err(no_result("it was deleted after its retention")),
            None if self.keeps_results(&job.lane.kind) => {
                Err(no_result("its handler returned no result"))
            }
            None => Err(no_result("its kind keeps no results: set `result` of the kind to true")),
        }
    }

    fn keeps_results(&self, kind: &rewheel_core::KindName) -> bool {
        self.shared().kind(kind).is_some_and(|kind| kind.settings.result)
    }
}
