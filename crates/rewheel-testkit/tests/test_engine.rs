//! Tests of the engine for tests of applications.

#![cfg(feature = "engine")]
#![expect(clippy::unwrap_used, reason = "test code")]

use rewheel::{Backoff, minutes, seconds};
use rewheel_core::{Actor, KindChange, KindName, Report, State};
use rewheel_engine::{JobContext, JobKind, KindSettings};
use rewheel_testkit::{TestEngine, assert_submitted};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

#[derive(Debug, Serialize, Deserialize)]
struct ChargeCard {
    order: u64,
}

impl JobKind for ChargeCard {
    const NAME: &'static str = "charge-card";
}

#[derive(Debug, Serialize, Deserialize)]
struct SendReceipt {
    order: u64,
}

impl JobKind for SendReceipt {
    const NAME: &'static str = "send-receipt";
}

/// Charges a card, and submits a receipt with the result.
async fn charge(context: JobContext, job: ChargeCard) -> Report {
    context.submit(SendReceipt { order: job.order }).unwrap();
    Report::Done
}

/// An engine, with the number of receipts that were sent.
async fn engine() -> (TestEngine, Arc<AtomicU32>) {
    let sent = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&sent);
    let settings = KindSettings {
        backoff: Backoff::fixed(minutes(1)),
        attempts_max: 3,
        ..KindSettings::default()
    };
    let engine = TestEngine::builder()
        .kind("charge-card", settings)
        .handler(charge)
        .handler(move |_, _: SendReceipt| {
            count.fetch_add(1, Ordering::SeqCst);
            async { Report::Done }
        })
        .start();
    (engine.await.unwrap(), sent)
}

#[tokio::test]
#[should_panic(expected = "use `#[tokio::test(start_paused = true)]`")]
async fn a_test_that_would_really_wait_is_told_so() {
    let (engine, _) = engine().await;
    engine.travel(minutes(10)).await;
}

#[tokio::test]
async fn jobs_that_are_due_run_on_a_running_clock_too() {
    let (engine, sent) = engine().await;
    engine.submit(ChargeCard { order: 1 }).await.unwrap();
    engine.drain().await;
    assert_eq!(sent.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn draining_runs_due_jobs_and_what_they_submit() {
    let (engine, sent) = engine().await;
    engine.submit(ChargeCard { order: 17 }).await.unwrap();
    engine.submit(ChargeCard { order: 18 }).delay(minutes(5)).await.unwrap();
    engine.drain().await;
    assert_eq!((sent.load(Ordering::SeqCst), engine.succeeded().await), (1, 2));
    assert_submitted!(engine, SendReceipt { order: 17 });
    assert_submitted!(engine, ChargeCard { order } if *order > 17);
}

#[tokio::test(start_paused = true)]
async fn inline_calls_return_after_their_jobs_ran() {
    let (engine, sent) = engine().await;
    let receipt = engine.inline(engine.submit(ChargeCard { order: 17 })).await;
    assert_eq!(sent.load(Ordering::SeqCst), 1);
    let job = engine.job(receipt.unwrap().id).await.unwrap();
    assert_eq!(job.status.state(), State::Succeeded);
}

#[tokio::test(start_paused = true)]
async fn time_passes_only_as_far_as_the_test_says() {
    let (engine, _) = engine().await;
    engine.submit(ChargeCard { order: 17 }).delay(minutes(10)).await.unwrap();
    engine.travel(minutes(10) - seconds(1)).await;
    assert_eq!(engine.succeeded().await, 0);
    assert_eq!(engine.travel_to_next_due().await, Some(seconds(1)));
    assert_eq!(engine.succeeded().await, 2);
    assert_eq!(engine.travel_to_next_due().await, None);
}

#[tokio::test(start_paused = true)]
async fn scripted_failures_come_before_the_handler() {
    let (engine, sent) = engine().await;
    engine.script::<ChargeCard>(Report::retry("the bank is down"));
    engine.script::<ChargeCard>(Report::retry("the bank is still down"));
    let receipt = engine.inline(engine.submit(ChargeCard { order: 17 })).await;
    let id = receipt.unwrap().id;
    let job = engine.job(id).await.unwrap();
    assert_eq!((job.attempt, sent.load(Ordering::SeqCst)), (1, 0));
    engine.finish().await;
    let job = engine.job(id).await.unwrap();
    assert_eq!((job.attempt, job.status.state()), (3, State::Succeeded));
    for _ in 0..3 {
        engine.script::<ChargeCard>(Report::retry("the bank is down"));
    }
    let receipt = engine.submit(ChargeCard { order: 18 }).await.unwrap();
    engine.finish().await;
    assert_eq!(engine.job(receipt.id).await.unwrap().status.state(), State::Dead);
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "these jobs are due and do not run: charge-card")]
async fn a_due_job_that_cannot_run_is_named() {
    let (engine, _) = engine().await;
    let kind = KindName::parse("charge-card").unwrap();
    engine.change_kind(&kind, &KindChange::Pause, &Actor::new("test")).await.unwrap();
    engine.submit(ChargeCard { order: 17 }).await.unwrap();
    engine.drain().await;
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = r#"submitted jobs of the kind charge-card: [{"order":17}]"#)]
async fn a_missing_submit_is_reported_with_the_others() {
    let (engine, _) = engine().await;
    engine.submit(ChargeCard { order: 17 }).await.unwrap();
    assert_submitted!(engine, ChargeCard { order: 18 });
}
