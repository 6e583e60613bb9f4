//! Supervises the loops of an engine: restarts a loop that panics or ends, or stops the engine.
//!
//! A loop that owns only handles is restarted. A loop that owns a queue of jobs or results cannot be restarted. If such a loop
//! fails, the engine stops renewing its lease, gives back its jobs, deregisters, and reports that it failed. So no node keeps
//! the lease of jobs that it can no longer run.

use crate::engine::Engine;
use crate::housekeeping;
use crate::shared::Shared;
use rewheel::{CancelToken, Moment};
use std::collections::BTreeMap;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

/// How long to wait before a loop is restarted: the cause of the panic may be temporary.
const RESTART_AFTER: Duration = Duration::from_secs(1);

/// Maximum restarts of one loop within [`RESTARTS_WITHIN`] before the engine fails.
const RESTARTS_MAX: usize = 5;

/// How long a failed engine tries to give back its jobs and to deregister.
const LEAVE_MAX: Duration = Duration::from_secs(30);

/// The period in which restarts are counted.
const RESTARTS_WITHIN: Duration = Duration::from_secs(600);

/// Loops that are restarted: each has a counter from the start, so that monitoring sees the first restart.
const RESTARTED: [&str; 9] = [
    "claim",
    "heartbeat",
    "history",
    "housekeeping",
    "parking",
    "retention",
    "sampling",
    "takeover",
    "waiters",
];

/// Why an engine stopped by itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the {name} loop failed: {why}")]
pub struct EngineFailure {
    /// The loop that failed.
    pub name: &'static str,
    /// The message of its panic, or that it ended.
    pub why: String,
}

/// State of the loops of one engine.
#[derive(Debug, Default)]
pub(crate) struct Loops {
    failure: OnceLock<EngineFailure>,
    failed: CancelToken,
    restarts: Mutex<BTreeMap<&'static str, u64>>,
}

impl Loops {
    pub(crate) fn failure(&self) -> Option<&EngineFailure> {
        self.failure.get()
    }

    /// Returns once the engine has failed.
    pub(crate) async fn failed(&self) -> EngineFailure {
        self.failed.cancelled().await;
        let unknown = || EngineFailure { name: "unknown", why: "the engine stopped".to_owned() };
        self.failure.get().cloned().unwrap_or_else(unknown)
    }

    /// Returns how often each loop was restarted.
    pub(crate) fn restarts(&self) -> BTreeMap<&'static str, u64> {
        let mut all: BTreeMap<_, _> = RESTARTED.map(|name| (name, 0)).into();
        all.extend(self.restarts.lock().unwrap_or_else(PoisonError::into_inner).iter());
        all
    }

    fn note_restart(&self, name: &'static str) {
        let mut restarts = self.restarts.lock().unwrap_or_else(PoisonError::into_inner);
        *restarts.entry(name).or_default() += 1;
    }
}

impl Engine {
    /// Returns a number that grows every few seconds, also without jobs, while the dispatch loop makes progress. For the watchdog of a
    /// process supervisor.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = rewheel_engine::Engine::builder(rewheel_stores::connect("memory://").await?)
    /// #     .start().await?;
    /// let before = engine.ticks();
    /// // A loop that has stalled never gets here.
    /// while engine.ticks() == before {
    ///     tokio::task::yield_now().await;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn ticks(&self) -> u64 {
        self.shared().signals.ticks()
    }
}

/// A loop to start.
pub(crate) type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Runs a loop that can be created again, and restarts it when it ends by itself.
pub(crate) async fn restarting(
    shared: Arc<Shared>,
    stop: CancelToken,
    name: &'static str,
    make: impl Fn(Arc<Shared>, CancelToken) -> Work + Send,
) {
    let mut restarts: Vec<Moment> = Vec::new();
    loop {
        // The code that creates the loop may panic too.
        let (its, until) = (Arc::clone(&shared), stop.clone());
        let made = catch_unwind(AssertUnwindSafe(|| make(its, until)));
        let ended = match made {
            Ok(work) => Caught(work).await,
            Err(panic) => Err(message(&*panic)),
        };
        if shared.is_stopping() || stop.is_cancelled() {
            return;
        }
        let why = ended.err().unwrap_or_else(|| "the loop ended unexpectedly".to_owned());
        let now = shared.clock.now();
        restarts.retain(|at| now.since(*at) < RESTARTS_WITHIN);
        if restarts.len() >= RESTARTS_MAX {
            return fail(&shared, name, why).await;
        }
        restarts.push(now);
        tracing::error!(name, why, "engine loop failed: restarting the loop");
        shared.notify_error("loop_restarted", &format!("the {name} loop was restarted"), &why);
        shared.loops.note_restart(name);
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            // Short, because a lease is not renewed meanwhile.
            () = shared.clock.sleep(RESTART_AFTER.min(shared.settings.lease_ttl / 10)) => {}
        }
    }
}

/// Runs a loop that cannot be created again. When it ends by itself, the engine fails.
pub(crate) async fn essential(
    shared: Arc<Shared>,
    stop: CancelToken,
    name: &'static str,
    work: Work,
) {
    let ended = Caught(work).await;
    if shared.is_stopping() || stop.is_cancelled() {
        return;
    }
    let why = ended.err().unwrap_or_else(|| "the loop ended unexpectedly".to_owned());
    fail(&shared, name, why).await;
}

/// Stops an engine that cannot continue: starts nothing new, gives back its jobs, and deregisters.
async fn fail(shared: &Arc<Shared>, name: &'static str, why: String) {
    let failure = EngineFailure { name, why };
    if shared.loops.failure.set(failure.clone()).is_err() {
        return;
    }
    tracing::error!(
        name,
        why = failure.why,
        "engine loop failed: this engine stops and releases its jobs; restart the process"
    );
    shared.notify_error(
        "engine_failed",
        "engine stopped because one of its loops failed: restart the process",
        &failure,
    );
    // The failure is reported in any case.
    let _reported = Reported(Arc::clone(shared));
    shared.leases.cancel_all();
    let (leaving, clock) = (Arc::clone(shared), shared.clock.clone());
    let leaves = Caught(Box::pin(async move { leave(&leaving).await }));
    tokio::select! {
        biased;
        left = leaves => {
            if let Err(panic) = left {
                tracing::error!(panic, "panic while releasing claimed jobs: other nodes take over these jobs when the lease of this node expires");
            }
        }
        () = clock.sleep(LEAVE_MAX) => {
            tracing::warn!("timeout while releasing claimed jobs: other nodes take over these jobs when the lease of this node expires");
        }
    }
}

async fn leave(shared: &Shared) {
    let holder = shared.holder();
    if let Err(error) = housekeeping::give_back_all(shared, holder).await {
        tracing::warn!(%error, "failed to release claimed jobs: other nodes take them over when the lease expires");
    }
    if let Err(error) = shared.store.leave(holder).await {
        tracing::warn!(%error, "this node failed to deregister: its lease expires by itself");
    }
}

/// Wakes the tasks that wait for a failure, at the latest when it is dropped.
struct Reported(Arc<Shared>);

impl Drop for Reported {
    fn drop(&mut self) {
        self.0.loops.failed.cancel();
    }
}

/// A future that returns its panic as the result.
struct Caught(Work);

impl Future for Caught {
    type Output = Result<(), String>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), String>> {
        match catch_unwind(AssertUnwindSafe(|| self.0.as_mut().poll(cx))) {
            Ok(Poll::Ready(())) => Poll::Ready(Ok(())),
            Ok(Poll::Pending) => Poll::Pending,
            Err(panic) => Poll::Ready(Err(message(&*panic))),
        }
    }
}

/// Returns the message of a panic.
pub(crate) fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("a panic without a message").to_owned()
}

/// Propagates the panic of a task, so that the loop that started the task fails too.
pub(crate) fn pass_on<T>(joined: Result<T, tokio::task::JoinError>) -> Option<T> {
    match joined {
        Ok(value) => Some(value),
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_) => None,
    }
}
