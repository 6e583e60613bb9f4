//! Runs jobs at a steady rate: one engine submits them, another one runs them.

use anyhow::{Context, Result, ensure};
use rewheel::{millis, seconds};
use rewheel_core::store::{Insert, Inserted, Store};
use rewheel_core::{KindName, NewJob, Report};
use rewheel_engine::{Engine, EngineSettings, KindSettings};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::MissedTickBehavior;

use crate::queue::load::{Payload, micros};
use crate::queue::subject::open;
use crate::server::Database;

const KIND: &str = "steady";
/// How often jobs are submitted.
const EVERY: Duration = Duration::from_millis(25);
/// How long the last job may take after its submit.
const GIVE_UP: Duration = Duration::from_secs(60);
/// Enough for 5,000 jobs per second.
const CONCURRENCY: usize = 1_000;

/// What to run.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Jobs per second.
    pub rate: usize,
    pub payload_bytes: usize,
    /// How long finished jobs are kept.
    pub keep: Duration,
}

pub struct Steady {
    pace: Pace,
    worker: (Engine, Arc<dyn Store>),
    submitter: (Engine, Arc<dyn Store>),
    submitted: usize,
    done: Arc<AtomicUsize>,
    waits: UnboundedReceiver<f64>,
}

impl Steady {
    pub async fn start(database: &Database, pace: Pace) -> Result<Steady> {
        let done = Arc::new(AtomicUsize::new(0));
        let (started, waits) = unbounded_channel();
        let counted = Arc::clone(&done);
        let kind = KindSettings { keep_succeeded: pace.keep, ..KindSettings::default() };
        let settings = EngineSettings { concurrency: CONCURRENCY, ..EngineSettings::default() };
        let store = open(&database.url).await?;
        let worker = Engine::builder(Arc::clone(&store))
            .settings(settings)
            .kind(KIND, kind)
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
        let other = open(&database.url).await?;
        let submitting = Engine::builder(Arc::clone(&other)).start().await?;
        let (worker, submitter) = ((worker, store), (submitting, other));
        Ok(Steady { pace, worker, submitter, submitted: 0, done, waits })
    }

    /// Submits jobs for this long, and waits until all of them ran. Returns how long each waited for its start, in milliseconds.
    pub async fn run(&mut self, lasts: Duration) -> Result<Vec<f64>> {
        let jobs = (self.pace.rate as f64 * lasts.as_secs_f64()) as usize;
        self.submit(jobs.max(1)).await?;
        let all_ran = async {
            while self.done.load(Ordering::Relaxed) < self.submitted {
                tokio::time::sleep(millis(1)).await;
            }
        };
        let in_time = tokio::time::timeout(GIVE_UP, all_ran).await;
        in_time.context("jobs have been waiting for too long since the last submit")?;
        let mut waits = Vec::with_capacity(jobs);
        while let Ok(wait) = self.waits.try_recv() {
            waits.push(wait);
        }
        Ok(waits)
    }

    async fn submit(&mut self, jobs: usize) -> Result<()> {
        let (engine, kind) = (&self.submitter.0, KindName::parse(KIND)?);
        let batch = (self.pace.rate * EVERY.as_millis() as usize / 1_000).max(1);
        let mut ticks = tokio::time::interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
        let until = self.submitted + jobs;
        for from in (self.submitted..until).step_by(batch) {
            ticks.tick().await;
            let jobs = (from..until.min(from + batch)).map(|nth| {
                let payload = Payload::json(self.pace.payload_bytes, nth)?;
                Ok(NewJob::new(engine.new_id(), kind.clone(), payload))
            });
            let answers = engine.insert(&Insert::new(&jobs.collect::<Result<Vec<_>>>()?)).await?;
            let stored = answers.iter().all(|answer| matches!(answer, Inserted::Created { .. }));
            ensure!(stored, "a job was not stored");
        }
        self.submitted = until;
        Ok(())
    }

    /// Returns how many jobs were submitted so far.
    pub fn submitted(&self) -> usize {
        self.submitted
    }

    /// Ends both engines, and checks that every job is accounted for.
    pub async fn end(self) -> Result<()> {
        let ((worker, store), (submitter, other)) = (self.worker, self.submitter);
        worker.shutdown(seconds(5)).await;
        submitter.shutdown(seconds(1)).await;
        let books = store.books().await?;
        ensure!(books.missing() == 0, "the books do not balance: {books:?}");
        store.close().await?;
        other.close().await?;
        Ok(())
    }
}
