//! Tests of handlers and stores that fail.

use super::support::{Count, app, charge, charged, key, layer, send};
use async_trait::async_trait;
use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use futures_util::stream;
use rewheel::idempotency::{
    AfterCrash, Begin, Begun, Finished, Idempotency, IdempotencyError, IdempotencyStore,
    IdempotencyStoreError, Ticket,
};
use rewheel::{MemoryIdempotency, millis, seconds};
use std::future::{pending, ready};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// A store whose methods fail a given number of times.
#[derive(Clone, Debug)]
struct Faulty {
    store: MemoryIdempotency,
    begins: Arc<AtomicU32>,
    finishes: Arc<AtomicU32>,
    /// `finish` calls that do nothing.
    refused: Arc<AtomicU32>,
    /// `renew` calls that never return.
    hung: Arc<AtomicU32>,
    /// `begin` calls that never return.
    mute: Arc<AtomicU32>,
    /// Delay of every response.
    late: Duration,
}

impl Faulty {
    fn new(begins: u32, finishes: u32) -> Faulty {
        let store = MemoryIdempotency::new(100, 1 << 20);
        let (begins, finishes) = (AtomicU32::new(begins), AtomicU32::new(finishes));
        Faulty {
            store,
            begins: Arc::new(begins),
            finishes: Arc::new(finishes),
            refused: Arc::default(),
            hung: Arc::default(),
            mute: Arc::default(),
            late: Duration::ZERO,
        }
    }
}

/// Returns whether it fails this time.
fn fails(times: &AtomicU32) -> bool {
    let less = |times: u32| times.checked_sub(1);
    times.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less).is_ok()
}

fn away<T>() -> Result<T, IdempotencyStoreError> {
    Err(IdempotencyStoreError::Unavailable("the answer was lost".into()))
}

#[async_trait]
impl IdempotencyStore for Faulty {
    async fn begin(&self, begin: &Begin) -> Result<Begun, IdempotencyStoreError> {
        if fails(&self.mute) {
            pending::<()>().await;
        }
        let begun = self.store.begin(begin).await;
        tokio::time::sleep(self.late).await;
        if fails(&self.begins) { away() } else { begun }
    }

    async fn renew(&self, ticket: &Ticket, lease: Duration) -> Result<bool, IdempotencyStoreError> {
        if fails(&self.hung) {
            pending::<()>().await;
        }
        self.store.renew(ticket, lease).await
    }

    async fn finish(
        &self,
        ticket: &Ticket,
        answer: &[u8],
    ) -> Result<Finished, IdempotencyStoreError> {
        if fails(&self.refused) {
            return away();
        }
        let finished = self.store.finish(ticket, answer).await;
        if fails(&self.finishes) { away() } else { finished }
    }

    async fn release(&self, ticket: &Ticket) -> Result<(), IdempotencyStoreError> {
        self.store.release(ticket).await
    }

    async fn prune(&self, limit: usize) -> Result<u64, IdempotencyStoreError> {
        self.store.prune(limit).await
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_done_while_the_store_is_away() {
    let count = Count::default();
    let store = Faulty::new(u32::MAX, 0);
    let app = app(layer(&Idempotency::new(store.clone())), count.told());
    let said = send(&app, charge("k")).await;
    assert_eq!(said.problem(), (503, "store_unavailable".to_owned()));
    assert_eq!((&said.headers["retry-after"], count.get()), (&"1".parse().expect("a value"), 0));
}

#[tokio::test(start_paused = true)]
async fn a_store_that_hangs_when_work_begins_does_not_hold_the_request() {
    let count = Count::default();
    let store = Faulty::new(0, 0);
    store.mute.store(1, Ordering::SeqCst);
    let app = app(layer(&Idempotency::new(store)), count.told());
    let said = timeout(seconds(11), send(&app, charge("k"))).await.expect("an answer in time");
    assert_eq!(said.problem(), (503, "store_unavailable".to_owned()));
    assert_eq!((send(&app, charge("k")).await.body.as_str(), count.get()), ("1", 1));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_was_lost_is_asked_for_again() {
    let count = Count::default();
    let app = app(layer(&Idempotency::new(Faulty::new(2, 2))), count.told());
    assert_eq!(send(&app, charge("k")).await.body, "1");
    let again = send(&app, charge("k")).await;
    assert_eq!((again.body.as_str(), again.is_replayed(), count.get()), ("1", true, 1));
}

#[tokio::test(start_paused = true)]
async fn work_that_is_done_is_answered_even_if_that_cannot_be_stored() {
    let count = Count::default();
    let app = app(layer(&Idempotency::new(Faulty::new(0, u32::MAX))), count.told());
    assert_eq!(send(&app, charge("k")).await.body, "1");
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_kept_by_a_store_that_comes_back() {
    let count = Count::default();
    let store = Faulty { refused: Arc::new(AtomicU32::new(10)), ..Faulty::new(0, 0) };
    let app = app(layer(&Idempotency::new(store)), count.told());
    assert_eq!(send(&app, charge("k")).await.body, "1");
    assert!(send(&app, charge("k")).await.is_replayed());
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_hangs_does_not_cost_the_lease() {
    let count = Count::default();
    let store = Faulty { hung: Arc::new(AtomicU32::new(1)), ..Faulty::new(0, 0) };
    let handler = count.then(|number| async move {
        sleep(seconds(60)).await;
        number.to_string()
    });
    let app = app(layer(&Idempotency::new(store)), handler);
    let late = async {
        sleep(seconds(45)).await;
        send(&app, charge("k")).await.problem()
    };
    let (first, late) = tokio::join!(send(&app, charge("k")), late);
    assert_eq!((first.body.as_str(), late), ("1", (409, "key_in_flight".to_owned())));
}

#[tokio::test(start_paused = true)]
async fn who_hangs_up_while_it_begins_leaves_no_riddle() {
    let count = Count::default();
    let store = Faulty { late: millis(10), ..Faulty::new(0, 0) };
    let idempotency = Idempotency::new(store).after_crash(AfterCrash::Unknown);
    let app = app(layer(&idempotency), count.told());
    assert!(timeout(millis(1), send(&app, charge("k"))).await.is_err());
    sleep(seconds(60)).await;
    let again = send(&app, charge("k")).await;
    assert_eq!((again.body.as_str(), again.is_replayed()), ("1", true));
}

#[tokio::test(start_paused = true)]
async fn who_hangs_up_while_it_waits_for_another_runs_nothing() {
    let count = Count::default();
    let handler = count.then(|_| async {
        sleep(seconds(6)).await;
        StatusCode::INTERNAL_SERVER_ERROR
    });
    let idempotency = Idempotency::new(Faulty::new(0, 0)).wait(seconds(10));
    let app = app(layer(&idempotency), handler);
    for _ in 0..5 {
        assert!(timeout(seconds(1), send(&app, charge("k"))).await.is_err());
    }
    sleep(seconds(60)).await;
    assert_eq!(count.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_key_whose_beginning_was_never_answered_is_no_riddle() {
    let count = Count::default();
    let idempotency = Idempotency::new(Faulty::new(4, 0)).after_crash(AfterCrash::Unknown);
    let app = app(layer(&idempotency), count.told());
    assert_eq!(send(&app, charge("k")).await.problem(), (503, "store_unavailable".to_owned()));
    sleep(seconds(60)).await;
    assert_eq!(send(&app, charge("k")).await.body, "1");
}

#[tokio::test]
async fn a_full_store_refuses_new_keys_and_knows_the_old_ones() {
    let count = Count::default();
    let store = MemoryIdempotency::new(2, 1 << 20);
    let app = app(layer(&Idempotency::new(store)), count.told());
    for key in ["a", "b"] {
        assert_eq!(send(&app, charge(key)).await.status, 200);
    }
    let said = send(&app, charge("c")).await;
    assert_eq!(said.problem(), (503, "store_full".to_owned()));
    assert_eq!(said.headers["retry-after"], "60");
    assert!(send(&app, charge("a")).await.is_replayed());
    assert_eq!(count.get(), 2);
}

#[tokio::test]
async fn unknown_bytes_are_not_replayed() {
    let store = MemoryIdempotency::new(10, 1 << 20);
    let finish = store.clone();
    let layer = layer(&Idempotency::new(store));
    let handler = move |axum::Extension(ticket): axum::Extension<Ticket>| async move {
        finish.finish(&ticket, b"\x07gibberish").await.expect("stored");
    };
    let app = axum::Router::new().route("/charges", axum::routing::post(handler)).layer(layer);
    send(&app, charge("k")).await;
    assert_eq!(send(&app, charge("k")).await.problem(), (500, "store_broken".to_owned()));
}

#[tokio::test]
async fn after_a_panic_the_next_one_runs() {
    let count = Count::default();
    let handler = count.then(move |number| async move {
        assert_ne!(number, 1, "the handler fails");
        number.to_string()
    });
    let app = app(layer(&Idempotency::new(Faulty::new(0, 0))), handler);
    let mut first = tokio::task::JoinSet::new();
    first.spawn({
        let app = app.clone();
        async move { send(&app, charge("k")).await }
    });
    assert!(first.join_next().await.expect("a task").expect_err("a panic").is_panic());
    assert_eq!(send(&app, charge("k")).await.body, "2");
}

#[tokio::test]
async fn a_body_that_breaks_off_is_not_carried_out() {
    let count = Count::default();
    let app = app(layer(&Idempotency::new(Faulty::new(0, 0))), count.told());
    let mut request = charge("k");
    let cut = Err::<Bytes, _>(std::io::Error::other("cut"));
    *request.body_mut() = Body::from_stream(stream::iter([cut]));
    assert_eq!(send(&app, request).await.problem(), (400, "body_broken".to_owned()));
    assert_eq!((count.get(), send(&app, charge("k")).await.body.as_str()), (0, "1"));
}

#[tokio::test]
async fn work_that_failed_is_done_again() {
    let idempotency = Idempotency::new(Faulty::new(0, 0));
    let failed = idempotency.run(key("k"), charged(), |_| ready(Err::<Vec<u8>, _>("busy"))).await;
    assert!(matches!(failed, Err(IdempotencyError::Failed("busy"))), "{failed:?}");
    let done = idempotency.run(key("k"), charged(), |_| ready(Ok::<_, &str>(b"ok".to_vec()))).await;
    assert!(!done.expect("an answer").replayed);
    let other = rewheel::idempotency::Fingerprint::of(&[b"refund"]);
    let reused = idempotency.run(key("k"), other, |_| ready(Ok::<_, &str>(Vec::new()))).await;
    assert!(matches!(reused, Err(IdempotencyError::Reused)), "{reused:?}");
}

#[tokio::test(start_paused = true)]
async fn work_without_an_end_is_stopped_although_its_caller_is_gone() {
    let (store, clock) = super::support::store();
    let idempotency = Idempotency::new(store.clone()).work_max(seconds(100)).clock(clock.clone());
    let count = Count::default();
    let app = app(layer(&idempotency), count.then(|_| pending::<String>()));
    let call = send(&app, charge("k"));
    assert!(timeout(millis(1), call).await.is_err(), "the caller gives up");
    for _ in 0..200 {
        clock.advance(seconds(1));
        super::support::settle().await;
    }
    // The lease has expired as after a crash, and the next request runs.
    let again = send(&app, charge("k"));
    assert!(timeout(millis(1), again).await.is_err(), "it runs");
    assert_eq!(count.get(), 2);

    let error = idempotency.run(key("w"), charged(), |_| pending::<Result<Vec<u8>, &str>>());
    let error = clock.drive(Box::pin(error)).await.unwrap_err();
    assert!(matches!(error, IdempotencyError::TimedOut), "{error:?}");
}

#[tokio::test]
async fn a_full_store_forgets_old_responses_but_not_recent_ones() {
    let (count, clock) = (Count::default(), rewheel::ManualClock::new());
    let store = MemoryIdempotency::new(2, 1 << 20).clock(&clock);
    let app = app(layer(&Idempotency::new(store)), count.told());
    for (key, expected) in [("a", 200), ("b", 200), ("c", 503)] {
        assert_eq!(send(&app, charge(key)).await.status, expected, "{key}");
        clock.advance(seconds(1));
    }
    clock.advance(seconds(3_597));
    assert_eq!(send(&app, charge("c")).await.status, 200, "the oldest is an hour old");
    assert!(send(&app, charge("b")).await.is_replayed());
    assert_eq!(send(&app, charge("a")).await.status, 503, "the others are not");
}

#[tokio::test]
async fn one_caller_cannot_fill_the_store() {
    let count = Count::default();
    let store = MemoryIdempotency::new(10, 1 << 20).keys_per_caller_max(2);
    let app = app(layer(&Idempotency::new(store)), count.told());
    for (key, expected) in [("a", 200), ("b", 200), ("c", 503)] {
        assert_eq!(send(&app, charge(key)).await.status, expected, "{key}");
    }
    let mut other = charge("c");
    other.headers_mut().insert("x-account", "rival".parse().expect("a value"));
    assert_eq!(send(&app, other).await.status, 200);
}
