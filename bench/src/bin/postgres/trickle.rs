//! Counts the pages that a job touches while jobs come at a steady rate beside an old transaction. A drain with full claims, as in
//! `pinned`, does not show what an engine reads that keeps up.

use anyhow::{Result, ensure};
use rewheel::{millis, seconds};
use rewheel_core::store::{Insert, Inserted};
use rewheel_core::{KindName, NewJob, Report};
use rewheel_engine::{Engine, KindSettings};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior};

use crate::counters::Counters;
use crate::load::{GIVE_UP, Load, Payload, micros, quantile};
use crate::server::{Database, Server};
use crate::subject::open;

const KIND: &str = "trickle";
/// Jobs per second.
pub const RATE: usize = 1_000;
/// How often jobs are submitted.
const EVERY: Duration = Duration::from_millis(25);
/// The run is reported in this many parts.
const PARTS: usize = 10;
/// Maximum number of pages of the last part, relative to the first one.
const TARGET: f64 = 2.0;
const KEEP: Duration = Duration::from_secs(7 * 24 * 3_600);

/// One part of a run.
struct Part {
    /// Pages per job.
    buffers: f64,
    /// From submit to start, in milliseconds.
    p50: Option<f64>,
    p99: Option<f64>,
}

pub async fn print(server: &Server, load: &Load) -> Result<()> {
    let database = server.create("trickle").await?;
    let parts = measure(&database, load).await;
    server.drop(database).await?;
    let parts = parts?;
    println!("{} jobs at {RATE}/s beside a transaction older than all of them", load.jobs);
    println!("{:<10}{:>14}{:>10}{:>10}", "part", "buffers/job", "p50 ms", "p99 ms");
    let figure = |figure: Option<f64>| figure.map_or("-".to_owned(), |ms| format!("{ms:.1}"));
    for (nth, Part { buffers, p50, p99 }) in parts.iter().enumerate() {
        println!("{:<10}{buffers:>14.1}{:>10}{:>10}", nth + 1, figure(*p50), figure(*p99));
    }
    if let (Some(first), Some(last)) = (parts.first(), parts.last()) {
        let ratio = last.buffers / first.buffers;
        let reached = if ratio <= TARGET { "pass" } else { "MISS" };
        println!("last to first: ratio {ratio:.2}  target {TARGET}  {reached}");
    }
    Ok(())
}

async fn measure(database: &Database, load: &Load) -> Result<Vec<Part>> {
    let counters = Counters::open(database).await?;
    let done = Arc::new(AtomicUsize::new(0));
    let (started, mut starts) = tokio::sync::mpsc::unbounded_channel();
    let counted = Arc::clone(&done);
    let settings = KindSettings { keep_succeeded: KEEP, ..KindSettings::default() };
    let worker = open(database).await?;
    let running = Engine::builder(Arc::clone(&worker))
        .kind(KIND, settings)
        .raw_handler(KIND, move |context| {
            if let Ok(payload) = serde_json::from_slice::<Payload>(context.payload()) {
                let _ = started.send(micros().saturating_sub(payload.at) as f64 / 1e3);
            }
            counted.fetch_add(1, Ordering::Relaxed);
            std::future::ready(Report::Done)
        })
        .start()
        .await?;
    // Another node without a handler, so that jobs are claimed and do not take the direct path.
    let submitter = open(database).await?;
    let submitting = Engine::builder(Arc::clone(&submitter)).start().await?;
    counters.autovacuum_off().await?;
    let old = database.connect().await?;
    old.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class")
        .await?;

    let mut parts = Vec::with_capacity(PARTS);
    let each = (load.jobs / PARTS).max(1);
    let mut before = counters.buffers_so_far().await?.total();
    for nth in 0..PARTS {
        trickle(&submitting, load, nth * each, each).await?;
        let last = Instant::now();
        while done.load(Ordering::Relaxed) < (nth + 1) * each {
            ensure!(
                last.elapsed() < GIVE_UP,
                "no job was claimed for too long, although some are waiting"
            );
            tokio::time::sleep(millis(1)).await;
        }
        let after = counters.buffers_so_far().await?.total();
        let mut waits = Vec::with_capacity(each);
        while let Ok(wait) = starts.try_recv() {
            waits.push(wait);
        }
        let (p50, p99) = (quantile(&waits, 0.5), quantile(&waits, 0.99));
        parts.push(Part { buffers: (after - before) as f64 / each as f64, p50, p99 });
        before = after;
    }
    old.batch_execute("COMMIT").await?;
    running.shutdown(seconds(5)).await;
    submitting.shutdown(seconds(1)).await;
    worker.close().await?;
    submitter.close().await?;
    Ok(parts)
}

/// Submits jobs at a steady rate.
async fn trickle(engine: &Engine, load: &Load, first: usize, jobs: usize) -> Result<()> {
    let kind = KindName::parse(KIND)?;
    let batch = RATE * EVERY.as_millis() as usize / 1_000;
    let mut ticks = tokio::time::interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    for from in (first..first + jobs).step_by(batch) {
        ticks.tick().await;
        let jobs = (from..(first + jobs).min(from + batch)).map(|nth| {
            let payload = Payload::json(load.payload_bytes, nth)?;
            Ok(NewJob::new(engine.new_id(), kind.clone(), payload))
        });
        let answers = engine.insert(&Insert::new(&jobs.collect::<Result<Vec<_>>>()?)).await?;
        let stored = answers.iter().all(|answer| matches!(answer, Inserted::Created { .. }));
        ensure!(stored, "a job was not stored");
    }
    Ok(())
}
