//! Tests of the stores from outside, in one binary: linking one is faster than linking seven.

mod memory;
mod sqlite;
mod unreadable;
mod sqlite_unreadable;
mod sqlite_groups;
mod crash;
mod idempotency_crash;
#[cfg(feature = "test-mysql")]
mod mysql;
#[cfg(feature = "test-mysql")]
mod mysql_server;
#[cfg(feature = "test-postgres")]
mod postgres;
#[cfg(feature = "test-postgres")]
mod postgres_server;
#[cfg(feature = "test-redis")]
mod redis;
#[cfg(feature = "test-redis")]
mod redis_server;
#[cfg(feature = "test-redis-cluster")]
mod redis_cluster;
