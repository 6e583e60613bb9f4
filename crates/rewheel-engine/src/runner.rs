//! Runners: run one attempt in a handler of this process, or elsewhere.

use crate::checkpoint::Checkpoints;
use crate::follow_ups::FollowUps;
use crate::output::Output;
use rewheel::{CancelToken, Category, Verdict};
use rewheel_core::{Failure, Fence, Job, JobId, Report, Timestamp, Turn};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// The future of an attempt's report.
pub type Reporting = Pin<Box<dyn Future<Output = Report> + Send>>;

/// Runs the jobs of a kind.
pub trait Runner: Send + Sync {
    /// Runs one attempt. The engine adds the attempt timeout, the deadline and a guard against panics; when a limit is reached,
    /// the future is dropped.
    fn run(&self, context: JobContext) -> Reporting;

    /// Returns the target (a host, a region) that an attempt of this job calls, if the jobs of the kind call different targets.
    /// If the kind has a breaker, each target then has its own breaker, and a target that is down does not park the kind.
    fn target(&self, job: &Job) -> Option<String> {
        let _ = job;
        None
    }

    /// Returns the host that every attempt calls, if there is only one. If the host asks to wait (see
    /// [`Hold`](crate::Hold)), no kind of this engine calls the host before that time.
    fn host(&self) -> Option<String> {
        None
    }

    /// Returns all targets that the next attempt of this job may call, the preferred first. The attempt calls the first target
    /// whose breaker is not open: [`JobContext::target`] returns its index. If there are several targets, each has a breaker,
    /// even if the kind has no breaker settings.
    fn targets(&self, job: &Job) -> Vec<String> {
        self.target(job).into_iter().collect()
    }
}

/// A kind of job with a Rust type.
///
/// ```
/// use rewheel_engine::JobKind;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct ChargeCard { order: u64, cents: u64 }
///
/// impl JobKind for ChargeCard { const NAME: &'static str = "charge-card"; }
/// ```
///
/// The payload is JSON, which other languages can read. A type with another format overrides `encode` and `decode`; submits,
/// checkpoints and handlers all use these two.
///
/// ```
/// use rewheel_engine::{Report, State};
/// use rewheel_engine::{Engine, JobContext, JobKind};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct Resize { width: u32 }
///
/// impl JobKind for Resize {
///     const NAME: &'static str = "resize";
///
///     fn encode(&self) -> Result<Vec<u8>, String> {
///         Ok(self.width.to_be_bytes().to_vec())
///     }
///
///     fn decode(payload: &[u8]) -> Result<Resize, String> {
///         let bytes = payload.try_into().map_err(|_| "must be 4 bytes".to_owned())?;
///         Ok(Resize { width: u32::from_be_bytes(bytes) })
///     }
/// }
///
/// async fn resize(ctx: JobContext, mut job: Resize) -> Result<(), Report> {
///     job.width += 1;
///     Ok(ctx.checkpoint(&job).await?)
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let store = rewheel_stores::connect("memory://").await?;
/// let engine = Engine::builder(store.clone()).handler(resize).start().await?;
/// let job = engine.submit(Resize { width: 640 }).await?;
/// # while store.get(job.id).await?.unwrap().state().is_live() {
/// #     tokio::task::yield_now().await;
/// # }
/// # let ended = store.get(job.id).await?.unwrap();
/// # assert_eq!(ended.state(), State::Succeeded);
/// # assert_eq!(ended.payload.unwrap(), 641_u32.to_be_bytes());
/// # Ok(())
/// # }
/// ```
pub trait JobKind: Serialize + DeserializeOwned + Send + 'static {
    /// Name of the kind.
    const NAME: &'static str;

    /// Serializes the payload.
    ///
    /// # Errors
    /// Fails with the reason.
    fn encode(&self) -> Result<Vec<u8>, String> {
        serde_json::to_vec(self).map_err(|error| error.to_string())
    }

    /// Deserializes the payload.
    ///
    /// # Errors
    /// Fails with the reason.
    fn decode(payload: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(payload).map_err(|error| error.to_string())
    }
}

/// The attempt, as its handler sees it. Clones are cheap.
#[derive(Clone, Debug)]
pub struct JobContext {
    job: Arc<Job>,
    attempt: u32,
    ends_in: Duration,
    cancel: CancelToken,
    gives: Arc<Gives>,
    target: usize,
}

/// What an attempt can give while it runs.
#[derive(Debug)]
pub(crate) struct Gives {
    pub(crate) checkpoints: Checkpoints,
    pub(crate) follow_ups: FollowUps,
    pub(crate) output: Output,
}

impl JobContext {
    pub(crate) fn new(
        job: Arc<Job>,
        ends_in: Duration,
        cancel: CancelToken,
        gives: Arc<Gives>,
        target: usize,
    ) -> JobContext {
        let attempt = job.attempt + 1;
        JobContext { job, attempt, ends_in, cancel, gives, target }
    }

    /// Returns which of [`Runner::targets`] this attempt calls, counted from 0.
    pub fn target(&self) -> usize {
        self.target
    }

    pub(crate) fn checkpoints(&self) -> &Checkpoints {
        &self.gives.checkpoints
    }

    pub(crate) fn follow_ups(&self) -> &FollowUps {
        &self.gives.follow_ups
    }

    pub(crate) fn output(&self) -> &Output {
        &self.gives.output
    }

    /// Returns the job as it was leased.
    pub fn job(&self) -> &Job {
        &self.job
    }

    /// Returns the job's id.
    pub fn id(&self) -> JobId {
        self.job.id
    }

    /// Returns the input, as bytes.
    pub fn payload(&self) -> &[u8] {
        self.job.payload.as_deref().unwrap_or_default()
    }

    /// Returns the number of the attempt, counted from 1 over the job's whole life.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Returns the fence, a number that is larger at each attempt of the job. Pass it to systems that must not accept a late
    /// write of an older attempt.
    pub fn fence(&self) -> Fence {
        self.job.fence
    }

    /// Returns the number of the turn in which the job runs, if it has a group. A later job of the group has a larger number, and so has
    /// this job after a redrive. Pass it on with the [`fence`](JobContext::fence) where a late writer of the group must not overwrite
    /// a newer one: compare the turns first, then the fences.
    pub fn turn(&self) -> Option<Turn> {
        self.job.group.as_ref().and_then(|group| group.turn)
    }

    /// Returns a text that is the same for every attempt of this job, and different for every other job: its key, or its id.
    pub fn idempotency_key(&self) -> String {
        self.job.key.as_ref().map_or_else(|| self.job.id.to_string(), ToString::to_string)
    }

    /// Returns how long the attempt may take, from its start: the time left until the deadline, or the attempt timeout.
    pub fn ends_in(&self) -> Duration {
        self.ends_in
    }

    /// Returns the deadline of the job, by the store's clock.
    pub fn deadline(&self) -> Option<Timestamp> {
        self.job.deadline
    }

    /// Returns the instant of the schedule that submitted the job: the time for which it runs, which is the same in each attempt.
    pub fn instant(&self) -> Option<Timestamp> {
        self.job.instant
    }

    /// Returns a token. The engine cancels it when a user cancels the job, when the engine shuts down, or when the node may have lost the job.
    pub fn cancel(&self) -> &CancelToken {
        &self.cancel
    }
}

/// What a handler may return: `()`, a [`Report`], or a `Result` with an error that becomes a [`Report`], as every error does that
/// says what its failures mean ([`Classify`](rewheel::Classify)).
///
/// `()` is for handlers that cannot fail: the attempt succeeded once they return. A handler that returns `Result<(), Report>` can do everything: pass errors on with `?`, route an
/// error type of its own by `From`, or say outright what is to follow.
///
/// ```
/// use rewheel::{minutes, seconds};
/// use rewheel_engine::Report;
/// use rewheel_engine::IntoReport;
///
/// enum BankError { Busy, Locked, Stolen }
///
/// impl From<BankError> for Report {
///     fn from(error: BankError) -> Report {
///         match error {
///             BankError::Busy => Report::retry_after(seconds(30), "the bank is busy"),
///             BankError::Locked => Report::snooze(minutes(5)), // uses no attempt
///             BankError::Stolen => Report::dead("the card was stolen"),
///         }
///     }
/// }
///
/// fn call_bank(order: u64) -> Result<(), BankError> {
///     if order == 17 { Err(BankError::Locked) } else { Ok(()) }
/// }
///
/// fn charge(order: u64) -> Result<(), Report> {
///     std::fs::read_dir(".")?; // an error that implements `Classify`
///     call_bank(order)?;       // an error that is converted by its type
///     Ok(())
/// }
///
/// assert_eq!(charge(17).into_report(), Report::Snooze(minutes(5)));
/// assert_eq!(charge(18).into_report(), Report::Done);
///
/// // A handler that cannot fail, and one that passes errors on and decides the rest.
/// assert_eq!(().into_report(), Report::Done);
/// let decided: Result<Report, Report> = Ok(Report::snooze(seconds(1)));
/// assert_eq!(decided.into_report(), Report::Snooze(seconds(1)));
/// ```
///
/// A value in `Ok` is the result of the job. It is stored as JSON if the kind keeps results
/// ([`KindSettings::result`](crate::KindSettings::result)), and ignored otherwise.
///
/// ```
/// use rewheel_engine::{IntoReport, Report};
///
/// #[derive(serde::Serialize)]
/// struct Receipt { number: u64 }
///
/// let charged: Result<Receipt, Report> = Ok(Receipt { number: 17 });
/// assert_eq!(charged.to_json().unwrap().unwrap(), br#"{"number":17}"#);
/// assert_eq!(charged.into_report(), Report::Done);
/// ```
///
/// `M` says which of these a type is; the compiler infers it.
#[diagnostic::on_unimplemented(
    message = "a handler must not return `{Self}`",
    note = "it returns `()`, `Report`, `Result<Report, E>` or `Result<T, E>` where `T` is `()` or implements `serde::Serialize`, \
            and `E` is `Report`, implements `rewheel::Classify` and `Display`, or has `impl From<E> for Report`"
)]
pub trait IntoReport<M = Said> {
    /// Converts what the handler returned to a report.
    fn into_report(self) -> Report;

    /// Returns the result of the job as JSON, if the handler returned one, or why it cannot be written.
    fn to_json(&self) -> Option<Result<Vec<u8>, String>> {
        None
    }
}

/// Marks what says by itself what follows, see [`IntoReport`].
#[derive(Debug)]
pub enum Said {}

/// Marks a value that is the result of a job, see [`IntoReport`].
#[derive(Debug)]
pub enum Value {}

impl IntoReport for Report {
    fn into_report(self) -> Report {
        self
    }
}

impl IntoReport for () {
    fn into_report(self) -> Report {
        Report::Done
    }
}

impl<E: Into<Report>> IntoReport for Result<Report, E> {
    fn into_report(self) -> Report {
        self.unwrap_or_else(Into::into)
    }
}

impl<T: Serialize, E: Into<Report>> IntoReport<Value> for Result<T, E> {
    fn into_report(self) -> Report {
        match self {
            Ok(_) => Report::Done,
            Err(error) => error.into(),
        }
    }

    fn to_json(&self) -> Option<Result<Vec<u8>, String>> {
        // `()`, or a type that says as little.
        if size_of::<T>() == 0 {
            return None;
        }
        let value = self.as_ref().ok()?;
        Some(serde_json::to_vec(value).map_err(|error| error.to_string()))
    }
}

/// A closure that takes the payload as bytes.
pub(crate) struct Raw<F, M> {
    pub(crate) handler: F,
    pub(crate) said: PhantomData<fn() -> M>,
}

impl<F, Fut, R, M> Runner for Raw<F, M>
where
    F: Fn(JobContext) -> Fut + Send + Sync,
    Fut: Future<Output = R> + Send + 'static,
    R: IntoReport<M>,
{
    fn run(&self, context: JobContext) -> Reporting {
        let gives = Arc::clone(&context.gives);
        let future = (self.handler)(context);
        Box::pin(async move { gives.output.report(future.await) })
    }
}

/// A closure that takes the payload as a Rust type.
pub(crate) struct Typed<F, T, M> {
    pub(crate) handler: F,
    pub(crate) job: PhantomData<fn() -> (T, M)>,
}

impl<F, T, Fut, R, M> Runner for Typed<F, T, M>
where
    F: Fn(JobContext, T) -> Fut + Send + Sync,
    T: JobKind,
    Fut: Future<Output = R> + Send + 'static,
    R: IntoReport<M>,
{
    fn run(&self, context: JobContext) -> Reporting {
        match T::decode(context.payload()) {
            Ok(job) => {
                let gives = Arc::clone(&context.gives);
                let future = (self.handler)(context, job);
                Box::pin(async move { gives.output.report(future.await) })
            }
            // A repetition would fail in the same way.
            Err(why) => {
                let failure = Failure::new(Category::BadPayload, None, &why);
                Box::pin(async move { Report::AttemptFailed { verdict: Verdict::Stop, failure } })
            }
        }
    }
}
