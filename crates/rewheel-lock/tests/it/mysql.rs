//! Runs the conformance suite on MariaDB or MySQL, and tests of what only a database server can do to locks.

use crate::subject::{LEASE, LONG, Subject, eventually, in_time, name};
use mysql_async::prelude::Queryable;
use rewheel::{ManualClock, Random, millis, minutes};
use rewheel_core::store::ClockOffset;
use rewheel_lock::{
    Ask, EarlierCalls, IfHeld, LockBackend, LockError, LockState, Locks, MysqlBackend, RequestId,
};
use rewheel_stores::MysqlOptions;
use rewheel_testkit::Database;
use std::sync::Arc;
use tokio::task::JoinSet;

fn options(database: &Database, clock: &ClockOffset) -> MysqlOptions {
    let mut options = MysqlOptions::parse(database.url()).expect("a URL");
    options.clock = clock.clone();
    options
}

async fn connect(database: &Database, clock: &ClockOffset) -> MysqlBackend {
    MysqlBackend::open(options(database, clock)).await.expect("the server answers")
}

async fn open() -> Subject {
    let (database, clock) = (Database::fresh(), ClockOffset::default());
    let one = connect(&database, &clock).await;
    let other = connect(&database, &clock).await;
    Subject::new(one, other, clock, database)
}

lock_conformance!(open);

/// Ends every other connection to the database, as a restart of the server or a network fault does.
async fn cut(database: &Database) -> usize {
    let mut visitor = database.connect().await;
    let sql = "SELECT id FROM information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID()";
    let found: Vec<u64> = visitor.query(sql).await.unwrap();
    for id in &found {
        // One of them may have ended by itself.
        let _ = visitor.query_drop(format!("KILL {id}")).await;
    }
    found.len()
}

#[tokio::test]
async fn locks_and_waiting_requests_survive_a_lost_connection() {
    let (database, clock, timer) = (Database::fresh(), ClockOffset::default(), ManualClock::new());
    let holder = Locks::new(connect(&database, &clock).await).clock(&timer);
    let other = Locks::new(connect(&database, &clock).await);
    let guard = holder.lock("a").lease(LEASE).acquire().await.unwrap();
    let mut waiting = JoinSet::new();
    waiting.spawn(async move { other.lock("a").wait(LONG).lease(LEASE).acquire().await });
    eventually(async || holder.inspect("a").await.unwrap().waiting == 1).await;

    assert!(cut(&database).await > 0);
    // The renewal meets connections that are gone, and repeats itself on new ones.
    let before = guard.lease_left();
    timer.advance(LEASE / 3);
    eventually(async || {
        timer.advance(millis(50));
        guard.lease_left() > before - LEASE / 3
    })
    .await;
    assert!(!guard.is_lost());
    let token = guard.token();
    eventually(async || holder.inspect("a").await.is_ok_and(|state| state.waiting == 1)).await;
    guard.release().await.unwrap();
    let next = in_time(waiting.join_next()).await.unwrap().unwrap().unwrap();
    assert!(next.token() > token);
}

/// The number of statements of a database that the server runs at this moment, other than the one that asks.
async fn running(database: &Database) -> u64 {
    let sql = "SELECT COUNT(*) FROM information_schema.processlist WHERE db = DATABASE() AND command <> 'Sleep' AND id <> CONNECTION_ID()";
    database.connect().await.query_first(sql).await.unwrap().unwrap()
}

#[tokio::test]
async fn a_write_that_comes_late_does_not_take_the_lock_after_the_release() {
    let (database, clock) = (Database::fresh(), ClockOffset::default());
    let backend = connect(&database, &clock).await;
    Locks::new(backend.clone()).try_lock("a").await.unwrap().release().await.unwrap();
    let mut visitor = database.connect().await;
    for sql in ["START TRANSACTION", "SELECT 1 FROM rewheel_locks FOR UPDATE"] {
        visitor.query_drop(sql).await.unwrap();
    }
    let (name, id) = (name("a"), RequestId::new(&Random::thread()));
    let ask = Ask { name: &name, id, owner: "late", lease: LEASE, if_held: IfHeld::Wait };
    tokio::select! {
        turn = backend.acquire(&ask) => panic!("{turn:?}"),
        () = eventually(async || running(&database).await == 1) => {}
    }
    // The call was given up, but the server still has its write.
    let release = backend.release(&name, id, EarlierCalls::Unanswered);
    let free = async {
        eventually(async || running(&database).await >= 1).await;
        visitor.query_drop("COMMIT").await.unwrap();
    };
    let (released, ()) = in_time(async { tokio::join!(release, free) }).await;
    released.unwrap();
    eventually(async || running(&database).await == 0).await;
    assert_eq!(backend.inspect(&name).await.unwrap(), LockState::default());
}

#[tokio::test]
async fn ten_processes_can_start_at_once() {
    let (database, clock) = (Arc::new(Database::fresh()), ClockOffset::default());
    let mut starts = JoinSet::new();
    for _ in 0..10 {
        let options = options(&database, &clock);
        starts.spawn(async move { MysqlBackend::open(options).await.map(drop) });
    }
    for started in in_time(starts.join_all()).await {
        started.unwrap();
    }
}

#[tokio::test]
async fn unused_locks_are_deleted_and_their_tokens_are_not_forgotten() {
    let (database, clock) = (Database::fresh(), ClockOffset::default());
    let backend = connect(&database, &clock).await;
    let locks = Locks::new(backend.clone());
    let guard = locks.try_lock("old").await.unwrap();
    let token = guard.token();
    guard.release().await.unwrap();
    let rows = async || -> u64 {
        let sql = "SELECT COUNT(*) FROM rewheel_locks WHERE name = 'old'";
        database.connect().await.query_first(sql).await.unwrap().unwrap()
    };
    assert_eq!(rows().await, 1);
    clock.advance(minutes(25 * 60));
    for _ in 0..1_000 {
        backend.inspect(&name("other")).await.unwrap();
    }
    assert_eq!(rows().await, 0);
    clock.turn_back(minutes(100 * 60));
    assert!(locks.try_lock("old").await.unwrap().token() > token);
}

/// A process has read that there is no such lock, and was paused. Meanwhile the lock was used and deleted.
#[tokio::test]
async fn a_new_lock_is_not_written_after_the_floor_has_risen() {
    let (database, clock) = (Database::fresh(), ClockOffset::default());
    let locks = Locks::new(connect(&database, &clock).await);
    let mut visitor = database.connect().await;
    for sql in ["START TRANSACTION", "UPDATE rewheel_lock_floor SET token = 9000000000000000"] {
        visitor.query_drop(sql).await.unwrap();
    }
    let lock = locks.lock("a").wait(LONG).lease(LEASE).acquire();
    let rise = async {
        eventually(async || running(&database).await == 1).await;
        visitor.query_drop("COMMIT").await.unwrap();
    };
    let (guard, ()) = in_time(async { tokio::join!(lock, rise) }).await;
    assert!(guard.unwrap().token().get() > 9_000_000_000_000_000);
}

#[tokio::test]
async fn tokens_grow_although_the_server_has_lost_the_locks() {
    let (database, clock) = (Database::fresh(), ClockOffset::default());
    let locks = Locks::new(connect(&database, &clock).await);
    let guard = locks.try_lock("a").await.unwrap();
    let token = guard.token();
    let mut visitor = database.connect().await;
    for sql in ["DELETE FROM rewheel_locks", "UPDATE rewheel_lock_floor SET token = 0"] {
        visitor.query_drop(sql).await.unwrap();
    }
    let error = guard.release().await.unwrap_err();
    assert!(matches!(error, LockError::Lost { .. }), "{error}");
    assert!(locks.try_lock("a").await.unwrap().token() > token);
}

#[tokio::test]
async fn names_are_compared_byte_by_byte() {
    let (database, clock) = (Database::fresh(), ClockOffset::default());
    let locks = Locks::new(connect(&database, &clock).await);
    let mut held = Vec::new();
    for name in ["straße", "strasse", "STRASSE", "strasse "] {
        held.push(locks.try_lock(name).await.unwrap());
    }
    assert!(matches!(locks.try_lock("straße").await, Err(LockError::Reentrant { .. })));
    for guard in held {
        guard.release().await.unwrap();
    }
}

#[tokio::test]
async fn a_server_that_is_down_is_named_without_the_password() {
    let error = Locks::connect("mysql://shop:hunter2@127.0.0.1:1/shop").await.unwrap_err();
    let text = error.to_string();
    let begin = "the lock server is unavailable: MySQL at 127.0.0.1:1: ";
    assert!(text.starts_with(begin) && !text.contains("hunter2"), "{text}");
    let text = Locks::connect("mysql://shop:hunter2@/shop?x=1").await.unwrap_err().to_string();
    assert!(text.starts_with("invalid `url`: ") && !text.contains("hunter2"), "{text}");
}
