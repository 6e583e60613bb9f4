//! What is kept for a while goes when that is over.

#[path = "support/still.rs"]
mod still;

use rewheel::seconds;
use rewheel_core::store::{Insert, KindStore, OperateStore, ReadStore, Store, SubmitStore};
use rewheel_core::{Actor, JobId, KindName, Limits, NewJob, NewKind, When};
use rewheel_engine::{Engine, EngineSettings};
use std::sync::Arc;

type Tested = Result<(), Box<dyn std::error::Error>>;

/// A bad hour may leave more in the log than one batch takes.
#[tokio::test(start_paused = true)]
async fn the_log_of_a_bad_hour_is_not_kept_for_longer_than_it_should() -> Tested {
    let store = Arc::new(still::store());
    let kind = KindName::parse("late")?;
    let new = NewKind { name: kind.clone(), settings: "{}".to_owned(), takeovers_max: 3 };
    store.put_kinds(&[new], &Actor::new("test")).await?;
    let (random, now) = (rewheel::Random::seeded(1), store.now().await?);
    let late = || NewJob {
        deadline: Some(When::In(seconds(1))),
        ..NewJob::new(JobId::new(now, &random), kind.clone(), Vec::new())
    };
    let jobs: Vec<NewJob> = std::iter::repeat_with(late).take(5 * Limits::BATCH_MAX).collect();
    store.insert(&Insert::new(&jobs)).await?;
    tokio::time::sleep(seconds(2)).await;
    assert_eq!(store.deadlines(seconds(0), jobs.len()).await?.len(), jobs.len());
    assert!(store.audit(None, None, 10_000).await?.len() > jobs.len());

    let settings = EngineSettings { keep_audit: seconds(1), ..EngineSettings::default() };
    let rare = 7 * settings.housekeeping;
    let engine = Engine::builder(Arc::clone(&store) as Arc<dyn Store>).settings(settings);
    let engine = engine.start().await?;
    tokio::time::sleep(rare).await;
    assert_eq!(store.audit(None, None, 10_000).await?, []);
    assert_eq!(store.books().await?.dead, jobs.len() as u64);
    engine.shutdown(seconds(1)).await;
    Ok(())
}
