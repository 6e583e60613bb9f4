//! Transactions that are repeated as a whole.

use crate::classify::{Category, Class, Classify, Verdict};
use crate::error::Error;
use crate::retry::{Retry, Retryable};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

/// The work of one attempt of a transaction. `'t` is the time of the attempt.
pub type Work<'t, T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send + 't>>;

/// Error of one attempt of a transaction.
#[derive(Debug)]
#[non_exhaustive]
pub enum TransactionError<E> {
    /// The transaction failed and was rolled back. It is repeated if its error says so.
    RolledBack(E),
    /// The connection broke before the commit, so nothing was written, and the same connection cannot be used again.
    ConnectionLost(E),
    /// The connection broke during the commit: the transaction may have been committed or not. It is not repeated; read what it should
    /// have written.
    CommitUnknown(E),
}

impl<E> TransactionError<E> {
    /// Returns the error of the transaction.
    pub const fn error(&self) -> &E {
        match self {
            TransactionError::RolledBack(error)
            | TransactionError::ConnectionLost(error)
            | TransactionError::CommitUnknown(error) => error,
        }
    }

    /// Returns the error of the transaction by value.
    pub fn into_error(self) -> E {
        match self {
            TransactionError::RolledBack(error)
            | TransactionError::ConnectionLost(error)
            | TransactionError::CommitUnknown(error) => error,
        }
    }
}

impl<E: Classify> TransactionError<E> {
    /// Returns the error of a commit: a server that answered has rolled back; without an answer the outcome is unknown.
    pub fn of_commit(error: E) -> TransactionError<E> {
        let class = error.classify();
        match class.category {
            // A conflict, or a constraint that is checked at the commit. A server that stops may have committed.
            Category::Rejected => TransactionError::RolledBack(error),
            Category::Transient if !is_shutdown(&class) => TransactionError::RolledBack(error),
            Category::Transient
            | Category::Timeout
            | Category::Io
            | Category::Throttled
            | Category::CircuitOpen
            | Category::BulkheadFull
            | Category::Cancelled
            | Category::Deadline
            | Category::Unknown
            | Category::Panic
            | Category::NoHandler
            | Category::BadPayload => TransactionError::CommitUnknown(error),
        }
    }

    /// Returns the error of a statement on a connection that the transaction cannot replace.
    #[cfg(any(feature = "tokio-postgres", feature = "mysql-async"))]
    pub(super) fn of_statement(error: E, is_closed: bool) -> TransactionError<E> {
        if is_closed || error.classify().category == Category::Io {
            return TransactionError::ConnectionLost(error);
        }
        TransactionError::RolledBack(error)
    }
}

/// Returns whether the server ends the session: with a synchronous standby, the commit may be on its own disk.
fn is_shutdown(class: &Class) -> bool {
    let code = class.code.as_ref().map(ToString::to_string).unwrap_or_default();
    code.starts_with("57") || code == "1053"
}

impl<E: fmt::Display> fmt::Display for TransactionError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TransactionError::RolledBack(error) => {
                write!(f, "transaction was rolled back: {error}")
            }
            TransactionError::ConnectionLost(error) => {
                write!(f, "transaction lost its connection before the commit: {error}")
            }
            TransactionError::CommitUnknown(error) => {
                write!(f, "transaction may have been committed or not: {error}")
            }
        }
    }
}

impl<E: std::error::Error + 'static> std::error::Error for TransactionError<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(self.error())
    }
}

impl<E: Classify> Classify for TransactionError<E> {
    fn classify(&self) -> Class {
        let class = self.error().classify();
        match self {
            TransactionError::RolledBack(_) => class,
            TransactionError::ConnectionLost(_) | TransactionError::CommitUnknown(_) => {
                Class { verdict: Verdict::Stop, ..class }
            }
        }
    }
}

/// A transaction that is cut during its commit would be repeated although it may have been committed.
pub(super) const fn without_attempt_timeout(policy: Retry) -> Retry {
    policy.attempt_timeout(Duration::MAX)
}

/// Repeats a transaction as a whole, with any driver that has a pool. The closure begins, works and commits; it wraps the error of
/// the commit with [`TransactionError::of_commit`], and all others with [`TransactionError::RolledBack`].
///
/// The attempt timeout of the policy does not apply, because a transaction that is cut during its commit may have been committed. The
/// deadline of the policy applies, and nothing is repeated after it.
///
/// ```
/// use rewheel::database::{CONFLICT, TransactionError, retry_transaction};
/// # use rewheel::{Category, Class, Classify};
/// # #[derive(Debug)] struct DbError;
/// # impl Classify for DbError { fn classify(&self) -> Class { Class::of_sqlstate("40001") } }
/// # struct Pool;
/// # struct Tx;
/// # impl Pool { async fn begin(&self) -> Result<Tx, DbError> { Ok(Tx) } }
/// # impl Tx { async fn execute(&mut self, _: &str) -> Result<(), DbError> { Ok(()) } async fn commit(self) -> Result<(), DbError> { Ok(()) } }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// # let pool = &Pool;
/// retry_transaction(CONFLICT, || async {
///     let work = async {
///         let mut tx = pool.begin().await?;
///         tx.execute("UPDATE accounts SET balance = balance - 10 WHERE id = 1").await?;
///         Ok(tx)
///     };
///     let tx = work.await.map_err(TransactionError::RolledBack)?;
///     tx.commit().await.map_err(TransactionError::of_commit)
/// })
/// .await
/// .unwrap();
/// # }
/// ```
///
/// # Errors
/// Returns why it was given up, with the last error.
pub async fn retry_transaction<F, Fut, T, E>(
    policy: Retry,
    transaction: F,
) -> Result<T, Error<TransactionError<E>>>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, TransactionError<E>>>,
    E: Classify,
{
    transaction.retry(without_attempt_timeout(policy)).await
}
