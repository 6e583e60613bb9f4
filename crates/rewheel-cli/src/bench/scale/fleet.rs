//! Runs many engines and waiting workers on one store, and counts what they ask of it.

use super::super::subject::now;
use super::{Size, Watch, kind};
use anyhow::{Result, bail};
use rewheel::{Random, millis, seconds};
use rewheel_core::store::{Insert, Store, StoreChange};
use rewheel_core::{Actor, HolderId, JobId, KindName, NewJob, Report, Tenant, WorkerOwner};
use rewheel_engine::meters::Value;
use rewheel_engine::{
    Engine, EngineSettings, JobContext, KindSettings, RemoteWorker, Reporting, Runner, RunnerKind,
    WorkerResult,
};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;

/// The kind whose jobs are for workers.
const FOR_WORKERS: &str = "for-workers";

/// A job of the trickle is submitted this often: half of them for engines, half for workers.
const EVERY: Duration = millis(20);

/// How long the last jobs of a trickle may take.
const DRAIN_MAX: Duration = seconds(60);

/// Engines, and workers that wait for jobs.
pub(super) struct Fleet {
    store: Arc<dyn Store>,
    engines: Vec<Engine>,
    workers: JoinSet<Result<()>>,
    done: Arc<AtomicUsize>,
}

/// What one node asks of the store in a second.
pub(super) struct Load {
    pub(super) calls: f64,
    /// `None` if the server does not count them.
    pub(super) rows: Option<f64>,
}

impl Fleet {
    /// Starts the first engine.
    pub(super) async fn start(store: &Arc<dyn Store>) -> Result<Fleet> {
        let (engines, workers) = (Vec::new(), JoinSet::new());
        let done = Arc::new(AtomicUsize::new(0));
        let mut fleet = Fleet { store: Arc::clone(store), engines, workers, done };
        fleet.grow(1).await?;
        Ok(fleet)
    }

    /// Starts engines until there are this many.
    pub(super) async fn grow(&mut self, nodes: usize) -> Result<()> {
        while self.engines.len() < nodes {
            let name = format!("node-{}", self.engines.len());
            let settings = EngineSettings { name, ..EngineSettings::default() };
            let done = Arc::clone(&self.done);
            // They run every kind, as servers do whose kinds are callbacks.
            let builder = Engine::builder(Arc::clone(&self.store))
                .settings(settings)
                .runners(move |_, _| Some(Arc::new(Done(Arc::clone(&done)))));
            let engine = builder.start().await?;
            if self.engines.is_empty() {
                let settings =
                    KindSettings { runner: RunnerKind::Worker, ..KindSettings::default() };
                let name = KindName::parse(FOR_WORKERS)?;
                engine.put_kind(&name, &settings, &Actor::new("bench")).await?;
            }
            self.engines.push(engine);
        }
        Ok(())
    }

    /// Reads the metrics of the first engine, as Prometheus does.
    pub(super) async fn scrape(&self) -> Result<()> {
        let Some(engine) = self.engines.first() else { bail!("no engine was started") };
        engine.meters(Some(&engine.fleet().await?));
        Ok(())
    }

    /// Lets these workers wait for jobs, spread over the engines.
    pub(super) fn wait_for_jobs(&mut self, workers: &[HolderId]) {
        for (id, engine) in workers.iter().zip(self.engines.iter().cycle()) {
            self.workers.spawn(work(engine.clone(), *id, Arc::clone(&self.done)));
        }
    }

    /// Counts for a while.
    pub(super) async fn watch(&self, watch: &Watch<'_>) -> Result<Load> {
        // Wait until the nodes know each other and the server has counted the reads of their start.
        tokio::time::sleep(watch.time / 2).await;
        let count = self.count(watch).await?;
        tokio::time::sleep(watch.time).await;
        self.load_since(count, watch).await
    }

    /// Counts while other processes submit a job every [`EVERY`], each for another tenant. Fails if jobs are not run.
    pub(super) async fn trickle(&self, size: Size, watch: &Watch<'_>) -> Result<Load> {
        let random = Random::thread();
        let done = self.done.load(Ordering::Relaxed);
        let count = self.count(watch).await?;
        let mut ticks = tokio::time::interval(EVERY);
        let mut submitted = 0;
        while count.started.elapsed() < watch.time {
            ticks.tick().await;
            let id = JobId::new(self.store.now().await?, &random);
            let tenant = Some(Tenant::parse(&format!("tenant-{}", submitted % size.tenants))?);
            let kind = match submitted % 2 {
                0 => kind(submitted % size.kinds)?,
                _ => KindName::parse(FOR_WORKERS)?,
            };
            let job = NewJob { tenant, ..NewJob::new(id, kind, Vec::new()) };
            self.store.insert(&Insert::new(&[job])).await?;
            submitted += 1;
        }
        let load = self.load_since(count, watch).await?;
        let ended = now();
        while self.done.load(Ordering::Relaxed) < done + submitted {
            if ended.elapsed() > DRAIN_MAX {
                let done = self.done.load(Ordering::Relaxed) - done;
                bail!("only {done} of {submitted} jobs ran within {DRAIN_MAX:?}");
            }
            tokio::time::sleep(EVERY).await;
        }
        Ok(load)
    }

    pub(super) async fn stop(mut self) {
        self.workers.shutdown().await;
        for engine in self.engines {
            engine.shutdown(seconds(5)).await;
        }
    }

    async fn count(&self, watch: &Watch<'_>) -> Result<Count> {
        let rows = watch.place.rows_read(watch.name).await?;
        Ok(Count { calls: calls(&self.engines), rows, started: now() })
    }

    async fn load_since(&self, before: Count, watch: &Watch<'_>) -> Result<Load> {
        let after = self.count(watch).await?;
        let each = before.started.elapsed().as_secs_f64() * self.engines.len() as f64;
        let rows = before.rows.zip(after.rows);
        let rows = rows.map(|(before, after)| after.saturating_sub(before) as f64 / each);
        Ok(Load { calls: (after.calls - before.calls) as f64 / each, rows })
    }
}

/// Totals since the start.
struct Count {
    calls: u64,
    rows: Option<u64>,
    started: std::time::Instant,
}

fn calls(engines: &[Engine]) -> u64 {
    let count = |value: &Value| match value {
        Value::Count(count) => *count,
        Value::Number(_) | Value::Distribution(_) => 0,
    };
    let readings = engines.iter().flat_map(|engine| engine.meters(None));
    let calls = readings.filter(|reading| reading.meter.name == "rewheel.store.calls");
    calls.flat_map(|reading| reading.samples).map(|sample| count(&sample.value)).sum()
}

/// Counts the jobs that an engine runs.
struct Done(Arc<AtomicUsize>);

impl Runner for Done {
    fn run(&self, _: JobContext) -> Reporting {
        self.0.fetch_add(1, Ordering::Relaxed);
        Box::pin(async { Report::Done })
    }
}

/// Claims jobs one by one and settles them, as the server does for a worker whose requests never end.
async fn work(engine: Engine, id: HolderId, done: Arc<AtomicUsize>) -> Result<()> {
    let worker = engine.worker(id, WorkerOwner::Unknown).await?;
    let kinds = [KindName::parse(FOR_WORKERS)?];
    let settings = engine.settings();
    let (renew_every, mut watch) = (settings.lease_ttl / 3, engine.store().watch());
    let rest = settings.poll.min(renew_every);
    let mut renewed = now();
    loop {
        let leased = worker.claim(&kinds, 1).await?;
        for job in &leased {
            let result = WorkerResult {
                lease: job.lease(),
                report: Report::Done,
                took: Duration::ZERO,
                follow_ups: Vec::new(),
                result: None,
                code: None,
            };
            worker.settle(vec![result]).await?;
            done.fetch_add(1, Ordering::Relaxed);
        }
        if !leased.is_empty() {
            continue;
        }
        renewed = renew(&worker, renewed, renew_every).await?;
        let changed = async {
            loop {
                match watch.changed().await {
                    StoreChange::Lanes(lanes)
                        if !lanes.is_empty() && lanes.iter().all(|lane| lane.kind != kinds[0]) => {}
                    StoreChange::Lanes(_) | StoreChange::AnyLane | StoreChange::Replaced => return,
                }
            }
        };
        // Whether it was woken or the time is over: it looks again.
        let _ = tokio::time::timeout(rest, changed).await;
    }
}

/// Renews the lease of a worker if it is time. Returns when it was renewed.
async fn renew(
    worker: &RemoteWorker<'_>,
    renewed: std::time::Instant,
    every: Duration,
) -> Result<std::time::Instant> {
    if renewed.elapsed() < every {
        return Ok(renewed);
    }
    worker.heartbeat(&BTreeSet::new(), None).await?;
    Ok(now())
}
