//! Tests of jobs that run one at a time, in order.

use crate::still::store;
use rewheel::{millis, seconds};
use rewheel_core::store::ReadStore;
use rewheel_core::{Job, JobId, Report, Turn};
use rewheel_engine::{Engine, HeldReason, JobContext, KindSettings, SubmitError};
use rewheel_stores::{MemoryStore, Weakness};
use rewheel_testkit::{FaultyStore, Verb};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

type Tested = Result<(), Box<dyn std::error::Error>>;

/// What attempts did: the payload, the turn, and how many ran at once.
type Log = Arc<Mutex<Vec<(u8, Option<Turn>)>>>;

async fn engine(store: &MemoryStore, log: &Log) -> Result<Engine, Box<dyn std::error::Error>> {
    let log = Arc::clone(log);
    let engine = Engine::builder(Arc::new(store.clone()))
        .raw_handler("mail", move |ctx: JobContext| {
            let log = Arc::clone(&log);
            async move {
                // Later ones are faster: without groups they would overtake.
                tokio::time::sleep(millis(100 - u64::from(ctx.payload()[0]))).await;
                log.lock().expect("nothing panics with it").push((ctx.payload()[0], ctx.turn()));
                Report::Done
            }
        })
        .start()
        .await?;
    Ok(engine)
}

async fn ended(store: &MemoryStore, id: JobId) -> Job {
    loop {
        let job = store.get(id).await.expect("memory").expect("it is kept");
        if !job.state().is_live() {
            return job;
        }
        tokio::time::sleep(millis(5)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_group_runs_in_order_and_its_turns_grow() -> Tested {
    let (store, log) = (store(), Log::default());
    let engine = engine(&store, &log).await?;
    let mut last = None;
    for nth in 0..10 {
        last = Some(engine.submit_raw("mail", vec![nth]).group_key("customer-17").await?.id);
    }
    let last = last.expect("ten were submitted");
    let waiting = store.get(last).await?.expect("it is stored");
    let now = store.now().await?;
    let held = engine.held(&[&waiting], now).await?.remove(0).expect("it waits");
    assert_eq!((waiting.is_blocked(), held.because), (true, HeldReason::Group));
    assert!(held.text.contains("customer-17"), "{}", held.text);
    ended(&store, last).await;
    let log = log.lock().unwrap();
    assert_eq!(log.iter().map(|(nth, _)| *nth).collect::<Vec<_>>(), (0..10).collect::<Vec<_>>());
    assert!(log.is_sorted_by(|one, next| one.1 < next.1) && log[0].1.is_some(), "{log:?}");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_job_without_a_group_has_no_turn() -> Tested {
    let (store, log) = (store(), Log::default());
    let engine = engine(&store, &log).await?;
    let job = engine.submit_raw("mail", vec![1]).await?.id;
    ended(&store, job).await;
    assert_eq!(*log.lock().unwrap(), [(1, None)]);
    Ok(())
}

/// A process that dies after the end of a job and before the release of the next one costs seconds, not the group.
#[tokio::test(start_paused = true)]
async fn housekeeping_releases_what_no_other_call_did() -> Tested {
    let (store, log) = (store(), Log::default());
    store.weaken(Weakness::NoReleaseAtEnd);
    let engine = engine(&store, &log).await?;
    engine.submit_raw("mail", vec![1]).group_key("customer-17").await?;
    let next = engine.submit_raw("mail", vec![2]).group_key("customer-17").await?.id;
    let done = tokio::time::timeout(seconds(10), ended(&store, next)).await;
    assert!(done.is_ok(), "the group is stuck");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_wrong_group_key_is_refused_by_its_name() -> Tested {
    let (store, log) = (store(), Log::default());
    let engine = engine(&store, &log).await?;
    for key in [String::new(), "x".repeat(300)] {
        let error = engine.submit_raw("mail", vec![1]).group_key(&key).await.unwrap_err();
        assert!(matches!(error, SubmitError::Field { .. }), "{error:?}");
        assert!(error.to_string().contains("group_key"), "{error}");
    }
    assert_eq!(store.books().await?.submitted, 0);
    Ok(())
}

/// The cost of the look at all groups does not grow with the number of engines, and no engine is needed for it.
#[tokio::test(start_paused = true)]
async fn one_engine_looks_at_the_groups_of_a_fleet() -> Tested {
    let (store, calls) = (store(), Arc::new(AtomicUsize::new(0)));
    let mut engines = Vec::new();
    for _ in 0..10 {
        let counted = Arc::clone(&calls);
        let counting = FaultyStore::with_faults(Arc::new(store.clone()), move |verb| {
            counted.fetch_add(usize::from(verb == Verb::ReleaseGroups), Ordering::SeqCst);
            Box::pin(std::future::ready(None))
        });
        let kind = KindSettings::default();
        engines.push(Engine::builder(Arc::new(counting)).kind("idle", kind).start().await?);
    }
    // The engine with the smallest id is the first.
    engines.sort_by_key(|engine| engine.status().holder);
    engines[0].submit_raw("idle", Vec::new()).group_key("customer-17").await?;
    let counted = async || {
        tokio::time::sleep(seconds(60)).await;
        calls.swap(0, Ordering::SeqCst)
    };
    // All know each other then.
    counted().await;
    let first = counted().await;
    assert!((50..=100).contains(&first), "once a second by one engine, rarely by others: {first}");
    engines.remove(0).kill();
    counted().await;
    let next = counted().await;
    assert!((50..=100).contains(&next), "another engine does it: {next}");
    Ok(())
}
