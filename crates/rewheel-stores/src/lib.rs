//! Stores for Rewheel jobs: memory, SQLite, PostgreSQL, MySQL/MariaDB and Redis.
//!
//! [`connect`] opens a store by its URL. [`SqliteStore`] is one file on one machine, durable and
//! embedded. `PostgresStore` (feature `postgres`) is for many nodes that share a PostgreSQL database; `MysqlStore` (feature `mysql`) for
//! those that share a MySQL or MariaDB database; `RedisStore` (feature `redis`) for those that share a Redis or Valkey server.
//! [`MemoryStore`] keeps jobs in memory: for tests, and for jobs that may be lost when the process ends. All pass
//! the same conformance suite, see `rewheel-testkit`.
//!
//! # Where to find what
//!
//! | to | use |
//! | --- | --- |
//! | open a store by URL | [`connect`] |
//! | keep jobs in one file | `SqliteStore`, `SqliteOptions` (feature `sqlite`, default) |
//! | keep jobs in PostgreSQL | `PostgresStore`, `PostgresOptions` (feature `postgres`) |
//! | keep jobs in MySQL or MariaDB | `MysqlStore`, `MysqlOptions` (feature `mysql`) |
//! | keep jobs in Redis or Valkey | `RedisStore`, `RedisOptions` (feature `redis`) |
//! | test without a database | [`MemoryStore`] |
//! | submit in your own transaction | `PostgresStore::insert_in`, `MysqlStore::insert_in`; in PostgreSQL's SQL `rewheel_submit(…)` |

#![warn(missing_docs)]

mod clock;
mod payload;
mod wakeup;
#[cfg(any(feature = "postgres", feature = "redis"))]
mod acknowledged;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "redis", feature = "sqlite"))]
mod audit;
mod batch;
mod duplicates;
mod follow_ups;
mod groups;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "redis", feature = "sqlite"))]
mod idempotency;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
mod job_columns;
mod pages;
mod patience;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "redis", feature = "sqlite"))]
mod sample_text;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "redis", feature = "sqlite"))]
mod suspects;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "redis", feature = "sqlite"))]
mod tables;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "redis", feature = "sqlite"))]
mod template;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "redis", feature = "sqlite"))]
mod unreadable;
mod open_mode;
mod connect;
mod memory;
#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "redis")]
mod redis;
#[cfg(feature = "sqlite")]
mod sqlite;

pub use self::connect::{ConnectError, connect, connect_existing};
pub use self::memory::MemoryStore;
pub use self::memory::Weakness;
#[cfg(feature = "mysql")]
pub use self::mysql::{MysqlOptions, MysqlOptionsError, MysqlStore};
#[cfg(feature = "postgres")]
pub use self::postgres::{OptionsError, Pooler, PostgresOptions, PostgresStore, Verify};
#[cfg(feature = "redis")]
pub use self::redis::{RedisOptions, RedisOptionsError, RedisStore};
#[cfg(feature = "sqlite")]
pub use self::sqlite::{SqliteOptions, SqliteStore, Synchronous};

/// Runs the example of this crate's README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct CrateReadme;
