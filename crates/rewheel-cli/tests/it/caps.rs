//! Three engines submit for one tenant with a job cap at the same time.

#![expect(
    clippy::disallowed_methods,
    reason = "submits that really meet in the store are what it is about"
)]

use rewheel::{millis, seconds};
use rewheel_core::store::{Insert, Store};
use rewheel_core::{KindName, NewJob, Report, Tenant};
use rewheel_engine::{Engine, EngineSettings, TenantSettings};
use std::sync::Arc;
use tokio::task::JoinSet;
use tokio::time::Instant;

type Tested = Result<(), Box<dyn std::error::Error>>;

const CAP: u64 = 300;

/// The number of live jobs that must be exceeded for the cap to be tested at all.
const NEAR: u64 = CAP * 8 / 10;

async fn engine(store: &Arc<dyn Store>) -> Result<Engine, Box<dyn std::error::Error>> {
    let settings = TenantSettings { jobs_max: Some(CAP), ..TenantSettings::default() };
    let builder = Engine::builder(Arc::clone(store))
        .settings(EngineSettings { concurrency: 2, ..EngineSettings::default() })
        .tenant("acme", settings)
        .raw_handler("work", |_| async {
            tokio::time::sleep(millis(5)).await;
            Report::Done
        });
    Ok(builder.start().await?)
}

/// Submits as fast as possible, one job or several at a time.
async fn submit(engine: Engine, kind: KindName, tenant: Tenant, several: usize) {
    loop {
        let new = || NewJob {
            tenant: Some(tenant.clone()),
            ..NewJob::new(engine.new_id(), kind.clone(), Vec::new())
        };
        let jobs: Vec<NewJob> = std::iter::repeat_with(new).take(several).collect();
        let _ = engine.insert(&Insert::new(&jobs)).await;
        tokio::time::sleep(millis(2)).await;
    }
}

async fn never_exceeded(stores: [Arc<dyn Store>; 3]) -> Tested {
    let (kind, tenant) = (KindName::parse("work")?, Tenant::parse("acme")?);
    let mut submitters = JoinSet::new();
    let mut engines = Vec::new();
    for store in &stores {
        let engine = engine(store).await?;
        for several in [1, 1, 20] {
            submitters.spawn(submit(engine.clone(), kind.clone(), tenant.clone(), several));
        }
        engines.push(engine);
    }
    let (mut most, began) = (0, Instant::now());
    // For four seconds, or longer if a slow machine needs more time to get near the cap.
    while began.elapsed() < seconds(4) || (most <= NEAR && began.elapsed() < seconds(180)) {
        let live = stores[0].books().await?.live;
        assert!(live <= CAP, "{live} live jobs");
        most = most.max(live);
        tokio::time::sleep(millis(3)).await;
    }
    // Unused reservations of engines must not block the others.
    assert!(most > NEAR, "it was never near the cap: {most}");
    submitters.shutdown().await;
    for engine in engines {
        engine.shutdown(seconds(1)).await;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cap_is_never_exceeded_on_sqlite() -> Tested {
    let folder = tempfile::tempdir()?;
    let url = format!("sqlite://{}", folder.path().join("rewheel.db").display());
    let store = rewheel_stores::connect(&url).await?;
    never_exceeded([Arc::clone(&store), Arc::clone(&store), store]).await
}

#[cfg(feature = "test-postgres")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cap_is_never_exceeded_on_postgres() -> Tested {
    let schema = rewheel_testkit::Schema::fresh();
    let mut stores = Vec::new();
    for _ in 0..3 {
        stores.push(rewheel_stores::connect(schema.url()).await?);
    }
    never_exceeded(stores.try_into().map_err(|_| "three were opened")?).await
}
