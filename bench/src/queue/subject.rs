//! Measures Rewheel through its public API, on any store.

use anyhow::{Context, Result, ensure};
use rewheel::{millis, seconds};
use rewheel_core::store::{Insert, Inserted, Store};
use rewheel_core::{KindName, NewJob, Report, When};
use rewheel_engine::{Engine, EngineSettings, JobContext, KindSettings};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;

use super::load::{BATCH, Figures, GIVE_UP, Load, Payload, WARM_UP, micros, pause, quantile, rate};

const KIND: &str = "bench";
/// The same concurrency as graphile-worker gets.
const PLACES: usize = 2_000;

pub async fn open(url: &str) -> Result<Arc<dyn Store>> {
    let store = rewheel_stores::connect(url).await;
    store.with_context(|| format!("cannot open `{url}`"))
}

/// Checks that every job that was stored is accounted for.
pub async fn balance(url: &str) -> Result<()> {
    let books = open(url).await?.books().await?;
    ensure!(books.missing() == 0, "the books do not balance: {books:?}");
    Ok(())
}

/// Stores jobs, and returns how many per second.
pub async fn submit(url: &str, load: &Load, keep: Duration, delay: Duration) -> Result<f64> {
    let store = open(url).await?;
    let settings = KindSettings { keep_succeeded: keep, ..KindSettings::default() };
    // An engine without a handler for the kind: the jobs wait.
    let engine = Engine::builder(Arc::clone(&store)).kind(KIND, settings).start().await?;
    let kind = KindName::parse(KIND)?;
    let started = micros();
    for first in (0..load.jobs).step_by(BATCH) {
        let batch = (first..load.jobs.min(first + BATCH)).map(|nth| {
            let payload = Payload::json(load.payload_bytes, nth)?;
            Ok(NewJob {
                due: When::In(delay),
                ..NewJob::new(engine.new_id(), kind.clone(), payload)
            })
        });
        let answers = engine.insert(&Insert::new(&batch.collect::<Result<Vec<_>>>()?)).await?;
        let stored = answers.iter().all(|answer| matches!(answer, Inserted::Created { .. }));
        ensure!(stored, "a job was not stored");
    }
    let submit = rate(load.jobs, started);
    engine.shutdown(Duration::ZERO).await;
    store.close().await?;
    Ok(submit)
}

/// Runs `jobs` jobs, and returns how many per second, from the start of the engine until each is
/// settled, and `look` has returned. Counts the jobs that were run.
pub async fn drain(
    url: &str,
    jobs: usize,
    done: &Arc<AtomicUsize>,
    look: impl AsyncFnOnce() -> Result<()>,
) -> Result<f64> {
    let store = open(url).await?;
    let counted = Arc::clone(done);
    let settings = EngineSettings { concurrency: PLACES, ..EngineSettings::default() };
    let started = micros();
    let engine = Engine::builder(Arc::clone(&store))
        .settings(settings)
        .raw_handler(KIND, move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
            std::future::ready(Report::Done)
        })
        .start()
        .await?;
    // A slot is free again once its result is durable.
    while done.load(Ordering::Relaxed) < jobs || engine.status().concurrency_free < PLACES {
        tokio::time::sleep(millis(1)).await;
    }
    look().await?;
    let drain = rate(jobs, started);
    engine.shutdown(seconds(5)).await;
    store.close().await?;
    Ok(drain)
}

/// Single jobs from another process to an idle engine in this one.
pub async fn latency(url: &str, load: &Load, figures: &mut Figures) -> Result<()> {
    let store = open(url).await?;
    let (started, mut starts) = mpsc::unbounded_channel();
    let engine = Engine::builder(Arc::clone(&store))
        .raw_handler(KIND, move |context: JobContext| {
            let _ = started.send((micros(), context.payload().to_vec()));
            std::future::ready(Report::Done)
        })
        .start()
        .await?;
    tokio::time::sleep(seconds(1)).await;
    let status = tokio::process::Command::new(std::env::current_exe()?)
        .args(["submit-side", url])
        .args(["--samples", &load.samples.to_string()])
        .args(["--payload-bytes", &load.payload_bytes.to_string()])
        .stdin(Stdio::null())
        .status()
        .await?;
    ensure!(status.success(), "the other process failed");
    let mut waits = Vec::with_capacity(load.samples);
    for _ in 0..WARM_UP + load.samples {
        let Ok(Some((at, payload))) = tokio::time::timeout(GIVE_UP, starts.recv()).await else {
            break;
        };
        let payload: Payload = serde_json::from_slice(&payload)?;
        if payload.nth >= WARM_UP {
            waits.push(at.saturating_sub(payload.at) as f64 / 1e3);
        }
    }
    (figures.p50, figures.p99) = (quantile(&waits, 0.5), quantile(&waits, 0.99));
    figures.missing = (load.samples - waits.len()) as u64;
    engine.shutdown(seconds(5)).await;
    store.close().await?;
    Ok(())
}

/// The other process.
pub async fn submit_side(url: &str, load: &Load) -> Result<()> {
    let store = open(url).await?;
    let engine = Engine::builder(Arc::clone(&store)).start().await?;
    for nth in 0..WARM_UP + load.samples {
        tokio::time::sleep(pause(nth)).await;
        engine.submit_raw(KIND, Payload::json(load.payload_bytes, nth)?).await?;
    }
    engine.shutdown(seconds(1)).await;
    store.close().await?;
    Ok(())
}
