//! A simulated remote worker: claims, runs and settles through any live engine, and sometimes dies.

use crate::fleet::REMOTE;
use crate::model::{self, Model, Run, Who};
use crate::node::{Engines, Luck};
use rewheel::Random;
use rewheel_core::store::Leased;
use rewheel_core::{
    ContentType, HolderId, JobId, JobResult, KindName, NewJob, Report, WorkerOwner,
};
use rewheel_engine::{Engine, WorkerError, WorkerResult};
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// Jobs that one worker runs at the same time.
const JOBS_MAX: usize = 3;

/// The request timeout of a worker.
const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) struct Worker {
    pub(crate) model: Arc<Model>,
    pub(crate) engines: Engines,
    pub(crate) luck: Luck,
    pub(crate) random: Random,
    /// Increases with every life of any worker.
    pub(crate) who: u64,
    pub(crate) id: Option<HolderId>,
    pub(crate) jobs: Vec<Job>,
}

pub(crate) struct Job {
    leased: Leased,
    ends: Instant,
    report: Report,
    /// The job that its result submits.
    follow_up: Option<NewJob>,
    /// Its result was sent, and may have been settled.
    is_sent: bool,
    _run: Run,
}

impl Worker {
    pub(crate) async fn run(mut self) {
        loop {
            sleep(Duration::from_millis(100 + self.random.next() % 500)).await;
            if self.luck.is_bad(&self.random, 150) {
                self.model.tell(&format!("worker {} dies", self.who));
                self.model.count("workers died");
                self.dies();
                sleep(Duration::from_secs(self.random.next() % 10)).await;
            }
            let Some(engine) = self.engine() else { continue };
            // A response may be late, or the request may panic: then the worker does not know the outcome.
            let turn = timeout(PATIENCE, caught(self.turn(&engine))).await;
            if let Ok(Some(Err(WorkerError::Expired(_)))) = turn {
                self.dies();
            }
        }
    }

    fn dies(&mut self) {
        self.jobs.clear();
        self.id = None;
        self.who += 100;
    }

    fn engine(&self) -> Option<Engine> {
        let engines = self.engines.lock().expect("nothing panics with it");
        let living: Vec<&Engine> = engines.iter().flatten().collect();
        let nth = self.random.next() as usize % living.len().max(1);
        living.get(nth).map(|engine| (*engine).clone())
    }

    async fn turn(&mut self, engine: &Engine) -> Result<(), WorkerError> {
        let worker = match self.id {
            Some(id) => engine.worker(id, WorkerOwner::NoToken).await?,
            None => {
                let worker = engine.worker_joins("worker", WorkerOwner::NoToken).await?;
                self.id = Some(worker.id());
                worker
            }
        };
        let named: BTreeSet<_> = self.jobs.iter().map(|job| job.leased.job.id).collect();
        worker.heartbeat(&named, Some(PATIENCE)).await?;
        let now = model::now();
        let mut results = Vec::new();
        for job in self.jobs.iter_mut().filter(|job| job.ends <= now) {
            if !std::mem::replace(&mut job.is_sent, true) {
                self.model.look_at_lease(Who::Worker(self.who), &job.leased.job).await;
            }
            let (lease, report) = (job.leased.lease(), job.report.clone());
            let follow_ups = job.follow_up.iter().cloned().collect();
            let took = Duration::from_secs(1);
            let is_done = report == Report::Done;
            // Another one with each repetition: the first stays.
            let result = is_done.then(|| JobResult {
                content_type: ContentType::bytes(),
                body: self.model.gives(&job.leased.job),
            });
            results.push(WorkerResult { lease, report, took, follow_ups, result, code: None });
        }
        if !results.is_empty() {
            // The same results again, until there is a response.
            let ids: Vec<JobId> = results.iter().map(|result| result.lease.job).collect();
            worker.settle(results).await?;
            for id in ids {
                self.model.sees_result(id).await;
            }
            self.jobs.retain(|job| job.ends > now);
        }
        let kinds = [KindName::parse(REMOTE).expect("a good name")];
        let leased = worker.claim(&kinds, JOBS_MAX - self.jobs.len()).await?;
        for leased in leased {
            let _run = self.model.begin(Who::Worker(self.who), &leased.job).await;
            let is_long = self.luck.is_bad(&self.random, 30);
            let millis = if is_long { 20_000 } else { self.random.next() % 3_000 };
            let ends = model::now() + Duration::from_millis(millis);
            let report = self.luck.report(&self.random, self.model.fleet.depends(REMOTE));
            let wants = report == Report::Done && self.model.may_submit(&leased.job);
            let follow_up = wants.then(|| {
                let work = KindName::parse("work").expect("a good name");
                let job = NewJob::new(engine.new_id(), work, Vec::new());
                self.model.submits(&leased.job, job.id);
                self.model.submitter_is_done(job.id);
                job
            });
            self.jobs.push(Job { leased, ends, report, follow_up, is_sent: false, _run });
        }
        Ok(())
    }
}

/// Awaits a future; returns `None` if it panics.
pub(crate) async fn caught<T>(work: impl Future<Output = T>) -> Option<T> {
    let mut work = std::pin::pin!(work);
    std::future::poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx))) {
        Ok(polled) => polled.map(Some),
        Err(_) => Poll::Ready(None),
    })
    .await
}
