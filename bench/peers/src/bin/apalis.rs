//! Measures apalis on PostgreSQL; it keeps finished jobs.

use anyhow::{Result, anyhow};
use apalis::prelude::*;
use apalis_postgres::{Config, PostgresStorage};
use rewheel_bench_peers::{OnJob, Payload, Peer, run};
use sqlx_for_apalis::postgres::PgPoolOptions;
use tokio_postgres::Client;

/// Number of jobs fetched at once, and of concurrent jobs.
const BATCH: usize = 500;

struct Apalis {
    storage: PostgresStorage<Payload>,
}

impl Peer for Apalis {
    const NAME: &'static str = "apalis";
    // With fresh statistics, its query plan for fetching jobs is slower.
    const ANALYZE: bool = false;

    async fn open(url: &str) -> Result<Apalis> {
        let pool = PgPoolOptions::new().max_connections(20).connect(url).await?;
        PostgresStorage::setup(&pool).await?;
        let config = Config::default().queue("bench").batch_size(BATCH).lock_tasks(false);
        Ok(Apalis { storage: PostgresStorage::new(&pool).with_config(config) })
    }

    async fn insert(&mut self, batch: Vec<Payload>) -> Result<()> {
        self.storage.push_bulk(batch).await.map_err(|error| anyhow!("{error}"))?;
        Ok(())
    }

    async fn submit(&mut self, job: Payload) -> Result<()> {
        self.storage.push(job).await.map_err(|error| anyhow!("{error}"))?;
        Ok(())
    }

    async fn work(&mut self, on_job: OnJob) -> Result<()> {
        let storage = self.storage.clone().with_pubsub();
        // Its future is not `Send`.
        std::thread::Builder::new().spawn({
            let runtime = tokio::runtime::Handle::current();
            move || {
                runtime.block_on(async move {
                    let worker = WorkerBuilder::new("bench")
                        .backend(storage)
                        .concurrency(BATCH)
                        .data(on_job)
                        .build(handle);
                    if let Err(error) = worker.run().await {
                        eprintln!("apalis: {error}");
                    }
                });
            }
        })?;
        Ok(())
    }

    async fn left(&mut self, sql: &Client) -> Result<i64> {
        let row =
            sql.query_one("SELECT count(*) FROM apalis.jobs WHERE status <> 'Done'", &[]).await?;
        Ok(row.get(0))
    }
}

async fn handle(job: Payload, on_job: Data<OnJob>) -> Result<(), BoxDynError> {
    on_job(&job);
    Ok(())
}

fn main() -> Result<()> {
    run::<Apalis>()
}
