//! Checks that a loop that panics is restarted, or the engine stops and others run its jobs.

use crate::still::store;
use rewheel::seconds;
use rewheel_core::store::{LeaseStore, ReadStore};
use rewheel_core::{Report, State};
use rewheel_engine::meters::Value;
use rewheel_engine::{Engine, EngineSettings};
use rewheel_stores::MemoryStore;
use rewheel_testkit::{FaultyStore, Verb};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

type Tested = Result<(), Box<dyn std::error::Error>>;

/// A store whose method panics a number of times, like a driver with a bug.
fn panicking(store: &MemoryStore, panics: Verb, times: u32) -> (Arc<FaultyStore>, Arc<AtomicU32>) {
    let left = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&left);
    let faulty = FaultyStore::with_faults(Arc::new(store.clone()), move |verb| {
        let count = Arc::clone(&count);
        Box::pin(async move {
            let spend = |left: u32| left.checked_sub(1);
            let is_hit = verb == panics
                && count.fetch_update(Ordering::SeqCst, Ordering::SeqCst, spend).is_ok();
            assert!(!is_hit, "a bug in the driver");
            None
        })
    });
    left.store(times, Ordering::SeqCst);
    (Arc::new(faulty), left)
}

async fn engine(faulty: Arc<FaultyStore>) -> Result<Engine, Box<dyn std::error::Error>> {
    let engine = Engine::builder(faulty)
        .settings(EngineSettings::default())
        .raw_handler("work", |_| async { Report::Done })
        .start()
        .await?;
    Ok(engine)
}

fn restarts(engine: &Engine) -> Vec<(String, u64)> {
    let readings = engine.meters(None);
    let reading = readings.iter().find(|one| one.meter.name == "rewheel.engine.loop.restarts");
    let samples = reading.map(|reading| reading.samples.clone()).unwrap_or_default();
    let count = |value: &Value| match value {
        Value::Count(count) => *count,
        Value::Number(_) | Value::Distribution(_) => 0,
    };
    let counts = samples.iter().map(|one| (one.labels[0].to_string(), count(&one.value)));
    counts.filter(|(_, count)| *count > 0).collect()
}

#[tokio::test(start_paused = true)]
async fn a_loop_that_panics_is_restarted() -> Tested {
    let loops = [
        (Verb::Renew, "heartbeat"),
        (Verb::Sweep, "takeover"),
        (Verb::Deadlines, "housekeeping"),
        (Verb::Prune, "retention"),
        (Verb::Lanes, "claim"),
        (Verb::Claim, "claim"),
    ];
    for (verb, name) in loops {
        let store = store();
        let (faulty, left) = panicking(&store, verb, 0);
        let engine = engine(faulty).await?;
        left.store(2, Ordering::SeqCst);
        // Due later, so that it has to be claimed.
        let job = engine.submit_raw("work", Vec::new()).delay(seconds(20)).await?.id;
        tokio::time::sleep(seconds(120)).await;
        assert_eq!(left.load(Ordering::SeqCst), 0, "{name}: it panicked");
        let state = store.get(job).await?.map(|job| job.state());
        assert_eq!(state, Some(State::Succeeded), "{name}");
        assert_eq!(restarts(&engine), [(name.to_owned(), 2)], "{name}");
        assert_eq!(engine.status().failed, None);
        engine.shutdown(seconds(1)).await;
    }
    Ok(())
}

/// Makes an engine fail, and lets another run its jobs.
async fn check_failure(verb: Verb, times: u32, name: &str) -> Tested {
    let store = store();
    let (faulty, left) = panicking(&store, verb, 0);
    let broken = engine(faulty).await?;
    let holder = broken.status().holder;
    left.store(times, Ordering::SeqCst);
    let job = broken.submit_raw("work", Vec::new()).delay(seconds(3)).await?.id;
    let failure = broken.failed().await;
    assert_eq!((failure.name, broken.status().failed), (name, Some(failure.name)));
    assert!(failure.why.contains("a bug in the driver"), "{failure}");
    // It deregistered: others need not wait for its lease to expire.
    let left = store.holder(holder).await?.expect("it is remembered");
    assert!(left.died.is_some(), "{name}: {left:?}");
    let other = engine(panicking(&store, verb, 0).0).await?;
    tokio::time::sleep(seconds(30)).await;
    let state = store.get(job).await?.map(|job| job.state());
    assert_eq!(state, Some(State::Succeeded), "{name}: another engine runs it");
    broken.shutdown(seconds(60)).await;
    other.shutdown(seconds(1)).await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_cannot_settle_stops_and_gives_back_its_jobs() -> Tested {
    check_failure(Verb::Settle, 1, "settle").await
}

#[tokio::test(start_paused = true)]
async fn an_engine_whose_loop_panics_again_and_again_stops() -> Tested {
    check_failure(Verb::Lanes, u32::MAX, "claim").await
}

/// The cause of the panic may also make the deregistration panic.
#[tokio::test(start_paused = true)]
async fn an_engine_that_cannot_even_leave_says_that_it_failed() -> Tested {
    for verb in [Verb::Held, Verb::GiveBack, Verb::Leave] {
        let store = store();
        let panics = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&panics);
        let faulty = FaultyStore::with_faults(Arc::new(store.clone()), move |called| {
            let is_broken = count.load(Ordering::SeqCst) > 0;
            Box::pin(async move {
                assert!(
                    !is_broken || ![verb, Verb::Settle].contains(&called),
                    "a bug in the driver"
                );
                None
            })
        });
        let broken = engine(Arc::new(faulty)).await?;
        panics.store(1, Ordering::SeqCst);
        broken.submit_raw("work", Vec::new()).delay(seconds(3)).await?;
        let failure = broken.failed().await;
        assert_eq!(failure.name, "settle", "{verb:?}");
        assert!(broken.status().lease_expired, "it starts nothing more");
        broken.kill();
    }
    Ok(())
}

/// A renewal that was in progress when the engine failed does not restart it.
#[tokio::test(start_paused = true)]
async fn a_failed_engine_stays_failed() -> Tested {
    let store = store();
    let (faulty, left) = panicking(&store, Verb::Settle, 0);
    let broken = engine(faulty).await?;
    left.store(u32::MAX, Ordering::SeqCst);
    broken.submit_raw("work", Vec::new()).await?;
    broken.failed().await;
    let later = broken.submit_raw("work", Vec::new()).await?.id;
    tokio::time::sleep(seconds(120)).await;
    assert!(broken.status().lease_expired);
    let job = store.get(later).await?.expect("it is stored");
    assert_eq!((job.state(), job.fence.get()), (State::Scheduled, 0), "others run it");
    let living = store.holders().await?.into_iter().filter(|holder| holder.died.is_none());
    assert_eq!(living.count(), 0, "it does not join again");
    broken.kill();
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_is_no_failure() -> Tested {
    let store = store();
    let engine = engine(panicking(&store, Verb::Renew, 0).0).await?;
    engine.shutdown(seconds(1)).await;
    let failed = tokio::time::timeout(seconds(60), engine.failed()).await;
    assert!(failed.is_err() && restarts(&engine).is_empty());
    Ok(())
}
