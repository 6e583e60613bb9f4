//! Runs the server from start to shutdown.

use crate::app::App;
use crate::config::Config;
use crate::connections::{Connections, Plain};
use crate::demo::{self, Demo};
use crate::notify::{self, RouteError, RouteTarget};
use crate::systemd::Systemd;
use crate::tls::{Tls, TlsError};
use crate::{rest, runners, telemetry};
use axum::Router;
use rewheel::CancelToken;
use rewheel_core::store::{Store, StoreError};
use rewheel_core::{KindChange, KindName};
use rewheel_engine::meters::Build;
use rewheel_engine::{Actor, Engine, EngineFailure, ScheduleError, Shutdown, StartError};
use rewheel_stores::{ConnectError, connect};
use std::collections::BTreeSet;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

/// How long running responses may take after everything else has ended.
const LAST_ANSWERS: Duration = Duration::from_secs(5);

/// The server could not run.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The server would be open to everyone.
    #[error(
        "cannot listen on {0} without tokens: anyone who reaches this address could control the server; create a token with `rewheel token create ops --role admin --store URL`, set REWHEEL__SERVER__ADMIN_TOKEN, or listen on a loopback address such as 127.0.0.1:7420"
    )]
    BeyondLoopback(SocketAddr),
    /// The address is in use, or does not belong to this machine.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The certificate or its key cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The store cannot be opened.
    #[error(transparent)]
    Store(#[from] ConnectError),
    /// The store failed while the kinds were paused.
    #[error("failed to pause the kinds, so no job was started")]
    Pause(#[from] StoreError),
    /// A notification route is invalid.
    #[error(transparent)]
    Notify(#[from] RouteError),
    /// The engine cannot start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The network failed.
    #[error("the server failed because of an I/O error")]
    Io(#[from] std::io::Error),
    /// The engine stopped by itself; its jobs were given back.
    #[error(
        "{0}; other nodes can run the jobs of this server; restart the server and report this as a bug"
    )]
    Engine(EngineFailure),
    /// A schedule of the config cannot be stored.
    #[error("schedules.{name}: {source}")]
    Schedule {
        /// Its name.
        name: String,
        /// Why not.
        source: ScheduleError,
    },
    /// A second signal ended the shutdown early.
    #[error(
        "shutdown was interrupted by a second signal: the attempts that were running will run again"
    )]
    Interrupted,
}

/// A status message for the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerEvent {
    /// The server accepts requests at this address.
    Ready(SocketAddr),
    /// The introduction of the demo.
    Showing(String),
    /// The server is shutting down.
    Stopping,
    /// The server has shut down.
    Stopped(Shutdown),
}

/// What the server shows in addition to its work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Show {
    /// Nothing.
    #[default]
    Nothing,
    /// The demo: jobs that fail in several ways and are retried.
    Demo,
}

/// What runs at the start of the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StartMode {
    /// Jobs start as soon as the server runs.
    #[default]
    Running,
    /// Every kind of the store is paused before any job starts, for all nodes. An operator resumes the kinds.
    Paused,
}

/// How to serve, besides the config.
#[derive(Clone, Copy, Debug, Default)]
pub struct ServeOptions {
    /// What the server shows in addition to its work.
    pub show: Show,
    /// What runs at the start.
    pub start: StartMode,
    /// The program that contains the server, for the metric `rewheel_build_info`.
    pub build: Build,
}

/// A server that is bound to its address.
#[derive(Debug)]
pub struct Server {
    app: Arc<App>,
    listener: TcpListener,
    tls: Option<Tls>,
    address: SocketAddr,
    demo: Option<Demo>,
    options: ServeOptions,
    systemd: Systemd,
}

impl Server {
    /// Binds the address in the config. The server does not respond yet.
    ///
    /// # Errors
    /// Says why the address cannot or must not be used.
    pub async fn bind(config: Config) -> Result<Server, ServeError> {
        let address = config.server.listen;
        if !config.server.is_private() && !has_tokens(&config).await? {
            return Err(ServeError::BeyondLoopback(address));
        }
        let tls = config.server.tls.as_ref().map(Tls::load).transpose()?;
        let taken = |source| ServeError::Listen { address, source };
        let listener = TcpListener::bind(address).await.map_err(taken)?;
        let address = listener.local_addr()?;
        let (options, systemd) = (ServeOptions::default(), Systemd::default());
        let app = Arc::new(App::new(config));
        Ok(Server { app, listener, tls, address, demo: None, options, systemd })
    }

    /// Sets the options, and starts the demo if they ask for it.
    ///
    /// # Errors
    /// If the demo cannot start.
    pub async fn with(mut self, options: ServeOptions) -> Result<Server, ServeError> {
        self.options = options;
        self.show(options.show).await
    }

    /// Starts the demo, if requested.
    ///
    /// # Errors
    /// If the demo cannot start.
    pub async fn show(mut self, show: Show) -> Result<Server, ServeError> {
        self.demo = match show {
            Show::Nothing => None,
            Show::Demo => Some(demo::start().await?),
        };
        Ok(self)
    }

    /// Returns the address, with the actual port if the config says 0.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Opens the store, runs jobs and serves requests until `stop`, then shuts down gracefully.
    ///
    /// `/livez` responds from the start, `/readyz` once the server accepts requests.
    ///
    /// # Errors
    /// Says what could not be started.
    ///
    /// # Cancel safety
    /// Dropping the future is like a crash: leases expire, and other nodes take over.
    pub async fn run(
        self,
        stop: impl Future<Output = ()>,
        say: impl FnMut(&ServerEvent),
    ) -> Result<(), ServeError> {
        let options = self.options;
        let start = async |config: &Config, demo: Option<&Demo>| start(config, demo, options).await;
        self.run_over(start, stop, say).await
    }

    /// As [`run`](Server::run), with an engine that `start` starts.
    async fn run_over(
        self,
        start: impl AsyncFnOnce(&Config, Option<&Demo>) -> Result<Engine, ServeError>,
        stop: impl Future<Output = ()>,
        mut say: impl FnMut(&ServerEvent),
    ) -> Result<(), ServeError> {
        let Server { app, listener, tls, address, demo, options: _, systemd } = self;
        let quiet = CancelToken::new();
        let router = rest::router(Arc::clone(&app));
        let mut serving = answer(listener, tls, router, (app.config(), &quiet));
        let working = async {
            let engine = start(app.config(), demo.as_ref()).await?;
            app.started(engine.clone());
            let telemetry = app.config().telemetry.clone();
            let mut failure = None;
            let stop = async { failure = until_failure(&engine, stop).await };
            let stop = telemetry::while_exported(engine.clone(), telemetry, stop);
            let stop = systemd.while_fed(&engine, stop);
            say(&ServerEvent::Ready(address));
            systemd.say("READY=1");
            if let Some(demo) = &demo {
                say(&ServerEvent::Showing(demo.to_string()));
                show_until(&engine, demo, stop).await;
            } else {
                stop.await;
            }
            // Load balancers see the shutdown in /readyz from here on.
            app.stop();
            say(&ServerEvent::Stopping);
            systemd.say("STOPPING=1");
            let shutdown = engine.shutdown(app.config().server.shutdown_grace).await;
            say(&ServerEvent::Stopped(shutdown));
            Ok::<_, ServeError>((engine, failure))
        };
        let (engine, failure) = tokio::select! {
            () = &mut serving => return Ok(()),
            worked = working => worked?,
        };
        quiet.cancel();
        if tokio::time::timeout(LAST_ANSWERS, serving).await.is_err() {
            tracing::warn!("the server closed the connections that were still open at shutdown");
        }
        telemetry::flush().await;
        if let Err(error) = engine.store().close().await {
            tracing::warn!(%error, "failed to close the store");
        }
        failure.map_or(Ok(()), |failure| Err(ServeError::Engine(failure)))
    }
}

/// Waits until the server is asked to stop, or its engine fails: then the process supervisor restarts it.
async fn until_failure(engine: &Engine, stop: impl Future<Output = ()>) -> Option<EngineFailure> {
    tokio::select! {
        biased;
        () = stop => None,
        failure = engine.failed() => Some(failure),
    }
}

/// Returns whether there are any tokens.
async fn has_tokens(config: &Config) -> Result<bool, ServeError> {
    if config.server.admin_token.is_some() {
        return Ok(true);
    }
    // This check must not create the file.
    let file = config.store.url.strip_prefix("sqlite://").and_then(|url| url.split('?').next());
    if file.is_some_and(|file| !file.is_empty() && !std::path::Path::new(file).exists()) {
        return Ok(false);
    }
    let store = connect(&config.store_url()).await?;
    let tokens = store.tokens().await.map_err(ConnectError::Store)?;
    store.close().await.map_err(ConnectError::Store)?;
    Ok(tokens.iter().any(|token| token.revoked.is_none()))
}

/// Serves requests until `quiet`.
fn answer(
    listener: TcpListener,
    tls: Option<Tls>,
    router: Router,
    (config, quiet): (&Config, &CancelToken),
) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    let connections = Connections::new(&config.server.limits);
    match tls {
        None => Box::pin(connections.serve(listener, Plain, router, quiet.clone())),
        Some(tls) => Box::pin(connections.serve(listener, tls, router, quiet.clone())),
    }
}

/// Pauses kinds at the start of a server, each once: an operator may resume a kind meanwhile.
struct Paused {
    mode: StartMode,
    done: BTreeSet<KindName>,
}

impl Paused {
    fn new(mode: StartMode) -> Paused {
        Paused { mode, done: BTreeSet::new() }
    }

    /// Pauses all kinds of the store but bulk operations, which an operator needs to clean up.
    async fn pause_all(&mut self, store: &dyn Store) -> Result<(), ServeError> {
        match self.mode {
            StartMode::Running => return Ok(()),
            StartMode::Paused => {}
        }
        let by = Actor::new("serve --paused");
        for kind in store.kinds().await? {
            if kind.name.as_str() != OPERATIONS && self.done.insert(kind.name.clone()) {
                store.change_kind(&kind.name, &KindChange::Pause, &by).await?;
            }
        }
        Ok(())
    }
}

/// The kind of bulk operations.
const OPERATIONS: &str = "rewheel.operation";

/// Opens the store, and starts the engine.
async fn start(
    config: &Config,
    demo: Option<&Demo>,
    options: ServeOptions,
) -> Result<Engine, ServeError> {
    let store = connect(&config.store_url()).await?;
    let mut paused = Paused::new(options.start);
    paused.pause_all(store.as_ref()).await?;
    let shown = demo.iter().flat_map(|demo| &demo.kinds).map(|(name, _)| name.clone()).collect();
    let mut builder = Engine::builder(store)
        .settings(config.engine.clone())
        .built_from(options.build)
        .runners(runners::source(config, shown));
    builder = builder.notify_settings(config.notify.settings());
    for built in notify::build(&config.notify)? {
        builder = match (built.notifier, built.to) {
            (Some(notifier), _) => builder.notifier(&built.name, built.route, notifier),
            (None, RouteTarget::Job(kind)) => {
                builder.dead_letter_job(&built.name, built.route, kind)
            }
            (None, RouteTarget::Message(_)) => builder,
        };
    }
    for (name, settings) in &config.kinds {
        builder = builder.kind(name.as_str(), settings.clone());
    }
    for (name, settings) in &config.tenants {
        builder = builder.tenant(name, settings.clone());
    }
    if let Some(demo) = demo {
        builder = demo.prepare(builder);
    }
    let engine = builder.start().await?;
    // The kinds of the config that were not in the store.
    paused.pause_all(engine.store().as_ref()).await?;
    for (name, schedule) in &config.schedules {
        let put = engine.put_schedule(name.as_str(), schedule, &Actor::new("config")).await;
        put.map_err(|source| ServeError::Schedule { name: name.to_string(), source })?;
    }
    if demo.is_some() {
        let put = demo::put_schedule(&engine).await;
        put.map_err(|source| ServeError::Schedule { name: "demo".to_owned(), source })?;
    }
    // The kind of schedules is created with the first of them.
    paused.pause_all(engine.store().as_ref()).await?;
    Ok(engine)
}

/// Runs the demo. It ends before the engine does, so that no submit is interrupted.
async fn show_until(engine: &Engine, demo: &Demo, stop: impl Future<Output = ()>) {
    let enough = CancelToken::new();
    let stopping = async {
        stop.await;
        enough.cancel();
    };
    tokio::join!(
        stopping,
        demo::trickle(engine.clone(), demo.hosts.clone(), enough.clone()),
        demo::narrate(engine.clone(), enough.clone()),
    );
    demo::delete_schedule(engine).await;
}

/// Runs a server until ctrl-c or SIGTERM. A second signal ends it at once.
///
/// # Errors
/// Says what could not be started, or that a second signal interrupted the shutdown.
pub async fn serve(
    config: Config,
    options: ServeOptions,
    say: impl FnMut(&ServerEvent),
) -> Result<(), ServeError> {
    let mut signals = Signals::new()?;
    let asked = CancelToken::new();
    let mut server = Server::bind(config).await?.with(options).await?;
    server.systemd = Systemd::from_environment();
    let running = server.run(asked.cancelled(), say);
    let impatience = async {
        signals.next().await;
        asked.cancel();
        signals.next().await;
    };
    tokio::select! {
        ran = running => ran,
        () = impatience => Err(ServeError::Interrupted),
    }
}

/// The signals that end a process.
struct Signals {
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
}

impl Signals {
    #[cfg(unix)]
    fn new() -> std::io::Result<Signals> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    #[cfg(unix)]
    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }

    #[cfg(not(unix))]
    fn new() -> std::io::Result<Signals> {
        Ok(Signals {})
    }

    #[cfg(not(unix))]
    async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests;
