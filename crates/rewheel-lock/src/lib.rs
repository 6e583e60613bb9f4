//! A distributed lock: at most one holder of a name at a time, among all processes that use the same server.
//!
//! A lock is a lease with a [fencing token](FencingToken). The holder renews the lease in the background; when it cannot, its work is
//! cancelled before another holder can get the lock. A process that was paused cannot be stopped in time by any lock: send the token with
//! every write, and let the resource reject a token that is smaller than the largest one it has seen.
//!
//! ```
//! use rewheel::seconds;
//! use rewheel_lock::{FencingToken, Locks};
//!
//! async fn charge(token: FencingToken) -> Result<String, std::io::Error> {
//!     Ok(format!("charged with token {token}"))
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // sqlite://locks.db · postgres://user@host/database · mysql://user@host/database · redis://host:6379/0 · memory://
//! let locks = Locks::connect("memory://").await?;
//!
//! let receipt = locks
//!     .lock("invoice-42")
//!     .wait(seconds(10))
//!     .lease(seconds(30))
//!     .run(|lock| async move { charge(lock.token()).await })
//!     .await?;
//! assert!(receipt.starts_with("charged"));
//!
//! let guard = locks.try_lock("nightly").await?;
//! assert!(!guard.is_lost());
//! guard.release().await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Where to find what
//!
//! | to | use |
//! | --- | --- |
//! | open locks by URL | [`Locks::connect`] |
//! | run work while holding a lock | [`LockRequest::run`], [`Locks::with_lock`] |
//! | hold a lock across functions | [`LockRequest::acquire`], [`Locks::try_lock`], [`LockGuard`] |
//! | keep late writes out | [`FencingToken`] |
//! | see who holds a lock | [`Locks::inspect`] |
//! | count and log | [`LockObserver`], `LockMetrics` (feature `otel`) |
//! | use another server | [`LockBackend`] |
//! | test without a server | [`MemoryBackend`] |

#![warn(missing_docs)]

mod name;
mod token;
mod error;
mod observer;
#[cfg(feature = "otel")]
mod metrics;
mod locks;
mod request;
mod run;
mod guard;
mod lease_clock;
mod keeper;
mod reentrancy;
mod wakeups;
mod backend;
mod record;
mod server_clock;
#[cfg(any(feature = "sqlite", feature = "postgres", feature = "mysql"))]
mod row;
mod memory;
#[cfg(feature = "sqlite")]
mod sqlite;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "redis")]
mod redis;

pub use self::backend::{
    Ask, BackendError, EarlierCalls, Holder, IfHeld, LINE_MAX, LockBackend, LockState, PLACE_TTL,
    Release, Renewal, RequestId, Turn,
};
pub use self::error::{LockError, RunError};
pub use self::guard::{HeldLock, LockGuard};
pub use self::locks::Locks;
pub use self::memory::MemoryBackend;
#[cfg(feature = "otel")]
pub use self::metrics::LockMetrics;
#[cfg(feature = "mysql")]
pub use self::mysql::MysqlBackend;
pub use self::name::LockName;
pub use self::observer::{LockEvent, LockObserver};
#[cfg(feature = "postgres")]
pub use self::postgres::PostgresBackend;
#[cfg(feature = "redis")]
pub use self::redis::RedisBackend;
pub use self::request::LockRequest;
#[cfg(feature = "sqlite")]
pub use self::sqlite::SqliteBackend;
pub use self::token::FencingToken;
pub use self::wakeups::Wakeups;

/// Runs the example of this crate's README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct CrateReadme;

/// Runs the examples of the page about locks as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/lock.md")]
struct LockPage;
