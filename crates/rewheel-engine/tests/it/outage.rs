//! Tests of one engine whose store is unavailable for an hour.

use crate::still::store;
use rewheel::{Random, millis, seconds};
use rewheel_core::store::{Filter, PageRequest, ReadStore, StoreError};
use rewheel_core::{JobId, Report, State};
use rewheel_engine::{Engine, JobContext, SubmitError};
use rewheel_stores::MemoryStore;
use rewheel_testkit::{Fault, FaultyStore, ThreadLog, Verb};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

type Tested = Result<(), Box<dyn std::error::Error>>;

const HOUR: Duration = Duration::from_secs(3_600);

#[expect(clippy::disallowed_methods, reason = "the time of these tests is not real")]
fn now() -> Instant {
    Instant::now()
}

/// What happens to a call while the store is unavailable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Away {
    /// It fails at once.
    Refuses,
    /// It hangs.
    Hangs,
}

struct World {
    store: MemoryStore,
    is_away: watch::Sender<bool>,
    engine: Engine,
    /// Number of runs of a job that takes five seconds.
    fives: Arc<AtomicU32>,
}

impl World {
    async fn new(how: Away) -> Result<World, Box<dyn std::error::Error>> {
        let (store, (is_away, away)) = (store(), watch::channel(false));
        let faulty = FaultyStore::with_faults(Arc::new(store.clone()), move |_verb| {
            let mut away = away.clone();
            Box::pin(async move {
                match how {
                    Away::Refuses => away.borrow().then_some(Fault::Before),
                    Away::Hangs => {
                        let _ = away.wait_for(|is_away| !is_away).await;
                        None
                    }
                }
            })
        });
        let fives = Arc::<AtomicU32>::default();
        let counted = Arc::clone(&fives);
        let engine = Engine::builder(Arc::new(faulty))
            .random(Random::seeded(1))
            .raw_handler("work", move |ctx: JobContext| {
                let takes = String::from_utf8_lossy(ctx.payload()).parse().unwrap_or(0);
                counted.fetch_add(u32::from(takes == 5), Ordering::SeqCst);
                async move {
                    tokio::time::sleep(Duration::from_secs(takes)).await;
                    Report::Done
                }
            })
            .start()
            .await?;
        Ok(World { store, is_away, engine, fives })
    }

    async fn submit(&self, takes: u64, delay: Duration) -> Result<JobId, SubmitError> {
        let submit = self.engine.submit_raw("work", takes.to_string().into_bytes());
        Ok(submit.delay(delay).await?.id)
    }

    /// Returns the jobs that have not succeeded yet.
    async fn left(&self) -> usize {
        let page = self.store.list(&Filter::default(), &PageRequest::first(1_000)).await;
        let jobs = page.expect("memory").items;
        jobs.iter().filter(|job| job.state() != State::Succeeded).count()
    }
}

async fn an_hour_away(how: Away) -> Tested {
    let world = World::new(how).await?;
    let holder = world.engine.status().holder;
    let mut ids = Vec::new();
    // Done before, during and after; running; in the timing wheel; in the store.
    for (takes, delay) in [(0, 0), (5, 0), (25, 0), (0, 4), (7, 4), (0, 60), (0, 3_000), (0, 4_000)]
    {
        ids.push(world.submit(takes, seconds(delay)).await?);
    }
    tokio::time::sleep(seconds(2)).await;

    world.is_away.send_replace(true);
    for _ in 0..12 {
        let before = now();
        let error = world.submit(0, seconds(0)).await.expect_err("the store is away");
        assert!(before.elapsed() <= seconds(10) + millis(5), "{:?}", before.elapsed());
        let is_away = matches!(
            &error,
            SubmitError::Store(StoreError::Unavailable(_) | StoreError::Ambiguous(_))
        );
        assert!(is_away, "{error}");
        if how == Away::Refuses {
            assert!(matches!(error, SubmitError::Store(StoreError::Unavailable(_))), "{error}");
        }
        tokio::time::sleep(HOUR / 12).await;
    }
    world.is_away.send_replace(false);

    let back = now();
    tokio::time::sleep(millis(1_900)).await;
    ids.push(world.submit(0, seconds(0)).await?);
    ids.push(world.submit(0, seconds(2)).await?);
    tokio::time::sleep(millis(100)).await;
    assert!(!world.engine.status().lease_expired);
    while world.left().await > 0 && back.elapsed() < HOUR {
        tokio::time::sleep(seconds(1)).await;
    }
    for id in ids {
        let job = world.store.get(id).await?.expect("it was acknowledged");
        assert_eq!((job.state(), job.attempt), (State::Succeeded, 1), "{job:?}");
    }
    let status = world.engine.status();
    assert_eq!((status.holder, status.concurrency_free), (holder, status.concurrency));
    assert_eq!(world.store.books().await?.missing(), 0);
    // Its result was kept for an hour.
    assert_eq!(world.fives.load(Ordering::SeqCst), 1);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_hour_without_the_store_costs_no_job_no_attempt_and_no_restart() -> Tested {
    an_hour_away(Away::Refuses).await
}

#[tokio::test(start_paused = true)]
async fn an_hour_of_a_store_that_never_answers_does_neither() -> Tested {
    an_hour_away(Away::Hangs).await
}

#[tokio::test(start_paused = true)]
async fn all_is_done_two_seconds_after_the_store_is_back() -> Tested {
    for seconds_away in 1..40 {
        let world = World::new(Away::Refuses).await?;
        for _ in 0..300 {
            world.submit(0, seconds(seconds_away)).await?;
        }
        world.is_away.send_replace(true);
        // Another second, and another phase of every loop.
        tokio::time::sleep(seconds(seconds_away) + millis(37 * seconds_away)).await;
        world.is_away.send_replace(false);
        let back = now();
        while world.left().await > 0 {
            tokio::time::sleep(millis(10)).await;
            assert!(back.elapsed() <= seconds(2), "{} jobs wait", world.left().await);
        }
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_job_whose_insert_lost_its_answer_is_one_job_and_runs_at_once() -> Tested {
    let store = store();
    let faulty = Arc::new(FaultyStore::new(Arc::new(store.clone())));
    let engine = Engine::builder(Arc::<FaultyStore>::clone(&faulty))
        .raw_handler("work", |_| async { Report::Done })
        .start()
        .await?;
    faulty.fail_next(Verb::Insert, Fault::After);
    let receipt = engine.submit_raw("work", Vec::new()).await?;
    assert!(!receipt.duplicate);
    tokio::time::sleep(millis(100)).await;
    let job = store.get(receipt.id).await?.expect("it is kept");
    assert_eq!((job.state(), job.attempt, job.takeovers), (State::Succeeded, 1, 0));
    assert_eq!(store.books().await?.submitted, 1);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_hour_without_the_store_is_told_in_a_line_at_each_end() -> Tested {
    ThreadLog::install(tracing::Level::INFO);
    let world = World::new(Away::Refuses).await?;
    world.submit(5, seconds(0)).await?;
    ThreadLog::take();
    world.is_away.send_replace(true);
    for _ in 0..60 {
        tokio::time::sleep(HOUR / 60).await;
        world.submit(0, seconds(0)).await.unwrap_err();
    }
    world.is_away.send_replace(false);
    tokio::time::sleep(seconds(10)).await;
    let lines = ThreadLog::take();
    let count = |text: &str| lines.matches(text).count();
    assert_eq!((count("WARN"), count("store unavailable")), (1, 1), "{lines}");
    assert!(lines.contains("the store is unavailable: "), "{lines}");
    assert_eq!(count("INFO message=store available again away=\"1h"), 1, "{lines}");
    assert!(lines.lines().count() <= 4, "{lines}");
    Ok(())
}
