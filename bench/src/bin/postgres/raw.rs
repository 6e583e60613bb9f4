//! Measures a minimal queue (one table, one index, no guarantees) as the upper limit of the server.

use anyhow::{Result, ensure};
use tokio::task::JoinSet;
use tokio_postgres::Client;

use crate::queue::load::{BATCH, Figures, Load, Payload, WARM_UP, micros, quantile, rate};
use crate::server::{Database, Server};

/// One per core on most small machines; more gain nothing.
const CONNECTIONS: usize = 2;

const TABLE: &str = "
CREATE TABLE jobs (id bigserial PRIMARY KEY, due timestamptz NOT NULL DEFAULT now(), payload bytea NOT NULL);
CREATE INDEX jobs_due ON jobs (due, id)";

const INSERT: &str = "INSERT INTO jobs (payload) SELECT * FROM unnest($1::bytea[])";

/// Deletes a job when it is taken: a crash would lose it.
const TAKE: &str = "
DELETE FROM jobs WHERE id = ANY (ARRAY(
    SELECT id FROM jobs WHERE due <= now() ORDER BY due, id LIMIT $1 FOR UPDATE SKIP LOCKED))
RETURNING id, payload";

pub async fn round(server: &Server, load: &Load) -> Result<Figures> {
    let database = server.create("raw").await?;
    let figures = measure(&database, load).await;
    server.drop(database).await?;
    figures
}

async fn measure(database: &Database, load: &Load) -> Result<Figures> {
    let client = database.connect().await?;
    client.batch_execute(TABLE).await?;
    let insert = client.prepare(INSERT).await?;
    let started = micros();
    for first in (0..load.jobs).step_by(BATCH) {
        let nths = first..load.jobs.min(first + BATCH);
        let payloads = nths.map(|nth| Payload::json(load.payload_bytes, nth));
        client.execute(&insert, &[&payloads.collect::<Result<Vec<_>>>()?]).await?;
    }
    let submit = rate(load.jobs, started);
    client.batch_execute("VACUUM ANALYZE").await?;

    let mut takers = Vec::with_capacity(CONNECTIONS);
    for _ in 0..CONNECTIONS {
        let client = database.connect().await?;
        let take = client.prepare(TAKE).await?;
        takers.push((client, take));
    }
    let started = micros();
    let mut taking = JoinSet::new();
    for (client, take) in takers {
        taking.spawn(async move {
            while !client.query(&take, &[&(BATCH as i64)]).await?.is_empty() {}
            anyhow::Ok(())
        });
    }
    while let Some(taken) = taking.join_next().await {
        taken??;
    }
    let drain = rate(load.jobs, started);
    let commits = two_commits(&database.connect().await?, load).await?;
    let (p50, p99) = (quantile(&commits, 0.5), quantile(&commits, 0.99));
    Ok(Figures { submit: Some(submit), drain: Some(drain), p50, p99, missing: 0 })
}

/// Stores and takes single jobs, each with a commit. Returns how long both took, in milliseconds.
async fn two_commits(client: &Client, load: &Load) -> Result<Vec<f64>> {
    let (insert, take) = (client.prepare(INSERT).await?, client.prepare(TAKE).await?);
    let mut times = Vec::with_capacity(load.samples);
    for nth in 0..WARM_UP + load.samples {
        let payload = vec![Payload::json(load.payload_bytes, nth)?];
        let started = micros();
        client.execute(&insert, &[&payload]).await?;
        let taken = client.query(&take, &[&1_i64]).await?;
        ensure!(taken.len() == 1, "the job is not there");
        if nth >= WARM_UP {
            times.push((micros() - started) as f64 / 1e3);
        }
    }
    Ok(times)
}
