//! Benchmarks the engine through its public API.

use super::BenchArgs;
use anyhow::{Context, Result, ensure};
use rewheel::{millis, seconds};
use rewheel_core::store::{Insert, Inserted, Store};
use rewheel_core::{
    ContentType, GroupKey, JobResult, KindName, NewJob, Report, SecretUrl, ShardKey,
};
use rewheel_engine::{Engine, EngineSettings, JobContext, KindSettings};
use rewheel_server::telemetry;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

const KIND: &str = "bench";
const INSERT_BATCH: usize = 1_000;
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

/// Which jobs a round submits and drains.
#[derive(Clone, Copy)]
pub(super) enum Load {
    Plain,
    /// Each job has a result of this size.
    WithResults {
        bytes: usize,
    },
    /// The jobs are in groups of this many.
    InGroups {
        of: usize,
    },
}

/// Submits, then drains jobs. Returns both rates in jobs per second.
pub(super) async fn round(url: &SecretUrl, args: &BenchArgs, load: Load) -> Result<(f64, f64)> {
    let (result_bytes, group_of) = match load {
        Load::Plain => (None, None),
        Load::WithResults { bytes } => (Some(bytes), None),
        Load::InGroups { of } => (None, Some(of)),
    };
    let store = open(url).await?;
    let settings = KindSettings {
        keep_succeeded: args.keep_succeeded,
        result: result_bytes.is_some(),
        ..KindSettings::default()
    };
    // An engine without a handler: the jobs wait.
    let submitter = Engine::builder(Arc::clone(&store)).kind(KIND, settings).start().await?;
    let kind = KindName::parse(KIND)?;
    let payload = vec![b'7'; args.payload_bytes];
    let shard_key =
        |nth: usize| ShardKey::parse(&nth.checked_rem(args.shard_keys)?.to_string()).ok();
    let groups = group_of.map(|jobs| args.jobs().div_ceil(jobs));
    let group_key = |nth: usize| GroupKey::parse(&format!("customer-{}", nth % groups?)).ok();
    let jobs: Vec<NewJob> = (0..args.jobs())
        .map(|nth| NewJob {
            shard_key: shard_key(nth),
            group_key: group_key(nth),
            ..NewJob::new(submitter.new_id(), kind.clone(), payload.clone())
        })
        .collect();
    let started = now();
    for batch in jobs.chunks(INSERT_BATCH) {
        let answers = submitter.insert(&Insert::new(batch)).await?;
        let stored = answers.iter().all(|answer| matches!(answer, Inserted::Created { .. }));
        ensure!(stored, "a job was not stored: check that the store is empty");
    }
    let submit = rate(args.jobs(), started);
    submitter.shutdown(Duration::ZERO).await;
    let drain = drain(&store, args, result_bytes).await?;
    store.close().await?;
    Ok((submit, drain))
}

async fn drain(
    store: &Arc<dyn Store>,
    args: &BenchArgs,
    result_bytes: Option<usize>,
) -> Result<f64> {
    let jobs = args.jobs();
    let done = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&done);
    let settings = EngineSettings { concurrency: 2_000, ..EngineSettings::default() };
    let started = now();
    let engine = Engine::builder(Arc::clone(store))
        .settings(settings)
        .raw_handler(KIND, move |ctx: JobContext| {
            if let Some(bytes) = result_bytes {
                ctx.give_result(JobResult {
                    content_type: ContentType::bytes(),
                    body: vec![b'7'; bytes],
                });
            }
            counted.fetch_add(1, Ordering::Relaxed);
            std::future::ready(Report::Done)
        })
        .start()
        .await?;
    let drained = async {
        while done.load(Ordering::Relaxed) < jobs || engine.status().concurrency_free < 2_000 {
            tokio::time::sleep(millis(1)).await;
        }
    };
    telemetry::while_exported(engine.clone(), args.telemetry(), drained).await;
    let rate = rate(jobs, started);
    let books = store.books().await?;
    ensure!(books.live == 0, "{} jobs are left: {books:?}", books.live);
    engine.shutdown(seconds(5)).await;
    Ok(rate)
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
    let (origin, mut expected, mut slept) = (now(), Vec::new(), Vec::new());
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
        ensure!(at >= earliest, "a job started early: {:?} after {origin:?}", earliest - at);
        late.push(at.saturating_duration_since(latest).as_secs_f64() * 1e3);
    }
    while let Some(sleep) = sleeps.join_next().await {
        slept.push(sleep?);
    }
    engine.shutdown(seconds(1)).await;
    store.close().await?;
    Ok((late, slept))
}
