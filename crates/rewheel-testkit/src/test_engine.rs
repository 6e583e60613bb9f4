//! An engine for the tests of an application: in memory, with a clock that the test controls.

use crate::script::{Script, Scripted};
use rewheel_core::store::{Filter, PageRequest};
use rewheel_core::{Job, JobId, KindName, Limits, Report, State, Timestamp};
use rewheel_engine::{
    Engine, EngineBuilder, IntoReport, JobContext, JobKind, KindSettings, StartError,
};
use rewheel_stores::MemoryStore;
use std::future::Future;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

/// Simulated time without any change, and without a running attempt, after which a due job counts as stuck. The engine needs seconds.
const STUCK_AFTER: Duration = Duration::from_secs(3_600);

/// As [`STUCK_AFTER`], in a test whose clock is not stopped, and which really waits.
const STUCK_AFTER_REAL: Duration = Duration::from_secs(10);

/// A test whose clock is not stopped may travel this far: it really waits.
const TRAVEL_REAL_MAX: Duration = Duration::from_secs(1);

/// The first and the largest pause between two looks at the jobs.
const STEPS: [Duration; 2] = [Duration::from_millis(1), Duration::from_secs(60)];

/// How often the tasks of the engine may run before time passes.
const YIELDS: u32 = 100;

/// Jobs that one test may submit, so that a list of them has one page.
const JOBS_MAX: usize = Limits::PAGE_MAX;

/// An engine whose jobs run when the test wants it. It derefs to [`Engine`].
///
/// Use it in a test with `#[tokio::test(start_paused = true)]`: then time passes only while nothing else can run, and a test never
/// waits.
///
/// ```
/// use rewheel::minutes;
/// use rewheel_engine::JobKind;
/// use rewheel_testkit::{TestEngine, assert_submitted};
/// use serde::{Deserialize, Serialize};
/// use std::io;
///
/// #[derive(Debug, Serialize, Deserialize)]
/// struct ChargeCard {
///     order: u64,
/// }
///
/// impl JobKind for ChargeCard {
///     const NAME: &'static str = "charge-card";
/// }
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let engine = TestEngine::builder()
///     .handler(|_, _: ChargeCard| async { Ok::<_, io::Error>(()) })
///     .start()
///     .await?;
/// engine.submit(ChargeCard { order: 17 }).delay(minutes(10)).await?;
/// assert_submitted!(engine, ChargeCard { order: 17, .. });
///
/// engine.drain().await;
/// assert_eq!(engine.succeeded().await, 0);
/// engine.travel(minutes(10)).await;
/// assert_eq!(engine.succeeded().await, 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct TestEngine {
    engine: Engine,
    script: Script,
}

/// Builder of a [`TestEngine`].
#[derive(Debug)]
#[must_use = "an engine does nothing until it is started"]
pub struct TestEngineBuilder {
    builder: EngineBuilder,
    script: Script,
}

impl TestEngineBuilder {
    /// Adds a handler, as [`EngineBuilder::handler`] does.
    pub fn handler<T, F, Fut, M>(mut self, handler: F) -> TestEngineBuilder
    where
        T: JobKind,
        F: Fn(JobContext, T) -> Fut + Send + Sync + 'static,
        Fut: Future + Send + 'static,
        Fut::Output: IntoReport<M> + 'static,
        M: 'static,
    {
        let script = self.script.clone();
        self.builder = self.builder.handler::<T, _, _, M>(move |context, job: T| {
            let scripted = script.next(T::NAME);
            let ran = scripted.is_none().then(|| handler(context, job));
            async move {
                match (scripted, ran) {
                    (Some(report), _) => Scripted::Report(report),
                    (None, Some(ran)) => Scripted::Ran(ran.await),
                    (None, None) => Scripted::Report(Report::Done),
                }
            }
        });
        self
    }

    /// Sets the settings of a kind, as [`EngineBuilder::kind`] does.
    pub fn kind(mut self, name: &str, settings: KindSettings) -> TestEngineBuilder {
        self.builder = self.builder.kind(name, settings);
        self
    }

    /// Changes the builder of the engine, for everything else. Handlers that it adds ignore scripted failures.
    pub fn engine(
        mut self,
        change: impl FnOnce(EngineBuilder) -> EngineBuilder,
    ) -> TestEngineBuilder {
        self.builder = change(self.builder);
        self
    }

    /// Starts the engine.
    ///
    /// # Errors
    /// Fails if a setting is invalid.
    pub async fn start(self) -> Result<TestEngine, StartError> {
        Ok(TestEngine { engine: self.builder.start().await?, script: self.script })
    }
}

impl TestEngine {
    /// Starts to build an engine on an empty memory store.
    pub fn builder() -> TestEngineBuilder {
        let builder = Engine::builder(Arc::new(store()));
        TestEngineBuilder { builder, script: Script::default() }
    }

    /// Makes the next attempt of a kind end with this report, without its handler. Call it again for the attempts after that.
    pub fn script<T: JobKind>(&self, report: Report) {
        self.script.add(T::NAME, report);
    }

    /// Runs a call, and then the jobs that are due, before it returns: for tests in which a submit should have its effect at once.
    pub async fn inline<F: IntoFuture>(&self, call: F) -> F::Output {
        let returned = call.await;
        self.drain().await;
        returned
    }

    /// Runs every job that is due, and the jobs that these submit. It does not wait for jobs that are due later, such as retries.
    ///
    /// # Panics
    /// If a due job does not run for an hour of simulated time: its message says why.
    pub async fn drain(&self) {
        let ends = self.now().await;
        self.run_until(ends).await;
    }

    /// Lets time pass, and runs every job that becomes due in it.
    ///
    /// # Panics
    /// As [`drain`](TestEngine::drain). Also if the clock of the test is not stopped and the time is longer than a second: the test would
    /// really wait.
    pub async fn travel(&self, by: Duration) {
        let ends = self.now().await.plus(by);
        self.run_until(ends).await;
    }

    /// Lets time pass until the next job is due, and runs what is due then. Returns how long that took, or `None` if no job waits.
    ///
    /// # Panics
    /// As [`drain`](TestEngine::drain).
    pub async fn travel_to_next_due(&self) -> Option<Duration> {
        self.drain().await;
        let (now, jobs) = (self.now().await, self.jobs().await);
        let waiting = jobs.iter().filter(|job| is_waiting(job));
        let due = waiting.map(|job| job.due).min()?;
        let wait = due.since(now);
        self.travel(wait).await;
        Some(wait)
    }

    /// Runs every job until it has ended, including all retries.
    ///
    /// # Panics
    /// As [`drain`](TestEngine::drain).
    pub async fn finish(&self) {
        while self.travel_to_next_due().await.is_some() {}
    }

    /// Returns the number of jobs that succeeded and are still kept.
    pub async fn succeeded(&self) -> usize {
        let jobs = self.jobs().await;
        jobs.iter().filter(|job| job.status.state() == State::Succeeded).count()
    }

    /// Returns all jobs that the store has, in the order of their ids, with their payloads. Jobs of the engine itself are left out.
    ///
    /// # Panics
    /// If there are more jobs than fit into one page of a list.
    pub async fn jobs(&self) -> Vec<Job> {
        let store = self.engine.store();
        let page = store.list(&Filter::default(), &PageRequest::first(JOBS_MAX)).await;
        let page = page.expect("the memory store answers");
        assert!(page.next.is_none(), "a test may have up to {JOBS_MAX} jobs");
        let mut jobs = Vec::with_capacity(page.items.len());
        for job in page.items.into_iter().rev().filter(|job| !job.lane.kind.is_reserved()) {
            jobs.extend(self.job(job.id).await);
        }
        jobs
    }

    /// Returns one job with its payload.
    pub async fn job(&self, id: JobId) -> Option<Job> {
        self.engine.store().get(id).await.expect("the memory store answers")
    }

    /// Returns the payloads of all submitted jobs of a type, in any state, in the order of their ids. Jobs of kinds that keep no
    /// successes are missing after they have succeeded.
    ///
    /// # Panics
    /// If a payload is not one of the type.
    pub async fn submitted<T: JobKind>(&self) -> Vec<T> {
        let kind = KindName::parse(T::NAME).expect("the name of a kind");
        let jobs = self.jobs().await.into_iter().filter(|job| job.lane.kind == kind);
        let decoded = jobs.map(|job| {
            let payload = job.payload.unwrap_or_default();
            let text = String::from_utf8_lossy(&payload).into_owned();
            T::decode(&payload).unwrap_or_else(|error| panic!("payload {text} of {kind}: {error}"))
        });
        decoded.collect()
    }

    /// Fails unless a job was submitted whose payload fulfils a condition. For [`assert_submitted!`](crate::assert_submitted).
    #[doc(hidden)]
    pub async fn check_submitted<T: JobKind>(&self, pattern: &str, fits: impl Fn(&T) -> bool) {
        let submitted = self.submitted::<T>().await;
        let shown: Vec<String> = submitted
            .iter()
            .map(|job| {
                job.encode().map_or_else(
                    |error| error,
                    |bytes| String::from_utf8_lossy(&bytes).into_owned(),
                )
            })
            .collect();
        assert!(
            submitted.iter().any(fits),
            "no submitted job matches `{pattern}`; submitted jobs of the kind {}: [{}]",
            T::NAME,
            shown.join(", ")
        );
    }

    async fn now(&self) -> Timestamp {
        self.engine.store().now().await.expect("the memory store answers")
    }

    /// Lets time pass until an instant, and until no job runs that was due by then.
    async fn run_until(&self, ends: Timestamp) {
        let is_real = time_runs();
        let travels = ends.since(self.now().await);
        assert!(
            !is_real || travels <= TRAVEL_REAL_MAX,
            "the clock of this test runs, so the test would really wait for {travels:?}: use `#[tokio::test(start_paused = true)]`"
        );
        let stuck_after = if is_real { STUCK_AFTER_REAL } else { STUCK_AFTER };
        let (mut step, mut still, mut before) = (STEPS[0], Duration::ZERO, Vec::new());
        loop {
            let now = self.now().await;
            let jobs = self.jobs().await;
            let left = ends.since(now);
            let busy: Vec<&Job> =
                jobs.iter().filter(|job| is_waiting(job) && job.due <= ends).collect();
            if left.is_zero() && busy.is_empty() {
                return;
            }
            let state: Vec<_> = jobs.iter().map(|job| (job.id, job.version)).collect();
            // A running attempt ends by its timeout, however long that is.
            let is_running = busy.iter().any(|job| job.status.state() == State::Leased);
            (step, still) = match state == before {
                true if is_running => ((step * 2).min(STEPS[1]), Duration::ZERO),
                true => ((step * 2).min(STEPS[1]), still + step),
                false => (STEPS[0], Duration::ZERO),
            };
            before = state;
            // What needs no time comes first, so that due times stay where a test expects them.
            for _ in 0..YIELDS {
                tokio::task::yield_now().await;
            }
            if left.is_zero()
                && self.jobs().await.iter().any(|job| !before.contains(&(job.id, job.version)))
            {
                continue;
            }
            if left.is_zero() && still > stuck_after {
                self.explain_stuck(&busy, now).await;
            }
            // Not beyond the next due time: what is due then must see the right time.
            let next = jobs.iter().filter(|job| is_waiting(job) && job.due > now);
            let next = next.map(|job| job.due.since(now)).min();
            let most = if left.is_zero() { step } else { step.min(left) };
            tokio::time::sleep(next.map_or(most, |next| most.min(next))).await;
        }
    }

    async fn explain_stuck(&self, jobs: &[&Job], now: Timestamp) {
        let held = self.engine.held(jobs, now).await.expect("the memory store answers");
        let reasons = jobs.iter().zip(held).map(|(job, held)| {
            let why =
                held.map_or_else(|| "no reason".to_owned(), |held| format!("{:?}", held.because));
            format!("{} {} ({why})", job.lane.kind, job.id)
        });
        panic!("these jobs are due and do not run: {}", reasons.collect::<Vec<_>>().join(", "));
    }
}

impl Deref for TestEngine {
    type Target = Engine;

    fn deref(&self) -> &Engine {
        &self.engine
    }
}

/// Returns whether a job runs, or runs when it is due.
fn is_waiting(job: &Job) -> bool {
    match job.status.state() {
        State::Scheduled | State::Leased => true,
        State::Paused | State::Succeeded | State::Failed | State::Dead | State::Cancelled => false,
    }
}

/// Returns whether the clock of the runtime runs. One that the test has stopped moves only while tasks wait.
#[expect(
    clippy::disallowed_methods,
    reason = "this compares the clock of the runtime with the real one"
)]
fn time_runs() -> bool {
    let (simulated, real) = (tokio::time::Instant::now(), std::time::Instant::now());
    while real.elapsed() < Duration::from_micros(2) {
        std::hint::spin_loop();
    }
    tokio::time::Instant::now() > simulated
}

/// Opens a store with the clock of the runtime, which the test has stopped.
#[expect(clippy::disallowed_methods, reason = "the time of a test is the time of its runtime")]
fn store() -> MemoryStore {
    let started = tokio::time::Instant::now();
    let time = move || {
        let millis = i64::try_from(started.elapsed().as_millis()).unwrap_or(i64::MAX);
        Timestamp::from_millis(1_700_000_000_000 + millis)
    };
    MemoryStore::with_time(time, Default::default())
}

/// Fails unless a job was submitted to a [`TestEngine`] whose payload matches a pattern. The pattern names the type of the payload.
///
/// ```
/// # use rewheel_engine::JobKind;
/// # use rewheel_testkit::{TestEngine, assert_submitted};
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Serialize, Deserialize)]
/// # struct ChargeCard { order: u64, cents: u64 }
/// # impl JobKind for ChargeCard { const NAME: &'static str = "charge-card"; }
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let engine = TestEngine::builder().handler(|_, _: ChargeCard| async {}).start().await?;
/// engine.submit(ChargeCard { order: 17, cents: 4_200 }).await?;
/// assert_submitted!(engine, ChargeCard { order: 17, .. });
/// assert_submitted!(engine, ChargeCard { cents, .. } if *cents > 4_000);
/// # Ok(())
/// # }
/// ```
#[macro_export]
macro_rules! assert_submitted {
    ($engine:expr, $pattern:pat $(if $guard:expr)? $(,)?) => {
        $engine
            .check_submitted(stringify!($pattern $(if $guard)?), |job: &_| match job {
                $pattern $(if $guard)? => true,
                // A pattern may match everything.
                #[allow(unreachable_patterns)]
                _ => false,
            })
            .await
    };
}
