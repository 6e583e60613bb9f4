//! The engine: start, queries, shutdown.

use crate::builder::EngineBuilder;
use crate::counts::DecisionCount;
use crate::housekeeping;
use crate::kind_history;
use crate::kinds::checked_kind;
use crate::notify;
use crate::runner::JobKind;
use crate::settings::{EngineSettings, KindSettings};
use crate::shared::{Command, Shared};
use crate::submit::{self, IntoSubmit, Submit, SubmitMany, payload_limit};
use crate::supervise::EngineFailure;
use crate::trace;
use rewheel::CancelToken;
use rewheel_core::store::{Change, Changed, Insert, Inserted, Store, StoreError, StoreResult};
use rewheel_core::{
    Actor, HolderId, JobId, KindChange, KindChanged, KindEdit, KindEditVerb, KindEdited, KindName,
    NewKind, Version,
};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio::task::JoinHandle;
use tracing::Instrument as _;

/// How long cancelled handlers may take to stop.
const STOP_GRACE: Duration = Duration::from_secs(1);

/// How often a shutdown checks whether the last attempt has ended.
const STOP_LOOK: Duration = Duration::from_millis(10);

/// Runs jobs from a store. Clones are handles of the same engine.
///
/// ```
/// use rewheel_engine::{Engine, JobContext, JobKind};
/// use serde::{Deserialize, Serialize};
/// use std::{io, time::Duration};
///
/// #[derive(Serialize, Deserialize)]
/// struct ChargeCard { order: u64, cents: u64 }
/// impl JobKind for ChargeCard { const NAME: &'static str = "charge-card"; }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (charged, mut charges) = tokio::sync::mpsc::unbounded_channel();
/// let engine = Engine::builder(rewheel_stores::connect("memory://").await?)
///     .handler(move |ctx: JobContext, job: ChargeCard| {
///         let charged = charged.clone();
///         async move {
///             charged.send((job.order, ctx.idempotency_key())).map_err(io::Error::other)
///         }
///     })
///     .start()
///     .await?;
/// engine.submit(ChargeCard { order: 17, cents: 4200 }).key("order-17").priority(7).await?;
/// assert_eq!(charges.recv().await, Some((17, "order-17".to_owned())));
/// engine.shutdown(Duration::from_secs(30)).await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

struct Inner {
    shared: Arc<Shared>,
    /// The claim loop is the last.
    loops: Mutex<Vec<JoinHandle<()>>>,
    /// Stops the loops that run longer than the work.
    stop: CancelToken,
}

/// A handle that does not keep its engine running.
#[derive(Clone)]
pub(crate) struct WeakEngine(Weak<Inner>);

impl WeakEngine {
    pub(crate) fn get(&self) -> Option<Engine> {
        self.0.upgrade().map(|inner| Engine { inner })
    }
}

/// State of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineStatus {
    /// The current holder id of the engine.
    pub holder: HolderId,
    /// Whether the lease of the engine has expired, so that it starts no new attempts.
    pub lease_expired: bool,
    /// Whether the engine is shutting down.
    pub stopping: bool,
    /// The loop whose failure stopped it, see [`Engine::failed`].
    pub failed: Option<&'static str>,
    /// Maximum number of concurrent attempts.
    pub concurrency: usize,
    /// Number of free slots.
    pub concurrency_free: usize,
    /// Number of claimed jobs that wait in memory until they are due or until a slot is free.
    pub waiting: usize,
}

/// Result of a shutdown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shutdown {
    /// Jobs that had not started, and were given back.
    pub given_back: usize,
    /// Attempts that finished in time.
    pub finished: usize,
    /// Attempts that did not finish: their jobs run again, and no attempt is used.
    pub abandoned: usize,
}

impl fmt::Display for Shutdown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shutdown { given_back, finished, abandoned } = self;
        write!(
            f,
            "released {given_back} jobs that had not started, attempts finished: {finished}"
        )?;
        if *abandoned > 0 {
            write!(
                f,
                ", attempts abandoned because they took too long: {abandoned} (their jobs run again)"
            )?;
        }
        Ok(())
    }
}

impl Engine {
    pub(crate) fn of(shared: Arc<Shared>, loops: Vec<JoinHandle<()>>, stop: CancelToken) -> Engine {
        Engine { inner: Arc::new(Inner { shared, loops: Mutex::new(loops), stop }) }
    }

    /// Starts building an engine for a store.
    pub fn builder(store: Arc<dyn Store>) -> EngineBuilder {
        EngineBuilder::new(store)
    }

    /// Submits a job: await the returned value. When it returns, the job is durable. An engine that
    /// was shut down accepts no jobs: [`SubmitError::ShutDown`](crate::SubmitError::ShutDown). While
    /// [`Engine::shutdown`] waits for handlers, they can still submit.
    pub fn submit<T: JobKind>(&self, job: T) -> Submit<'_> {
        Submit::typed(self, &job)
    }

    /// Submits many jobs with few statements: await the returned value. The result contains one entry
    /// for each job, in order. A job that cannot be stored does not affect the others. Jobs are
    /// values of a [`JobKind`], or [`Submit`]s if they have keys, tenants or other settings.
    ///
    /// This is not one transaction. For all or nothing, see [`Engine::insert`] with
    /// [`IfRefused::StoreNothing`](rewheel_core::store::IfRefused).
    ///
    /// ```
    /// # use rewheel_engine::{Engine, JobContext, JobKind};
    /// # use serde::{Deserialize, Serialize};
    /// #[derive(Serialize, Deserialize)]
    /// struct ChargeCard { order: u64 }
    /// impl JobKind for ChargeCard { const NAME: &'static str = "charge-card"; }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let engine = Engine::builder(rewheel_stores::connect("memory://").await?)
    ///     .handler(|_: JobContext, _: ChargeCard| async {})
    ///     .start()
    ///     .await?;
    /// let results = engine.submit_many((0..500).map(|order| ChargeCard { order })).await;
    /// assert!(results.iter().all(Result::is_ok));
    ///
    /// let charge = |order: u64, key: &str| engine.submit(ChargeCard { order }).key(key);
    /// let results = engine.submit_many([charge(1, "order-1"), charge(2, ""), charge(1, "order-1")]).await;
    /// assert!(results[0].is_ok());
    /// assert_eq!(results[1].as_ref().unwrap_err().to_string(), "key must be 1 to 255 bytes without control characters");
    /// assert!(results[2].as_ref().is_ok_and(|receipt| receipt.duplicate));
    /// # Ok(())
    /// # }
    /// ```
    pub fn submit_many<'a, S: IntoSubmit<'a>>(
        &'a self,
        jobs: impl IntoIterator<Item = S>,
    ) -> SubmitMany<'a> {
        SubmitMany::new(self, jobs)
    }

    /// Submits a job with a payload of opaque bytes.
    pub fn submit_raw(&self, kind: &str, payload: Vec<u8>) -> Submit<'_> {
        Submit::raw(self, kind, payload)
    }

    /// Inserts jobs into the store. Refuses a job if its tenant is at its limit of live jobs, or if its
    /// payload is larger than [`EngineSettings::payload_bytes_max`]. A single job that may run at once gets
    /// a free slot of this engine directly.
    ///
    /// # Errors
    /// Returns the error of the store. More than [`Limits::SUBMIT_MAX`](rewheel_core::Limits::SUBMIT_MAX)
    /// jobs are [`StoreError::Rejected`]. After [`Engine::shutdown`] it is [`StoreError::Closed`].
    pub async fn insert(&self, insert: &Insert<'_>) -> StoreResult<Vec<Inserted>> {
        if self.has_shut_down() {
            return Err(StoreError::Closed);
        }
        let (shared, span) = (&self.inner.shared, trace::submit(insert.jobs));
        let jobs = trace::submitted_by(&span, insert.jobs);
        let insert = Insert { jobs: jobs.as_deref().unwrap_or(insert.jobs), ..insert.clone() };
        let routed = shared.intake.shards.route(insert.jobs);
        let insert = Insert { jobs: routed.as_deref().unwrap_or(insert.jobs), ..insert };
        let answers = payload_limit::insert(shared, &insert).instrument(span.clone()).await;
        match &answers {
            Ok(answers) => submit::count(shared, insert.jobs, answers),
            Err(_) => trace::submit_failed(&span),
        }
        answers
    }

    /// Creates an id for a new job.
    pub fn new_id(&self) -> JobId {
        self.inner.shared.new_id()
    }

    /// Returns the guarded store: a call returns within the statement timeout, is repeated if that may help, and fails at once
    /// while the store is unavailable.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.inner.shared.store
    }

    /// Returns the engine's settings.
    pub fn settings(&self) -> &EngineSettings {
        &self.inner.shared.settings
    }

    /// Writes the settings of a kind; creates it if it is new.
    ///
    /// # Errors
    /// Invalid settings are [`StoreError::Rejected`]. Otherwise returns the error of the store.
    pub async fn put_kind(
        &self,
        kind: &KindName,
        settings: &KindSettings,
        by: &Actor,
    ) -> StoreResult<()> {
        let shared = &self.inner.shared;
        shared.store.put_kinds(&[checked_kind(self.shared(), kind, settings)?], by).await?;
        shared.read_kinds().await?;
        shared.signals.look.notify_one();
        Ok(())
    }

    /// Writes the settings of a kind like [`Engine::put_kind`], if it exists and still has this version.
    ///
    /// # Errors
    /// The same as for `put_kind`.
    pub async fn put_kind_if(
        &self,
        kind: &KindName,
        settings: &KindSettings,
        if_version: Option<Version>,
        by: &Actor,
    ) -> StoreResult<KindEdited> {
        let NewKind { name, settings, takeovers_max, on_dead } =
            checked_kind(self.shared(), kind, settings)?;
        let what = KindEditVerb::Put { settings, takeovers_max, on_dead };
        self.edit_kind(&KindEdit { name, what, if_version }, by).await
    }

    /// Writes, changes or deletes a kind for a user, optionally only at a given version.
    ///
    /// # Errors
    /// Returns the error of the store.
    pub async fn edit_kind(&self, edit: &KindEdit, by: &Actor) -> StoreResult<KindEdited> {
        let shared = &self.inner.shared;
        let edited = shared.store.edit_kind(edit, by).await?;
        shared.read_kinds().await?;
        shared.signals.look.notify_one();
        Ok(edited)
    }

    /// Returns whether this engine has a handler for a kind. The handler stays if the kind is deleted.
    pub fn has_handler(&self, kind: &KindName) -> bool {
        self.inner.shared.kinds.handlers.contains_key(kind)
    }

    /// Pauses or resumes a kind, or overrides whether its jobs run.
    ///
    /// # Errors
    /// Returns the error of the store.
    ///
    /// ```
    /// # use rewheel_engine::{Actor, KindChange, KindName, Report};
    /// # use rewheel_engine::Engine;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = Engine::builder(rewheel_stores::connect("memory://").await?)
    /// #     .raw_handler("charge-card", |_| async { Report::Done }).start().await?;
    /// let kind = KindName::parse("charge-card")?;
    /// let reason = "the bank is down until 4 am".to_owned();
    /// engine.change_kind(&kind, &KindChange::Open { reason }, &Actor::new("ops")).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn change_kind(
        &self,
        kind: &KindName,
        change: &KindChange,
        by: &Actor,
    ) -> StoreResult<KindChanged> {
        let shared = &self.inner.shared;
        let asked = shared.clock.now();
        let changed = shared.store.change_kind(kind, change, by).await?;
        if let KindChanged::Applied(kind) | KindChanged::Refused(kind) = &changed {
            shared.learn_one(kind, asked);
        }
        shared.signals.look.notify_one();
        Ok(changed)
    }

    /// Changes one job for a user.
    ///
    /// # Errors
    /// Returns the error of the store.
    ///
    /// ```
    /// # use rewheel_engine::{Actor, Report, State};
    /// # use rewheel_engine::Engine;
    /// use rewheel_engine::store::{Change, Changed, ChangeVerb};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = Engine::builder(rewheel_stores::connect("memory://").await?)
    /// #     .raw_handler("mail", |_| async { Report::Done }).start().await?;
    /// let job = engine.submit_raw("mail", Vec::new()).delay(rewheel::minutes(5)).await?;
    /// let changed = engine.change(Change::new(job.id, ChangeVerb::Cancel), &Actor::new("ops")).await?;
    /// assert!(matches!(changed, Changed::Applied { state: State::Cancelled, .. }));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn change(&self, change: Change, by: &Actor) -> StoreResult<Changed> {
        let shared = &self.inner.shared;
        let id = change.job;
        // Read only if there are listeners.
        let before =
            if shared.reports.events.is_open() { shared.store.get(id).await? } else { None };
        let answers = shared.store.change(&[change], by, shared.retain_ended()).await?;
        let changed = answers.first().copied().unwrap_or(Changed::NotFound);
        if let (Some(before), Changed::Applied { state, .. }) = (before, changed) {
            shared.reports.events.tell([(id, &before.lane.kind, Some(before.state()), state)]);
        }
        Ok(changed)
    }

    /// Returns the settings of a kind, as last read from the store.
    pub fn kind_settings(&self, kind: &KindName) -> Option<KindSettings> {
        self.inner.shared.kind(kind).map(|entry| entry.settings.clone())
    }

    /// Returns whether this engine can run jobs of a kind.
    pub fn runs(&self, kind: &KindName) -> bool {
        self.inner.shared.kind(kind).is_some_and(|entry| entry.runner.is_some())
    }

    /// Returns the state of the engine.
    pub fn status(&self) -> EngineStatus {
        let shared = &self.inner.shared;
        EngineStatus {
            holder: shared.holder(),
            lease_expired: shared.is_lease_expired(),
            stopping: shared.is_stopping(),
            failed: shared.loops.failure().map(|failure| failure.name),
            concurrency: shared.settings.concurrency,
            concurrency_free: shared.admission.free(),
            waiting: shared.signals.waiting_count(),
        }
    }

    /// Returns once the engine has stopped by itself, because one of its loops panicked and could not be restarted. Before it
    /// returns, the engine has given back its jobs, and other nodes can run them. Such an engine stays stopped: end the
    /// process, or start another engine. For an engine that works or was shut down, this function never returns.
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing.
    pub async fn failed(&self) -> EngineFailure {
        self.inner.shared.loops.failed().await
    }

    /// Returns the number of this engine's decisions for each category of failure, since it started. A decision counts only
    /// if the store has accepted the result. If the lease was lost, the decision does not count. Jobs that are ended by
    /// deadlines and sweeps are not included.
    pub fn decisions(&self) -> Vec<DecisionCount> {
        let meters = &self.inner.shared.reports.meters;
        DecisionCount::together(meters.kinds().iter().flat_map(|(_, kind)| kind.settled.read()))
    }

    /// Returns a handle that does not keep the engine running.
    pub(crate) fn downgrade(&self) -> WeakEngine {
        WeakEngine(Arc::downgrade(&self.inner))
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.inner.shared
    }

    /// Whether it was shut down. While a shutdown waits for handlers, it was not.
    pub(crate) fn has_shut_down(&self) -> bool {
        self.inner.stop.is_cancelled()
    }

    #[cfg(feature = "otel")]
    pub(crate) fn shared_arc(&self) -> &Arc<Shared> {
        &self.inner.shared
    }

    /// Shuts down: claims no more jobs, gives back jobs that have not started, lets running attempts finish within `grace`,
    /// settles them, and deregisters. An attempt that did not finish does not count as used.
    pub async fn shutdown(&self, grace: Duration) -> Shutdown {
        let shared = &self.inner.shared;
        if shared.is_stopping() {
            return Shutdown::default();
        }
        // The loops that would settle running attempts are gone.
        let grace = if shared.loops.failure().is_some() { Duration::ZERO } else { grace };
        let running = shared.admission.running();
        let returned = shared.leases.given_back();
        shared.signals.stop();
        shared.reports.waiters.stop();
        let _ = shared.signals.to_dispatch.send(Command::Stop);
        self.wait_for_attempts(grace).await;
        if shared.admission.running() > 0 {
            shared.leases.cancel_all();
            self.wait_for_attempts(STOP_GRACE).await;
        }
        let abandoned = shared.admission.running();
        notify::finish(shared).await;
        self.inner.stop.cancel();
        for ended in self.end_loops() {
            let _ = ended.await;
        }
        let holder = shared.holder();
        if let Err(error) = housekeeping::give_back_all(shared, holder).await {
            tracing::warn!(%error, "failed to release claimed jobs: other nodes take them over when the lease expires");
        }
        if let Err(error) = shared.store.leave(holder).await {
            tracing::warn!(%error, "this node failed to deregister: its lease expires by itself");
        }
        // The results of the last attempts. Last, because jobs of other nodes do not wait for it.
        kind_history::report(shared).await;
        let given_back = (shared.leases.given_back() - returned).saturating_sub(abandoned);
        Shutdown { given_back, finished: running.saturating_sub(abandoned), abandoned }
    }

    /// Stops at once, like a crash: it does not give back or settle jobs, and does not deregister. For tests.
    pub fn kill(&self) {
        self.inner.shared.signals.stop();
        self.inner.shared.reports.waiters.stop();
        drop(self.end_loops());
    }

    async fn wait_for_attempts(&self, most: Duration) {
        let shared = &self.inner.shared;
        let ends = shared.clock.now().plus(most);
        // A taken slot without a job is an insert in progress, which may return a lease.
        let is_busy = || {
            shared.leases.count() > 0
                || shared.admission.running() > 0
                || !self.has_ceased_to_claim()
        };
        while is_busy() && !ends.since(shared.clock.now()).is_zero() {
            shared.clock.sleep(STOP_LOOK).await;
        }
    }

    fn has_ceased_to_claim(&self) -> bool {
        let loops = self.inner.loops.lock().unwrap_or_else(PoisonError::into_inner);
        loops.last().is_none_or(JoinHandle::is_finished)
    }

    /// Returns the handles to wait for.
    fn end_loops(&self) -> Vec<JoinHandle<()>> {
        let loops =
            std::mem::take(&mut *self.inner.loops.lock().unwrap_or_else(PoisonError::into_inner));
        loops.iter().for_each(JoinHandle::abort);
        loops
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let loops = self.loops.get_mut().unwrap_or_else(PoisonError::into_inner);
        loops.iter().for_each(JoinHandle::abort);
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("status", &self.status()).finish_non_exhaustive()
    }
}
