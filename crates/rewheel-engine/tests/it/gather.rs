//! Tests of concurrent single submits.

#![expect(clippy::unwrap_used, reason = "test code")]

use rewheel::millis;
use rewheel_core::store::{Insert, Inserted, ReadStore, Store};
use rewheel_core::{KindName, NewJob};
use rewheel_engine::{Engine, KindSettings, Receipt, SubmitError};
use rewheel_stores::MemoryStore;
use rewheel_testkit::{Fault, FaultyStore, Verb};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::task::JoinSet;

/// An engine that runs nothing, on a store whose inserts take ten milliseconds; and the number of
/// inserts.
async fn engine(fault: Option<Fault>) -> (Engine, Arc<MemoryStore>, Arc<AtomicUsize>) {
    let (store, inserts) = (Arc::new(MemoryStore::new()), Arc::new(AtomicUsize::new(0)));
    let inner: Arc<dyn Store> = Arc::<MemoryStore>::clone(&store);
    let counted = Arc::clone(&inserts);
    let faulty = FaultyStore::with_faults(inner, move |verb| {
        let counted = Arc::clone(&counted);
        Box::pin(async move {
            if verb != Verb::Insert {
                return None;
            }
            // The first job is inserted alone; the fault affects the others.
            let place = counted.fetch_add(1, Ordering::SeqCst);
            tokio::time::sleep(millis(10)).await;
            fault.filter(|_| place == 1)
        })
    });
    let builder = Engine::builder(Arc::new(faulty)).kind("work", KindSettings::default());
    (builder.start().await.unwrap(), store, inserts)
}

/// Submits this many jobs at once, each separately.
async fn submit(
    engine: &Engine,
    count: usize,
    key: Option<&'static str>,
) -> Vec<Result<Receipt, SubmitError>> {
    let mut tasks = JoinSet::new();
    for _ in 0..count {
        let engine = engine.clone();
        tasks.spawn(async move {
            let submit = engine.submit_raw("work", b"{}".to_vec());
            match key {
                Some(key) => submit.key(key).await,
                None => submit.await,
            }
        });
    }
    tasks.join_all().await
}

async fn stored(store: &MemoryStore) -> usize {
    store.tally().await.unwrap().iter().flat_map(|tally| tally.jobs.values()).sum::<u64>() as usize
}

#[tokio::test(start_paused = true)]
async fn those_who_come_meanwhile_go_together() {
    let (engine, store, inserts) = engine(None).await;
    let receipts = submit(&engine, 200, None).await;
    assert!(
        receipts.iter().all(|receipt| receipt.as_ref().is_ok_and(|receipt| !receipt.duplicate))
    );
    assert_eq!(stored(&store).await, 200);
    let inserts = inserts.load(Ordering::SeqCst);
    assert!(inserts <= 4, "{inserts} inserts");
}

#[tokio::test(start_paused = true)]
async fn who_comes_alone_goes_at_once() {
    let (engine, _, inserts) = engine(None).await;
    for _ in 0..5 {
        let begun = tokio::time::sleep(millis(0));
        begun.await;
        submit(&engine, 1, None).await.pop().unwrap().unwrap();
    }
    assert_eq!(inserts.load(Ordering::SeqCst), 5);
}

#[tokio::test(start_paused = true)]
async fn a_key_is_given_to_one_of_those_who_go_together() {
    let (engine, store, _) = engine(None).await;
    let receipts = submit(&engine, 50, Some("order-17")).await;
    let receipts: Vec<Receipt> = receipts.into_iter().map(Result::unwrap).collect();
    assert_eq!(receipts.iter().filter(|receipt| !receipt.duplicate).count(), 1);
    assert!(receipts.iter().all(|receipt| receipt.id == receipts[0].id));
    assert_eq!(stored(&store).await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_makes_no_job_twice() {
    for fault in [Fault::Before, Fault::After] {
        let (engine, store, _) = engine(Some(fault)).await;
        let receipts = submit(&engine, 100, None).await;
        let good = receipts.iter().filter(|receipt| receipt.is_ok()).count();
        assert_eq!((good, stored(&store).await), (100, 100), "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_job_is_refused_alone() {
    let (engine, store, _) = engine(None).await;
    let mut tasks = JoinSet::new();
    for number in 0..60 {
        let engine = engine.clone();
        tasks.spawn(async move {
            let kind = if number % 3 == 0 { "unknown" } else { "work" };
            let job = NewJob::new(engine.new_id(), KindName::parse(kind).unwrap(), Vec::new());
            let answers = engine.insert(&Insert::new(&[job])).await.unwrap();
            (number, matches!(answers[..], [Inserted::Created { .. }]))
        });
    }
    for (number, is_stored) in tasks.join_all().await {
        assert_eq!(is_stored, number % 3 != 0, "{number}");
    }
    assert_eq!(stored(&store).await, 40);
}

#[tokio::test(start_paused = true)]
async fn who_submits_while_the_engine_ends_is_answered() {
    let (engine, store, _) = engine(None).await;
    let (receipts, _) = tokio::join!(submit(&engine, 100, None), engine.shutdown(millis(100)));
    let good = receipts.iter().filter(|receipt| receipt.is_ok()).count();
    assert_eq!((receipts.len(), good), (100, stored(&store).await));
}
