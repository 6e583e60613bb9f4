//! Tests of the rate and concurrency limits of tenants.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "the time of a test is simulated"
)]

use crate::flood::{flood, with_slow_inserts};
use rewheel::{millis, seconds};
use rewheel_core::store::{Insert, ReadStore, Store};
use rewheel_core::{KindName, NewJob, Report, Tenant, When};
use rewheel_engine::{Engine, EngineSettings, KindSettings, TenantSettings};
use rewheel_stores::MemoryStore;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;

type Tested = Result<(), Box<dyn std::error::Error>>;

/// When the attempts of each tenant started.
type Starts = Arc<Mutex<Vec<(String, Duration)>>>;

struct Fleet {
    store: Arc<MemoryStore>,
    engines: Vec<Engine>,
    starts: Starts,
    began: Instant,
}

impl Fleet {
    /// Engines with ten slots each, whose attempts take `each`.
    async fn start(
        engines: usize,
        each: Duration,
        acme: TenantSettings,
        kind: KindSettings,
    ) -> Result<Fleet, Box<dyn std::error::Error>> {
        let store = Arc::new(crate::still::store());
        let (starts, began) = (Starts::default(), Instant::now());
        let mut fleet = Fleet { store, engines: Vec::new(), starts, began };
        for _ in 0..engines {
            let seen = Arc::clone(&fleet.starts);
            let engine = Engine::builder(Arc::clone(&fleet.store) as Arc<dyn Store>)
                .settings(EngineSettings { concurrency: 10, ..EngineSettings::default() })
                .tenant("acme", acme.clone())
                .kind("work", kind.clone())
                .raw_handler("work", move |context| {
                    let tenant = context.job().lane.tenant.as_ref().unwrap().to_string();
                    seen.lock().unwrap().push((tenant, began.elapsed()));
                    async move {
                        tokio::time::sleep(each).await;
                        Report::Done
                    }
                })
                .start()
                .await?;
            fleet.engines.push(engine);
        }
        // All engines know each other.
        tokio::time::sleep(seconds(5)).await;
        Ok(fleet)
    }

    async fn submit(&self, tenant: &str, count: usize, delay: Duration) -> Tested {
        let (kind, tenant) = (KindName::parse("work")?, Tenant::parse(tenant)?);
        let new = |_| NewJob {
            tenant: Some(tenant.clone()),
            due: When::In(delay),
            ..NewJob::new(self.engines[0].new_id(), kind.clone(), Vec::new())
        };
        let jobs: Vec<NewJob> = (0..count).map(new).collect();
        self.engines[0].insert(&Insert::new(&jobs)).await?;
        Ok(())
    }

    async fn finish(&self) -> Tested {
        while self.store.books().await?.live > 0 {
            tokio::time::sleep(millis(10)).await;
        }
        Ok(())
    }

    fn starts_of(&self, tenant: &str) -> Vec<Duration> {
        let starts = self.starts.lock().unwrap();
        let mut starts: Vec<Duration> =
            starts.iter().filter(|(of, _)| of == tenant).map(|(_, at)| *at).collect();
        starts.sort_unstable();
        starts
    }
}

fn rate(rate: &str) -> TenantSettings {
    TenantSettings { rate: Some(rate.parse().unwrap()), ..TenantSettings::default() }
}

#[tokio::test(start_paused = true)]
async fn a_tenant_goes_no_faster_than_its_rate() -> Tested {
    for engines in [1, 3] {
        let kind = KindSettings::default();
        let fleet = Fleet::start(engines, Duration::ZERO, rate("10/s"), kind).await?;
        fleet.submit("acme", 60, Duration::ZERO).await?;
        fleet.finish().await?;
        let starts = fleet.starts_of("acme");
        let fastest = starts.windows(31).map(|some| some[30] - some[0]).min().unwrap();
        assert!(fastest >= millis(2_500), "{engines} engines: 31 attempts within {fastest:?}");
        let all = *starts.last().unwrap() - starts[0];
        assert!(all < seconds(12), "{engines} engines: 60 attempts took {all:?}");
    }
    Ok(())
}

/// With any number of waiting jobs, due at once or over time, and any slow rate.
#[tokio::test(start_paused = true)]
async fn what_a_tenants_rate_holds_up_delays_no_other_tenant() -> Tested {
    for (pace, delay) in [("10/s", seconds(0)), ("1/m", seconds(0)), ("1/s", seconds(4))] {
        let fleet = Fleet::start(1, millis(10), rate(pace), KindSettings::default()).await?;
        fleet.submit("acme", 500, delay).await?;
        tokio::time::sleep(seconds(5)).await;
        for _ in 0..20 {
            let submitted = fleet.began.elapsed();
            // Two: a single job would go directly to a free slot without being claimed.
            fleet.submit("other", 2, Duration::ZERO).await?;
            tokio::time::sleep(millis(1_500)).await;
            let waited = *fleet.starts_of("other").last().unwrap() - submitted;
            assert!(waited < millis(100), "{pace}: {waited:?}");
        }
        assert_eq!(fleet.starts_of("other").len(), 40);
    }
    Ok(())
}

/// Each has one job here that must wait; together they would take all the capacity.
#[tokio::test(start_paused = true)]
async fn many_slow_tenants_delay_no_other_tenant() -> Tested {
    let (start, mut starts) = tokio::sync::mpsc::unbounded_channel();
    let engine = Engine::builder(Arc::new(MemoryStore::new()))
        .settings(EngineSettings { concurrency: 10, ..EngineSettings::default() })
        .tenant("*", rate("1/m"))
        .tenant("other", TenantSettings::default())
        .raw_handler("work", move |context| {
            if context.payload() == b"other" {
                let _ = start.send(Instant::now());
            }
            async { Report::Done }
        })
        .start()
        .await?;
    for nth in 0..120 {
        let tenant = format!("tenant {}", nth % 40);
        engine.submit_raw("work", Vec::new()).tenant(&tenant).await?;
    }
    tokio::time::sleep(seconds(3)).await;
    for _ in 0..10 {
        let job = engine.submit_raw("work", b"other".to_vec()).tenant("other").delay(millis(10));
        let submitted = Instant::now();
        job.await?;
        let started = tokio::time::timeout(seconds(60), starts.recv()).await?.unwrap();
        let waited = started - submitted;
        assert!(waited < millis(200), "{waited:?}");
        tokio::time::sleep(millis(700)).await;
    }
    Ok(())
}

/// An insert behind other jobs of its lane starts nothing, so it takes no start of the rate.
#[tokio::test(start_paused = true)]
async fn submits_do_not_use_up_a_tenants_rate() -> Tested {
    let store = with_slow_inserts(Arc::new(MemoryStore::new()));
    let done = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&done);
    let engine = Engine::builder(store)
        .tenant("acme", rate("20/s"))
        .raw_handler("work", move |_| {
            seen.fetch_add(1, Ordering::SeqCst);
            async { Report::Done }
        })
        .start()
        .await?;
    let _submitters = flood(&engine, "work", Some("acme"), millis(10));
    tokio::time::sleep(seconds(5)).await;
    let before = done.load(Ordering::SeqCst);
    tokio::time::sleep(seconds(10)).await;
    let count = done.load(Ordering::SeqCst) - before;
    assert!(count >= 160, "{count} attempts in 10 s at 20/s");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_slow_tenant_still_goes() -> Tested {
    let fleet = Fleet::start(1, millis(10), rate("1/m"), KindSettings::default()).await?;
    fleet.submit("acme", 10, Duration::ZERO).await?;
    tokio::time::sleep(seconds(600)).await;
    let count = fleet.starts_of("acme").len();
    assert!((9..=11).contains(&count), "{count} attempts in ten minutes");
    Ok(())
}

/// A start of the kind's rate that a tenant cannot use is left to the others.
#[tokio::test(start_paused = true)]
async fn a_tenant_at_its_limit_does_not_use_up_the_rate_of_a_kind() -> Tested {
    let kind = KindSettings { rate: Some("10/s".parse()?), ..KindSettings::default() };
    let fleet = Fleet::start(1, Duration::ZERO, rate("1/s"), kind).await?;
    fleet.submit("acme", 200, Duration::ZERO).await?;
    fleet.submit("other", 200, Duration::ZERO).await?;
    tokio::time::sleep(seconds(10)).await;
    let (acme, other) = (fleet.starts_of("acme").len(), fleet.starts_of("other").len());
    assert!((9..=12).contains(&acme) && (85..=95).contains(&other), "{acme} beside {other}");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_tenant_has_only_so_much_at_once() -> Tested {
    let running = Arc::new(AtomicUsize::new(0));
    let most = Arc::new(AtomicUsize::new(0));
    let (counted, seen) = (Arc::clone(&running), Arc::clone(&most));
    let settings = TenantSettings { concurrency_max: Some(3), ..TenantSettings::default() };
    let store = Arc::new(MemoryStore::new());
    let engine = Engine::builder(Arc::clone(&store) as Arc<dyn Store>)
        .settings(EngineSettings { concurrency: 10, ..EngineSettings::default() })
        .tenant("*", settings)
        .raw_handler("work", move |_| {
            seen.fetch_max(counted.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            let counted = Arc::clone(&counted);
            async move {
                tokio::time::sleep(millis(100)).await;
                counted.fetch_sub(1, Ordering::SeqCst);
                Report::Done
            }
        })
        .start()
        .await?;
    let began = Instant::now();
    for _ in 0..30 {
        engine.submit_raw("work", Vec::new()).tenant("acme").await?;
    }
    while store.books().await?.live > 0 {
        tokio::time::sleep(millis(10)).await;
    }
    assert_eq!(most.load(Ordering::SeqCst), 3);
    assert!(began.elapsed() < millis(1_500), "no place stays free: {:?}", began.elapsed());
    Ok(())
}
