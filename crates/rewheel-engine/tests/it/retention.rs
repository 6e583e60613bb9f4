//! Tests of retention.

use rewheel::seconds;
use rewheel_core::store::{Insert, KindStore, OperateStore, Prune, ReadStore, Store, SubmitStore};
use rewheel_core::{Actor, JobId, KindName, Limits, NewJob, NewKind, Report, State, When};
use rewheel_engine::{Engine, EngineSettings};
use rewheel_testkit::{FaultyStore, Verb};
use std::sync::Arc;

type Tested = Result<(), Box<dyn std::error::Error>>;

/// An incident may leave more log entries than one batch deletes.
#[tokio::test(start_paused = true)]
async fn the_log_of_a_bad_hour_is_not_kept_for_longer_than_it_should() -> Tested {
    let store = Arc::new(crate::still::store());
    let kind = KindName::parse("late")?;
    let new = NewKind {
        name: kind.clone(),
        settings: "{}".to_owned(),
        takeovers_max: 3,
        on_dead: Default::default(),
    };
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

    let settings = EngineSettings { retention_audit: seconds(1), ..EngineSettings::default() };
    let rare = 7 * settings.housekeeping;
    let engine = Engine::builder(Arc::clone(&store) as Arc<dyn Store>).settings(settings);
    let engine = engine.start().await?;
    tokio::time::sleep(rare).await;
    assert_eq!(store.audit(None, None, 10_000).await?, []);
    assert_eq!(store.books().await?.dead, jobs.len() as u64);
    engine.shutdown(seconds(1)).await;
    Ok(())
}

/// There are as many keys as jobs: they must be deleted as fast.
#[tokio::test(start_paused = true)]
async fn many_expired_keys_are_deleted_together() -> Tested {
    let store = Arc::new(crate::still::store());
    let settings = EngineSettings { retention_keys: seconds(1), ..EngineSettings::default() };
    let rare = 7 * settings.housekeeping;
    let engine = Engine::builder(Arc::clone(&store) as Arc<dyn Store>)
        .settings(settings)
        .raw_handler("work", |_| async { Report::Done })
        .start()
        .await?;
    let count = 5 * Limits::BATCH_MAX;
    for number in 0..count {
        engine.submit_raw("work", b"first".to_vec()).key(&format!("order-{number}")).await?;
    }
    tokio::time::sleep(rare).await;
    let prune = Prune { limit: 10 * count, audit_older_than: seconds(1_000_000) };
    assert_eq!(store.prune(&prune).await?.keys, 0, "none is left to delete");
    engine.shutdown(seconds(1)).await;
    Ok(())
}

/// Deleting may take minutes; jobs of a dead node do not wait for it.
#[tokio::test(start_paused = true)]
async fn a_takeover_does_not_wait_for_retention() -> Tested {
    let store = crate::still::store();
    let dead = Engine::builder(Arc::new(store.clone()))
        .raw_handler("work", |_| std::future::pending::<Report>())
        .start()
        .await?;
    let job = dead.submit_raw("work", Vec::new()).await?.id;
    tokio::time::sleep(seconds(1)).await;
    dead.kill();
    let slow = FaultyStore::with_faults(Arc::new(store.clone()), |verb| {
        Box::pin(async move {
            if verb == Verb::Prune {
                std::future::pending::<()>().await;
            }
            None
        })
    });
    // A store call may take an hour here: the retention loop waits for all of it.
    let settings =
        EngineSettings { statement_timeout: seconds(3_600), ..EngineSettings::default() };
    let engine = Engine::builder(Arc::new(slow))
        .settings(settings)
        .raw_handler("work", |_| async { Report::Done })
        .start()
        .await?;
    tokio::time::sleep(seconds(60)).await;
    let state = store.get(job).await?.map(|job| job.state());
    assert_eq!(state, Some(State::Succeeded));
    engine.kill();
    Ok(())
}
