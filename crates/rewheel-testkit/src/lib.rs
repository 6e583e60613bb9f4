//! Conformance tests for stores, and stores that fail on purpose.
//!
//! Every store must pass the conformance suite. It is written once, and [`store_conformance!`]
//! expands it into named tests in three lines beside each store:
//!
//! ```ignore
//! async fn open() -> rewheel_testkit::Subject { /* … */ }
//! rewheel_testkit::store_conformance!(open);
//! ```

//! With the feature `engine`, [`TestEngine`] runs the jobs of an application in its own tests.

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
#[cfg(feature = "postgres")]
mod distant_server;
#[cfg(feature = "engine")]
mod test_engine;
#[cfg(feature = "engine")]
mod script;
pub mod conformance;
pub mod idempotency;

#[cfg(feature = "mysql")]
pub use self::database::Database;
#[cfg(feature = "postgres")]
pub use self::distant_server::DistantServer;
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
#[cfg(feature = "engine")]
pub use self::script::Scripted;
pub use self::subject::{Subject, lane, millis, seconds};
#[cfg(feature = "engine")]
pub use self::test_engine::{TestEngine, TestEngineBuilder};
pub use self::thread_log::ThreadLog;

/// Runs the examples of the guide as tests.
#[cfg(all(doctest, feature = "engine"))]
#[doc = include_str!("../../../docs/guide/testing.md")]
struct TestingGuide;
