//! Two processes book the same account: transactions that are repeated, and a conditional update.
//!
//! Run it with `cargo run -p rewheel --example transactions --features rusqlite`. SQLite needs no server; the functions for PostgreSQL and
//! MySQL work in the same way.

use rewheel::database::sqlite::retry_transaction;
use rewheel::database::{CONFLICT, Written, update_with_retry};
use rusqlite::{Connection, TransactionBehavior};
use std::path::Path;
use std::sync::Mutex;
use std::thread;

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main(flavor = "current_thread")]
#[expect(clippy::print_stdout, reason = "an example prints its result")]
async fn main() -> Result<(), Failure> {
    let folder = std::env::temp_dir().join(format!("rewheel-transactions-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let balance = run(&folder.join("accounts.db")).await;
    std::fs::remove_dir_all(&folder)?;
    println!("balance after 200 bookings of 1 and one of 100: {}", balance?);
    Ok(())
}

/// Books 200 times 1 from two threads, and then 100; returns the balance, which begins with 1,000.
pub async fn run(file: &Path) -> Result<i64, Failure> {
    let connection = open(file)?;
    connection.execute_batch(
        "CREATE TABLE accounts (id INTEGER PRIMARY KEY, balance INTEGER, version INTEGER);
         INSERT INTO accounts VALUES (1, 1000, 1);",
    )?;
    thread::scope(|scope| {
        let threads = [(); 2].map(|()| scope.spawn(|| book_often(file)));
        threads.into_iter().try_for_each(|thread| thread.join().expect("no thread panics"))
    })?;

    // Read and write are two statements: the version tells whether another process was faster.
    let connection = Mutex::new(connection);
    let balance = update_with_retry(
        CONFLICT,
        async || read(&connection),
        async |(balance, version)| write(&connection, balance - 100, version),
    );
    Ok(balance.await?)
}

fn open(file: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(file)?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    // SQLite itself does not wait: each conflict is visible.
    connection.busy_timeout(std::time::Duration::ZERO)?;
    Ok(connection)
}

fn book_often(file: &Path) -> Result<(), Failure> {
    let mut connection = open(file)?;
    for _ in 0..100 {
        let policy = CONFLICT.attempts_max(1_000);
        // Deferred: the transaction reads first, so a write of the other thread in between makes it fail.
        retry_transaction(&mut connection, TransactionBehavior::Deferred, policy, |tx| {
            let row = "SELECT balance FROM accounts WHERE id = 1";
            let balance: i64 = tx.query_row(row, [], |row| row.get(0))?;
            let update = "UPDATE accounts SET balance = ?, version = version + 1 WHERE id = 1";
            tx.execute(update, [balance - 1])
        })?;
    }
    Ok(())
}

fn read(connection: &Mutex<Connection>) -> rusqlite::Result<(i64, i64)> {
    let connection = connection.lock().expect("no thread panics");
    let row = "SELECT balance, version FROM accounts WHERE id = 1";
    connection.query_row(row, [], |row| Ok((row.get(0)?, row.get(1)?)))
}

fn write(
    connection: &Mutex<Connection>,
    balance: i64,
    version: i64,
) -> rusqlite::Result<Written<i64>> {
    let connection = connection.lock().expect("no thread panics");
    let update =
        "UPDATE accounts SET balance = ?1, version = version + 1 WHERE id = 1 AND version = ?2";
    let rows = connection.execute(update, [balance, version])?;
    Ok(Written::from_rows(rows as u64, balance))
}
