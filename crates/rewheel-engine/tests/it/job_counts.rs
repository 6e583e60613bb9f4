//! Tests of job counts for users and monitoring.

#![expect(clippy::unwrap_used, reason = "test code")]

use rewheel_core::store::{Insert, KindStore, Store, SubmitStore};
use rewheel_core::{Actor, JobId, KindName, NewJob, NewKind, Report, State, Timestamp, When};
use rewheel_engine::{Engine, JobCounts, KindDepth};
use rewheel_stores::MemoryStore;
use rewheel_testkit::{FaultyStore, Verb};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A store with this many jobs that are due later, and the recorded counts and sample reads.
async fn engine(jobs: usize) -> (Engine, Arc<Mutex<Vec<Verb>>>) {
    let store = Arc::new(MemoryStore::new());
    let kind = KindName::parse("work").unwrap();
    let new = NewKind {
        name: kind.clone(),
        settings: "{}".to_owned(),
        takeovers_max: 3,
        on_dead: Default::default(),
    };
    store.put_kinds(&[new], &Actor::new("test")).await.unwrap();
    let random = rewheel::Random::seeded(7);
    let job = |_| {
        let id = JobId::new(Timestamp::from_millis(1_700_000_000_000), &random);
        let due = When::In(Duration::from_secs(86_400));
        NewJob { due, ..NewJob::new(id, kind.clone(), Vec::new()) }
    };
    let jobs: Vec<NewJob> = (0..jobs).map(job).collect();
    for part in jobs.chunks(1_000) {
        store.insert(&Insert::new(part)).await.unwrap();
    }
    let asked = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&asked);
    let inner: Arc<dyn Store> = store;
    let counted = FaultyStore::with_faults(inner, move |verb| {
        noted.lock().unwrap().push(verb);
        Box::pin(async { None })
    });
    let builder =
        Engine::builder(Arc::new(counted)).raw_handler("work", |_| async { Report::Done });
    (builder.start().await.unwrap(), asked)
}

fn scheduled(counts: &JobCounts) -> u64 {
    counts.of(&KindName::parse("work").unwrap()).unwrap().jobs[&State::Scheduled]
}

/// A request never counts a large store, however many requests there are.
#[tokio::test(start_paused = true)]
async fn requests_share_one_sample_of_a_large_store() {
    let (engine, asked) = engine(10_001).await;
    // The background count comes first.
    tokio::time::sleep(Duration::from_secs(1)).await;
    asked.lock().unwrap().clear();
    for _ in 0..100 {
        let counts = engine.job_counts().await.unwrap();
        assert_eq!((scheduled(&counts), counts.approximate), (10_001, true));
        let depth = engine.depth().await.unwrap();
        assert_eq!((depth.total.scheduled, depth.approximate), (10_001, true));
        let fleet = engine.fleet().await.unwrap();
        assert!(!engine.meters(Some(&fleet)).is_empty());
    }
    let asked = asked.lock().unwrap();
    let count = |verb: Verb| asked.iter().filter(|one| **one == verb).count();
    assert_eq!((count(Verb::Tally), count(Verb::Books), count(Verb::Count)), (0, 0, 0));
    assert!(count(Verb::SampleNow) <= 1 && count(Verb::Sample) <= 2, "{asked:?}");
}

/// A few jobs are counted for each request; some thousand once per second.
#[tokio::test(start_paused = true)]
async fn a_small_store_is_counted_afresh() {
    let (engine, _) = engine(0).await;
    for submitted in 0..3 {
        let counts = engine.job_counts().await.unwrap();
        assert_eq!((scheduled(&counts), counts.approximate), (submitted, false));
        engine.submit_raw("work", Vec::new()).delay(Duration::from_secs(60)).await.unwrap();
    }
    let (engine, asked) = self::engine(5_000).await;
    for _ in 0..50 {
        assert_eq!(scheduled(&engine.job_counts().await.unwrap()), 5_000);
    }
    engine.submit_raw("work", Vec::new()).delay(Duration::from_secs(60)).await.unwrap();
    let counts = || asked.lock().unwrap().iter().filter(|verb| **verb == Verb::SampleNow).count();
    assert_eq!(counts(), 1);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(scheduled(&engine.job_counts().await.unwrap()), 5_001);
    assert_eq!(counts(), 2);
}

/// The total is the sum of all kinds, with the earliest of their due times; a kind without jobs has zeros.
#[tokio::test(start_paused = true)]
async fn depth_counts_each_kind_and_all_of_them() {
    let store = rewheel_stores::connect("memory://").await.unwrap();
    let builder = Engine::builder(store);
    let builder = builder.raw_handler("mail", |_| async { Report::Done });
    let builder = builder.raw_handler("bill", |_| std::future::pending::<Report>());
    let engine = builder.raw_handler("idle", |_| async { Report::Done }).start().await.unwrap();
    for (kind, seconds) in [("mail", 60), ("mail", 30), ("bill", 90)] {
        let submit = engine.submit_raw(kind, Vec::new()).delay(Duration::from_secs(seconds));
        submit.await.unwrap();
    }
    engine.submit_raw("bill", Vec::new()).await.unwrap();

    let depth = engine.depth().await.unwrap();
    let of = |name: &str| depth.kinds[&KindName::parse(name).unwrap()];
    let numbers = |one: KindDepth| [one.scheduled, one.leased, one.paused, one.dead];
    assert_eq!(numbers(of("mail")), [2, 0, 0, 0]);
    // A free handler takes a job that is due as soon as it is submitted.
    assert_eq!(numbers(of("bill")), [1, 1, 0, 0]);
    assert_eq!(of("idle"), KindDepth::default());
    assert_eq!(numbers(depth.total), [3, 1, 0, 0]);
    assert_eq!(depth.total.oldest_due, of("mail").oldest_due);
    assert!(of("mail").oldest_due < of("bill").oldest_due);
    assert_eq!((depth.approximate, depth.total.lag(depth.as_of)), (false, Duration::ZERO));
}
