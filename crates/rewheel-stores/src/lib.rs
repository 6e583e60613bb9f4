//! Where Rewheel keeps jobs.
//!
//! [`connect`] opens a store by its URL. [`SqliteStore`] is one file on one machine, durable and
//! embedded. [`MemoryStore`] is the simplest store there is: for tests, and for jobs that may be
//! forgotten. Both pass the same conformance suite, see `rewheel-testkit`.

#![warn(missing_docs)]

mod clock;
mod payload;
mod wakeup;
mod connect;
mod memory;
#[cfg(feature = "sqlite")]
mod sqlite;

pub use self::connect::{ConnectError, connect};
pub use self::memory::MemoryStore;
pub use self::memory::Weakness;
#[cfg(feature = "sqlite")]
pub use self::sqlite::{SqliteOptions, SqliteStore, Synchronous};
