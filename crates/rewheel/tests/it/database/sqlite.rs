//! SQLite: two connections to one file.

use rewheel::database::sqlite::retry_transaction;
use rewheel::{Category, Class, Classify, GiveUpReason, Retry, Verdict, millis};
use rusqlite::{Connection, TransactionBehavior};
use std::path::Path;
use std::time::Duration;

fn open(file: &Path) -> Connection {
    let connection = Connection::open(file).unwrap();
    connection.pragma_update(None, "journal_mode", "wal").unwrap();
    connection.busy_timeout(Duration::ZERO).unwrap();
    connection
}

#[test]
fn a_lock_is_waited_for_and_the_transaction_is_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("test.db");
    let (mut ours, theirs) = (open(&file), open(&file));
    ours.execute_batch("CREATE TABLE t (x INTEGER UNIQUE)").unwrap();
    theirs.execute_batch("BEGIN IMMEDIATE").unwrap();
    let policy = Retry::fixed(millis(1)).attempts_max(3);
    let insert = |tx: &rusqlite::Transaction<'_>| tx.execute("INSERT INTO t VALUES (7)", []);

    let error = retry_transaction(&mut ours, TransactionBehavior::Immediate, policy, insert);
    let error = error.unwrap_err();
    assert_eq!((error.reason(), error.attempts()), (GiveUpReason::AttemptsExhausted, 3));
    let class = error.last().unwrap().classify();
    assert_eq!(class, Class::retry(Category::Transient).with_code(5_u32));

    let mut calls = 0;
    let rows = retry_transaction(&mut ours, TransactionBehavior::Deferred, policy, |tx| {
        calls += 1;
        if calls == 2 {
            theirs.execute_batch("COMMIT").unwrap();
        }
        insert(tx)
    });
    assert_eq!((rows.unwrap(), calls), (1, 2));
}

#[test]
fn a_snapshot_that_is_too_old_is_repeated_as_a_whole() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("test.db");
    let (mut ours, theirs) = (open(&file), open(&file));
    ours.execute_batch("CREATE TABLE t (x INTEGER); INSERT INTO t VALUES (1)").unwrap();
    let policy = Retry::fixed(millis(1)).attempts_max(3);
    let mut calls = 0;
    retry_transaction(&mut ours, TransactionBehavior::Deferred, policy, |tx| {
        calls += 1;
        let x: i64 = tx.query_row("SELECT x FROM t", [], |row| row.get(0))?;
        if calls == 1 {
            theirs.execute("UPDATE t SET x = x + 10", []).unwrap();
        }
        tx.execute("UPDATE t SET x = ?", [x + 1])
    })
    .unwrap();
    let x: i64 = ours.query_row("SELECT x FROM t", [], |row| row.get(0)).unwrap();
    assert_eq!((calls, x), (2, 12));
}

#[test]
fn wrong_statements_and_data_stop() {
    let mut connection = Connection::open_in_memory().unwrap();
    connection
        .execute_batch("CREATE TABLE t (x INTEGER UNIQUE); INSERT INTO t VALUES (7)")
        .unwrap();
    for statement in ["INSERT INTO t VALUES (7)", "INSERT INTO none VALUES (7)", "nonsense"] {
        let mut calls = 0;
        let policy = Retry::fixed(millis(1));
        let behavior = TransactionBehavior::Deferred;
        let error = retry_transaction(&mut connection, behavior, policy, |tx| {
            calls += 1;
            tx.execute(statement, [])
        });
        let class = error.unwrap_err().into_last().unwrap().classify();
        assert_eq!((class.verdict, class.category), (Verdict::Stop, Category::Rejected));
        assert_eq!(calls, 1, "{statement}");
    }
    let error = connection.query_row("SELECT x FROM t WHERE x = 0", [], |_| Ok(())).unwrap_err();
    assert_eq!(error.classify(), Class::stop(Category::Rejected).with_code("driver"));
}
