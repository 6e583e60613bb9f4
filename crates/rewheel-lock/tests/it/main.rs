//! Tests of the locks from outside, in one binary.

#[macro_use]
mod conformance;
mod subject;
mod reference;
mod memory;
mod sqlite;
#[cfg(feature = "test-postgres")]
mod postgres;
#[cfg(feature = "test-redis")]
mod redis;
#[cfg(feature = "otel")]
mod metrics;
