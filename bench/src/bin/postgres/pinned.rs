//! Counts the pages that a job touches while an old transaction keeps dead rows from being removed.

use anyhow::Result;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::counters::Counters;
use crate::queue::load::Load;
use crate::queue::subject::{drain, submit};
use crate::server::{Database, Server};

/// Maximum number of pages, relative to a run without the old transaction.
const TARGET: f64 = 3.0;
/// The same for a run afterwards.
const TARGET_AFTER: f64 = 1.2;
const KEEP: Duration = Duration::from_secs(7 * 24 * 3_600);

/// Often enough to see the last tenth of a run that takes some seconds.
const LOOK: Duration = Duration::from_millis(250);

/// The result of a run.
#[derive(Clone, Copy)]
struct Run {
    /// Pages per job.
    buffers: f64,
    /// Pages per job of the last tenth, when dead rows have accumulated. An upper bound: includes pages that sessions had not
    /// reported yet when it began.
    buffers_last: f64,
    /// Jobs per second.
    rate: f64,
}

pub async fn print(server: &Server, load: &Load) -> Result<()> {
    let database = server.create("pinned").await?;
    let runs = measure(&database, load).await;
    server.drop(database).await?;
    let [normal, pinned, after] = runs?;
    println!("buffers for each of {} jobs, claimed, run and settled, finished kept", load.jobs);
    println!("{:<46}{:>10}{:>14}{:>10}", "", "buffers", "last tenth <=", "jobs/s");
    for (what, run) in [
        ("no other session", normal),
        ("beside a transaction older than all of them", pinned),
        ("after its end and one vacuum", after),
    ] {
        let Run { buffers, buffers_last, rate } = run;
        println!("{what:<46}{buffers:>10.2}{buffers_last:>14.2}{rate:>10.0}");
    }
    for (what, run, target) in [("pinned", pinned, TARGET), ("afterwards", after, TARGET_AFTER)] {
        let ratio = run.buffers / normal.buffers;
        let reached = if ratio <= target { "pass" } else { "MISS" };
        println!("{what}: ratio {ratio:.2}  target {target}  {reached}");
    }
    Ok(())
}

/// Returns the runs before, during and after the old transaction.
async fn measure(database: &Database, load: &Load) -> Result<[Run; 3]> {
    let counters = Counters::open(database).await?;
    submit(&database.url, load, KEEP, Duration::ZERO).await?;
    counters.autovacuum_off().await?;
    counters.vacuum().await?;
    let normal = drained(database, load, &counters).await?;

    submit(&database.url, load, KEEP, Duration::ZERO).await?;
    counters.vacuum().await?;
    let old = database.connect().await?;
    old.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class")
        .await?;
    let pinned = drained(database, load, &counters).await?;
    old.batch_execute("COMMIT").await?;
    counters.vacuum().await?;

    submit(&database.url, load, KEEP, Duration::ZERO).await?;
    let after = drained(database, load, &counters).await?;
    Ok([normal, pinned, after])
}

async fn drained(database: &Database, load: &Load, counters: &Counters) -> Result<Run> {
    let done = Arc::new(AtomicUsize::new(0));
    let before = counters.buffers().await?.total();
    let mut draining = pin!(drain(&database.url, load.jobs, &done, async || Ok(())));
    let mut last = (0, before);
    let rate = loop {
        tokio::select! {
            rate = &mut draining => break rate?,
            () = tokio::time::sleep(LOOK) => {}
        }
        let run = done.load(Ordering::Relaxed);
        if run <= load.jobs / 10 * 9 {
            last = (run, counters.buffers_so_far().await?.total());
        }
    };
    let after = counters.buffers().await?.total();
    let each = |buffers: i64, jobs: usize| buffers as f64 / jobs as f64;
    Ok(Run {
        buffers: each(after - before, load.jobs),
        buffers_last: each(after - last.1, load.jobs - last.0),
        rate,
    })
}
