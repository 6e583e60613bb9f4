//! Classifies the errors of database drivers.

#[cfg(feature = "mysql-async")]
mod mysql;
#[cfg(feature = "tokio-postgres")]
mod postgres;
#[cfg(feature = "redis")]
mod redis;
#[cfg(feature = "rusqlite")]
mod sqlite;
#[cfg(feature = "sqlx")]
mod sqlx;
