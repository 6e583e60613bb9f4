//! Opens locks on a server.

use crate::backend::{LockBackend, LockState};
use crate::error::{LockError, RunError};
use crate::guard::{HeldLock, LockGuard};
use crate::lease_clock::LeaseClock;
use crate::memory::MemoryBackend;
use crate::name::LockName;
use crate::observer::LockObserver;
use crate::reentrancy::Guards;
use crate::request::LockRequest;
use rewheel::{Clock, Random};
use rewheel_core::SecretUrl;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Locks on one server. Clones share everything; create one value for a program.
///
/// See the [crate](crate) for an example.
#[derive(Clone)]
pub struct Locks {
    pub(crate) backend: Arc<dyn LockBackend>,
    pub(crate) guards: Arc<Guards>,
    pub(crate) owner: Arc<str>,
    pub(crate) observer: Option<Arc<dyn LockObserver>>,
    pub(crate) clock: LeaseClock,
    pub(crate) random: Random,
}

impl Locks {
    /// Maximum length of an owner's name: more is not readable in an error.
    pub const OWNER_BYTES_MAX: usize = 255;

    /// Opens the locks of a server.
    ///
    /// `postgres://user:password@host:port/database`, `mysql://` (or `mariadb://`) and `redis://` take the same settings as a store of jobs
    /// with this URL, and may be the same server: the schema, the database or the prefix separates independent sets of locks.
    /// `sqlite://path` is a file, created if it does not exist, for processes of one machine. `memory://` is for one process.
    ///
    /// # Errors
    /// Says what is wrong with the URL or the server, and what to do. No error contains the password.
    pub async fn connect(url: &str) -> Result<Locks, LockError> {
        let unknown = || LockError::Invalid {
            argument: "url",
            problem: format!(
                "`{}` names no lock server that this build supports: use sqlite://locks.db, postgres://USER@HOST/DATABASE, \
                 mysql://USER@HOST/DATABASE, redis://HOST:6379/0 or memory://, and enable the cargo feature `sqlite`, `postgres`, `mysql` or `redis` of rewheel-lock",
                SecretUrl::new(url)
            ),
        };
        let (scheme, rest) = url.split_once("://").ok_or_else(unknown)?;
        match scheme {
            "memory" if rest.is_empty() => Ok(Locks::memory()),
            #[cfg(feature = "sqlite")]
            "sqlite" if !rest.is_empty() => Locks::sqlite(rest).await,
            #[cfg(feature = "postgres")]
            "postgres" | "postgresql" => {
                let options = rewheel_stores::PostgresOptions::parse(url);
                let options = options.map_err(|error| invalid_url(&error))?;
                Ok(Locks::new(crate::postgres::PostgresBackend::open(options).await?))
            }
            #[cfg(feature = "mysql")]
            "mysql" | "mariadb" => {
                let options = rewheel_stores::MysqlOptions::parse(url);
                let options = options.map_err(|error| invalid_url(&error))?;
                Ok(Locks::new(crate::mysql::MysqlBackend::open(options).await?))
            }
            #[cfg(feature = "redis")]
            "redis" | "rediss" => {
                let options = rewheel_stores::RedisOptions::parse(url);
                let options = options.map_err(|error| invalid_url(&error))?;
                Ok(Locks::new(crate::redis::RedisBackend::open(options).await?))
            }
            _ => Err(unknown()),
        }
    }

    /// Opens locks in the memory of this process.
    pub fn memory() -> Locks {
        Locks::new(MemoryBackend::default())
    }

    /// Opens locks in an SQLite file, for processes of one machine. The file is created if it does not exist. It must not be on a
    /// network file system.
    ///
    /// # Errors
    /// Says why the file cannot be opened.
    #[cfg(feature = "sqlite")]
    pub async fn sqlite(path: impl AsRef<std::path::Path>) -> Result<Locks, LockError> {
        Ok(Locks::new(crate::sqlite::SqliteBackend::open(path).await?))
    }

    /// Uses the locks of a backend.
    pub fn new(backend: impl LockBackend + 'static) -> Locks {
        Locks {
            backend: Arc::new(backend),
            guards: Arc::default(),
            owner: process().into(),
            observer: None,
            clock: LeaseClock::system(),
            random: Random::thread(),
        }
    }

    /// Sets the name that errors of other processes show for the holder. The default is the host and the id of this process.
    #[must_use]
    pub fn owner(self, owner: &str) -> Locks {
        let is_allowed = |c: &char| !c.is_control();
        let mut owner: String = owner.chars().filter(is_allowed).collect();
        while owner.len() > Locks::OWNER_BYTES_MAX {
            owner.pop();
        }
        Locks { owner: owner.into(), ..self }
    }

    /// Sets an observer.
    #[must_use]
    pub fn observer(self, observer: Arc<dyn LockObserver>) -> Locks {
        Locks { observer: Some(observer), ..self }
    }

    /// Sets the clock that measures leases in this process. The default is the system's monotonic clock; on Linux, it also counts the time
    /// that the machine is suspended.
    #[must_use]
    pub fn clock(self, clock: impl Into<Clock>) -> Locks {
        Locks { clock: LeaseClock::from(clock.into()), ..self }
    }

    /// Starts a request for a lock. It waits for up to 30 seconds, with a lease of 30 seconds.
    pub fn lock(&self, name: impl AsRef<str>) -> LockRequest {
        LockRequest::new(self.clone(), name.as_ref())
    }

    /// Acquires a lock if it is free, with a lease of 30 seconds.
    ///
    /// # Errors
    /// [`LockError::Busy`] if another request has the lock or is first in line, otherwise as [`LockRequest::acquire`].
    pub async fn try_lock(&self, name: impl AsRef<str>) -> Result<LockGuard, LockError> {
        self.lock(name).wait(Duration::ZERO).acquire().await
    }

    /// Runs work while holding a lock, with the defaults of [`Locks::lock`].
    ///
    /// # Errors
    /// As [`LockRequest::run`].
    pub async fn with_lock<T, E, W>(
        &self,
        name: impl AsRef<str>,
        work: impl FnOnce(HeldLock) -> W,
    ) -> Result<T, RunError<E>>
    where
        W: Future<Output = Result<T, E>>,
    {
        self.lock(name).run(work).await
    }

    /// Reads who holds a lock and how many requests wait for it, as the server sees it.
    ///
    /// # Errors
    /// [`LockError::Invalid`], [`LockError::Unavailable`] or [`LockError::Broken`].
    pub async fn inspect(&self, name: impl AsRef<str>) -> Result<LockState, LockError> {
        let name = LockName::parse(name.as_ref())?;
        Ok(self.backend.inspect(&name).await?)
    }
}

impl fmt::Debug for Locks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Locks { backend, owner, .. } = self;
        f.debug_struct("Locks")
            .field("backend", backend)
            .field("owner", owner)
            .finish_non_exhaustive()
    }
}

/// Host and process id, as far as they are known without asking the system.
fn process() -> String {
    let pid = std::process::id();
    match std::env::var("HOSTNAME") {
        Ok(host) if !host.is_empty() => format!("{host}:{pid}"),
        _ => format!("process {pid}"),
    }
}

#[cfg(any(feature = "postgres", feature = "mysql", feature = "redis"))]
fn invalid_url(error: &dyn fmt::Display) -> LockError {
    LockError::Invalid { argument: "url", problem: error.to_string() }
}
