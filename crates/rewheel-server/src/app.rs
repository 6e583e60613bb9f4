//! State shared by all request handlers.

use crate::config::Config;
use crate::incident_desk::IncidentDesk;
use crate::problem::{Code, Problem};
use crate::rest::BodyMemory;
use crate::tokens::Keeper;
use crate::workers::Workers;
use rewheel::Random;
use rewheel_core::{KindName, Timestamp};
use rewheel_engine::{Engine, KindSettings};
use std::sync::{Arc, OnceLock};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit, watch};

/// Maximum number of event listeners. Each is a connection and examines every event.
pub(crate) const LISTENERS_MAX: usize = 1_000;

/// The server as its request handlers see it.
#[derive(Debug)]
pub(crate) struct App {
    config: Config,
    /// Not set while the server starts.
    engine: OnceLock<Engine>,
    is_stopping: watch::Sender<bool>,
    listeners: Arc<Semaphore>,
    requests: Semaphore,
    bodies: Arc<BodyMemory>,
    workers: Workers,
    incidents: IncidentDesk,
    tokens: Keeper,
    random: Random,
}

impl App {
    pub(crate) fn new(config: Config) -> App {
        let server = &config.server;
        let tokens = Keeper::new(server.admin_token.map(|token| token.0), server.is_private());
        let limits = &server.limits;
        App {
            requests: Semaphore::new(limits.requests_max),
            bodies: Arc::new(BodyMemory::new(limits.bodies_bytes_max)),
            config,
            engine: OnceLock::new(),
            is_stopping: watch::Sender::new(false),
            listeners: Arc::new(Semaphore::new(LISTENERS_MAX)),
            workers: Workers::new(),
            incidents: IncidentDesk::default(),
            tokens,
            random: Random::thread(),
        }
    }

    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    /// Accepts requests that need an engine from now on.
    pub(crate) fn started(&self, engine: Engine) {
        let again = self.engine.set(engine);
        debug_assert!(again.is_ok(), "a server starts once");
    }

    /// Accepts no more jobs from now on.
    pub(crate) fn stop(&self) {
        self.is_stopping.send_replace(true);
    }

    /// Returns a receiver that is notified when the server is about to shut down.
    pub(crate) fn stopping(&self) -> watch::Receiver<bool> {
        self.is_stopping.subscribe()
    }

    pub(crate) fn workers(&self) -> &Workers {
        &self.workers
    }

    pub(crate) fn incidents(&self) -> &IncidentDesk {
        &self.incidents
    }

    pub(crate) fn tokens(&self) -> &Keeper {
        &self.tokens
    }

    /// Reserves a slot for an event listener, if one is free.
    pub(crate) fn listener(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.listeners).try_acquire_owned().ok()
    }

    /// Reserves a slot for a request, if one is free.
    pub(crate) fn request(&self) -> Option<SemaphorePermit<'_>> {
        self.requests.try_acquire().ok()
    }

    /// Returns the memory for the bodies of requests.
    pub(crate) fn bodies(&self) -> Arc<BodyMemory> {
        Arc::clone(&self.bodies)
    }

    /// Returns the engine, once it has started.
    pub(crate) fn engine(&self) -> Result<&Engine, Problem> {
        self.engine.get().ok_or_else(|| {
            Problem::new(Code::StoreUnavailable, "the server is starting")
                .hint("wait until GET /readyz returns 200, then send the request again")
        })
    }

    /// Returns the engine, unless the server is shutting down.
    pub(crate) fn engine_for_work(&self) -> Result<&Engine, Problem> {
        if *self.is_stopping.borrow() {
            return Err(Problem::new(Code::ShuttingDown, "the server is shutting down").hint(
                "nothing was stored; send the request again in a moment, or to another server",
            ));
        }
        self.engine()
    }

    /// Returns the settings of a kind, or the defaults if this node does not know the kind.
    pub(crate) fn kind(&self, kind: &KindName) -> KindSettings {
        self.engine.get().and_then(|engine| engine.kind_settings(kind)).unwrap_or_default()
    }

    /// Creates an id for a request that has none.
    pub(crate) fn request_id(&self) -> String {
        format!("{:016x}", self.random.next())
    }

    /// Returns the store's time.
    pub(crate) async fn now(&self) -> Result<Timestamp, Problem> {
        Ok(self.engine()?.store().now().await?)
    }
}
