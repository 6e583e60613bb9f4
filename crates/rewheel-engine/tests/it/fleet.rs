//! Tests of limits that all engines and workers share.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "the time of a test is simulated"
)]

use crate::still::store;
use rewheel::{Category, millis, seconds};
use rewheel_core::store::{ReadStore, Store};
use rewheel_core::{Failure, Report};
use rewheel_engine::{Engine, EngineSettings, KindSettings, TenantSettings};
use rewheel_stores::MemoryStore;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;

type Tested = Result<(), Box<dyn std::error::Error>>;

/// Records the attempts of all engines.
#[derive(Clone, Default)]
struct Runs {
    running: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
    starts: Arc<Mutex<Vec<Instant>>>,
}

impl Runs {
    /// One attempt that takes this long. The first one of each job fails.
    async fn run(self, took: Duration, attempt: u32) -> Report {
        self.starts.lock().unwrap().push(Instant::now());
        let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(running, Ordering::SeqCst);
        tokio::time::sleep(took).await;
        self.running.fetch_sub(1, Ordering::SeqCst);
        match attempt {
            0 => Report::retry(Failure::new(Category::Io, None, "at first")),
            _ => Report::Done,
        }
    }

    fn most(&self) -> usize {
        self.most.load(Ordering::SeqCst)
    }

    /// The shortest time between two starts.
    fn closest(&self) -> Duration {
        let mut starts = self.starts.lock().unwrap().clone();
        starts.sort_unstable();
        starts.windows(2).map(|two| two[1] - two[0]).min().unwrap_or(Duration::MAX)
    }

    fn count(&self) -> usize {
        self.starts.lock().unwrap().len()
    }
}

async fn start(
    store: &Arc<MemoryStore>,
    name: &str,
    kind: KindSettings,
    tenant: TenantSettings,
    took: Duration,
    runs: &Runs,
) -> Result<Engine, Box<dyn std::error::Error>> {
    let runs = runs.clone();
    Ok(Engine::builder(Arc::clone(store) as Arc<dyn Store>)
        .settings(EngineSettings {
            name: name.to_owned(),
            concurrency: 8,
            ..EngineSettings::default()
        })
        .kind("pay", kind)
        .tenant("acme", tenant)
        .raw_handler("pay", move |context| runs.clone().run(took, context.job().attempt))
        .start()
        .await?)
}

async fn drain(store: &MemoryStore, within: Duration) -> Tested {
    let ends = Instant::now() + within;
    while store.books().await?.live > 0 {
        assert!(Instant::now() < ends, "{} jobs are left", store.books().await?.live);
        tokio::time::sleep(millis(50)).await;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_kind_runs_no_more_than_its_fleet_slots_whatever_engines_do() -> Tested {
    let (store, runs) = (Arc::new(store()), Runs::default());
    let kind = KindSettings { fleet_concurrency_max: Some(3), ..KindSettings::default() };
    let tenant = TenantSettings::default();
    let mut fleet = Vec::new();
    for name in ["a", "b", "c", "d"] {
        let engine = start(&store, name, kind.clone(), tenant.clone(), millis(100), &runs).await?;
        fleet.push(engine);
    }
    for _ in 0..60 {
        fleet[0].submit_raw("pay", Vec::new()).await?;
    }
    tokio::time::sleep(millis(250)).await;
    // Its jobs run elsewhere once they are taken over.
    fleet.remove(0).kill();
    runs.running.store(0, Ordering::SeqCst);
    drain(&store, seconds(120)).await?;
    assert!(runs.most() <= 3, "{} ran at once", runs.most());
    assert!(runs.count() >= 120, "each job runs twice");
    for engine in fleet {
        engine.shutdown(seconds(1)).await;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_tenant_runs_no_more_than_its_fleet_slots() -> Tested {
    let (store, runs) = (Arc::new(store()), Runs::default());
    let tenant = TenantSettings { fleet_concurrency_max: Some(2), ..TenantSettings::default() };
    let kind = KindSettings::default();
    let one = start(&store, "a", kind.clone(), tenant.clone(), millis(100), &runs).await?;
    let other = start(&store, "b", kind, tenant, millis(100), &runs).await?;
    for _ in 0..20 {
        one.submit_raw("pay", Vec::new()).tenant("acme").await?;
    }
    // Forty attempts of 100 ms, two at a time, and backoffs: no slot stays free for long.
    drain(&store, seconds(6)).await?;
    assert!(runs.most() <= 2, "{} ran at once", runs.most());
    for engine in [one, other] {
        engine.shutdown(seconds(1)).await;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn one_an_hour_is_one_an_hour_through_a_rolling_restart() -> Tested {
    let (store, runs) = (Arc::new(store()), Runs::default());
    let kind = KindSettings { rate: Some("1/h".parse()?), ..KindSettings::default() };
    let tenant = TenantSettings::default();
    let mut fleet = Vec::new();
    for number in 0..10 {
        let (kind, name) = (kind.clone(), format!("n{number}"));
        fleet.push(start(&store, &name, kind, tenant.clone(), millis(10), &runs).await?);
    }
    for _ in 0..20 {
        fleet[0].submit_raw("pay", Vec::new()).await?;
    }
    let began = Instant::now();
    for number in 10..25 {
        tokio::time::sleep(seconds(600)).await;
        fleet.remove(0).shutdown(seconds(1)).await;
        let (kind, name) = (kind.clone(), format!("n{number}"));
        fleet.push(start(&store, &name, kind, tenant.clone(), millis(10), &runs).await?);
    }
    let hours = began.elapsed().as_secs() as usize / 3_600;
    assert!(runs.closest() >= seconds(3_600), "two starts within {:?}", runs.closest());
    assert!((hours..=hours + 1).contains(&runs.count()), "{} in {hours} h", runs.count());
    for engine in fleet {
        engine.shutdown(seconds(1)).await;
    }
    Ok(())
}

/// A submit whose key exists starts nothing, and takes no start of the rate.
#[tokio::test(start_paused = true)]
async fn a_repeated_keyed_submit_uses_up_no_pass() -> Tested {
    for rate in ["1/10s", "2/s"] {
        let (store, runs) = (Arc::new(store()), Runs::default());
        let kind =
            KindSettings { rate: Some(rate.parse()?), attempts_max: 1, ..KindSettings::default() };
        let engine = start(&store, "a", kind, TenantSettings::default(), millis(1), &runs).await?;
        tokio::time::sleep(seconds(20)).await;
        engine.submit_raw("pay", Vec::new()).key("one").delay(seconds(600)).await?;
        for _ in 0..50 {
            assert!(engine.submit_raw("pay", Vec::new()).key("one").await?.duplicate);
        }
        engine.submit_raw("pay", Vec::new()).key("two").await?;
        tokio::time::sleep(millis(1_200)).await;
        assert_eq!(runs.count(), 1, "at {rate}");
        engine.shutdown(seconds(1)).await;
    }
    Ok(())
}

/// A limit that was reached is checked again at once when an operator changes it.
#[tokio::test(start_paused = true)]
async fn a_changed_slow_rate_holds_from_the_last_start() -> Tested {
    let (store, runs) = (Arc::new(store()), Runs::default());
    let rated = |rate: &str| -> Result<KindSettings, Box<dyn std::error::Error>> {
        Ok(KindSettings { rate: Some(rate.parse()?), attempts_max: 1, ..KindSettings::default() })
    };
    let engine =
        start(&store, "a", rated("1/h")?, TenantSettings::default(), millis(1), &runs).await?;
    for _ in 0..3 {
        engine.submit_raw("pay", Vec::new()).await?;
    }
    tokio::time::sleep(seconds(30)).await;
    assert_eq!(runs.count(), 1);
    let (kind, by) = (rewheel_core::KindName::parse("pay")?, rewheel_core::Actor::new("ops"));
    engine.put_kind(&kind, &rated("1/10s")?, &by).await?;
    tokio::time::sleep(seconds(25)).await;
    assert_eq!(runs.count(), 3);
    assert!(runs.closest() >= seconds(10), "two starts within {:?}", runs.closest());
    engine.shutdown(seconds(1)).await;
    Ok(())
}

/// An engine without a free slot takes at most one job of a limited kind: the others are for engines with free slots.
#[tokio::test(start_paused = true)]
async fn a_busy_engine_does_not_sit_on_the_slots_of_the_fleet() -> Tested {
    let store = Arc::new(store());
    let (busy, free) = (Runs::default(), Runs::default());
    let kind = KindSettings { fleet_concurrency_max: Some(4), ..KindSettings::default() };
    let tenant = TenantSettings::default();
    let one = Engine::builder(Arc::clone(&store) as Arc<dyn Store>)
        .settings(EngineSettings {
            name: "busy".to_owned(),
            concurrency: 4,
            ..EngineSettings::default()
        })
        .kind("pay", kind.clone())
        .raw_handler("pay", move |context| busy.clone().run(millis(10), context.job().attempt))
        .raw_handler("long", |_| std::future::pending::<Report>())
        .raw_handler("longer", |_| std::future::pending::<Report>())
        .start()
        .await?;
    for _ in 0..4 {
        one.submit_raw("long", Vec::new()).await?;
        one.submit_raw("longer", Vec::new()).await?;
    }
    tokio::time::sleep(seconds(2)).await;
    let other = start(&store, "free", kind, tenant, millis(10), &free).await?;
    for _ in 0..40 {
        other.submit_raw("pay", Vec::new()).await?;
    }
    tokio::time::sleep(seconds(10)).await;
    assert!(free.count() >= 70, "{} of 80 attempts", free.count());
    one.kill();
    other.shutdown(seconds(1)).await;
    Ok(())
}
