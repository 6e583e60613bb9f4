//! Tests of requests that arrive while another request with the same key runs.

use super::support::{Count, app, charge, charged, key, layer, send, settle, store};
use axum::Router;
use rewheel::idempotency::{
    AfterCrash, Entry, Finished, Idempotency, IdempotencyError, IdempotencyStore,
};
use rewheel::{ManualClock, seconds};
use std::sync::Arc;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tower::ServiceExt;

/// A handler that waits for a permit.
fn gated(count: &Count, gate: &Arc<Semaphore>, layer: rewheel::axum::IdempotencyLayer) -> Router {
    let (count, gate) = (count.clone(), Arc::clone(gate));
    app(layer, move || {
        let (number, gate) = (count.up(), Arc::clone(&gate));
        async move {
            gate.acquire().await.expect("open").forget();
            number.to_string()
        }
    })
}

#[tokio::test]
async fn a_duplicate_is_refused_while_the_first_runs() {
    let (count, gate) = (Count::default(), Arc::new(Semaphore::new(0)));
    let app = gated(&count, &gate, layer(&Idempotency::new(store().0)));
    let mut first = JoinSet::new();
    first.spawn({
        let app = app.clone();
        async move { send(&app, charge("k")).await }
    });
    settle().await;
    let second = send(&app, charge("k")).await;
    assert_eq!(second.problem(), (409, "key_in_flight".to_owned()));
    assert_eq!(second.headers["retry-after"], "1");
    gate.add_permits(1);
    assert_eq!(first.join_all().await[0].body, "1");
    assert!(send(&app, charge("k")).await.is_replayed());
    assert_eq!(count.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_thousand_duplicates_wait_for_the_one_that_runs() {
    let (count, gate) = (Count::default(), Arc::new(Semaphore::new(0)));
    let app = gated(&count, &gate, layer(&Idempotency::new(store().0).wait(seconds(30))));
    let mut all = JoinSet::new();
    for _ in 0..1_000 {
        let app = app.clone();
        all.spawn(async move { send(&app, charge("k")).await });
    }
    settle().await;
    gate.add_permits(1_000);
    let said = all.join_all().await;
    assert!(said.iter().all(|said| said.status == 200 && said.body == "1"));
    assert_eq!(said.iter().filter(|said| !said.is_replayed()).count(), 1);
    assert_eq!(count.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn waiting_has_an_end() {
    let gate = Arc::new(Semaphore::new(0));
    let app = gated(&Count::default(), &gate, layer(&Idempotency::new(store().0).wait(seconds(5))));
    let mut first = JoinSet::new();
    first.spawn(app.clone().oneshot(charge("k")));
    settle().await;
    assert_eq!(send(&app, charge("k")).await.problem(), (409, "key_in_flight".to_owned()));
}

/// As from another process, which is not notified when the run is over.
#[tokio::test(start_paused = true)]
async fn who_waits_elsewhere_looks_again() {
    let (store, _) = store();
    let elsewhere = Idempotency::new(store.clone());
    let Entry::Run(run) = elsewhere.begin(key("k"), charged()).await.expect("a store") else {
        panic!("it is new")
    };
    let here = Idempotency::new(store).wait(seconds(30));
    let mut waiting = JoinSet::new();
    waiting.spawn(async move { here.begin(key("k"), charged()).await.expect("a store") });
    settle().await;
    run.finish(b"charged").await.expect("stored");
    let entry = waiting.join_next().await.expect("a task").expect("no panic");
    assert!(matches!(entry, Entry::Done(answer) if answer == b"charged"));
}

#[tokio::test]
async fn a_client_that_hangs_up_finds_the_answer_when_it_comes_back() {
    let (count, gate) = (Count::default(), Arc::new(Semaphore::new(0)));
    let app = gated(&count, &gate, layer(&Idempotency::new(store().0)));
    let mut first = JoinSet::new();
    first.spawn(app.clone().oneshot(charge("k")));
    settle().await;
    first.shutdown().await;
    gate.add_permits(1);
    settle().await;
    let again = send(&app, charge("k")).await;
    assert_eq!((again.body.as_str(), again.is_replayed(), count.get()), ("1", true, 1));
}

/// A handler whose process was suspended for longer than its lease.
#[tokio::test]
async fn a_late_answer_does_not_overwrite_a_newer_one() {
    let (store, clock) = store();
    let (count, gate) = (Count::default(), Arc::new(Semaphore::new(0)));
    let stopped = ManualClock::new();
    let idempotency = Idempotency::new(store).lease(seconds(10)).clock(&stopped);
    let app = gated(&count, &gate, layer(&idempotency));
    let mut late = JoinSet::new();
    late.spawn({
        let app = app.clone();
        async move { send(&app, charge("k")).await }
    });
    settle().await;
    clock.advance(seconds(11));
    let mut newer = JoinSet::new();
    newer.spawn({
        let app = app.clone();
        async move { send(&app, charge("k")).await }
    });
    settle().await;
    gate.add_permits(1);
    let late = late.join_all().await.remove(0);
    assert_eq!(late.problem(), (409, "key_in_flight".to_owned()), "its answer is not the one");
    gate.add_permits(1);
    assert_eq!(newer.join_all().await.remove(0).body, "2");
    assert_eq!(send(&app, charge("k")).await.body, "2");
}

#[tokio::test]
async fn a_handler_may_take_longer_than_its_lease() {
    let (store, clock) = store();
    let (count, gate) = (Count::default(), Arc::new(Semaphore::new(0)));
    let idempotency = Idempotency::new(store).lease(seconds(9)).clock(&clock);
    let app = gated(&count, &gate, layer(&idempotency));
    let mut first = JoinSet::new();
    first.spawn({
        let app = app.clone();
        async move { send(&app, charge("k")).await }
    });
    settle().await;
    for _ in 0..20 {
        clock.advance(seconds(3));
        settle().await;
    }
    assert_eq!(send(&app, charge("k")).await.problem(), (409, "key_in_flight".to_owned()));
    gate.add_permits(1);
    assert_eq!(first.join_all().await.remove(0).body, "1");
    assert_eq!((send(&app, charge("k")).await.body.as_str(), count.get()), ("1", 1));
}

#[tokio::test]
async fn a_crash_is_answered_as_was_chosen() {
    let (store, clock) = store();
    let again = Idempotency::new(store.clone()).lease(seconds(10));
    let unknown = again.clone().after_crash(AfterCrash::Unknown);
    let work = |_| async { Ok::<_, std::fmt::Error>(b"charged".to_vec()) };
    // Dropped without a result, as by a process that dies.
    let Ok(Entry::Run(run)) = again.begin(key("k"), charged()).await else { panic!("it is new") };
    let ticket = run.ticket();
    drop(run);
    let in_flight = again.run(key("k"), charged(), work).await.unwrap_err();
    assert!(matches!(in_flight, IdempotencyError::InFlight { left } if left == seconds(10)));
    clock.advance(seconds(10));
    let unknown = unknown.run(key("k"), charged(), work).await.unwrap_err();
    assert!(matches!(unknown, IdempotencyError::Unknown), "{unknown}");
    let answered = again.run(key("k"), charged(), work).await.expect("it runs again");
    assert!(!answered.replayed);
    assert_eq!(store.finish(&ticket, b"late").await.expect("a store"), Finished::Lost);
}
