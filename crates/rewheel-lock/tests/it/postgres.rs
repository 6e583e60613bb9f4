//! Runs the conformance suite on PostgreSQL, and tests of what only a database server can do to locks.

use crate::subject::{LEASE, LONG, Subject, eventually, in_time, name};
use rewheel::{ManualClock, Random, millis, minutes};
use rewheel_core::store::ClockOffset;
use rewheel_lock::{
    Ask, EarlierCalls, IfHeld, LockBackend, LockError, LockState, Locks, PostgresBackend, RequestId,
};
use rewheel_stores::PostgresOptions;
use rewheel_testkit::Schema;
use std::sync::Arc;
use tokio::task::JoinSet;

/// The options of a schema. The connections have its name, so that tests can find them.
fn options(schema: &Schema, clock: &ClockOffset) -> PostgresOptions {
    let mut options = PostgresOptions::parse(schema.url()).expect("a URL");
    options.clock = clock.clone();
    options.server.application_name(schema.name());
    options
}

async fn open() -> Subject {
    let (schema, clock) = (Schema::fresh(), ClockOffset::default());
    let one = PostgresBackend::open(options(&schema, &clock)).await.unwrap();
    let other = PostgresBackend::open(options(&schema, &clock)).await.unwrap();
    Subject::new(one, other, clock, schema)
}

lock_conformance!(open);

/// Ends every connection of a test, as a restart of the server or a network fault does.
async fn cut(schema: &Schema) -> i64 {
    let sql =
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = $1";
    schema.connect().await.query_one(sql, &[&schema.name()]).await.unwrap().get(0)
}

#[tokio::test]
async fn locks_and_waiting_requests_survive_a_lost_connection() {
    let (schema, clock, timer) = (Schema::fresh(), ClockOffset::default(), ManualClock::new());
    let backend = PostgresBackend::open(options(&schema, &clock)).await.unwrap();
    let holder = Locks::new(backend.clone()).clock(&timer);
    let other = Locks::new(PostgresBackend::open(options(&schema, &clock)).await.unwrap());
    let guard = holder.lock("a").lease(LEASE).acquire().await.unwrap();
    let mut waiting = JoinSet::new();
    waiting.spawn(async move { other.lock("a").wait(LONG).lease(LEASE).acquire().await });
    eventually(async || holder.inspect("a").await.unwrap().waiting == 1).await;

    assert!(cut(&schema).await > 0);
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

#[tokio::test]
async fn a_write_that_comes_late_does_not_take_the_lock_after_the_release() {
    let (schema, clock) = (Schema::fresh(), ClockOffset::default());
    let backend = PostgresBackend::open(options(&schema, &clock)).await.unwrap();
    Locks::new(backend.clone()).try_lock("a").await.unwrap().release().await.unwrap();
    let (visitor, watcher) = (schema.connect().await, schema.connect().await);
    let sql = "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1 AND wait_event_type = 'Lock'";
    let blocked =
        async || -> i64 { watcher.query_one(sql, &[&schema.name()]).await.unwrap().get(0) };
    let lock_row = format!("BEGIN; SELECT FROM {}.locks FOR UPDATE", schema.name());
    visitor.batch_execute(&lock_row).await.unwrap();
    let (name, id) = (name("a"), RequestId::new(&Random::thread()));
    let ask = Ask { name: &name, id, owner: "late", lease: LEASE, if_held: IfHeld::Wait };
    tokio::select! {
        turn = backend.acquire(&ask) => panic!("{turn:?}"),
        () = eventually(async || blocked().await == 1) => {}
    }
    // The call was given up, but the server still has its write.
    let release = backend.release(&name, id, EarlierCalls::Unanswered);
    let free = async {
        eventually(async || blocked().await == 2).await;
        visitor.batch_execute("COMMIT").await.unwrap();
    };
    let (released, ()) = in_time(async { tokio::join!(release, free) }).await;
    released.unwrap();
    eventually(async || blocked().await == 0).await;
    assert_eq!(backend.inspect(&name).await.unwrap(), LockState::default());
}

#[tokio::test]
async fn releases_are_heard_again_after_the_listener_was_cut() {
    let (schema, clock) = (Schema::fresh(), ClockOffset::default());
    let backend = PostgresBackend::open(options(&schema, &clock)).await.unwrap();
    eventually(async || backend.wakeups().is_listening()).await;
    cut(&schema).await;
    eventually(async || !backend.wakeups().is_listening()).await;
    eventually(async || backend.wakeups().is_listening()).await;
}

#[tokio::test]
async fn ten_processes_can_start_at_once() {
    let (schema, clock) = (Arc::new(Schema::fresh()), ClockOffset::default());
    let mut starts = JoinSet::new();
    for _ in 0..10 {
        let options = options(&schema, &clock);
        starts.spawn(async move { PostgresBackend::open(options).await.map(drop) });
    }
    for started in in_time(starts.join_all()).await {
        started.unwrap();
    }
}

#[tokio::test]
async fn unused_locks_are_deleted_and_their_tokens_are_not_forgotten() {
    let (schema, clock) = (Schema::fresh(), ClockOffset::default());
    let backend = PostgresBackend::open(options(&schema, &clock)).await.unwrap();
    let locks = Locks::new(backend.clone());
    let guard = locks.try_lock("old").await.unwrap();
    let token = guard.token();
    guard.release().await.unwrap();
    let visitor = schema.connect().await;
    let sql = format!("SELECT count(*) FROM {}.locks WHERE name = 'old'", schema.name());
    let rows = async || visitor.query_one(&sql, &[]).await.unwrap().get::<_, i64>(0);
    assert_eq!(rows().await, 1);
    clock.advance(minutes(25 * 60));
    for _ in 0..1_000 {
        backend.inspect(&name("other")).await.unwrap();
    }
    assert_eq!(rows().await, 0);
    clock.turn_back(minutes(100 * 60));
    assert!(locks.try_lock("old").await.unwrap().token() > token);
}

#[tokio::test]
async fn tokens_grow_although_the_server_has_lost_the_locks() {
    let (schema, clock) = (Schema::fresh(), ClockOffset::default());
    let locks = Locks::new(PostgresBackend::open(options(&schema, &clock)).await.unwrap());
    let guard = locks.try_lock("a").await.unwrap();
    let token = guard.token();
    let sql = format!("DELETE FROM {0}.locks; UPDATE {0}.lock_floor SET token = 0", schema.name());
    schema.connect().await.batch_execute(&sql).await.unwrap();
    let error = guard.release().await.unwrap_err();
    assert!(matches!(error, LockError::Lost { .. }), "{error}");
    assert!(locks.try_lock("a").await.unwrap().token() > token);
}

#[tokio::test]
async fn a_server_that_is_down_is_named_without_the_password() {
    let error = Locks::connect("postgres://shop:hunter2@127.0.0.1:1/shop").await.unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with("the lock server is unavailable: PostgreSQL at 127.0.0.1:1: "),
        "{text}"
    );
    assert!(!text.contains("hunter2"), "{text}");
    let text = Locks::connect("postgres://shop:hunter2@/shop?x=1").await.unwrap_err().to_string();
    assert!(text.starts_with("invalid `url`: ") && !text.contains("hunter2"), "{text}");
}
