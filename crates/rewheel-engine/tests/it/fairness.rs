//! Tests of fairness between tenants of one engine.

#![expect(clippy::disallowed_methods, reason = "the time of a test is simulated")]

use rewheel::{millis, seconds};
use rewheel_core::store::Insert;
use rewheel_core::{KindName, NewJob, Report, When};
use rewheel_engine::{Engine, EngineSettings};
use rewheel_stores::MemoryStore;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

type Tested = Result<(), Box<dyn std::error::Error>>;

/// Returns how long a tenant with one job waits beside one with many, whose attempts take `each`.
async fn wait_beside_a_crowd(each: Duration) -> Result<Duration, Box<dyn std::error::Error>> {
    let (start, mut starts) = mpsc::unbounded_channel();
    let engine = Engine::builder(Arc::new(MemoryStore::new()))
        .settings(EngineSettings { concurrency: 10, ..EngineSettings::default() })
        .raw_handler("work", move |context| {
            let start = start.clone();
            async move {
                if context.job().lane.tenant.as_ref().is_some_and(|tenant| tenant.as_str() == "one")
                {
                    let _ = start.send(());
                }
                tokio::time::sleep(each).await;
                Report::Done
            }
        })
        .start()
        .await?;
    for _ in 0..500 {
        engine.submit_raw("work", Vec::new()).tenant("many").await?;
    }
    tokio::time::sleep(seconds(3)).await;
    let submitted = Instant::now();
    engine.submit_raw("work", Vec::new()).tenant("one").await?;
    tokio::time::timeout(seconds(60), starts.recv()).await?;
    Ok(submitted.elapsed())
}

#[tokio::test(start_paused = true)]
async fn one_job_of_a_tenant_does_not_wait_for_the_many_of_another() -> Tested {
    // It gets the next free slot, although others arrived earlier.
    let waited = wait_beside_a_crowd(millis(900)).await?;
    assert!(waited < seconds(1), "{waited:?}");
    Ok(())
}

/// Jobs in the timing wheel do not block others; this must stay so when all of them become due at once.
#[tokio::test(start_paused = true)]
async fn jobs_that_come_due_do_not_keep_other_kinds_from_being_claimed() -> Tested {
    let (start, mut starts) = mpsc::unbounded_channel();
    let engine = Engine::builder(Arc::new(MemoryStore::new()))
        .settings(EngineSettings { concurrency: 20, ..EngineSettings::default() })
        .raw_handler("hangs", |_| async {
            tokio::time::sleep(seconds(25)).await;
            Report::Done
        })
        .raw_handler("quick", move |_| {
            let _ = start.send(());
            async { Report::Done }
        })
        .start()
        .await?;
    let (hangs, quick) = (KindName::parse("hangs")?, KindName::parse("quick")?);
    let job = |kind: &KindName, delay| NewJob {
        due: When::In(delay),
        ..NewJob::new(engine.new_id(), kind.clone(), Vec::new())
    };
    let jobs: Vec<NewJob> = (0..500).map(|_| job(&hangs, seconds(4))).collect();
    engine.insert(&Insert::new(&jobs)).await?;
    tokio::time::sleep(seconds(5)).await;
    // Two: a single job would go directly to a free slot without being claimed.
    let jobs = [job(&quick, Duration::ZERO), job(&quick, Duration::ZERO)];
    engine.insert(&Insert::new(&jobs)).await?;
    tokio::time::timeout(seconds(3), starts.recv()).await?;
    Ok(())
}
