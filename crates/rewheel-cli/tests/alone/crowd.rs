//! Tests fairness: one tenant has many due jobs, another has one.

#![expect(
    clippy::disallowed_methods,
    reason = "how long something takes for real is what it measures"
)]

use rewheel::{millis, seconds};
use rewheel_core::store::{Insert, Store};
use rewheel_core::{KindName, NewJob, Report, Tenant};
use rewheel_engine::{Engine, EngineSettings};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

type Tested = Result<(), Box<dyn std::error::Error>>;

const CROWD: usize = 200_000;

/// Without fairness it would wait for half an hour: 20 slots, 200 ms per job.
const WAIT_MAX: Duration = seconds(60);

#[expect(clippy::print_stdout, reason = "prints the measurement")]
async fn one_beside_many(store: Arc<dyn Store>) -> Tested {
    let (start, mut starts) = mpsc::unbounded_channel();
    let engine = Engine::builder(store)
        .settings(EngineSettings { concurrency: 20, ..EngineSettings::default() })
        .raw_handler("work", move |context| {
            let start = start.clone();
            async move {
                if context.payload() == b"one" {
                    let _ = start.send(Instant::now());
                }
                tokio::time::sleep(millis(200)).await;
                Report::Done
            }
        })
        .start()
        .await?;
    let (kind, many) = (KindName::parse("work")?, Tenant::parse("many")?);
    for _ in 0..CROWD / 1_000 {
        let new = || NewJob {
            tenant: Some(many.clone()),
            ..NewJob::new(engine.new_id(), kind.clone(), Vec::new())
        };
        let jobs: Vec<NewJob> = std::iter::repeat_with(new).take(1_000).collect();
        engine.insert(&Insert::new(&jobs)).await?;
    }
    for _ in 0..5 {
        let submitted = Instant::now();
        engine.submit_raw("work", b"one".to_vec()).tenant("one").await?;
        let started = tokio::time::timeout(WAIT_MAX, starts.recv()).await?;
        let waited = started.ok_or("it never started")?.duration_since(submitted);
        println!("beside {CROWD} jobs of another tenant: started after {waited:?}");
    }
    engine.shutdown(seconds(1)).await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenant_with_one_job_does_not_wait_for_a_crowd_on_sqlite() -> Tested {
    let _alone = crate::alone().await;
    let folder = tempfile::tempdir()?;
    let url = format!("sqlite://{}", folder.path().join("crowd.db").display());
    one_beside_many(rewheel_stores::connect(&url).await?).await
}

#[cfg(feature = "test-postgres")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenant_with_one_job_does_not_wait_for_a_crowd_on_postgres() -> Tested {
    let _alone = crate::alone().await;
    let schema = rewheel_testkit::Schema::fresh();
    one_beside_many(rewheel_stores::connect(schema.url()).await?).await
}
