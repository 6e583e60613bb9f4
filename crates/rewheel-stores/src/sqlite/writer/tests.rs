//! Tests what happens to verbs in one commit when one of them fails.

use super::{ConnectionFailed, Flush};
use crate::sqlite::error::VerbError;
use crate::sqlite::migrate::migrate;
use crate::sqlite::queue::{Queue, Urgency};
use crate::sqlite::transaction::{Lanes, Statements, Transaction};
use crate::wakeup::Wakeup;
use rewheel_core::store::{ClockOffset, StoreError, StoreResult};
use rewheel_core::{HolderId, Timestamp};
use rusqlite::Connection;
use std::future::Future;
use std::sync::{LazyLock, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// What a verb of these tests does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    /// Writes one row, and wakes watchers.
    Write,
    /// Returns an error without writing anything.
    Refuse,
    /// Writes one row, then fails.
    FailHalfWay,
    /// Writes a row that makes the commit fail.
    SpoilCommit,
}

impl Does {
    fn run(self, tx: &mut Transaction<'_, '_>) -> Result<Timestamp, VerbError> {
        if self == Does::Refuse {
            return Err(StoreError::HolderDead(HolderId::from_bytes([7; 16])).into());
        }
        let parent = if self == Does::SpoilCommit { Some(1) } else { None };
        tx.execute("INSERT INTO written (parent) VALUES (?1)", [parent])?;
        if self == Does::FailHalfWay {
            return Err(StoreError::Rejected("half-way".into()).into());
        }
        tx.submitted += 1;
        tx.report.get_or_insert_default();
        Ok(tx.now)
    }
}

fn connection() -> Connection {
    let connection = Connection::open_in_memory().unwrap();
    migrate(&connection).unwrap();
    connection.execute_batch(SCRATCH).unwrap();
    connection
}

/// The commit rejects a row that names a parent, not the insert: there are no parents.
const SCRATCH: &str = "
    PRAGMA foreign_keys = on;
    CREATE TABLE parents (id INTEGER PRIMARY KEY);
    CREATE TABLE written (parent INTEGER REFERENCES parents (id) DEFERRABLE INITIALLY DEFERRED);
";

/// Runs verbs in one group. Returns their results, and whether the connection is still usable.
fn flush(
    connection: &Connection,
    clock: &ClockOffset,
    woken: &Wakeup,
    all: &[Does],
) -> (Vec<StoreResult<Timestamp>>, bool) {
    let queue = Queue::new();
    let mut cx = Context::from_waker(Waker::noop());
    let mut asking: Vec<_> = all
        .iter()
        .map(|does| {
            let does = *does;
            Box::pin(queue.ask(Urgency::Work, 1, move |tx: &mut Transaction<'_, '_>| does.run(tx)))
        })
        .collect();
    for ask in &mut asking {
        assert!(ask.as_mut().poll(&mut cx).is_pending(), "it waits");
    }
    let statements = Statements::new(connection);
    let flush = Flush { statements: &statements, clock, woken };
    let group = queue.take(usize::MAX).unwrap();
    let good = match flush.run(group, &mut Lanes::default()) {
        Ok(()) => true,
        Err(ConnectionFailed) => false,
    };
    let answers = asking.iter_mut().map(|ask| match ask.as_mut().poll(&mut cx) {
        Poll::Ready(answer) => answer,
        Poll::Pending => panic!("there is no answer"),
    });
    (answers.collect(), good)
}

fn count(connection: &Connection, sql: &str) -> usize {
    connection.query_row(sql, [], |row| row.get(0)).unwrap()
}

#[test]
fn one_that_fails_half_way_is_undone_alone_and_costs_few_commits() {
    let connection = connection();
    let (clock, woken) = (ClockOffset::default(), Wakeup::default());
    let mut all = vec![Does::Write; 100];
    all[40] = Does::FailHalfWay;
    all[70] = Does::Refuse;
    let (answers, good) = flush(&connection, &clock, &woken, &all);
    assert!(good);
    for (does, answer) in all.iter().zip(&answers) {
        let as_told = match does {
            Does::Write => answer.is_ok(),
            Does::Refuse => matches!(answer, Err(StoreError::HolderDead(_))),
            Does::FailHalfWay => matches!(answer, Err(StoreError::Rejected(_))),
            Does::SpoilCommit => false,
        };
        assert!(as_told, "{does:?}: {answer:?}");
    }
    assert_eq!(count(&connection, "SELECT count(*) FROM written"), 98);
    assert_eq!(count(&connection, "SELECT sum(submitted) FROM ledger"), 98, "the books");
    assert_eq!(count(&connection, "SELECT count(*) FROM ledger"), 2, "one line for each commit");
}

#[test]
fn no_caller_is_told_what_a_failed_commit_undid() {
    let connection = connection();
    let (clock, woken) = (ClockOffset::default(), Wakeup::default());
    let all = [Does::Write, Does::Refuse, Does::SpoilCommit];
    let (answers, good) = flush(&connection, &clock, &woken, &all);
    assert!(!good);
    for answer in answers {
        assert!(!matches!(answer, Ok(_) | Err(StoreError::HolderDead(_))), "{answer:?}");
    }
    assert_eq!(count(&connection, "SELECT count(*) FROM written"), 0);
    assert_eq!(woken.count(), 0);
}

#[test]
fn those_behind_a_failed_commit_may_repeat() {
    let connection = connection();
    let (clock, woken) = (ClockOffset::default(), Wakeup::default());
    let all = [Does::Write, Does::FailHalfWay, Does::SpoilCommit, Does::FailHalfWay, Does::Write];
    let (answers, good) = flush(&connection, &clock, &woken, &all);
    assert!(!good);
    assert!(answers[0].is_ok(), "{answers:?}");
    assert!(matches!(answers[4], Err(StoreError::Unavailable(_))), "{answers:?}");
    assert_eq!(count(&connection, "SELECT count(*) FROM written"), 1);
    assert_eq!(woken.count(), 1, "watchers hear of what was committed");
}

#[test]
fn a_connection_that_cannot_begin_is_given_up() {
    let connection = connection();
    connection.execute_batch("BEGIN").unwrap();
    let (clock, woken) = (ClockOffset::default(), Wakeup::default());
    let (answers, good) = flush(&connection, &clock, &woken, &[Does::Write]);
    assert!(answers[0].is_err() && !good, "{answers:?}");
}

static CLOCK: LazyLock<ClockOffset> = LazyLock::new(ClockOffset::default);
static OTHER_PROCESS: Mutex<Option<Connection>> = Mutex::new(None);

/// Advances the clock by an hour, then lets the other process release its lock.
fn wait(_: i32) -> bool {
    CLOCK.advance(Duration::from_secs(3_600));
    drop(OTHER_PROCESS.lock().unwrap().take());
    true
}

#[test]
fn the_time_is_read_after_waiting_for_another_process() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rewheel.db");
    let mut connection = Connection::open(&file).unwrap();
    migrate(&connection).unwrap();
    connection.execute_batch(SCRATCH).unwrap();
    let other = Connection::open(&file).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    *OTHER_PROCESS.lock().unwrap() = Some(other);
    connection.busy_handler(Some(wait)).unwrap();

    let before = crate::clock::now(&CLOCK);
    let (answers, good) = flush(&connection, &CLOCK, &Wakeup::default(), &[Does::Write]);
    assert!(good);
    let written = *answers[0].as_ref().unwrap();
    assert!(written.since(before) >= Duration::from_secs(3_600), "{before:?} {written:?}");
}
