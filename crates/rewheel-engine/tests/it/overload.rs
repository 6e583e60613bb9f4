//! Compares a fleet with and without a retry budget when its dependency can serve half of the load.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "the clock of a test does not advance by itself; the test prints its findings"
)]

use crate::still::store;
use rewheel::{Category, Random, Verdict, millis, seconds};
use rewheel_core::store::{ReadStore, StoreError};
use rewheel_core::{Failure, Report};
use rewheel_engine::{BudgetSettings, Engine, EngineSettings, KindSettings, StartError};
use rewheel_stores::MemoryStore;
use rewheel_testkit::FaultyStore;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

type Tested = Result<(), Box<dyn std::error::Error>>;

const HOLDERS: u64 = 100;

/// First attempts per second, of the whole fleet.
const OFFERED: u64 = 400;

const LASTS: Duration = seconds(15);

/// Serves a limited number of calls per tenth of a second, and fails the others.
struct Dependency {
    /// Per tenth of a second.
    capacity: AtomicU64,
    began: Instant,
    /// The current tenth of a second, and the calls in it.
    tenth: Mutex<(u64, u64)>,
    calls: AtomicU64,
}

impl Dependency {
    fn new(per_second: u64) -> Dependency {
        Dependency {
            capacity: AtomicU64::new(per_second / 10),
            began: Instant::now(),
            tenth: Mutex::default(),
            calls: AtomicU64::new(0),
        }
    }

    fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    fn recover(&self) {
        self.capacity.store(u64::MAX, Ordering::Relaxed);
    }

    fn takes(&self) -> bool {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let now = u64::try_from(self.began.elapsed().as_millis()).unwrap() / 100;
        let mut tenth = self.tenth.lock().unwrap();
        if tenth.0 != now {
            *tenth = (now, 0);
        }
        tenth.1 += 1;
        tenth.1 <= self.capacity.load(Ordering::Relaxed)
    }

    async fn call(self: Arc<Dependency>) -> Report {
        let takes = self.takes();
        sleep(millis(5)).await;
        if takes {
            return Report::Done;
        }
        let failure = Failure::new(Category::Transient, Some("503"), "overloaded");
        Report::AttemptFailed { verdict: Verdict::Retry, failure }
    }
}

/// A hundred engines that share a store, and their dependency.
struct Fleet {
    store: MemoryStore,
    dependency: Arc<Dependency>,
    engines: Vec<Arc<Engine>>,
    random: Random,
}

impl Fleet {
    async fn start(retry_budget: Option<BudgetSettings>) -> Result<Fleet, StartError> {
        let (store, random) = (store(), Random::seeded(17));
        let dependency = Arc::new(Dependency::new(OFFERED / 2));
        let mut engines = Vec::new();
        for _ in 0..HOLDERS {
            let keep_succeeded = Duration::ZERO;
            let settings = KindSettings { retry_budget, keep_succeeded, ..KindSettings::default() };
            let called = Arc::clone(&dependency);
            // Without this, wake-ups between all engines would dominate this test.
            let silent = FaultyStore::new(Arc::new(store.clone())).silent();
            let engine = Engine::builder(Arc::new(silent))
                .settings(EngineSettings { housekeeping: seconds(60), ..EngineSettings::default() })
                .random(Random::seeded(random.next()))
                .kind("call", settings)
                .raw_handler("call", move |_| Arc::clone(&called).call())
                .start()
                .await?;
            engines.push(Arc::new(engine));
        }
        Ok(Fleet { store, dependency, engines, random })
    }

    /// Lets every holder submit its part of the load for a time. Returns attempts per first attempt.
    async fn overload(&self) -> f64 {
        let gap = seconds(1).mul_f64(HOLDERS as f64 / OFFERED as f64);
        let mut submitters = JoinSet::new();
        for engine in &self.engines {
            let began = gap.mul_f64((self.random.next() % 1_000) as f64 / 1_000.0);
            let engine = Arc::clone(engine);
            submitters.spawn(async move {
                sleep(began).await;
                for _ in 0..LASTS.as_secs() * OFFERED / HOLDERS {
                    engine.submit_raw("call", Vec::new()).await.unwrap();
                    sleep(gap).await;
                }
            });
        }
        submitters.join_all().await;
        self.dependency.calls() as f64 / (OFFERED * LASTS.as_secs()) as f64
    }

    /// Lets waiting jobs drain, now that the dependency can take everything and no new jobs come. Returns how long half of them
    /// take.
    async fn drain(&self) -> Result<Duration, StoreError> {
        self.dependency.recover();
        let (began, waiting) = (Instant::now(), self.store.books().await?.live);
        while self.store.books().await?.live > waiting / 2 {
            assert!(began.elapsed() < seconds(600), "most of {waiting} still wait");
            sleep(seconds(1)).await;
        }
        Ok(began.elapsed())
    }
}

fn tell(how: &str, load: f64) {
    println!("{HOLDERS} holders offer {OFFERED}/s, their dependency takes {}/s", OFFERED / 2);
    println!("total load {how} a retry budget: {load:.2} x the offered load");
}

/// The figures are in `docs/retry-budget.md`.
#[tokio::test(start_paused = true)]
async fn with_a_budget_retries_are_a_small_share_of_the_load() -> Tested {
    let fleet = Fleet::start(Some(BudgetSettings::default())).await?;
    let load = fleet.overload().await;
    tell("with", load);
    assert!(load < 1.2, "{load:.3}");
    let waiting = fleet.store.books().await?.live;
    let half = fleet.drain().await?;
    println!("of {waiting} jobs that waited half were done {half:?} after the dependency was back");
    // Its floor alone would allow them only after minutes.
    assert!(half < seconds(60), "{half:?}");
    let books = fleet.store.books().await?;
    assert_eq!((books.dead, books.missing()), (0, 0), "a retry waits, it does not die");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn without_a_budget_retries_are_most_of_the_load() -> Tested {
    let load = Fleet::start(None).await?.overload().await;
    tell("without", load);
    assert!(load > 3.0, "{load:.3}: not much of an overload");
    Ok(())
}
