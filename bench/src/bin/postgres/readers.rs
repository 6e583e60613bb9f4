//! Measures jobs at a steady rate while other clients scan the hot table in long transactions.

use anyhow::Result;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio_postgres::Client;

use crate::queue::load::quantile;
use crate::server::{Database, Server};
use crate::steady::{Pace, Steady};
use crate::trickle::judge;

/// Maximum p50 beside the readers, relative to that without them.
const TARGET: f64 = 1.3;
const READERS: usize = 4;
/// Between two scans of a reader.
const PAUSE: Duration = Duration::from_millis(100);
/// Quiet parts and parts beside readers take turns, so that a slow minute affects both.
const TURNS: u32 = 3;

pub async fn print(server: &Server, pace: Pace, lasts: Duration) -> Result<()> {
    let database = server.create("readers").await?;
    let measured = measure(&database, pace, lasts / TURNS / 2).await;
    server.drop(database).await?;
    let (quiet, beside, dead) = measured?;
    println!("{} jobs/s; {READERS} readers scan `jobs` every {PAUSE:?}", pace.rate);
    println!("{:<16}{:>10}{:>10}", "", "p50 ms", "p99 ms");
    let figure = |waits: &[f64], part| quantile(waits, part).unwrap_or(f64::NAN);
    for (name, waits) in [("quiet", &quiet), ("beside readers", &beside)] {
        println!("{name:<16}{:>10.1}{:>10.1}", figure(waits, 0.5), figure(waits, 0.99));
    }
    println!("{dead} dead rows at the end");
    judge("p50, readers to quiet", figure(&beside, 0.5) / figure(&quiet, 0.5), TARGET);
    Ok(())
}

async fn measure(
    database: &Database,
    pace: Pace,
    each: Duration,
) -> Result<(Vec<f64>, Vec<f64>, i64)> {
    let mut steady = Steady::start(database, pace).await?;
    steady.run(Duration::from_secs(2)).await?;
    let (mut quiet, mut beside, mut dead) = (Vec::new(), Vec::new(), 0);
    for _ in 0..TURNS {
        quiet.extend(steady.run(each).await?);
        let enough = Arc::new(AtomicBool::new(false));
        let mut readers = JoinSet::new();
        for _ in 0..READERS {
            readers.spawn(read(database.connect().await?, Arc::clone(&enough)));
        }
        beside.extend(steady.run(each).await?);
        dead = database.dead_rows().await?;
        enough.store(true, Ordering::Relaxed);
        while let Some(read) = readers.join_next().await {
            read??;
        }
    }
    steady.end().await?;
    Ok((quiet, beside, dead))
}

async fn read(client: Client, enough: Arc<AtomicBool>) -> Result<()> {
    client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ").await?;
    while !enough.load(Ordering::Relaxed) {
        client.batch_execute("SELECT count(*) FROM rewheel.jobs").await?;
        tokio::time::sleep(PAUSE).await;
    }
    Ok(client.batch_execute("COMMIT").await?)
}
