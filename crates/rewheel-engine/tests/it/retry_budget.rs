//! Tests of the fleet-wide retry budget of a kind, with running engines.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "the time of a test is simulated"
)]

use crate::still::store;
use rewheel::{Backoff, Category, Verdict, millis, seconds};
use rewheel_core::store::{Change, ChangeVerb, KindStore, OperateStore, ReadStore, Store};
use rewheel_core::{Actor, DueReason, Failure, Job, JobId, Report, Retain, State};
use rewheel_engine::{BreakerSettings, BudgetSettings, Engine, EngineSettings, KindSettings};
use rewheel_stores::MemoryStore;
use rewheel_testkit::{Fault, FaultyStore, Verb};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::time::{Instant, sleep};

type Tested = Result<(), Box<dyn std::error::Error>>;

/// The initial budget of a kind, which one holder takes at once.
const STOCK: usize = 10;

/// The dependency of a kind: up or down, and the number of calls.
#[derive(Clone, Default)]
struct Dependency {
    is_down: Arc<AtomicBool>,
    /// Whether it responds, but rejects the jobs.
    is_picky: Arc<AtomicBool>,
    calls: Arc<AtomicUsize>,
}

impl Dependency {
    fn down() -> Dependency {
        Dependency { is_down: Arc::new(AtomicBool::new(true)), ..Dependency::default() }
    }

    fn is_back(&self) {
        self.is_down.store(false, Ordering::SeqCst);
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    async fn call(self) -> Report {
        self.calls.fetch_add(1, Ordering::SeqCst);
        sleep(millis(5)).await;
        if self.is_down.load(Ordering::SeqCst) {
            let is_picky = self.is_picky.load(Ordering::SeqCst);
            let category = if is_picky { Category::BadPayload } else { Category::Transient };
            let failure = Failure::new(category, Some("503"), "overloaded");
            return Report::AttemptFailed { verdict: Verdict::Retry, failure };
        }
        Report::Done
    }
}

/// Almost no retries except earned ones.
fn kind(ratio: f64) -> KindSettings {
    KindSettings {
        attempts_max: 3,
        backoff: Backoff::fixed(millis(100)),
        retry_budget: Some(BudgetSettings { ratio, floor: "1/m".parse().unwrap() }),
        ..KindSettings::default()
    }
}

async fn engine(
    store: Arc<dyn Store>,
    kind: KindSettings,
    charge: &Dependency,
) -> Result<Engine, Box<dyn std::error::Error>> {
    let charge = charge.clone();
    let engine = Engine::builder(store)
        .settings(EngineSettings { concurrency: 20, ..EngineSettings::default() })
        .kind("charge", kind)
        .raw_handler("charge", move |_| charge.clone().call())
        .start()
        .await?;
    // It has received its reserve.
    sleep(millis(10)).await;
    Ok(engine)
}

async fn submit(engine: &Engine, count: usize) -> Result<Vec<JobId>, Box<dyn std::error::Error>> {
    let mut ids = Vec::new();
    for _ in 0..count {
        ids.push(engine.submit_raw("charge", Vec::new()).await?.id);
    }
    Ok(ids)
}

async fn jobs(store: &MemoryStore, ids: &[JobId]) -> Vec<Job> {
    let mut jobs = Vec::new();
    for id in ids {
        jobs.push(store.get(*id).await.unwrap().unwrap());
    }
    jobs
}

/// Returns the jobs that wait for a retry to be earned.
async fn put_off(store: &MemoryStore, ids: &[JobId]) -> Vec<Job> {
    let jobs = jobs(store, ids).await;
    jobs.into_iter().filter(|job| job.because == DueReason::RetryBudget).collect()
}

/// Waits until no job is left, up to a maximum time.
async fn drains(store: &MemoryStore, most: Duration) -> bool {
    let until = Instant::now() + most;
    while Instant::now() < until {
        if store.books().await.unwrap().live == 0 {
            return true;
        }
        sleep(millis(50)).await;
    }
    false
}

#[tokio::test(start_paused = true)]
async fn a_retry_that_is_not_earned_waits_and_uses_up_no_attempt() -> Tested {
    let (store, charge) = (store(), Dependency::down());
    let engine = engine(Arc::new(store.clone()), kind(0.0), &charge).await?;
    let ids = submit(&engine, 50).await?;
    sleep(seconds(30)).await;
    assert_eq!(charge.calls(), 50 + STOCK);
    let waiting = put_off(&store, &ids).await;
    let counted: usize = waiting.iter().map(|job| job.attempt as usize).sum();
    assert_eq!((waiting.len(), counted), (50, 50 + STOCK));
    // They go through the store again and again, and come back each time.
    sleep(seconds(600)).await;
    let attempts = jobs(&store, &ids).await.iter().map(|job| job.attempt as usize).sum::<usize>();
    assert_eq!(attempts, charge.calls(), "only attempts that were made are counted");
    let calls = charge.calls() - 50 - STOCK;
    assert!((9..=11).contains(&calls), "one a minute is always paid for: {calls} in ten");
    charge.is_back();
    assert!(drains(&store, seconds(3_600)).await);
    assert!(
        jobs(&store, &ids).await.iter().all(|job| job.state() != State::Dead || job.attempt == 3)
    );
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn what_fails_when_nothing_is_left_is_put_off_by_the_same_write() -> Tested {
    let (store, charge) = (store(), Dependency::down());
    let engine = engine(Arc::new(store.clone()), kind(0.0), &charge).await?;
    submit(&engine, 50).await?;
    sleep(seconds(10)).await;
    let id = submit(&engine, 1).await?[0];
    sleep(millis(20)).await;
    let wait = store.attempts(id).await?[0].delay.unwrap();
    assert!(wait > millis(100), "{wait:?}");
    assert_eq!(store.get(id).await?.unwrap().because, DueReason::RetryBudget);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_deadline_ends_the_wait() -> Tested {
    let (store, charge) = (store(), Dependency::down());
    let engine = engine(Arc::new(store.clone()), kind(0.0), &charge).await?;
    submit(&engine, 50).await?;
    sleep(seconds(20)).await;
    let calls = charge.calls();
    let id = engine.submit_raw("charge", Vec::new()).deadline_in(seconds(60)).await?.id;
    sleep(seconds(30)).await;
    let waiting = store.get(id).await?.unwrap();
    assert_eq!((waiting.because, waiting.attempt), (DueReason::RetryBudget, 1));
    sleep(seconds(40)).await;
    let job = store.get(id).await?.unwrap();
    let category = job.failure.as_ref().map(Failure::category);
    assert_eq!((job.state(), category), (State::Dead, Some(Category::Deadline)));
    assert!(charge.calls() <= calls + 3, "one first attempt, and a retry for each minute");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn first_attempts_earn_retries() -> Tested {
    let (store, charge) = (store(), Dependency::down());
    let engine = engine(Arc::new(store), kind(0.2), &charge).await?;
    for _ in 0..100 {
        submit(&engine, 1).await?;
        sleep(millis(100)).await;
    }
    sleep(seconds(10)).await;
    assert!((128..=131).contains(&charge.calls()), "{} calls, of 100, 10 and 20", charge.calls());
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_single_failure_is_retried_as_if_there_were_no_budget() -> Tested {
    let (store, charge) = (store(), Dependency::down());
    let engine = engine(Arc::new(store.clone()), kind(0.1), &charge).await?;
    let ids = submit(&engine, 1).await?;
    sleep(millis(50)).await;
    charge.is_back();
    sleep(millis(100)).await;
    assert_eq!(jobs(&store, &ids).await[0].state(), State::Succeeded);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn those_that_wait_delay_no_other_job() -> Tested {
    let (store, charge) = (store(), Dependency::down());
    let engine = engine(Arc::new(store.clone()), kind(0.0), &charge).await?;
    let ids = submit(&engine, 500).await?;
    // Retries that are put off repeatedly come back less and less often.
    sleep(seconds(300)).await;
    assert_eq!(put_off(&store, &ids).await.len(), 500);
    for _ in 0..20 {
        let (calls, began) = (charge.calls(), Instant::now());
        submit(&engine, 1).await?;
        while charge.calls() == calls {
            sleep(millis(1)).await;
        }
        assert!(began.elapsed() < millis(10), "a first attempt waited {:?}", began.elapsed());
        sleep(millis(333)).await;
    }
    assert!(engine.status().waiting < 40, "they are in the store, not here");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn what_waits_drains_faster_than_it_is_earned_once_nothing_fails() -> Tested {
    let (store, charge) = (store(), Dependency::down());
    let settings = KindSettings {
        retry_budget: Some(BudgetSettings { ratio: 0.0, floor: "10/s".parse()? }),
        ..kind(0.0)
    };
    let settings = KindSettings { attempts_max: 100, ..settings };
    let engine = engine(Arc::new(store.clone()), settings, &charge).await?;
    submit(&engine, 2_000).await?;
    sleep(seconds(20)).await;
    charge.is_back();
    // At ten per second it would take 200 seconds.
    assert!(drains(&store, seconds(60)).await, "{:?}", store.books().await?);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_store_that_does_not_answer_grants_nothing() -> Tested {
    for fault in Fault::ALL {
        let (store, charge) = (store(), Dependency::down());
        let is_away = Arc::new(AtomicBool::new(false));
        let away = Arc::clone(&is_away);
        let weather = move |verb: Verb| -> Pin<Box<dyn Future<Output = Option<Fault>> + Send>> {
            let is_away = verb == Verb::Grant && away.load(Ordering::SeqCst);
            Box::pin(async move { is_away.then_some(fault) })
        };
        let faulty = FaultyStore::with_faults(Arc::new(store.clone()), weather);
        let engine = engine(Arc::new(faulty), kind(1.0), &charge).await?;
        is_away.store(true, Ordering::SeqCst);
        submit(&engine, 50).await?;
        sleep(seconds(30)).await;
        assert_eq!(charge.calls(), 50 + STOCK, "{fault:?}");
        is_away.store(false, Ordering::SeqCst);
        sleep(seconds(60)).await;
        // A report that certainly did not arrive is repeated; one that may have arrived is not.
        let earned = if fault == Fault::Before { 50 } else { 10 };
        let most = 50 + STOCK + earned + 3;
        assert!((50 + STOCK..=most).contains(&charge.calls()), "{fault:?}: {}", charge.calls());
        if fault == Fault::Before {
            assert!(charge.calls() >= 50 + STOCK + 20, "{fault:?}: {}", charge.calls());
        }
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_store_is_not_asked_for_kinds_without_a_budget() -> Tested {
    for (budget, is_asked) in [(None, false), (kind(0.1).retry_budget, true)] {
        let (store, charge) = (store(), Dependency::down());
        let asked = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&asked);
        let weather = move |verb: Verb| -> Pin<Box<dyn Future<Output = Option<Fault>> + Send>> {
            seen.fetch_add(usize::from(verb == Verb::Grant), Ordering::SeqCst);
            Box::pin(async { None })
        };
        let faulty = FaultyStore::with_faults(Arc::new(store.clone()), weather).silent();
        let settings = KindSettings { retry_budget: budget, ..kind(0.1) };
        let _engine = engine(Arc::new(faulty), settings, &charge).await?;
        sleep(seconds(10)).await;
        let asked = asked.load(Ordering::SeqCst);
        assert_eq!(asked > 0, is_asked);
        assert!(asked <= 4, "{asked} times for four heartbeats");
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn what_a_person_wants_to_run_runs() -> Tested {
    let (store, charge) = (store(), Dependency::down());
    let engine = engine(Arc::new(store.clone()), kind(0.0), &charge).await?;
    let ids = submit(&engine, 50).await?;
    sleep(seconds(10)).await;
    let waiting = put_off(&store, &ids).await.into_iter();
    // A job that no holder has claimed yet.
    let mut waiting = waiting.filter(|job| job.attempt == 1 && job.state() == State::Scheduled);
    let job = waiting.next().unwrap();
    let now = [Change::new(job.id, ChangeVerb::Retry)];
    store.change(&now, &Actor::new("token:ops"), Retain::default()).await?;
    sleep(seconds(2)).await;
    let after = store.get(job.id).await?.unwrap();
    assert_eq!((after.attempt, after.because), (2, DueReason::RetryBudget));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn what_follows_the_attempt_that_a_person_wanted_is_paid_for() -> Tested {
    let (store, charge) = (store(), Dependency::down());
    let engine = engine(Arc::new(store.clone()), kind(0.0), &charge).await?;
    let id = engine.submit_raw("charge", Vec::new()).delay(seconds(3_600)).await?.id;
    let now = [Change::new(id, ChangeVerb::Retry)];
    store.change(&now, &Actor::new("token:ops"), Retain::default()).await?;
    sleep(seconds(1)).await;
    assert_eq!(charge.calls(), 3, "all its attempts");
    submit(&engine, 50).await?;
    sleep(seconds(10)).await;
    assert_eq!(charge.calls(), 3 + 50 + STOCK - 2);
    Ok(())
}

/// A kind whose jobs are all retries must not stay parked because of its budget.
#[tokio::test(start_paused = true)]
async fn a_probe_needs_no_budget() -> Tested {
    let (store, charge) = (store(), Dependency::down());
    let breaker =
        BreakerSettings { window: 10, open_for: seconds(5), ..BreakerSettings::default() };
    let settings = KindSettings { breaker: Some(breaker), attempts_max: 100, ..kind(0.0) };
    let engine = engine(Arc::new(store.clone()), settings, &charge).await?;
    let is_parked = async || store.kinds().await.unwrap()[0].parked.is_some();
    // Spend the granted retries before the breaker sees a failure.
    charge.is_picky.store(true, Ordering::SeqCst);
    submit(&engine, 20).await?;
    sleep(seconds(1)).await;
    assert_eq!((charge.calls(), is_parked().await), (20 + STOCK, false));
    charge.is_picky.store(false, Ordering::SeqCst);
    submit(&engine, 20).await?;
    sleep(seconds(2)).await;
    assert!(is_parked().await);
    charge.is_back();
    // The floor would allow it only after a minute.
    let until = Instant::now() + seconds(30);
    while is_parked().await {
        assert!(Instant::now() < until, "still parked");
        sleep(millis(100)).await;
    }
    Ok(())
}
