//! Measures awa on PostgreSQL; it keeps finished jobs until their partition is dropped.

use anyhow::Result;
use awa::model::insert::params_with;
use awa::{Client, InsertOpts, JobArgs, JobResult, QueueConfig, QueueStorage, QueueStorageConfig};
use rewheel_bench_peers::{OnJob, Payload, Peer, run};
use serde::{Deserialize, Serialize};
use sqlx_for_awa::postgres::{PgPool, PgPoolOptions};
use std::time::Duration;

const QUEUE: &str = "bench";

/// Its own exact count takes longer than the drain, so this reads the counters behind it.
const DONE: &str = "
SELECT ((SELECT coalesce(sum(completed_count), 0) FROM awa.receipt_completion_batches)
      + (SELECT coalesce(sum(live_terminal_count), 0) FROM awa.queue_terminal_live_counts)
      + (SELECT coalesce(sum(terminal_delta), 0) FROM awa.queue_terminal_count_deltas)
      + (SELECT coalesce(sum(pruned_completed_count), 0) FROM awa.queue_terminal_rollups))::bigint";

#[derive(Serialize, Deserialize, JobArgs)]
#[serde(transparent)]
struct Bench(Payload);

struct Awa {
    pool: PgPool,
    storage: QueueStorage,
    worker: Option<Client>,
    stored: i64,
}

impl Peer for Awa {
    const NAME: &'static str = "awa";
    const ANALYZE: bool = true;

    async fn open(url: &str) -> Result<Awa> {
        let pool = PgPoolOptions::new().max_connections(20).connect(url).await?;
        awa::migrations::run(&pool).await?;
        let storage = QueueStorage::new(QueueStorageConfig::default())?;
        Ok(Awa { pool, storage, worker: None, stored: 0 })
    }

    async fn insert(&mut self, batch: Vec<Payload>) -> Result<()> {
        self.stored += i64::try_from(batch.len())?;
        let jobs = batch.into_iter().map(|job| params_with(&Bench(job), options()));
        self.storage.enqueue_params_copy(&self.pool, &jobs.collect::<Result<Vec<_>, _>>()?).await?;
        Ok(())
    }

    async fn submit(&mut self, job: Payload) -> Result<()> {
        let jobs = [params_with(&Bench(job), options())?];
        self.storage.enqueue_params_batch(&self.pool, &jobs).await?;
        Ok(())
    }

    async fn work(&mut self, on_job: OnJob) -> Result<()> {
        let config = QueueConfig {
            max_workers: 2_000,
            claim_batch_size: 1_000,
            claimers: 2,
            poll_interval: Duration::from_millis(50),
            // Its fast path is for jobs without a deadline.
            deadline_duration: Duration::ZERO,
            ..QueueConfig::default()
        };
        let worker = Client::builder(self.pool.clone())
            .queue(QUEUE, config)
            .register::<Bench, _, _>(move |job, _| {
                on_job(&job.0);
                std::future::ready(Ok(JobResult::Completed))
            })
            .build()?;
        worker.start().await?;
        self.worker = Some(worker);
        Ok(())
    }

    async fn left(&mut self, sql: &tokio_postgres::Client) -> Result<i64> {
        let row = sql.query_one(DONE, &[]).await?;
        Ok(self.stored - row.get::<_, i64>(0))
    }
}

fn options() -> InsertOpts {
    InsertOpts { queue: QUEUE.to_owned(), ..InsertOpts::default() }
}

fn main() -> Result<()> {
    run::<Awa>()
}
