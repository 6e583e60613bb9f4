//! Tests an outage of one dependency: other kinds keep running, and the waiting jobs run after recovery.

#![expect(
    clippy::disallowed_methods,
    reason = "how long something takes for real is what it measures"
)]

use rewheel::{millis, seconds};
use rewheel_core::store::Store;
use rewheel_core::{KindName, Report};
use rewheel_engine::{BreakerSettings, Engine, KindSettings};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;

type Tested = Result<(), Box<dyn std::error::Error>>;

const JOBS: usize = 2_000;
const OUTAGE: Duration = seconds(10);

/// The dependency, and the recorded observations.
struct World {
    started: Instant,
    is_down: AtomicBool,
    done: AtomicUsize,
    failed: AtomicUsize,
    /// When each attempt of the bank's kind started.
    attempts: Mutex<Vec<Duration>>,
    /// How long each mail waited for its handler.
    waits: Mutex<Vec<Duration>>,
}

impl World {
    fn new() -> Arc<World> {
        Arc::new(World {
            started: Instant::now(),
            is_down: AtomicBool::new(false),
            done: AtomicUsize::new(0),
            failed: AtomicUsize::new(0),
            attempts: Mutex::default(),
            waits: Mutex::default(),
        })
    }

    async fn charge(self: Arc<World>) -> Report {
        self.attempts.lock().unwrap().push(self.started.elapsed());
        if self.is_down.load(Ordering::SeqCst) {
            self.failed.fetch_add(1, Ordering::SeqCst);
            std::future::pending::<()>().await;
        }
        tokio::time::sleep(millis(5)).await;
        self.done.fetch_add(1, Ordering::SeqCst);
        Report::Done
    }

    fn mail(&self, sent: u128) {
        let now = self.started.elapsed().as_micros();
        let wait = Duration::from_micros(u64::try_from(now - sent).unwrap_or(u64::MAX));
        self.waits.lock().unwrap().push(wait);
    }

    /// Sends a mail every 10 ms for this long, and returns the 99th percentile of the waits.
    async fn send_mails(
        &self,
        engine: &Engine,
        how_long: Duration,
    ) -> Result<Duration, Box<dyn std::error::Error>> {
        self.waits.lock().unwrap().clear();
        let (until, mut sent) = (Instant::now() + how_long, 0);
        while Instant::now() < until {
            let payload = self.started.elapsed().as_micros().to_le_bytes().to_vec();
            engine.submit_raw("mail", payload).await?;
            sent += 1;
            tokio::time::sleep(millis(10)).await;
        }
        while self.waits.lock().unwrap().len() < sent {
            tokio::time::sleep(millis(5)).await;
        }
        let mut waits = self.waits.lock().unwrap().clone();
        waits.sort_unstable();
        Ok(waits[waits.len() * 99 / 100])
    }

    /// Prints the attempts per second as a chart.
    #[expect(clippy::print_stdout, reason = "that is what it is for")]
    fn print_chart(&self) {
        let attempts = self.attempts.lock().unwrap();
        let last = attempts.last().map_or(0, Duration::as_secs);
        for second in 0..=last {
            let count = attempts.iter().filter(|at| at.as_secs() == second).count();
            println!("{second:3} s {count:5} {}", "#".repeat(count.div_ceil(20)));
        }
    }
}

async fn engine(
    store: Arc<dyn Store>,
    world: &Arc<World>,
) -> Result<Engine, rewheel_engine::StartError> {
    let (bank, post) = (Arc::clone(world), Arc::clone(world));
    let breaker = BreakerSettings { open_for: seconds(2), ..BreakerSettings::default() };
    let charge = KindSettings {
        attempts_max: 1_000,
        attempt_timeout: millis(200),
        breaker: Some(breaker),
        ..KindSettings::default()
    };
    Engine::builder(store)
        .kind("charge", charge)
        .raw_handler("charge", move |_| Arc::clone(&bank).charge())
        .raw_handler("mail", move |context| {
            let mut sent = [0; 16];
            sent.copy_from_slice(context.payload());
            post.mail(u128::from_le_bytes(sent));
            async { Report::Done }
        })
        .start()
        .await
}

#[expect(clippy::print_stdout, reason = "prints the measurement")]
async fn outage(store: Arc<dyn Store>) -> Tested {
    let world = World::new();
    let engine = engine(Arc::clone(&store), &world).await?;
    world.send_mails(&engine, seconds(1)).await?;
    let normal = world.send_mails(&engine, seconds(3)).await?;

    world.is_down.store(true, Ordering::SeqCst);
    let kind = KindName::parse("charge")?;
    let jobs: Vec<_> = (0..JOBS)
        .map(|_| rewheel_core::NewJob::new(engine.new_id(), kind.clone(), Vec::new()))
        .collect();
    for batch in jobs.chunks(1_000) {
        engine.insert(&rewheel_core::store::Insert::new(batch)).await?;
    }
    let beside = world.send_mails(&engine, OUTAGE).await?;
    let failed = world.failed.load(Ordering::SeqCst);
    let parked = store.kinds().await?.into_iter().find(|known| known.name == kind);
    assert!(parked.is_some_and(|kind| kind.parked.is_some()), "it is parked by now");

    world.is_down.store(false, Ordering::SeqCst);
    let back = Instant::now();
    while world.done.load(Ordering::SeqCst) < JOBS {
        assert!(back.elapsed() < seconds(300), "{} are done", world.done.load(Ordering::SeqCst));
        tokio::time::sleep(millis(20)).await;
    }
    world.print_chart();
    println!(
        "{failed} attempts during {OUTAGE:?} of outage; drained {:?} after it",
        back.elapsed()
    );
    println!("p99 of the other kind: {normal:?} normally, {beside:?} beside the outage");
    let late = world.failed.load(Ordering::SeqCst) - failed;
    assert!(late <= 20, "it collapsed again: {late} attempts failed after it was back");
    assert!(failed < JOBS, "{failed} attempts: every job was tried while it was down");
    // Behind hanging attempts, a mail would wait at least 200 ms, and usually many times that.
    assert!(beside <= (5 * normal).max(normal + millis(100)), "{beside:?} instead of {normal:?}");
    engine.shutdown(seconds(5)).await;
    let books = store.books().await?;
    assert_eq!((books.missing(), books.live), (0, 0));
    store.close().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dependency_that_is_down_delays_no_other_kind_on_sqlite() -> Tested {
    let _alone = crate::alone().await;
    let folder = tempfile::tempdir()?;
    let url = format!("sqlite://{}", folder.path().join("outage.db").display());
    outage(rewheel_stores::connect(&url).await?).await
}

#[cfg(feature = "test-postgres")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dependency_that_is_down_delays_no_other_kind_on_postgres() -> Tested {
    let _alone = crate::alone().await;
    let schema = rewheel_testkit::Schema::fresh();
    outage(rewheel_stores::connect(schema.url()).await?).await
}
