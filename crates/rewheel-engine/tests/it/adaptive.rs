//! Tests that an adaptive backoff follows the failures of its kind.

use crate::still::store;
use rewheel::{Backoff, Category, Jitter, millis, seconds};
use rewheel_core::store::ReadStore;
use rewheel_core::{Failure, JobId, KindName, Report, WorkerOwner};
use rewheel_engine::{Engine, JobContext, KindSettings, RunnerKind, WorkerResult};
use rewheel_stores::MemoryStore;
use std::sync::Arc;
use std::time::Duration;

type Tested = Result<(), Box<dyn std::error::Error>>;

/// One second, and up to ten times longer the more attempts fail.
fn settings(runner: RunnerKind) -> KindSettings {
    let backoff = Backoff::adaptive(seconds(1)).stretch(10.0).jitter(Jitter::NONE);
    KindSettings { backoff, runner, ..KindSettings::default() }
}

/// The delay that the policy prescribes when this share of attempts failed.
fn delay(failure_ratio: f64) -> Duration {
    Duration::from_secs_f64(1.0 + 9.0 * failure_ratio)
}

/// The recent failure ratio after so many attempts that all failed: each counts for a twentieth.
fn after_failures(count: i32) -> f64 {
    1.0 - 0.95_f64.powi(count)
}

fn report(is_well: bool) -> Report {
    match is_well {
        true => Report::Done,
        false => Report::retry(Failure::new(Category::Io, None, "connection refused")),
    }
}

/// Returns how long a job waits for its second attempt, which was decided just now.
async fn waits(store: &MemoryStore, job: JobId) -> Result<Duration, Box<dyn std::error::Error>> {
    let job = store.get(job).await?.ok_or("the job is gone")?;
    assert_eq!(job.attempt, 1, "{job:?}");
    Ok(job.due.since(store.now().await?))
}

#[track_caller]
fn assert_near(waits: Duration, expected: Duration, which: &str) {
    assert!(waits.abs_diff(expected) <= millis(3), "{which}: {waits:?} instead of {expected:?}");
}

#[tokio::test(start_paused = true)]
async fn a_retry_waits_longer_the_more_attempts_of_its_kind_fail() -> Tested {
    let store = store();
    let run = |ctx: JobContext| async move { report(ctx.payload() == b"well") };
    let engine = Engine::builder(Arc::new(store.clone()))
        .kind("failing", settings(RunnerKind::Handler))
        .kind("healthy", settings(RunnerKind::Handler))
        .raw_handler("failing", run)
        .raw_handler("healthy", run)
        .start()
        .await?;
    for _ in 0..40 {
        engine.submit_raw("failing", b"badly".to_vec()).await?;
        engine.submit_raw("healthy", b"well".to_vec()).await?;
    }
    // Before the first of them is retried.
    tokio::time::sleep(millis(100)).await;
    let failing = engine.submit_raw("failing", b"badly".to_vec()).await?.id;
    let healthy = engine.submit_raw("healthy", b"badly".to_vec()).await?.id;
    tokio::time::sleep(millis(1)).await;
    assert_near(waits(&store, failing).await?, delay(after_failures(41)), "failing");
    assert_near(waits(&store, healthy).await?, delay(after_failures(1)), "healthy");
    engine.shutdown(seconds(1)).await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn so_does_a_retry_that_a_worker_asked_for() -> Tested {
    let store = store();
    let engine = Engine::builder(Arc::new(store.clone()))
        .kind("failing", settings(RunnerKind::Worker))
        .kind("healthy", settings(RunnerKind::Worker))
        .start()
        .await?;
    let worker = engine.worker_joins("w", WorkerOwner::NoToken).await?;
    for (kind, fails, expected) in [("failing", 20, 20), ("healthy", 0, 0)] {
        let name = [KindName::parse(kind)?];
        for count in 0..=20 {
            let job = engine.submit_raw(kind, Vec::new()).await?.id;
            let leased = worker.claim(&name, 1).await?;
            assert_eq!(leased.iter().map(|one| one.job.id).collect::<Vec<_>>(), [job]);
            // The last one fails in both kinds. It counts when it is durable, which is after the decision.
            let report = report(count >= fails && count < 20);
            let (lease, took) = (leased[0].lease(), Duration::ZERO);
            worker
                .settle(vec![WorkerResult {
                    lease,
                    report,
                    took,
                    follow_ups: Vec::new(),
                    result: None,
                    code: None,
                }])
                .await?;
            if count == 20 {
                assert_near(waits(&store, job).await?, delay(after_failures(expected)), kind);
            }
        }
    }
    engine.shutdown(seconds(1)).await;
    Ok(())
}
