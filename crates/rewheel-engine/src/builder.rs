//! Builds and starts an engine.

use crate::claim::Claims;
use crate::dispatch::Dispatch;
use crate::engine::Engine;
use crate::events::Log;
use crate::guard::GuardedStore;
use crate::heartbeat::{Heartbeat, new_holder};
use crate::housekeeping::{self, Housekeeping};
use crate::job_counts;
use crate::kind_history;
use crate::kinds::{check_backoff, new_kind};
use crate::meters::Build;
use crate::notify::{Notifying, Telling};
use crate::operation::{self, Operator};
use crate::park::Parking;
use crate::retention::Retention;
use crate::runner::{IntoReport, JobContext, JobKind, Raw, Runner, Typed};
use crate::schedule::{self, Scheduler};
use crate::settings::{EngineSettings, KindSettings, SettingError};
use crate::settle::Settles;
use crate::shards::ShardRouter;
use crate::shared::{Parts, RunnerSource, Shared};
use crate::submit::IdTime;
use crate::submit_batching;
use crate::supervise::{self, Work};
use crate::takeover::Takeover;
use crate::tenant_settings::{TenantBook, TenantSettings};
use crate::waiters;
use rewheel::{Backoffs, CancelToken, Random};
use rewheel_core::store::{Store, StoreError};
use rewheel_core::{Actor, KindName, Limits, NameError, Retain};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Error: the engine could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The name of a handler's kind is invalid.
    #[error("kind `{kind}` {why}")]
    Kind {
        /// The name.
        kind: String,
        /// The reason.
        why: NameError,
    },
    /// A setting of a kind is invalid.
    #[error("kind `{kind}`: {why}")]
    KindSetting {
        /// The kind.
        kind: String,
        /// The setting, and the reason.
        why: SettingError,
    },
    /// A default for the settings of kinds is invalid.
    #[error("kind defaults: {0}")]
    KindDefaults(#[source] SettingError),
    /// The name of a kind is reserved for the engine.
    #[error("kind `{kind}`: names that begin with `rewheel.` are reserved")]
    Reserved {
        /// The name.
        kind: String,
    },
    /// Dead letters are routed to jobs of a kind that does not exist.
    #[error(
        "dead letters are routed to jobs of the kind `{kind}`, which does not exist: define it in the config, or with a handler"
    )]
    LetterKind {
        /// The name.
        kind: String,
    },
    /// The name of a tenant is invalid.
    #[error("tenant `{tenant}` {why}")]
    Tenant {
        /// The name.
        tenant: String,
        /// The reason.
        why: NameError,
    },
    /// A setting of a tenant is invalid.
    #[error("tenant `{tenant}`: {why}")]
    TenantSetting {
        /// The tenant.
        tenant: String,
        /// The setting, and the reason.
        why: SettingError,
    },
    /// A setting of the engine is invalid.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Builder of an [`Engine`].
#[must_use = "an engine does nothing until it is started"]
pub struct EngineBuilder {
    store: Arc<dyn Store>,
    settings: EngineSettings,
    random: Random,
    id_time: IdTime,
    self_audit: bool,
    handlers: Vec<(String, Arc<dyn Runner>)>,
    kinds: BTreeMap<String, KindSettings>,
    kind_defaults: Option<KindSettings>,
    tenants: BTreeMap<String, TenantSettings>,
    source: Option<Box<RunnerSource>>,
    backoffs: Backoffs,
    router: Option<Box<dyn ShardRouter>>,
    build: Build,
    pub(crate) notifying: Notifying,
}

impl EngineBuilder {
    pub(crate) fn new(store: Arc<dyn Store>) -> EngineBuilder {
        EngineBuilder {
            store,
            settings: EngineSettings::default(),
            random: Random::thread(),
            id_time: IdTime::Machine,
            self_audit: true,
            handlers: Vec::new(),
            kinds: BTreeMap::new(),
            kind_defaults: None,
            tenants: BTreeMap::new(),
            source: None,
            backoffs: Backoffs::new(),
            router: None,
            build: Build::default(),
            notifying: Notifying::default(),
        }
    }

    /// Sets all settings.
    pub fn settings(mut self, settings: EngineSettings) -> EngineBuilder {
        self.settings = settings;
        self
    }

    /// Sets the random source, for reproducible tests. With it, ids contain no time.
    pub fn random(mut self, random: Random) -> EngineBuilder {
        self.random = random;
        self.id_time = IdTime::None;
        self
    }

    /// Names the program that contains this engine, for the metric `rewheel_build_info`.
    pub fn built_from(mut self, build: Build) -> EngineBuilder {
        self.build = build;
        self
    }

    /// Disables the search for jobs that the store leased in a call whose response was lost. So a
    /// test can show that these jobs become overdue and are taken over.
    pub fn without_self_audit(mut self) -> EngineBuilder {
        self.self_audit = false;
        self
    }

    /// Adds a kind with its settings. Replaces the settings of an existing kind.
    pub fn kind(mut self, name: &str, settings: KindSettings) -> EngineBuilder {
        self.kinds.insert(name.to_owned(), settings);
        self
    }

    /// Sets the settings of every kind that has a handler but no settings of its own. These settings replace the settings of
    /// an existing kind, as [`kind`](EngineBuilder::kind) does. Without `kind_defaults`, a new kind has
    /// [`KindSettings::default`], and an existing kind keeps its settings.
    ///
    /// ```
    /// use rewheel_engine::{Engine, KindName, KindSettings, Report};
    /// use std::time::Duration;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let ours = KindSettings { attempts_max: 3, keep_succeeded: Duration::ZERO, ..KindSettings::default() };
    /// let report = KindSettings { attempt_timeout: Duration::from_secs(300), ..ours.clone() };
    /// let engine = Engine::builder(rewheel_stores::connect("memory://").await?)
    ///     .kind_defaults(ours)
    ///     .raw_handler("mail", |_| async { Report::Done })
    ///     .raw_handler("report", |_| async { Report::Done })
    ///     .kind("report", report)
    ///     .start()
    ///     .await?;
    /// let mail = engine.kind_settings(&KindName::parse("mail")?).unwrap();
    /// let report = engine.kind_settings(&KindName::parse("report")?).unwrap();
    /// assert_eq!((mail.attempts_max, report.attempts_max), (3, 3));
    /// assert_eq!(report.attempt_timeout, Duration::from_secs(300));
    /// # Ok(())
    /// # }
    /// ```
    pub fn kind_defaults(mut self, settings: KindSettings) -> EngineBuilder {
        self.kind_defaults = Some(settings);
        self
    }

    /// Sets the limits of a tenant; `*` applies to every tenant that is not named.
    ///
    /// ```
    /// use rewheel_engine::Report;
    /// use rewheel_engine::store::Refusal;
    /// use rewheel_engine::{Engine, SubmitError, TenantSettings};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let engine = Engine::builder(rewheel_stores::connect("memory://").await?)
    ///     .raw_handler("mail", |_| std::future::pending::<Report>())
    ///     .tenant("acme", TenantSettings { jobs_max: Some(1), ..TenantSettings::default() })
    ///     .start()
    ///     .await?;
    /// engine.submit_raw("mail", Vec::new()).tenant("acme").await?;
    /// let full = engine.submit_raw("mail", Vec::new()).tenant("acme").await.unwrap_err();
    /// assert!(matches!(full, SubmitError::Refused(Refusal::TenantFull { jobs_max: 1 })));
    /// # Ok(())
    /// # }
    /// ```
    pub fn tenant(mut self, name: &str, settings: TenantSettings) -> EngineBuilder {
        self.tenants.insert(name.to_owned(), settings);
        self
    }

    /// Sets a router that chooses the shard of a job, instead of its tenant and shard key.
    pub fn shards(mut self, router: impl ShardRouter + 'static) -> EngineBuilder {
        self.router = Some(Box::new(router));
        self
    }

    /// Adds a handler for jobs of a Rust type. Creates their kind.
    pub fn handler<T, F, Fut, M>(self, handler: F) -> EngineBuilder
    where
        T: JobKind,
        F: Fn(JobContext, T) -> Fut + Send + Sync + 'static,
        Fut: Future + Send + 'static,
        Fut::Output: IntoReport<M>,
        M: 'static,
    {
        self.runner(T::NAME, Typed { handler, job: PhantomData })
    }

    /// Adds a handler that reads the payload of its jobs as bytes. Creates the kind.
    pub fn raw_handler<F, Fut, M>(self, kind: &str, handler: F) -> EngineBuilder
    where
        F: Fn(JobContext) -> Fut + Send + Sync + 'static,
        Fut: Future + Send + 'static,
        Fut::Output: IntoReport<M>,
        M: 'static,
    {
        self.runner(kind, Raw { handler, said: PhantomData })
    }

    fn runner(mut self, kind: &str, runner: impl Runner + 'static) -> EngineBuilder {
        self.handlers.push((kind.to_owned(), Arc::new(runner)));
        self
    }

    /// Sets a function that returns runners for kinds without a handler, called whenever kinds
    /// change.
    pub fn runners(
        mut self,
        source: impl Fn(&KindName, &KindSettings) -> Option<Arc<dyn Runner>> + Send + Sync + 'static,
    ) -> EngineBuilder {
        self.source = Some(Box::new(source));
        self
    }

    /// Sets the custom backoffs that kinds and jobs may use by name. The store contains only the names, so register the
    /// backoffs on every node. A node that does not know the backoff of a job uses the backoff of its kind, and `due_because`
    /// shows `unknown_backoff`.
    ///
    /// ```
    /// use rewheel::{Backoffs, Past, seconds};
    /// use rewheel_engine::{Engine, KindSettings, Report};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut backoffs = Backoffs::new();
    /// let by_queue = backoffs.register_custom("by-queue", |past: &Past| seconds(past.attempt.into()))?;
    /// let engine = Engine::builder(rewheel_stores::connect("memory://").await?)
    ///     .backoffs(backoffs)
    ///     .kind("mail", KindSettings { backoff: by_queue, ..KindSettings::default() })
    ///     .raw_handler("mail", |_| async { Report::Done })
    ///     .start()
    ///     .await?;
    /// # engine.shutdown(seconds(1)).await;
    /// # Ok(())
    /// # }
    /// ```
    pub fn backoffs(mut self, backoffs: Backoffs) -> EngineBuilder {
        self.backoffs = backoffs;
        self
    }

    /// Registers as a holder in the store, and starts to work.
    ///
    /// # Errors
    /// Fails with the invalid setting or kind, or with the error of the store.
    pub async fn start(self) -> Result<Engine, StartError> {
        self.settings.check()?;
        let telling = self.notifying.open()?;
        let mut handlers = BTreeMap::new();
        for (name, runner) in self.handlers {
            handlers.insert(parse_kind(&name)?, runner);
        }
        if let Some(defaults) = &self.kind_defaults {
            defaults.check().map_err(StartError::KindDefaults)?;
            check_backoff(&self.backoffs, defaults).map_err(StartError::KindDefaults)?;
        }
        let mut named = Vec::new();
        for (name, settings) in &self.kinds {
            let wrong = |why| StartError::KindSetting { kind: name.clone(), why };
            settings.check().map_err(wrong)?;
            check_backoff(&self.backoffs, settings).map_err(wrong)?;
            named.push(new_kind(&parse_kind(name)?, settings));
        }
        let reserved = handlers.keys().chain(named.iter().map(|kind| &kind.name));
        if let Some(kind) = reserved.into_iter().find(|kind| kind.is_reserved()) {
            return Err(StartError::Reserved { kind: kind.to_string() });
        }
        let tenants = tenant_book(self.tenants)?;
        let (random, id_time) = (self.random, self.id_time);
        let store = GuardedStore::new(self.store, &self.settings, &random);
        let (unsure, store_meters) = (store.unsure(), store.meters());
        let store: Arc<dyn Store> = Arc::new(store);
        let mut has_settings: BTreeSet<KindName> =
            named.iter().map(|kind| kind.name.clone()).collect();
        if self.kind_defaults.is_none() {
            has_settings.extend(store.kinds().await?.into_iter().map(|kind| kind.name));
        }
        let defaults = self.kind_defaults.unwrap_or_default();
        let open = handlers.keys().filter(|name| !has_settings.contains(*name));
        named.extend(open.map(|name| new_kind(name, &defaults)));
        for part in named.chunks(Limits::BATCH_MAX) {
            store.put_kinds(part, &Actor::engine()).await?;
        }
        let events = Log::new(self.settings.waiters_max);
        // Their kind is created with the first of them.
        let keep = Retain { job: self.settings.retention_ended, key: self.settings.retention_keys };
        handlers
            .insert(parse_kind(operation::KIND)?, Arc::new(Operator::new(&store, keep, &events)));
        handlers.insert(parse_kind(schedule::KIND)?, Arc::new(Scheduler));
        let parts = Parts {
            store,
            unsure,
            store_meters,
            settings: self.settings,
            random,
            id_time,
            self_audit: self.self_audit,
            handlers,
            source: self.source,
            backoffs: self.backoffs,
            tenants,
            router: self.router,
            desk: telling.as_ref().map(Telling::desk),
            events,
            build: self.build,
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
    shared.read_kinds().await?;
    if let Some(kind) = shared.unknown_letter_kind() {
        return Err(StartError::LetterKind { kind: kind.to_string() });
    }
    let joined = shared.store.join(&new_holder(holder, &shared)).await?;
    shared.reports.meters.store_time(joined, shared.clock.now());
    let stop = CancelToken::new();
    let telling = telling.map(|telling| telling.loops(&shared, &stop)).unwrap_or_default();
    let essential =
        |name, work| spawn(supervise::essential(Arc::clone(&shared), stop.clone(), name, work));
    let mut loops: Vec<_> = telling.into_iter().map(|work| essential("notify", work)).collect();
    loops.extend(
        submit_batching::flushes(&shared, &stop).map(|work| essential("submit", Box::pin(work))),
    );
    let dispatch = Dispatch::new(Arc::clone(&shared), commands, returning);
    loops.extend([
        essential("dispatch", Box::pin(dispatch.run())),
        essential("give_back", Box::pin(housekeeping::give_back(Arc::clone(&shared), returned))),
        essential("settle", Box::pin(Settles::new(Arc::clone(&shared), finished).run())),
    ]);
    let restarting = |name, make: fn(Arc<Shared>, CancelToken) -> Work| {
        spawn(supervise::restarting(Arc::clone(&shared), stop.clone(), name, make))
    };
    loops.extend([
        restarting("heartbeat", |shared, stop| Box::pin(Heartbeat::new(shared).run(stop))),
        restarting("takeover", |shared, stop| Box::pin(Takeover::new(shared).run(stop))),
        restarting("housekeeping", |shared, stop| Box::pin(Housekeeping::new(shared).run(stop))),
        restarting("retention", |shared, stop| Box::pin(Retention::new(shared).run(stop))),
        restarting("parking", |shared, stop| Box::pin(Parking::new(shared).run(stop))),
        restarting("sampling", |shared, stop| Box::pin(job_counts::sample(shared, stop))),
        restarting("history", |shared, stop| Box::pin(kind_history::run(shared, stop))),
        restarting("waiters", |shared, stop| Box::pin(waiters::look(shared, stop))),
        // The last one: a shutdown waits for it.
        restarting("claim", |shared, _| Box::pin(Claims::new(shared).run())),
    ]);
    tracing::info!(%holder, name = shared.settings.name, "engine started");
    Ok(Engine::of(shared, loops, stop))
}

/// The only place that spawns tasks; the owner of the handle ends it.
#[expect(clippy::disallowed_methods, reason = "every loop is owned and ended by its engine")]
fn spawn(work: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
    tokio::spawn(work)
}

fn tenant_book(all: BTreeMap<String, TenantSettings>) -> Result<TenantBook, StartError> {
    let mut book = TenantBook::default();
    for (tenant, settings) in all {
        if let Err(why) = settings.check() {
            return Err(StartError::TenantSetting { tenant, why });
        }
        if let Err(why) = book.add(&tenant, settings) {
            return Err(StartError::Tenant { tenant, why });
        }
    }
    Ok(book)
}

fn parse_kind(name: &str) -> Result<KindName, StartError> {
    KindName::parse(name).map_err(|why| StartError::Kind { kind: name.to_owned(), why })
}
