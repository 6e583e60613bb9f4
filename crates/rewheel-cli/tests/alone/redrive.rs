//! Measures a redrive of many dead letters in a PostgreSQL store that is far away.

#![expect(
    clippy::disallowed_methods,
    reason = "how long something takes for real is what it measures"
)]

use rewheel::{millis, seconds};
use rewheel_core::store::{ClockOffset, Filter, Settlement};
use rewheel_core::{Actor, KindName};
use rewheel_engine::{Bulk, BulkVerb, Engine, KindSettings, OperationState, Selection};
use rewheel_testkit::{DistantServer, Schema, Subject};
use std::time::Duration;
use tokio::time::Instant;

type Tested = Result<(), Box<dyn std::error::Error>>;

const JOBS: usize = 20_000;

/// Creates dead letters of the kind `work`, without a delay.
async fn die(url: &str) -> Tested {
    let subject = Subject::new(rewheel_stores::connect(url).await?, ClockOffset::default());
    subject.kinds(&["work"]).await;
    let holder = subject.holder().await;
    for _ in 0..JOBS / 1_000 {
        subject.insert(&subject.jobs("work", 1_000)).await;
        let leased = subject.claim(holder, &["work"], 1_000).await;
        let dead: Vec<Settlement> = leased.iter().map(|one| subject.dead(one.lease())).collect();
        subject.store.settle(holder, &dead).await?;
    }
    subject.store.close().await?;
    Ok(())
}

/// Redrives all of them. Returns the number of jobs per second, and of requests per thousand jobs.
async fn redrive(round_trip: Duration) -> Result<(f64, usize), Box<dyn std::error::Error>> {
    let schema = Schema::fresh();
    die(schema.url()).await?;
    let distant = DistantServer::start(schema.url(), round_trip).await;
    let engine = Engine::builder(rewheel_stores::connect(distant.url()).await?)
        .kind("work", KindSettings::default())
        .start()
        .await?;
    let kinds = vec![KindName::parse("work")?];
    let selection = Selection::from(Filter { kinds, ..Filter::default() });
    let (start, before) = (Instant::now(), distant.asked());
    let order = Bulk::new(BulkVerb::Redrive, selection);
    let id = engine.operate(&order, &Actor::new("ops")).await?.id;
    let done = loop {
        let operation = engine.operation(id).await?.ok_or("it was started")?;
        match operation.state {
            OperationState::Running => tokio::time::sleep(millis(50)).await,
            OperationState::Done => break operation,
            OperationState::Paused | OperationState::Aborted => {
                return Err(format!("{operation:?}").into());
            }
        }
    };
    let (took, asked) = (start.elapsed(), distant.asked() - before);
    assert_eq!((done.done, done.failed), (JOBS as u64, 0));
    engine.shutdown(seconds(1)).await;
    Ok((JOBS as f64 / took.as_secs_f64(), asked * 1_000 / JOBS))
}

/// A redrive needs few round trips for a job, so that the distance to the store matters little.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::print_stdout, reason = "prints the measurement")]
async fn a_redrive_needs_few_round_trips() -> Tested {
    let _alone = crate::alone().await;
    let mut speeds = Vec::new();
    for round_trip in [Duration::ZERO, millis(5)] {
        let (speed, asked) = redrive(round_trip).await?;
        println!(
            "{JOBS} dead letters redriven at a round trip of {round_trip:?}: {speed:.0} jobs/s, {asked} requests per 1,000 jobs"
        );
        // With the requests of all other loops of the engine, and of this test.
        assert!(asked < 200, "{asked} requests per 1,000 jobs");
        speeds.push(speed);
    }
    println!("at 5 ms: {:.2} of the speed at 0 ms", speeds[1] / speeds[0]);
    Ok(())
}
