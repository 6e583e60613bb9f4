//! One engine: how it is built, what can be asked of it, how it stops.

use crate::claim::Claims;
use crate::counts::DecisionCount;
use crate::dispatch::Dispatch;
use crate::guard::GuardedStore;
use crate::heartbeat::{Heartbeat, new_holder};
use crate::housekeeping::{self, Housekeeping};
use crate::notify::{self, Notifying, Telling};
use crate::park::Parking;
use crate::runner::{IntoReport, JobContext, JobKind, Json, Raw, Runner, Typed};
use crate::settings::{EngineSettings, KindSettings, SettingError};
use crate::settle::Settles;
use crate::shared::{Command, Parts, RunnerSource, Shared};
use crate::submit::{self, IdTime, Submit};
use rewheel::{CancelToken, Random};
use rewheel_core::store::{Answer, Insert, Inserted, Store, StoreError};
use rewheel_core::{Actor, HolderId, JobId, KindChange, KindChanged, KindName, NameError, NewKind};
use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// How long handlers that were told to stop may take to do so.
const STOP_GRACE: Duration = Duration::from_secs(1);

/// How often a shutdown looks whether the last attempt is over.
const STOP_LOOK: Duration = Duration::from_millis(10);

/// An engine could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A name that a handler was given breaks the rules.
    #[error("kind `{kind}` {why}")]
    Kind {
        /// What was given.
        kind: String,
        /// The rule.
        why: NameError,
    },
    /// A setting of a kind cannot work.
    #[error("kind `{kind}`: {why}")]
    KindSetting {
        /// Of which kind.
        kind: String,
        /// Which, and why.
        why: SettingError,
    },
    /// A setting of the engine cannot work.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The store says why.
    #[error(transparent)]
    Store(#[from] StoreError),
}

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
    /// The one that claims is the last.
    loops: Mutex<Vec<JoinHandle<()>>>,
    /// Ends the loops that outlast the work.
    stop: CancelToken,
}

/// What an engine is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineStatus {
    /// Who it is to others.
    pub holder: HolderId,
    /// Whether its lease ran out, so that it starts nothing new.
    pub doubtful: bool,
    /// Whether it shuts down.
    pub stopping: bool,
    /// How many attempts may run.
    pub places: usize,
    /// How many more could.
    pub places_free: usize,
    /// How many jobs wait in it for their time or for a place.
    pub waiting: usize,
}

/// What a shutdown did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shutdown {
    /// Jobs that had not started, and went back.
    pub given_back: usize,
    /// Attempts that finished in time.
    pub finished: usize,
    /// Attempts that did not: their jobs run again, and no attempt is charged.
    pub abandoned: usize,
}

impl fmt::Display for Shutdown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shutdown { given_back, finished, abandoned } = self;
        write!(f, "gave back {given_back} jobs that had not started, finished {finished}")?;
        if *abandoned > 0 {
            write!(f, ", abandoned {abandoned} that took too long")?;
        }
        Ok(())
    }
}

impl Engine {
    /// Starts to describe an engine on a store.
    pub fn builder(store: Arc<dyn Store>) -> EngineBuilder {
        EngineBuilder {
            store,
            settings: EngineSettings::default(),
            random: Random::thread(),
            id_time: IdTime::Machine,
            self_audit: true,
            handlers: Vec::new(),
            kinds: BTreeMap::new(),
            source: None,
            notifying: Notifying::default(),
        }
    }

    /// Submits a job; await what is returned. Once it answers, the job is durable.
    pub fn submit<T: JobKind>(&self, job: T) -> Submit<'_> {
        Submit::typed(self, &job)
    }

    /// Submits a job whose payload is bytes that only its runner understands.
    pub fn submit_raw(&self, kind: &str, payload: Vec<u8>) -> Submit<'_> {
        Submit::raw(self, kind, payload)
    }

    /// Inserts jobs as the store does. A single one that may run at once goes directly to a free
    /// place.
    ///
    /// # Errors
    /// Passes on what the store says.
    pub async fn insert(&self, insert: &Insert<'_>) -> Answer<Vec<Inserted>> {
        submit::insert(&self.inner.shared, insert).await
    }

    /// Makes an id for a new job.
    pub fn new_id(&self) -> JobId {
        self.inner.shared.new_id()
    }

    /// Returns the store, as the engine sees it: a call answers within the statement timeout, is
    /// made again where that may help, and is refused at once while the store is away.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.inner.shared.store
    }

    /// Returns the engine's settings.
    pub fn settings(&self) -> &EngineSettings {
        &self.inner.shared.settings
    }

    /// Writes the settings of a kind, which may begin to exist.
    ///
    /// # Errors
    /// Passes on what the store says.
    pub async fn put_kind(
        &self,
        kind: &KindName,
        settings: &KindSettings,
        by: &Actor,
    ) -> Answer<()> {
        let shared = &self.inner.shared;
        shared.store.put_kinds(&[new_kind(kind, settings)], by).await?;
        shared.learn(&shared.store.kinds().await?);
        shared.look.notify_one();
        Ok(())
    }

    /// Pauses or resumes a kind, or has the last word on whether its dependency is asked.
    ///
    /// # Errors
    /// Passes on what the store says.
    ///
    /// ```
    /// # use rewheel_core::{Actor, KindChange, KindName, Report};
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
    ) -> Answer<KindChanged> {
        let shared = &self.inner.shared;
        let changed = shared.store.change_kind(kind, change, by).await?;
        if let KindChanged::Applied(kind) | KindChanged::Refused(kind) = &changed {
            shared.learn_one(kind);
        }
        shared.look.notify_one();
        Ok(changed)
    }

    /// Returns the settings of a kind, as they were last read from the store.
    pub fn kind_settings(&self, kind: &KindName) -> Option<KindSettings> {
        self.inner.shared.kind(kind).map(|entry| entry.settings.clone())
    }

    /// Returns whether this engine can run jobs of a kind.
    pub fn runs(&self, kind: &KindName) -> bool {
        self.inner.shared.kind(kind).is_some_and(|entry| entry.runner.is_some())
    }

    /// Returns what the engine is doing.
    pub fn status(&self) -> EngineStatus {
        let shared = &self.inner.shared;
        EngineStatus {
            holder: shared.holder(),
            doubtful: shared.is_doubtful(),
            stopping: shared.is_stopping(),
            places: shared.settings.places,
            places_free: shared.places.available_permits(),
            waiting: shared.waiting_count(),
        }
    }

    /// Returns how often this engine decided what, for each category of failure, since it started.
    /// Only what was settled counts: one whose lease was superseded decided nothing. What sweeps end
    /// (deadlines, takeovers) is the store's.
    pub fn decisions(&self) -> Vec<DecisionCount> {
        self.inner.shared.decided.read()
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.inner.shared
    }

    /// Stops: claims nothing more, gives back what has not started, lets what runs finish within
    /// `grace`, settles it, and leaves. No attempt is charged for what did not finish.
    pub async fn shutdown(&self, grace: Duration) -> Shutdown {
        let shared = &self.inner.shared;
        if shared.is_stopping() {
            return Shutdown::default();
        }
        let running = shared.running();
        let returned = shared.given_back();
        shared.stop();
        let _ = shared.to_dispatch.send(Command::Stop);
        self.wait_for_attempts(grace).await;
        if shared.running() > 0 {
            shared.cancel_all();
            self.wait_for_attempts(STOP_GRACE).await;
        }
        let abandoned = shared.running();
        notify::finish(shared).await;
        self.inner.stop.cancel();
        for ended in self.end_loops() {
            let _ = ended.await;
        }
        let holder = shared.holder();
        if let Err(error) = housekeeping::give_back_all(shared, holder).await {
            tracing::warn!(%error, "giving back failed: others will find them");
        }
        if let Err(error) = shared.store.leave(holder).await {
            tracing::warn!(%error, "leaving failed: others will find out");
        }
        let given_back = (shared.given_back() - returned).saturating_sub(abandoned);
        Shutdown { given_back, finished: running.saturating_sub(abandoned), abandoned }
    }

    /// Stops at once, as a crash would: nothing is given back, settled or said. For tests.
    pub fn kill(&self) {
        self.inner.shared.stop();
        drop(self.end_loops());
    }

    async fn wait_for_attempts(&self, most: Duration) {
        let shared = &self.inner.shared;
        let ends = shared.clock.now().plus(most);
        // A place without a job is an insert on its way, which may come back with a lease.
        let is_busy =
            || shared.held_count() > 0 || shared.running() > 0 || !self.has_ceased_to_claim();
        while is_busy() && !ends.since(shared.clock.now()).is_zero() {
            shared.clock.sleep(STOP_LOOK).await;
        }
    }

    fn has_ceased_to_claim(&self) -> bool {
        let loops = self.inner.loops.lock().unwrap_or_else(PoisonError::into_inner);
        loops.last().is_none_or(JoinHandle::is_finished)
    }

    /// Returns what to wait for to be sure that they ended.
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

/// Describes an engine.
#[must_use = "an engine runs once it is started"]
pub struct EngineBuilder {
    store: Arc<dyn Store>,
    settings: EngineSettings,
    random: Random,
    id_time: IdTime,
    self_audit: bool,
    handlers: Vec<(String, Arc<dyn Runner>)>,
    kinds: BTreeMap<String, KindSettings>,
    source: Option<Box<RunnerSource>>,
    pub(crate) notifying: Notifying,
}

impl EngineBuilder {
    /// Sets all settings.
    pub fn settings(mut self, settings: EngineSettings) -> EngineBuilder {
        self.settings = settings;
        self
    }

    /// Makes chance repeatable, in tests: ids carry no time then.
    pub fn random(mut self, random: Random) -> EngineBuilder {
        self.random = random;
        self.id_time = IdTime::None;
        self
    }

    /// Leaves out the search for jobs that were leased without an answer, so that a test can show
    /// that they are found overdue.
    pub fn without_self_audit(mut self) -> EngineBuilder {
        self.self_audit = false;
        self
    }

    /// Names a kind and its settings. Those of a kind that exists are replaced.
    pub fn kind(mut self, name: &str, settings: KindSettings) -> EngineBuilder {
        self.kinds.insert(name.to_owned(), settings);
        self
    }

    /// Runs jobs of a type of this program. Their kind begins to exist.
    pub fn handler<T, F, Fut>(self, handler: F) -> EngineBuilder
    where
        T: JobKind,
        F: Fn(JobContext, T) -> Fut + Send + Sync + 'static,
        Fut: Future + Send + 'static,
        Fut::Output: IntoReport,
    {
        self.runner(T::NAME, Typed { handler, codec: Json, job: PhantomData })
    }

    /// Runs jobs of a type of this program whose payload is not JSON.
    pub fn handler_with<T, C, F, Fut>(self, codec: C, handler: F) -> EngineBuilder
    where
        T: JobKind,
        C: crate::runner::Codec,
        F: Fn(JobContext, T) -> Fut + Send + Sync + 'static,
        Fut: Future + Send + 'static,
        Fut::Output: IntoReport,
    {
        self.runner(T::NAME, Typed { handler, codec, job: PhantomData })
    }

    /// Runs jobs of a kind whose payload the handler reads itself. The kind begins to exist.
    pub fn raw_handler<F, Fut>(self, kind: &str, handler: F) -> EngineBuilder
    where
        F: Fn(JobContext) -> Fut + Send + Sync + 'static,
        Fut: Future + Send + 'static,
        Fut::Output: IntoReport,
    {
        self.runner(kind, Raw(handler))
    }

    fn runner(mut self, kind: &str, runner: impl Runner + 'static) -> EngineBuilder {
        self.handlers.push((kind.to_owned(), Arc::new(runner)));
        self
    }

    /// Finds runners for kinds without a handler, whenever kinds change.
    pub fn runners(
        mut self,
        source: impl Fn(&KindName, &KindSettings) -> Option<Arc<dyn Runner>> + Send + Sync + 'static,
    ) -> EngineBuilder {
        self.source = Some(Box::new(source));
        self
    }

    /// Joins the store's holders, and begins to work.
    ///
    /// # Errors
    /// Says which setting or kind makes no sense, or what the store says.
    pub async fn start(self) -> Result<Engine, StartError> {
        self.settings.check()?;
        let telling = self.notifying.open()?;
        let mut handlers = BTreeMap::new();
        for (name, runner) in self.handlers {
            handlers.insert(parse_kind(&name)?, runner);
        }
        let mut named = Vec::new();
        for (name, settings) in &self.kinds {
            let wrong = |why| StartError::KindSetting { kind: name.clone(), why };
            settings.check().map_err(wrong)?;
            named.push(new_kind(&parse_kind(name)?, settings));
        }
        let (random, id_time) = (self.random, self.id_time);
        let store = GuardedStore::new(self.store, &self.settings, &random);
        let unsure = store.unsure();
        let store: Arc<dyn Store> = Arc::new(store);
        let known = store.kinds().await?;
        for name in handlers.keys() {
            let is_named = |kind: &KindName| kind == name;
            let exists = known.iter().any(|kind| is_named(&kind.name))
                || named.iter().any(|kind| is_named(&kind.name));
            if !exists {
                named.push(new_kind(name, &KindSettings::default()));
            }
        }
        store.put_kinds(&named, &Actor::new("engine")).await?;
        let parts = Parts {
            store,
            unsure,
            settings: self.settings,
            random,
            id_time,
            self_audit: self.self_audit,
            handlers,
            source: self.source,
            desk: telling.as_ref().map(Telling::desk),
        };
        start(parts, telling).await
    }
}

impl fmt::Debug for EngineBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EngineBuilder").field("settings", &self.settings).finish_non_exhaustive()
    }
}

async fn start(parts: Parts, telling: Option<Telling>) -> Result<Engine, StartError> {
    let (to_dispatch, commands) = mpsc::unbounded_channel();
    let (to_settle, finished) = mpsc::unbounded_channel();
    let (returning, returned) = mpsc::unbounded_channel();
    let shared = Arc::new(Shared::new(parts, to_dispatch, to_settle));
    let holder = shared.holder();
    shared.learn(&shared.store.kinds().await?);
    shared.store.join(&new_holder(holder, &shared)).await?;
    let stop = CancelToken::new();
    let telling = telling.map(|telling| telling.loops(&shared, &stop)).unwrap_or_default();
    let mut loops: Vec<_> = telling.into_iter().map(spawn).collect();
    loops.extend([
        spawn(Dispatch::new(Arc::clone(&shared), commands, returning).run()),
        spawn(housekeeping::give_back(Arc::clone(&shared), returned)),
        spawn(Settles::new(Arc::clone(&shared), finished).run()),
        spawn(Heartbeat::new(Arc::clone(&shared)).run(stop.clone())),
        spawn(Housekeeping::new(Arc::clone(&shared)).run(stop.clone())),
        spawn(Parking::new(Arc::clone(&shared)).run(stop.clone())),
        spawn(Claims::new(Arc::clone(&shared)).run()),
    ]);
    tracing::info!(%holder, name = shared.settings.name, "engine started");
    Ok(Engine { inner: Arc::new(Inner { shared, loops: Mutex::new(loops), stop }) })
}

/// The one place that starts what runs beside; whoever has the handle ends it.
#[expect(clippy::disallowed_methods, reason = "every loop is owned and ended by its engine")]
fn spawn(work: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
    tokio::spawn(work)
}

fn parse_kind(name: &str) -> Result<KindName, StartError> {
    KindName::parse(name).map_err(|why| StartError::Kind { kind: name.to_owned(), why })
}

fn new_kind(name: &KindName, settings: &KindSettings) -> NewKind {
    NewKind {
        name: name.clone(),
        settings: serde_json::to_string(settings).unwrap_or_else(|_| "{}".to_owned()),
        takeovers_max: settings.takeovers_max,
    }
}
