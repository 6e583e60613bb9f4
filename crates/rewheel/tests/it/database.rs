//! Databases: classes of real errors, connecting, and transactions that are repeated.

#![expect(clippy::unwrap_used, reason = "test code")]

#[cfg(feature = "redis")]
mod redis;
#[cfg(feature = "rusqlite")]
mod sqlite;
#[cfg(feature = "sqlx")]
mod sqlx;
#[cfg(feature = "mysql-async")]
mod mysql;
#[cfg(feature = "test-mysql")]
mod mysql_server;
#[cfg(feature = "test-redis")]
mod redis_server;
#[cfg(feature = "test-postgres")]
mod postgres;
mod transactions;
