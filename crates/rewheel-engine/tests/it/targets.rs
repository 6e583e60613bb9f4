//! Tests of one kind with several target hosts, one of which is down.

#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]

use crate::still::store;
use rewheel::{Backoff, Category, Verdict, millis, seconds};
use rewheel_core::store::{Filter, KindStore, PageRequest, ReadStore, Store};
use rewheel_core::{DueReason, Failure, Job, Report, State};
use rewheel_engine::{
    BreakerSettings, Engine, EngineSettings, JobContext, KindSettings, Reporting, Runner,
    StartError,
};
use rewheel_stores::MemoryStore;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

type Tested = Result<(), Box<dyn std::error::Error>>;

/// Calls the host that the payload names. One of them may be down.
#[derive(Clone, Default)]
struct Hosts {
    is_down: Arc<AtomicBool>,
    calls: Arc<Mutex<BTreeMap<String, usize>>>,
}

impl Hosts {
    fn calls(&self, host: &str) -> usize {
        self.calls.lock().unwrap().get(host).copied().unwrap_or_default()
    }
}

impl Runner for Hosts {
    fn run(&self, context: JobContext) -> Reporting {
        let host = String::from_utf8_lossy(context.payload()).into_owned();
        let is_down = host == "down" && self.is_down.load(Ordering::SeqCst);
        *self.calls.lock().unwrap().entry(host).or_default() += 1;
        Box::pin(async move {
            tokio::time::sleep(millis(10)).await;
            let failure = Failure::new(Category::Io, None, "connection refused");
            if is_down {
                Report::AttemptFailed { verdict: Verdict::Retry, failure }
            } else {
                Report::Done
            }
        })
    }

    fn target(&self, job: &Job) -> Option<String> {
        Some(String::from_utf8_lossy(job.payload.as_deref()?).into_owned())
    }
}

async fn engine(
    store: &MemoryStore,
    hosts: &Hosts,
    rate: Option<&str>,
) -> Result<Engine, StartError> {
    let breaker = BreakerSettings { window: 10, failure_ratio: 0.5, open_for: seconds(5) };
    let settings = KindSettings {
        breaker: Some(breaker),
        attempts_max: 100,
        backoff: Backoff::fixed(seconds(1)),
        rate: rate.and_then(|rate| rate.parse().ok()),
        ..KindSettings::default()
    };
    let runner = hosts.clone();
    Engine::builder(Arc::new(store.clone()) as Arc<dyn Store>)
        .settings(EngineSettings { concurrency: 20, ..EngineSettings::default() })
        .kind("hook", settings)
        .runners(move |_, _| Some(Arc::new(runner.clone())))
        .start()
        .await
}

async fn waiting(store: &MemoryStore) -> Vec<Job> {
    let filter = Filter { states: vec![State::Scheduled, State::Leased], ..Filter::default() };
    store.list(&filter, &PageRequest::first(1_000)).await.unwrap().items
}

#[tokio::test(start_paused = true)]
async fn one_that_is_down_is_left_alone_and_the_others_do_not_notice() -> Tested {
    let (store, hosts) = (store(), Hosts::default());
    hosts.is_down.store(true, Ordering::SeqCst);
    let engine = engine(&store, &hosts, None).await?;
    for number in 0..120 {
        let host = if number % 2 == 0 { "down" } else { "up" };
        engine.submit_raw("hook", host.as_bytes().to_vec()).await?;
    }
    tokio::time::sleep(seconds(2)).await;
    assert_eq!(hosts.calls("up"), 60);
    let jobs = waiting(&store).await;
    assert_eq!(jobs.len(), 60);

    // Jobs that found the host down have its error, the others have the reason why they wait; over minutes there are only a few
    // probes.
    let before = hosts.calls("down");
    tokio::time::sleep(seconds(120)).await;
    let probes = hosts.calls("down") - before;
    assert!((10..=30).contains(&probes), "{probes} calls in two minutes");
    let held = waiting(&store).await.into_iter().find(|job| job.attempt == 0).unwrap();
    let failure = held.failure.unwrap();
    assert_eq!(failure.category(), Category::CircuitOpen);
    assert_eq!(held.because, DueReason::Parked, "also when it was put back again");
    assert_eq!(failure.message(), "down is skipped: too many attempts failed there");
    assert_eq!(store.attempts(held.id).await?.len(), 1, "it is said once");
    assert_eq!(store.kinds().await?[0].parked, None);
    engine.submit_raw("hook", b"up".to_vec()).await?;
    tokio::time::sleep(seconds(1)).await;
    assert_eq!(hosts.calls("up"), 61);

    hosts.is_down.store(false, Ordering::SeqCst);
    tokio::time::sleep(seconds(25)).await;
    assert_eq!(waiting(&store).await, []);
    Ok(())
}

/// A job that is refused after its admission made no attempt: it is charged nothing, and says why it waits.
#[tokio::test(start_paused = true)]
async fn a_job_whose_target_is_down_keeps_its_attempts_and_its_slot_is_free() -> Tested {
    let (store, hosts) = (store(), Hosts::default());
    hosts.is_down.store(true, Ordering::SeqCst);
    let engine = engine(&store, &hosts, None).await?;
    for _ in 0..20 {
        engine.submit_raw("hook", b"down".to_vec()).await?;
    }
    tokio::time::sleep(millis(500)).await;
    let before = hosts.calls("down");
    let refused = engine.submit_raw("hook", b"down".to_vec()).await?.id;
    tokio::time::sleep(millis(1)).await;
    assert_eq!(hosts.calls("down"), before, "the breaker of the host is open");
    let (job, now) = (store.get(refused).await?.unwrap(), store.now().await?);
    // It may be claimed already for its later time.
    assert!([State::Scheduled, State::Leased].contains(&job.state()) && job.attempt == 0);
    assert_eq!(job.because, DueReason::Parked);
    assert!(job.due > now && job.due <= now.plus(seconds(10)), "while the breaker is open");
    assert_eq!(engine.status().concurrency_free, engine.status().concurrency);
    engine.shutdown(seconds(1)).await;
    Ok(())
}

/// A job that is put back made no call, so it must not use up the rate of others.
#[tokio::test(start_paused = true)]
async fn one_that_is_down_does_not_use_up_the_rate_of_the_others() -> Tested {
    let (store, hosts) = (store(), Hosts::default());
    hosts.is_down.store(true, Ordering::SeqCst);
    let engine = engine(&store, &hosts, Some("10/s")).await?;
    for _ in 0..300 {
        engine.submit_raw("hook", b"down".to_vec()).await?;
    }
    tokio::time::sleep(seconds(60)).await;
    for _ in 0..100 {
        engine.submit_raw("hook", b"up".to_vec()).await?;
    }
    tokio::time::sleep(seconds(20)).await;
    assert!(hosts.calls("up") >= 90, "{} of 100 in 20 s at 10/s", hosts.calls("up"));
    Ok(())
}

/// Cannot determine the target of some jobs.
struct Confused;

impl Runner for Confused {
    fn run(&self, _: JobContext) -> Reporting {
        Box::pin(async { Report::Done })
    }

    fn target(&self, job: &Job) -> Option<String> {
        assert!(job.payload.as_deref() != Some(b"bad"), "no such host");
        Some("up".to_owned())
    }
}

/// A runner that panics before its attempt begins fails only its own job, which becomes a dead letter like any other.
#[tokio::test(start_paused = true)]
async fn a_runner_that_panics_over_a_target_fails_its_job_only() -> Tested {
    let store = store();
    let settings = KindSettings {
        attempts_max: 2,
        backoff: Backoff::fixed(seconds(1)),
        ..KindSettings::default()
    };
    let engine = Engine::builder(Arc::new(store.clone()) as Arc<dyn Store>)
        .kind("hook", settings)
        .runners(|_, _| Some(Arc::new(Confused)))
        .start()
        .await?;
    let bad = engine.submit_raw("hook", b"bad".to_vec()).await?.id;
    let good = engine.submit_raw("hook", b"good".to_vec()).await?.id;
    tokio::time::sleep(seconds(60)).await;
    let dead = store.get(bad).await?.unwrap();
    let category = dead.failure.as_ref().map(Failure::category);
    assert_eq!((dead.state(), dead.attempt, category), (State::Dead, 2, Some(Category::Panic)));
    assert_eq!(store.get(good).await?.unwrap().state(), State::Succeeded);
    assert_eq!(engine.status().concurrency_free, engine.status().concurrency);
    engine.shutdown(seconds(1)).await;
    Ok(())
}
