//! Tests of engines that prefer different shards.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "the time of a test is simulated"
)]

use rewheel::{millis, seconds};
use rewheel_core::store::{Insert, ReadStore, Store};
use rewheel_core::{HolderId, KindName, NewJob, Report, Shard, ShardKey};
use rewheel_engine::{Engine, EngineSettings, JobContext};
use rewheel_stores::MemoryStore;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;

type Tested = Result<(), Box<dyn std::error::Error>>;

/// Which engine ran jobs of which shard, and when.
type Runs = Arc<Mutex<Vec<(usize, Shard, Instant)>>>;

/// An engine with ten slots, whose attempts take this long.
async fn start(
    store: &Arc<MemoryStore>,
    nth: usize,
    each: Duration,
    runs: &Runs,
) -> Result<Engine, rewheel_engine::StartError> {
    let runs = Arc::clone(runs);
    let run = move |context: JobContext| {
        runs.lock().unwrap().push((nth, context.job().lane.shard, Instant::now()));
        async move {
            tokio::time::sleep(each).await;
            Report::Done
        }
    };
    Engine::builder(Arc::clone(store) as Arc<dyn Store>)
        .settings(EngineSettings { concurrency: 10, ..EngineSettings::default() })
        .raw_handler("work", run)
        .shards(|job: &NewJob| Shard::of(job.tenant.as_ref(), job.shard_key.as_ref()))
        .start()
        .await
}

fn job(engine: &Engine, key: &str) -> NewJob {
    let shard_key = ShardKey::parse(key).ok();
    let kind = KindName::parse("work").unwrap();
    NewJob { shard_key, ..NewJob::new(engine.new_id(), kind, Vec::new()) }
}

/// Jobs whose shard belongs to the first of two holders.
fn jobs_of(engine: &Engine, holders: [HolderId; 2], count: usize) -> Vec<NewJob> {
    let jobs = (0..).map(|nth| job(engine, &format!("order {nth}")));
    let is_own = |job: &NewJob| job.lane().shard.owner(&holders) == Some(holders[0]);
    jobs.filter(is_own).take(count).collect()
}

async fn finish(store: &MemoryStore) -> Tested {
    while store.books().await?.live > 0 {
        tokio::time::sleep(millis(10)).await;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn each_engine_runs_jobs_of_its_own_shards_first() -> Tested {
    let (store, runs) = (Arc::new(MemoryStore::new()), Runs::default());
    let mut engines = Vec::new();
    for nth in 0..3 {
        engines.push(start(&store, nth, millis(20), &runs).await?);
    }
    // All engines know each other.
    tokio::time::sleep(seconds(6)).await;
    let jobs: Vec<NewJob> =
        (0..6_000).map(|nth| job(&engines[0], &format!("order {nth}"))).collect();
    engines[0].insert(&Insert::new(&jobs)).await?;
    finish(&store).await?;
    let holders: Vec<HolderId> = engines.iter().map(|engine| engine.status().holder).collect();
    let runs = runs.lock().unwrap();
    assert_eq!(runs.len(), 6_000);
    // While all of them have jobs: later they help each other.
    let early = &runs[..3_000];
    let own = early.iter().filter(|(nth, shard, _)| shard.owner(&holders) == Some(holders[*nth]));
    let own = own.count();
    assert!(own > 2_400, "{own} of 3,000 ran where their shard is at home");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn jobs_of_a_holder_that_has_no_time_are_run_by_others() -> Tested {
    let (store, runs) = (Arc::new(MemoryStore::new()), Runs::default());
    let busy = start(&store, 0, seconds(100_000), &runs).await?;
    let full: Vec<NewJob> = (0..40).map(|nth| job(&busy, &format!("first {nth}"))).collect();
    busy.insert(&Insert::new(&full)).await?;
    tokio::time::sleep(seconds(1)).await;
    let other = start(&store, 1, millis(100), &runs).await?;
    tokio::time::sleep(seconds(6)).await;
    let (busy, other) = (&busy, &other);
    let (one, two) = (busy.status().holder, other.status().holder);
    // Its own work takes a hundred seconds.
    other.insert(&Insert::new(&jobs_of(other, [two, one], 10_000))).await?;
    tokio::time::sleep(millis(500)).await;
    let late = jobs_of(other, [one, two], 1).remove(0);
    let (shard, submitted) = (late.lane().shard, Instant::now());
    other.insert(&Insert::new(&[late])).await?;
    let started = loop {
        let found =
            runs.lock().unwrap().iter().find(|run| run.1 == shard && run.2 >= submitted).copied();
        match found {
            Some(found) => break found,
            None => tokio::time::sleep(millis(10)).await,
        }
    };
    assert_eq!(started.0, 1);
    let waited = started.2 - submitted;
    assert!(waited < seconds(2), "it waited {waited:?}");
    Ok(())
}

/// Ten times as many shards give no larger share.
#[tokio::test(start_paused = true)]
async fn a_tenant_with_many_shards_is_owed_no_more() -> Tested {
    let (store, runs) = (Arc::new(MemoryStore::new()), Runs::default());
    let engine = start(&store, 0, millis(20), &runs).await?;
    let of = |tenant: &str, key: &str| NewJob {
        tenant: rewheel_core::Tenant::parse(tenant).ok(),
        ..job(&engine, key)
    };
    let mut jobs: Vec<NewJob> = (0..3_000).map(|nth| of("many", &format!("order {nth}"))).collect();
    jobs.extend((0..3_000).map(|_| of("one", "always")));
    let one = jobs[5_999].lane().shard;
    // The single tenant's shard is not among those of the other.
    jobs.retain(|job| {
        job.lane().shard != one || job.shard_key.as_ref().unwrap().as_str() == "always"
    });
    engine.insert(&Insert::new(&jobs)).await?;
    finish(&store).await?;
    let runs = runs.lock().unwrap();
    let count = runs[..2_000].iter().filter(|(_, shard, _)| *shard == one).count();
    assert!((900..1_100).contains(&count), "{count} of the first 2,000 are the one's");
    Ok(())
}
