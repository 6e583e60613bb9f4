//! Stores for Rewheel jobs: memory, SQLite and PostgreSQL.
//!
//! [`connect`] opens a store by its URL. [`SqliteStore`] keeps jobs in one file on one machine, durable and embedded. `PostgresStore`
//! (feature `postgres`) serves many nodes from one PostgreSQL database. [`MemoryStore`] is the simplest store: for tests, and for jobs
//! that may be lost. All stores pass the same conformance suite, see `rewheel-testkit`.

#![warn(missing_docs)]

mod clock;
mod payload;
mod wakeup;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod audit;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod batch;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod idempotency;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod pages;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod sample_text;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod suspects;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod unreadable;
mod connect;
mod memory;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
mod sqlite;

pub use self::connect::{ConnectError, connect};
pub use self::memory::MemoryStore;
pub use self::memory::Weakness;
#[cfg(feature = "postgres")]
pub use self::postgres::{OptionsError, Pooler, PostgresOptions, PostgresStore, Verify};
#[cfg(feature = "sqlite")]
pub use self::sqlite::{SqliteOptions, SqliteStore, Synchronous};
