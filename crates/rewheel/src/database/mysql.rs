//! Transactions of mysql_async.

use super::transaction::{TransactionError, Work, without_attempt_timeout};
use crate::classify::Classify;
use crate::error::Error;
use crate::retry::{Retry, Retryable};
use mysql_async::{Conn, Transaction, TxOpts};
use tokio::sync::Mutex;

/// Runs a transaction, again after a deadlock, a lock wait timeout or another conflict.
///
/// Each attempt is a new transaction on the same connection. A connection that breaks before the commit ends the call with
/// [`TransactionError::ConnectionLost`]; one that breaks during the commit ends it with [`TransactionError::CommitUnknown`]. The attempt
/// timeout of the policy does not apply.
///
/// The work returns a boxed future, so that the call can run in a task of tokio: async closures that borrow cannot.
///
/// ```no_run
/// use mysql_async::{TxOpts, prelude::Queryable};
/// use rewheel::database::{CONFLICT, mysql::retry_transaction};
///
/// # async fn transfer(connection: &mut mysql_async::Conn) -> Result<(), Box<dyn std::error::Error>> {
/// retry_transaction(connection, &TxOpts::default(), CONFLICT, |tx| Box::pin(async move {
///     tx.exec_drop("UPDATE accounts SET cents = cents - ? WHERE id = ?", (500, 1)).await?;
///     tx.exec_drop("UPDATE accounts SET cents = cents + ? WHERE id = ?", (500, 2)).await?;
///     Ok::<_, mysql_async::Error>(())
/// }))
/// .await?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns why it was given up, with the last error.
pub async fn retry_transaction<F, T, E>(
    connection: &mut Conn,
    options: &TxOpts,
    policy: Retry,
    work: F,
) -> Result<T, Error<TransactionError<E>>>
where
    F: for<'t> FnMut(&'t mut Transaction<'_>) -> Work<'t, T, E>,
    E: From<mysql_async::Error> + Classify,
{
    // An attempt borrows both until it ends; the next one starts later, so it never waits.
    let slot = &Mutex::new((connection, work));
    let attempt = move || async move {
        let (connection, work) = &mut *slot.lock().await;
        run_once(connection, options, work).await
    };
    attempt.retry(without_attempt_timeout(policy)).await
}

async fn run_once<F, T, E>(
    connection: &mut Conn,
    options: &TxOpts,
    work: &mut F,
) -> Result<T, TransactionError<E>>
where
    F: for<'t> FnMut(&'t mut Transaction<'_>) -> Work<'t, T, E>,
    E: From<mysql_async::Error> + Classify,
{
    let began = connection.start_transaction(options.clone()).await;
    let mut transaction =
        began.map_err(|error| TransactionError::of_statement(E::from(error), false))?;
    match work(&mut transaction).await {
        Ok(value) => match transaction.commit().await {
            Ok(()) => Ok(value),
            Err(error) => Err(TransactionError::of_commit(E::from(error))),
        },
        Err(error) => {
            // After a lock wait timeout the transaction is still open. A rollback that fails means that the connection is broken.
            let is_closed = transaction.rollback().await.is_err();
            Err(TransactionError::of_statement(error, is_closed))
        }
    }
}
