//! Transactions of tokio-postgres.

use super::transaction::{TransactionError, Work, without_attempt_timeout};
use crate::classify::Classify;
use crate::error::Error;
use crate::retry::{Retry, Retryable};
use tokio::sync::Mutex;
use tokio_postgres::{Client, IsolationLevel, Transaction};

/// Runs a transaction, again after a serialization failure, a deadlock or a lock timeout.
///
/// Each attempt is a new transaction on the same connection. A connection that breaks before the commit ends the call with
/// [`TransactionError::ConnectionLost`]; one that breaks during the commit ends it with [`TransactionError::CommitUnknown`]. The attempt
/// timeout of the policy does not apply.
///
/// The work returns a boxed future, so that the call can run in a task of tokio: async closures that borrow cannot.
///
/// ```no_run
/// use rewheel::database::{CONFLICT, postgres::retry_transaction};
/// use tokio_postgres::IsolationLevel;
///
/// # async fn transfer(client: &mut tokio_postgres::Client) -> Result<(), Box<dyn std::error::Error>> {
/// let (from, to, cents) = (1_i64, 2_i64, 500_i64);
/// retry_transaction(client, IsolationLevel::Serializable, CONFLICT, |tx| Box::pin(async move {
///     tx.execute("UPDATE accounts SET cents = cents - $2 WHERE id = $1", &[&from, &cents]).await?;
///     tx.execute("UPDATE accounts SET cents = cents + $2 WHERE id = $1", &[&to, &cents]).await?;
///     Ok::<_, tokio_postgres::Error>(())
/// }))
/// .await?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns why it was given up, with the last error.
pub async fn retry_transaction<F, T, E>(
    client: &mut Client,
    isolation: IsolationLevel,
    policy: Retry,
    work: F,
) -> Result<T, Error<TransactionError<E>>>
where
    F: for<'t> FnMut(&'t Transaction<'_>) -> Work<'t, T, E>,
    E: From<tokio_postgres::Error> + Classify,
{
    // An attempt borrows both until it ends; the next one starts later, so it never waits.
    let slot = &Mutex::new((client, work));
    let attempt = move || async move {
        let (client, work) = &mut *slot.lock().await;
        run_once(client, isolation, work).await
    };
    attempt.retry(without_attempt_timeout(policy)).await
}

async fn run_once<F, T, E>(
    client: &mut Client,
    isolation: IsolationLevel,
    work: &mut F,
) -> Result<T, TransactionError<E>>
where
    F: for<'t> FnMut(&'t Transaction<'_>) -> Work<'t, T, E>,
    E: From<tokio_postgres::Error> + Classify,
{
    let began = client.build_transaction().isolation_level(isolation).start().await;
    let transaction =
        began.map_err(|error| TransactionError::of_statement(E::from(error), false))?;
    match work(&transaction).await {
        Ok(value) => match transaction.commit().await {
            Ok(()) => Ok(value),
            Err(error) => Err(TransactionError::of_commit(E::from(error))),
        },
        Err(error) => {
            let is_closed = transaction.client().is_closed();
            // A rollback that fails means that the connection is broken, and the server rolls back.
            let is_closed = transaction.rollback().await.is_err() || is_closed;
            Err(TransactionError::of_statement(error, is_closed))
        }
    }
}
