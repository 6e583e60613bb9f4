//! Submits many jobs of one sort, and drains them.

use super::BenchArgs;
use super::subject::{KIND, now, open, rate};
use anyhow::{Result, ensure};
use rewheel::{millis, minutes, seconds};
use rewheel_core::store::{Insert, Inserted, Store};
use rewheel_core::{
    ContentType, GroupKey, JobId, JobResult, KindName, NewJob, Report, SecretUrl, ShardKey, When,
};
use rewheel_engine::{Engine, EngineSettings, FollowUp, JobContext, KindSettings};
use rewheel_server::telemetry;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;

const INSERT_BATCH: usize = 1_000;

/// Jobs that callers wait for are due after the benchmark.
const A_DAY: Duration = minutes(24 * 60);

/// Attempts that run at the same time.
const CONCURRENCY: usize = 2_000;

/// Which jobs a round submits and drains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// Each job submits the next one together with its result, in chains of this many.
    InChains {
        of: usize,
    },
    /// This many callers wait for other jobs, which do not end.
    WithWaiters {
        waiters: usize,
    },
}

/// Rates in jobs per second.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    pub(super) submit: f64,
    pub(super) drain: f64,
    /// From the first submit to the last result.
    pub(super) total: f64,
}

impl Load {
    fn kind_settings(self, args: &BenchArgs) -> KindSettings {
        let result = matches!(self, Load::WithResults { .. });
        KindSettings { keep_succeeded: args.keep_succeeded, result, ..KindSettings::default() }
    }

    /// Returns how many jobs are submitted before the drain: of a chain, only the first.
    fn submitted(self, jobs: usize) -> usize {
        if let Load::InChains { of } = self { jobs.div_ceil(of) } else { jobs }
    }

    /// Returns how many jobs run if this many are asked for: a chain is never cut.
    fn run(self, jobs: usize) -> usize {
        if let Load::InChains { of } = self { jobs.next_multiple_of(of) } else { jobs }
    }

    fn jobs(self, engine: &Engine, args: &BenchArgs) -> Result<Vec<NewJob>> {
        let kind = KindName::parse(KIND)?;
        let payload = match self {
            Load::InChains { of } => chained(of - 1, args.payload_bytes),
            Load::Plain
            | Load::WithResults { .. }
            | Load::InGroups { .. }
            | Load::WithWaiters { .. } => vec![b'7'; args.payload_bytes],
        };
        let shard_key =
            |nth: usize| ShardKey::parse(&nth.checked_rem(args.shard_keys)?.to_string()).ok();
        let group_key = |nth: usize| {
            let Load::InGroups { of } = self else { return None };
            GroupKey::parse(&format!("customer-{}", nth % args.jobs().div_ceil(of))).ok()
        };
        let job = |nth| NewJob {
            shard_key: shard_key(nth),
            group_key: group_key(nth),
            ..NewJob::new(engine.new_id(), kind.clone(), payload.clone())
        };
        Ok((0..self.submitted(args.jobs())).map(job).collect())
    }

    /// Stores the jobs that callers wait for during the drain. They are due long after it.
    async fn insert_waited_for(self, engine: &Engine) -> Result<Vec<JobId>> {
        let Load::WithWaiters { waiters } = self else { return Ok(Vec::new()) };
        let kind = KindName::parse(KIND)?;
        let mut ids = Vec::with_capacity(waiters);
        while ids.len() < waiters {
            let later =
                |id| NewJob { due: When::In(A_DAY), ..NewJob::new(id, kind.clone(), Vec::new()) };
            let count = INSERT_BATCH.min(waiters - ids.len());
            let jobs: Vec<NewJob> = (0..count).map(|_| later(engine.new_id())).collect();
            insert(engine, &jobs).await?;
            ids.extend(jobs.iter().map(|job| job.id));
        }
        Ok(ids)
    }

    /// What the handler does beside its report.
    fn act(self, ctx: &JobContext) {
        match self {
            Load::Plain | Load::InGroups { .. } | Load::WithWaiters { .. } => {}
            Load::WithResults { bytes } => {
                let (content_type, body) = (ContentType::bytes(), vec![b'7'; bytes]);
                ctx.give_result(JobResult { content_type, body });
            }
            Load::InChains { .. } => {
                let left = ctx.payload().first().map_or(0, |left| usize::from(*left));
                if left > 0 {
                    let next = chained(left - 1, ctx.payload().len());
                    ctx.submit(FollowUp::raw(KIND, next)).expect("the kind of this job exists");
                }
            }
        }
    }
}

/// The payload of a chained job: its first byte says how many jobs follow.
fn chained(left: usize, bytes: usize) -> Vec<u8> {
    let mut payload = vec![b'7'; bytes.max(1)];
    payload[0] = u8::try_from(left).expect("chains are short");
    payload
}

/// Submits, then drains jobs.
pub(super) async fn round(url: &SecretUrl, args: &BenchArgs, load: Load) -> Result<Measured> {
    let store = open(url).await?;
    // An engine without a handler: the jobs wait.
    let submitter =
        Engine::builder(Arc::clone(&store)).kind(KIND, load.kind_settings(args)).start().await?;
    let jobs = load.jobs(&submitter, args)?;
    let started = now();
    for batch in jobs.chunks(INSERT_BATCH) {
        insert(&submitter, batch).await?;
    }
    let (submit, submitting) = (rate(jobs.len(), started), started.elapsed());
    let waited_for = load.insert_waited_for(&submitter).await?;
    submitter.shutdown(Duration::ZERO).await;
    let run = load.run(args.jobs());
    let draining = drain(&store, args, load, &waited_for).await?;
    store.close().await?;
    let per_second = |time: Duration| run as f64 / time.as_secs_f64();
    Ok(Measured { submit, drain: per_second(draining), total: per_second(submitting + draining) })
}

async fn insert(engine: &Engine, jobs: &[NewJob]) -> Result<()> {
    let answers = engine.insert(&Insert::new(jobs)).await?;
    let stored = answers.iter().all(|answer| matches!(answer, Inserted::Created { .. }));
    ensure!(stored, "a job was not stored: check that the store is empty");
    Ok(())
}

async fn drain(
    store: &Arc<dyn Store>,
    args: &BenchArgs,
    load: Load,
    waited_for: &[JobId],
) -> Result<Duration> {
    let jobs = load.run(args.jobs());
    let done = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&done);
    let settings = EngineSettings { concurrency: CONCURRENCY, ..EngineSettings::default() };
    let started = now();
    let engine = Engine::builder(Arc::clone(store))
        .settings(settings)
        .raw_handler(KIND, move |ctx: JobContext| {
            load.act(&ctx);
            counted.fetch_add(1, Ordering::Relaxed);
            std::future::ready(Report::Done)
        })
        .start()
        .await?;
    let mut waiters = JoinSet::new();
    for job in waited_for.iter().copied() {
        let engine = engine.clone();
        waiters.spawn(async move {
            engine.wait_for(job)?.wait(A_DAY).await;
            anyhow::Ok(())
        });
    }
    let drained = async {
        while done.load(Ordering::Relaxed) < jobs || engine.status().concurrency_free < CONCURRENCY
        {
            tokio::time::sleep(millis(1)).await;
        }
    };
    telemetry::while_exported(engine.clone(), args.telemetry(), drained).await;
    let took = started.elapsed();
    let books = store.books().await?;
    ensure!(books.live == waited_for.len() as u64, "jobs are left: {books:?}");
    engine.shutdown(seconds(5)).await;
    while let Some(waited) = waiters.join_next().await {
        waited??;
    }
    Ok(took)
}
