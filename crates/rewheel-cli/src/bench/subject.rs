//! Benchmarks the engine through its public API.

use anyhow::{Context, Result, ensure};
use rewheel::{millis, seconds};
use rewheel_core::store::Store;
use rewheel_core::{Report, SecretUrl};
use rewheel_engine::{Engine, JobContext};
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::mpsc;

pub(super) const KIND: &str = "bench";
const SAMPLES: usize = 100;

#[expect(clippy::disallowed_methods, reason = "the time that passes is what is measured here")]
pub(super) fn now() -> Instant {
    Instant::now()
}

pub(super) fn rate(jobs: usize, started: Instant) -> f64 {
    jobs as f64 / started.elapsed().as_secs_f64()
}

pub(super) async fn open(url: &SecretUrl) -> Result<Arc<dyn Store>> {
    Ok(rewheel_stores::connect(url.expose()).await?)
}

/// Runs one job at a time in an idle engine. Returns the milliseconds from submit to handler, for
/// jobs that are claimed from the store and for jobs on the direct path.
pub(super) async fn latency(url: &SecretUrl) -> Result<(Vec<f64>, Vec<f64>)> {
    let store = open(url).await?;
    let (started, mut starts) = mpsc::unbounded_channel();
    let engine = Engine::builder(Arc::clone(&store))
        .raw_handler(KIND, move |_: JobContext| {
            let _ = started.send(now());
            std::future::ready(Report::Done)
        })
        .start()
        .await?;
    // A second engine in this process that cannot run the kind: the other one claims its jobs.
    let submitter = Engine::builder(Arc::clone(&store)).start().await?;
    let (mut claimed, mut direct) = (Vec::new(), Vec::new());
    for _ in 0..SAMPLES {
        for (engine, samples) in [(&submitter, &mut claimed), (&engine, &mut direct)] {
            tokio::time::sleep(millis(5)).await;
            let sent = now();
            engine.submit_raw(KIND, b"{}".to_vec()).await?;
            let started = starts.recv().await.context("the handler is gone")?;
            samples.push(started.duration_since(sent).as_secs_f64() * 1e3);
        }
    }
    submitter.shutdown(seconds(1)).await;
    engine.shutdown(seconds(1)).await;
    store.close().await?;
    Ok((claimed, direct))
}

/// Runs jobs with delays of up to a second, and plain sleeps of the same duration. Returns how many
/// milliseconds late each was.
pub(super) async fn firing(url: &SecretUrl) -> Result<(Vec<f64>, Vec<f64>)> {
    let store = open(url).await?;
    let (fired, mut fires) = mpsc::unbounded_channel();
    let engine = Engine::builder(Arc::clone(&store))
        .raw_handler(KIND, move |ctx: JobContext| {
            let _ = fired.send((ctx.payload().to_vec(), now()));
            std::future::ready(Report::Done)
        })
        .start()
        .await?;
    let (mut expected, mut slept) = (Vec::new(), Vec::new());
    let mut sleeps = tokio::task::JoinSet::new();
    for nth in 0..SAMPLES {
        let delay = millis(300 + (nth as u64 * 37) % 700);
        let sent = now();
        engine.submit_raw(KIND, nth.to_string().into_bytes()).delay(delay).await?;
        // The store counts from its commit, which lies between these two times.
        expected.push((sent + delay, now() + delay));
        let ends = now() + delay;
        sleeps.spawn(async move {
            tokio::time::sleep_until(ends.into()).await;
            now().saturating_duration_since(ends).as_secs_f64() * 1e3
        });
    }
    let mut late = Vec::with_capacity(SAMPLES);
    while late.len() < SAMPLES {
        let (payload, at) = fires.recv().await.context("the handler is gone")?;
        let nth: usize = String::from_utf8(payload)?.parse()?;
        let (earliest, latest) = expected[nth];
        ensure!(at >= earliest, "a job started {:?} before it was due", earliest - at);
        late.push(at.saturating_duration_since(latest).as_secs_f64() * 1e3);
    }
    while let Some(sleep) = sleeps.join_next().await {
        slept.push(sleep?);
    }
    engine.shutdown(seconds(1)).await;
    store.close().await?;
    Ok((late, slept))
}
