//! Tests of the locks from outside, in one binary.

#![expect(clippy::unwrap_used, reason = "test code")]

#[macro_use]
mod conformance;
mod subject;
mod reference;
mod memory;
mod sqlite;
#[cfg(feature = "test-postgres")]
mod postgres;
#[cfg(feature = "test-mysql")]
mod mysql;
#[cfg(feature = "test-redis")]
mod redis;
#[cfg(feature = "otel")]
mod metrics;
