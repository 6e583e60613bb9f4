//! Conformance tests for stores, and stores that fail on purpose.
//!
//! Every store must pass the conformance suite. It is written once, and [`store_conformance!`]
//! expands it into named tests in three lines beside each store:
//!
//! ```ignore
//! async fn open() -> rewheel_testkit::Subject { /* … */ }
//! rewheel_testkit::store_conformance!(open);
//! ```

#![warn(missing_docs)]
#![expect(clippy::unwrap_used, clippy::missing_panics_doc, reason = "test code: it fails loudly")]

mod threads;
mod subject;
mod people;
mod race;
mod faulty;
mod thread_log;
#[cfg(feature = "mysql")]
mod database;
#[cfg(feature = "redis")]
mod prefix;
#[cfg(feature = "redis")]
mod redis_process;
#[cfg(feature = "redis")]
mod redis_cluster;
#[cfg(feature = "postgres")]
mod schema;
pub mod conformance;
pub mod idempotency;

#[cfg(feature = "mysql")]
pub use self::database::Database;
pub use self::faulty::{Fault, FaultPlan, FaultyStore, Verb};
pub use self::idempotency::IdempotencySubject;
#[cfg(feature = "redis")]
pub use self::prefix::Prefix;
#[cfg(feature = "redis")]
pub use self::redis_cluster::RedisCluster;
#[cfg(feature = "redis")]
pub use self::redis_process::RedisProcess;
#[cfg(feature = "postgres")]
pub use self::schema::{Schema, Visitor};
pub use self::subject::{Subject, lane, millis, seconds};
pub use self::thread_log::ThreadLog;
