//! Counts the pages that a job touches from claim to settle, in an empty and in a full database.

use anyhow::Result;
use std::sync::Arc;
use std::time::Duration;

use crate::counters::{Buffers, Counters};
use crate::queue::load::Load;
use crate::queue::subject::{drain, submit};
use crate::server::{Database, Server};

/// Maximum cost in a full database, relative to an empty one.
const TARGET: f64 = 1.2;
/// Jobs whose pages are counted.
const COUNTED: usize = 100_000;
const KEEP: Duration = Duration::from_secs(7 * 24 * 3_600);
const FUTURE: Duration = Duration::from_secs(300 * 24 * 3_600);

/// Tables and indexes with fewer pages per job are not printed.
const SHOWN_MIN: f64 = 0.05;

pub async fn print(server: &Server, load: &Load) -> Result<()> {
    let empty = measured(server, load, 0).await?;
    let full = measured(server, load, load.jobs).await?;
    println!("buffers for each of {COUNTED} jobs, claimed, run and settled, finished kept;");
    println!("full: beside {0} future and {0} finished jobs\n", load.jobs);
    println!("{:<40}{:>8}{:>8}", "", "empty", "full");
    let each = |count: i64| count as f64 / COUNTED as f64;
    for name in full.names() {
        let (empty, full) = (each(empty.of(name)), each(full.of(name)));
        if empty.max(full) >= SHOWN_MIN {
            println!("{name:<40}{empty:>8.2}{full:>8.2}");
        }
    }
    let (empty, full) = (each(empty.total()), each(full.total()));
    let ratio = full / empty;
    let reached = if ratio <= TARGET { "pass" } else { "MISS" };
    println!("{:<40}{empty:>8.2}{full:>8.2}", "all");
    println!("ratio {ratio:.2}  target {TARGET}  {reached}");
    Ok(())
}

async fn measured(server: &Server, load: &Load, others: usize) -> Result<Buffers> {
    let database = server.create("pages").await?;
    let pages = count(&database, load, others).await;
    server.drop(database).await?;
    pages
}

async fn count(database: &Database, load: &Load, others: usize) -> Result<Buffers> {
    let counters = Counters::open(database).await?;
    if others > 0 {
        let others = Load { jobs: others, ..*load };
        submit(&database.url, &others, KEEP, Duration::ZERO).await?;
        drain(&database.url, others.jobs, &Arc::default(), async || Ok(())).await?;
        submit(&database.url, &others, KEEP, FUTURE).await?;
    }
    let counted = Load { jobs: COUNTED, ..*load };
    submit(&database.url, &counted, KEEP, Duration::ZERO).await?;
    counters.autovacuum_off().await?;
    counters.vacuum().await?;
    let before = counters.buffers().await?;
    drain(&database.url, COUNTED, &Arc::default(), async || Ok(())).await?;
    Ok(counters.buffers().await?.since(&before))
}
