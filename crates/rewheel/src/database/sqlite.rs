//! Transactions of rusqlite.

use crate::classify::Classify;
use crate::error::Error;
use crate::retry::{Retry, Retryable};
use rusqlite::{Connection, Transaction, TransactionBehavior};

/// Runs a transaction, again while another connection has the database locked. Blocks its thread.
///
/// SQLite itself waits for a lock ([`Connection::busy_timeout`]), but not where waiting cannot help: a transaction that has read, and then
/// writes after another connection has written, must be repeated as a whole. [`TransactionBehavior::Immediate`] avoids that.
///
/// ```
/// use rewheel::database::{CONFLICT, sqlite::retry_transaction};
/// use rusqlite::{Connection, TransactionBehavior};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut connection = Connection::open_in_memory()?;
/// connection.execute_batch("CREATE TABLE orders (id INTEGER)")?;
/// let rows = retry_transaction(&mut connection, TransactionBehavior::Immediate, CONFLICT, |tx| {
///     tx.execute("INSERT INTO orders VALUES (7)", [])
/// })?;
/// assert_eq!(rows, 1);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns why it was given up, with the last error. The transaction was rolled back.
pub fn retry_transaction<F, T, E>(
    connection: &mut Connection,
    behavior: TransactionBehavior,
    policy: Retry,
    mut work: F,
) -> Result<T, Error<E>>
where
    F: FnMut(&Transaction<'_>) -> Result<T, E>,
    E: From<rusqlite::Error> + Classify,
{
    let attempt = || {
        // Dropping it rolls back.
        let transaction = connection.transaction_with_behavior(behavior)?;
        let value = work(&transaction)?;
        transaction.commit()?;
        Ok(value)
    };
    attempt.retry(policy).call()
}
