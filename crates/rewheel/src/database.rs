//! Databases: connect, repeat transactions, and update rows that others change too.
//!
//! [`Classify`] is implemented for the errors of tokio-postgres, mysql_async, rusqlite, redis and sqlx, each behind the
//! feature of that name. For other drivers use [`Class::of_sqlstate`](crate::Class::of_sqlstate), [`Class::of_mysql`](crate::Class::of_mysql), [`Class::of_sqlite`](crate::Class::of_sqlite) and
//! [`Class::of_redis`](crate::Class::of_redis) in your own implementation.
//!
//! | to | use |
//! | --- | --- |
//! | wait for a database that starts or fails over | [`connect_with_retry`] |
//! | repeat a transaction after a deadlock or a serialization failure | `postgres::retry_transaction`, `mysql::retry_transaction`, `sqlite::retry_transaction`; [`retry_transaction`] for other drivers |
//! | change a row only if no other process changed it | [`update_with_retry`] |

mod transaction;
mod update;
#[cfg(feature = "mysql-async")]
pub mod mysql;
#[cfg(feature = "tokio-postgres")]
pub mod postgres;
#[cfg(feature = "rusqlite")]
pub mod sqlite;

pub use self::transaction::{TransactionError, Work, retry_transaction};
pub use self::update::{UpdateError, Written, update_with_retry};

use crate::backoff::Backoff;
use crate::classify::Classify;
use crate::duration::{millis, seconds};
use crate::error::Error;
use crate::retry::{Retry, Retryable};
use std::future::Future;

/// For connecting when a process starts: 30 attempts of at most 5 s, within 60 s. The delays double from 100 ms to 5 s, with full jitter.
pub const CONNECT: Retry = Retry::new(Backoff::exponential(millis(100)).max(seconds(5)))
    .attempts_max(30)
    .attempt_timeout(seconds(5))
    .deadline(seconds(60));

/// For work that met other work, such as a deadlock: 6 attempts within 10 s. The delays double from 10 ms to 1 s, with full jitter, so
/// that the same two transactions do not meet again.
pub const CONFLICT: Retry = Retry::new(Backoff::exponential(millis(10)).max(seconds(1)))
    .attempts_max(6)
    .deadline(seconds(10));

/// Connects to a database, again while it starts, fails over, has too many connections or cannot be reached. Wrong credentials and
/// a database that does not exist end it at once.
///
/// ```no_run
/// use rewheel::database::{CONNECT, connect_with_retry};
///
/// # async fn start() -> Result<(), Box<dyn std::error::Error>> {
/// let config: tokio_postgres::Config = "host=db.example.com user=shop".parse()?;
/// let (client, connection) =
///     connect_with_retry(CONNECT, || config.connect(tokio_postgres::NoTls)).await?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns why it was given up, with the last error.
pub async fn connect_with_retry<F, Fut, C, E>(policy: Retry, connect: F) -> Result<C, Error<E>>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<C, E>>,
    E: Classify,
{
    connect.retry(policy).await
}
