//! Measures jobs at a steady rate before and beside a transaction that keeps every dead row. A drain with full claims, as in `pinned`, does
//! not show what an engine reads that keeps up.

use anyhow::Result;
use std::time::Duration;

use crate::queue::load::quantile;
use crate::server::{Database, Server};
use crate::steady::{Pace, Steady};

/// The part beside the old transaction is reported in this many parts.
const PARTS: u32 = 10;
/// Maximum number of pages of the last part, relative to the first one.
const TARGET_PAGES: f64 = 2.0;
/// Maximum p50 of the last part, relative to that before the old transaction.
const TARGET_P50: f64 = 1.5;
/// Maximum p99 of the last part, in milliseconds.
const TARGET_P99: f64 = 30.0;

/// One part of a run.
struct Part {
    /// Pages per job.
    pages: f64,
    /// From submit to start, in milliseconds.
    p50: f64,
    p99: f64,
    /// Dead rows of all tables, as the server estimates them.
    dead: i64,
}

pub async fn print(server: &Server, pace: Pace, lasts: Duration) -> Result<()> {
    let database = server.create("trickle").await?;
    let parts = measure(server, &database, pace, lasts).await;
    server.drop(database).await?;
    let (quiet, parts) = parts?;
    println!(
        "{} jobs/s, then for {lasts:?} beside a transaction older than all of them",
        pace.rate
    );
    println!(
        "{:<10}{:>12}{:>10}{:>10}{:>14}",
        "part", "pages/job", "p50 ms", "p99 ms", "dead rows"
    );
    let line = |name: String, part: &Part| {
        let Part { pages, p50, p99, dead } = part;
        println!("{name:<10}{pages:>12.1}{p50:>10.1}{p99:>10.1}{dead:>14}");
    };
    line("before".to_owned(), &quiet);
    parts.iter().enumerate().for_each(|(nth, part)| line((nth + 1).to_string(), part));
    if let (Some(first), Some(last)) = (parts.first(), parts.last()) {
        judge("pages, last to first", last.pages / first.pages, TARGET_PAGES);
        judge("p50, last to before", last.p50 / quiet.p50, TARGET_P50);
        judge("p99 of the last part, ms", last.p99, TARGET_P99);
    }
    Ok(())
}

pub fn judge(what: &str, figure: f64, target: f64) {
    let reached = if figure <= target { "pass" } else { "MISS" };
    println!("{what}: {figure:.2}  target {target}  {reached}");
}

async fn measure(
    server: &Server,
    database: &Database,
    pace: Pace,
    lasts: Duration,
) -> Result<(Part, Vec<Part>)> {
    let mut steady = Steady::start(database, pace).await?;
    // Cold caches are not measured.
    steady.run(Duration::from_secs(2)).await?;
    let quiet = part(server, database, &mut steady, lasts / PARTS).await?;
    let old = database.connect().await?;
    // With a transaction number, as after any write.
    old.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT pg_current_xact_id()").await?;
    let mut parts = Vec::new();
    for _ in 0..PARTS {
        parts.push(part(server, database, &mut steady, lasts / PARTS).await?);
    }
    old.batch_execute("COMMIT").await?;
    steady.end().await?;
    Ok((quiet, parts))
}

async fn part(
    server: &Server,
    database: &Database,
    steady: &mut Steady,
    lasts: Duration,
) -> Result<Part> {
    let (before, jobs) = (server.pages(database).await?, steady.submitted());
    let waits = steady.run(lasts).await?;
    let pages = server.pages(database).await? - before;
    let jobs = steady.submitted() - jobs;
    let figure = |part| quantile(&waits, part).unwrap_or(f64::NAN);
    Ok(Part {
        pages: pages as f64 / jobs as f64,
        p50: figure(0.5),
        p99: figure(0.99),
        dead: database.dead_rows().await?,
    })
}
