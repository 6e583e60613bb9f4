//! What a reviewer suspected.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "the time of a test, which stands still"
)]

use rewheel::{Category, Verdict, millis, seconds};
use rewheel_core::store::{Insert, KindStore, ReadStore, Store};
use rewheel_core::{Failure, Kind, KindName, NewJob, Report, When};
use rewheel_engine::{BreakerSettings, Engine, EngineSettings, KindSettings};
use rewheel_stores::MemoryStore;
use rewheel_testkit::{Fault, FaultyStore, Verb};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

type Tested = Result<(), Box<dyn std::error::Error>>;

fn store() -> MemoryStore {
    let started = tokio::time::Instant::now();
    let time = move || {
        let millis = i64::try_from(started.elapsed().as_millis()).unwrap_or(i64::MAX);
        rewheel_core::Timestamp::from_millis(1_700_000_000_000 + millis)
    };
    MemoryStore::with_time(time, rewheel_core::store::ClockOffset::default())
}

/// A store whose inserts take a moment.
fn slow(inner: &Arc<MemoryStore>) -> Arc<FaultyStore> {
    let weather = |verb: Verb| -> std::pin::Pin<Box<dyn Future<Output = Option<Fault>> + Send>> {
        Box::pin(async move {
            if verb == Verb::Insert {
                tokio::time::sleep(millis(3)).await;
            }
            None
        })
    };
    Arc::new(FaultyStore::in_weather(Arc::clone(inner) as Arc<dyn Store>, weather))
}

fn down() -> Report {
    let failure = Failure::new(Category::Timeout, Some("504"), "no answer");
    Report::Failed { verdict: Verdict::Retry, failure }
}

fn settings() -> KindSettings {
    KindSettings {
        attempts_max: 1000,
        breaker: Some(BreakerSettings {
            window: 10,
            open_for: seconds(5),
            ..BreakerSettings::default()
        }),
        ..KindSettings::default()
    }
}

async fn kind(store: &MemoryStore) -> Kind {
    store.kinds().await.unwrap().into_iter().find(|kind| kind.name.as_str() == "charge").unwrap()
}

async fn within(most: Duration, mut is_so: impl AsyncFnMut() -> bool) -> bool {
    let until = tokio::time::Instant::now() + most;
    while tokio::time::Instant::now() < until {
        if is_so().await {
            return true;
        }
        tokio::time::sleep(millis(5)).await;
    }
    false
}

#[tokio::test(start_paused = true)]
async fn a_probe_whose_result_the_store_does_not_hear_is_not_the_last_one() -> Tested {
    let store = Arc::new(store());
    let faulty = Arc::new(FaultyStore::new(Arc::clone(&store) as Arc<dyn Store>));
    let is_down = Arc::new(AtomicBool::new(true));
    let trips = Arc::new(AtomicUsize::new(0));
    let (seen, trip, fails) = (Arc::clone(&is_down), Arc::clone(&trips), Arc::clone(&faulty));
    let engine = Engine::builder(Arc::clone(&faulty) as Arc<dyn Store>)
        .settings(EngineSettings { places: 20, ..EngineSettings::default() })
        .kind("charge", settings())
        .raw_handler("charge", move |_| {
            let is_down = seen.load(Ordering::SeqCst);
            if !is_down && trip.fetch_add(1, Ordering::SeqCst) == 0 {
                for _ in 0..4 {
                    fails.fail_next(Verb::ChangeKind, Fault::Before);
                }
            }
            async move {
                tokio::time::sleep(millis(20)).await;
                if is_down { down() } else { Report::Done }
            }
        })
        .start()
        .await?;
    for _ in 0..50 {
        engine.submit_raw("charge", Vec::new()).await?;
    }
    assert!(within(seconds(5), async || kind(&store).await.parked.is_some()).await);
    is_down.store(false, Ordering::SeqCst);
    let back = within(seconds(600), async || kind(&store).await.parked.is_none()).await;
    assert!(
        back,
        "parked for ever: {:?}, calls {}",
        kind(&store).await,
        trips.load(Ordering::SeqCst)
    );
    engine.shutdown(seconds(5)).await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_probe_whose_claim_got_no_answer_is_not_the_last_one() -> Tested {
    let store = Arc::new(store());
    let faulty = Arc::new(FaultyStore::new(Arc::clone(&store) as Arc<dyn Store>));
    let is_down = Arc::new(AtomicBool::new(true));
    let seen = Arc::clone(&is_down);
    let engine = Engine::builder(Arc::clone(&faulty) as Arc<dyn Store>)
        .settings(EngineSettings { places: 20, ..EngineSettings::default() })
        .kind("charge", settings())
        .raw_handler("charge", move |_| {
            let is_down = seen.load(Ordering::SeqCst);
            async move {
                tokio::time::sleep(millis(20)).await;
                if is_down { down() } else { Report::Done }
            }
        })
        .start()
        .await?;
    for _ in 0..50 {
        engine.submit_raw("charge", Vec::new()).await?;
    }
    assert!(within(seconds(5), async || kind(&store).await.parked.is_some()).await);
    is_down.store(false, Ordering::SeqCst);
    tokio::time::sleep(seconds(1)).await;
    // The next claim is the probe's.
    faulty.fail_next(Verb::Claim, Fault::After);
    let back = within(seconds(600), async || kind(&store).await.parked.is_none()).await;
    assert!(back, "parked for ever: {:?}", kind(&store).await);
    engine.shutdown(seconds(5)).await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn submits_do_not_keep_a_parked_kind_from_its_probe() -> Tested {
    let store = Arc::new(store());
    let faulty = slow(&store);
    let is_down = Arc::new(AtomicBool::new(true));
    let seen = Arc::clone(&is_down);
    let engine = Engine::builder(Arc::clone(&faulty) as Arc<dyn Store>)
        .settings(EngineSettings { places: 20, ..EngineSettings::default() })
        .kind("charge", settings())
        .raw_handler("charge", move |_| {
            let is_down = seen.load(Ordering::SeqCst);
            async move {
                tokio::time::sleep(millis(20)).await;
                if is_down { down() } else { Report::Done }
            }
        })
        .start()
        .await?;
    for _ in 0..50 {
        engine.submit_raw("charge", Vec::new()).await?;
    }
    assert!(within(seconds(5), async || kind(&store).await.parked.is_some()).await);
    is_down.store(false, Ordering::SeqCst);
    let engine = Arc::new(engine);
    let submitters: Vec<_> = (0..4)
        .map(|nth| {
            let engine = Arc::clone(&engine);
            tokio::spawn(async move {
                tokio::time::sleep(millis(nth)).await;
                loop {
                    let _ = engine.submit_raw("charge", Vec::new()).await;
                }
            })
        })
        .collect();
    let back = within(seconds(40), async || kind(&store).await.parked.is_none()).await;
    submitters.iter().for_each(tokio::task::JoinHandle::abort);
    let then = within(seconds(20), async || kind(&store).await.parked.is_none()).await;
    assert!(back, "parked for 40 s of submits; without them it came back: {then}");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn submits_do_not_use_up_a_rate() -> Tested {
    let store = Arc::new(store());
    let faulty = slow(&store);
    let done = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&done);
    let settings = KindSettings { rate: Some("20/s".parse()?), ..KindSettings::default() };
    let engine = Engine::builder(Arc::clone(&faulty) as Arc<dyn Store>)
        .kind("charge", settings)
        .raw_handler("charge", move |_| {
            seen.fetch_add(1, Ordering::SeqCst);
            async { Report::Done }
        })
        .start()
        .await?;
    let engine = Arc::new(engine);
    for nth in 0..4 {
        let engine = Arc::clone(&engine);
        tokio::spawn(async move {
            tokio::time::sleep(millis(nth)).await;
            loop {
                let _ = engine.submit_raw("charge", Vec::new()).await;
                tokio::time::sleep(millis(10)).await;
            }
        });
    }
    tokio::time::sleep(seconds(5)).await;
    let before = done.load(Ordering::SeqCst);
    tokio::time::sleep(seconds(10)).await;
    let count = done.load(Ordering::SeqCst) - before;
    assert!(count >= 160, "{count} attempts in 10 s at 20/s");
    Ok(())
}

fn cpu_ticks() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let rest = stat.rsplit(')').next().unwrap();
    let fields: Vec<&str> = rest.split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

#[tokio::test]
async fn a_rate_that_waits_for_a_place_does_not_spin() -> Tested {
    let store = Arc::new(MemoryStore::new());
    let rated = KindSettings { rate: Some("10/s".parse()?), ..KindSettings::default() };
    let engine = Engine::builder(store as Arc<dyn Store>)
        .settings(EngineSettings { places: 4, ..EngineSettings::default() })
        .kind("rated", rated)
        .raw_handler("rated", |_| async { Report::Done })
        .raw_handler("slow", |_| async {
            tokio::time::sleep(seconds(5)).await;
            Report::Done
        })
        .start()
        .await?;
    engine.submit_raw("rated", Vec::new()).await?;
    tokio::time::sleep(millis(10)).await;
    for _ in 0..5 {
        engine.submit_raw("rated", Vec::new()).await?;
    }
    for _ in 0..4 {
        engine.submit_raw("slow", Vec::new()).await?;
    }
    tokio::time::sleep(millis(1_500)).await;
    assert_eq!(engine.status().places_free, 0);
    let before = cpu_ticks();
    tokio::time::sleep(seconds(3)).await;
    let used = cpu_ticks() - before;
    eprintln!("{used} ticks of 10 ms in 3 s");
    assert!(used < 10, "{used} ticks of 10 ms in 3 s");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn other_kinds_do_not_keep_a_parked_kind_from_its_probe() -> Tested {
    let store = Arc::new(store());
    let is_down = Arc::new(AtomicBool::new(true));
    let seen = Arc::clone(&is_down);
    let mut builder = Engine::builder(Arc::clone(&store) as Arc<dyn Store>)
        .settings(EngineSettings { places: 10, ..EngineSettings::default() })
        .kind("charge", settings())
        .raw_handler("charge", move |_| {
            let is_down = seen.load(Ordering::SeqCst);
            async move {
                tokio::time::sleep(millis(20)).await;
                if is_down { down() } else { Report::Done }
            }
        });
    for name in ["a", "b", "c"] {
        builder = builder.raw_handler(name, |context| async move {
            let jitter = context.job().id.to_bytes()[15];
            tokio::time::sleep(millis(1_000 + u64::from(jitter))).await;
            Report::Done
        });
    }
    let engine = builder.start().await?;
    for _ in 0..50 {
        engine.submit_raw("charge", Vec::new()).await?;
    }
    assert!(within(seconds(5), async || kind(&store).await.parked.is_some()).await);
    is_down.store(false, Ordering::SeqCst);
    for name in ["a", "b", "c"] {
        let jobs: Vec<NewJob> = (0..1_000)
            .map(|_| NewJob::new(engine.new_id(), KindName::parse(name).unwrap(), Vec::new()))
            .collect();
        engine.insert(&Insert::new(&jobs)).await?;
    }
    let back = within(seconds(120), async || kind(&store).await.parked.is_none()).await;
    assert!(
        back,
        "still parked after two minutes: {:?}; left {}",
        kind(&store).await,
        store.books().await?.live
    );
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn jobs_that_come_due_do_not_keep_others_from_being_claimed() -> Tested {
    let store = Arc::new(store());
    let done = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&done);
    let engine = Engine::builder(Arc::clone(&store) as Arc<dyn Store>)
        .settings(EngineSettings { places: 20, ..EngineSettings::default() })
        .raw_handler("hangs", |_| async {
            tokio::time::sleep(seconds(25)).await;
            Report::Done
        })
        .raw_handler("quick", move |_| {
            seen.fetch_add(1, Ordering::SeqCst);
            async { Report::Done }
        })
        .start()
        .await?;
    let job = |name: &str, delay| NewJob {
        due: When::In(delay),
        ..NewJob::new(engine.new_id(), KindName::parse(name).unwrap(), Vec::new())
    };
    let jobs: Vec<NewJob> = (0..500).map(|_| job("hangs", seconds(4))).collect();
    engine.insert(&Insert::new(&jobs)).await?;
    tokio::time::sleep(seconds(5)).await;
    let jobs: Vec<NewJob> = (0..5).map(|_| job("quick", Duration::ZERO)).collect();
    engine.insert(&Insert::new(&jobs)).await?;
    let began = tokio::time::Instant::now();
    assert!(within(seconds(60), async || done.load(Ordering::SeqCst) == 5).await);
    let took = began.elapsed();
    assert!(took < seconds(3), "the other kind waited for {took:?}; {:?}", engine.status());
    Ok(())
}
