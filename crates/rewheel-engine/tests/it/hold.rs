//! Tests of called services that ask to wait: 429 with `Retry-After`.

#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]

use crate::still::store;
use rewheel::{Backoff, Category, millis, seconds};
use rewheel_core::store::{KindStore, ReadStore, Store};
use rewheel_core::{
    Actor, DueReason, Failure, Job, JobId, KindChange, KindName, Lease, Report, State, WorkerOwner,
};
use rewheel_engine::{
    Engine, EngineSettings, HeldReason, Hold, JobContext, KindSettings, Reporting, Runner,
    RunnerKind, WorkerResult,
};
use rewheel_stores::MemoryStore;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;

type Tested = Result<(), Box<dyn std::error::Error>>;

/// How long the service asks to wait.
const WAIT: Duration = seconds(100);

/// Calls the host that the payload names. The host `bank` refuses its first call.
#[derive(Clone)]
struct Calls {
    /// Whether all jobs call the same host.
    only: bool,
    refuses: Arc<Mutex<usize>>,
    /// When each host was called.
    made: Arc<Mutex<Vec<(String, Duration)>>>,
    began: Instant,
}

impl Calls {
    #[expect(clippy::disallowed_methods, reason = "the time of these tests is not real")]
    fn new(only: bool) -> Calls {
        let (refuses, made) = (Arc::new(Mutex::new(1)), Arc::default());
        Calls { only, refuses, made, began: Instant::now() }
    }

    /// Returns when a host was called.
    fn of(&self, host: &str) -> Vec<Duration> {
        let made = self.made.lock().unwrap();
        made.iter().filter(|(called, _)| called == host).map(|(_, at)| *at).collect()
    }
}

fn refused(wait: Duration) -> Report {
    Report::retry_after(wait, Failure::new(Category::Throttled, Some("429"), "too many requests"))
}

impl Runner for Calls {
    fn run(&self, context: JobContext) -> Reporting {
        let host = String::from_utf8_lossy(context.payload()).into_owned();
        let mut left = self.refuses.lock().unwrap();
        let is_refused = host == "bank" && *left > 0;
        *left -= usize::from(is_refused);
        self.made.lock().unwrap().push((host, self.began.elapsed()));
        Box::pin(async move {
            tokio::time::sleep(millis(100)).await;
            if is_refused { refused(WAIT) } else { Report::Done }
        })
    }

    fn host(&self) -> Option<String> {
        self.only.then(|| "bank".to_owned())
    }

    fn target(&self, job: &Job) -> Option<String> {
        let host = String::from_utf8_lossy(job.payload.as_deref()?).into_owned();
        (!self.only).then_some(host)
    }
}

fn settings(hold: Hold) -> KindSettings {
    KindSettings { hold, backoff: Backoff::fixed(seconds(1)), ..KindSettings::default() }
}

async fn engine(
    store: &MemoryStore,
    calls: &Calls,
    kind: KindSettings,
) -> Result<Engine, Box<dyn std::error::Error>> {
    let runner = calls.clone();
    let builder = Engine::builder(Arc::new(store.clone()) as Arc<dyn Store>)
        .settings(EngineSettings { concurrency: 20, ..EngineSettings::default() })
        .kind("pay", kind)
        .runners(move |_, _| Some(Arc::new(runner.clone())));
    Ok(builder.start().await?)
}

/// Submits a job whose call is refused, waits until it was, and submits others.
async fn held(engine: &Engine, others: &[&str]) -> Result<Vec<JobId>, Box<dyn std::error::Error>> {
    engine.submit_raw("pay", b"bank".to_vec()).await?;
    tokio::time::sleep(seconds(2)).await;
    let mut ids = Vec::new();
    for host in others {
        ids.push(engine.submit_raw("pay", host.as_bytes().to_vec()).await?.id);
    }
    Ok(ids)
}

async fn because(
    engine: &Engine,
    store: &MemoryStore,
    id: JobId,
) -> Result<Option<(HeldReason, bool)>, Box<dyn std::error::Error>> {
    let (job, now) = (store.get(id).await?.unwrap(), store.now().await?);
    let held = engine.held(&[&job], now).await?.remove(0);
    Ok(held.map(|held| {
        // Calls that were put off come back over a time that is as long as the hold.
        let until = held.until.map(|until| until.since(now));
        (held.because, until.is_some_and(|left| left > WAIT / 2 && left < WAIT * 2))
    }))
}

async fn state(store: &MemoryStore, id: JobId) -> State {
    store.get(id).await.unwrap().unwrap().state()
}

#[tokio::test(start_paused = true)]
async fn no_call_goes_to_the_host_before_the_time_that_it_asked_for() -> Tested {
    let (store, calls) = (store(), Calls::new(true));
    let engine = engine(&store, &calls, settings(Hold::Host)).await?;
    let ids = held(&engine, &["bank"; 10]).await?;
    tokio::time::sleep(seconds(5)).await;
    assert_eq!(calls.of("bank").len(), 1, "only the one that was refused");
    assert_eq!(because(&engine, &store, ids[0]).await?, Some((HeldReason::Hold, true)));
    tokio::time::sleep(WAIT + seconds(10)).await;
    for id in ids {
        assert_eq!(state(&store, id).await, State::Succeeded);
    }
    let made = calls.of("bank");
    assert!(made[1] >= WAIT, "{made:?}");
    assert!(made[2] >= made[1] + millis(100), "the first alone, as a test: {made:?}");
    assert_eq!(made.len(), 12);
    engine.shutdown(seconds(1)).await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn other_hosts_of_the_kind_are_called() -> Tested {
    let (store, calls) = (store(), Calls::new(false));
    let engine = engine(&store, &calls, settings(Hold::Host)).await?;
    let ids = held(&engine, &["bank", "shop"]).await?;
    tokio::time::sleep(seconds(2)).await;
    assert_eq!((calls.of("bank").len(), calls.of("shop").len()), (1, 1));
    let put_off = store.get(ids[0]).await?.unwrap();
    assert_eq!((put_off.attempt, put_off.because), (0, DueReason::RetryAfter));
    assert_eq!(because(&engine, &store, ids[0]).await?, Some((HeldReason::Hold, true)));
    tokio::time::sleep(WAIT * 2).await;
    assert_eq!(state(&store, ids[0]).await, State::Succeeded);
    assert!(calls.of("bank")[1] >= WAIT);
    engine.shutdown(seconds(1)).await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_hold_is_no_longer_than_retry_after_max_and_off_holds_nothing() -> Tested {
    for (hold, most, waits) in
        [(Hold::Host, seconds(10), true), (Hold::Kind, seconds(10), true), (Hold::Off, WAIT, false)]
    {
        let (store, calls) = (store(), Calls::new(true));
        let kind = KindSettings { retry_after_max: most, ..settings(hold) };
        let engine = engine(&store, &calls, kind).await?;
        let ids = held(&engine, &["bank"]).await?;
        tokio::time::sleep(seconds(4)).await;
        assert_eq!(state(&store, ids[0]).await == State::Succeeded, !waits, "{hold:?}");
        tokio::time::sleep(seconds(14)).await;
        assert_eq!(state(&store, ids[0]).await, State::Succeeded, "{hold:?}");
        engine.shutdown(seconds(1)).await;
    }
    Ok(())
}

/// Two engines: the other one has not called the service at all.
#[tokio::test(start_paused = true)]
async fn a_kind_is_held_for_all_nodes() -> Tested {
    let (store, calls) = (store(), Calls::new(true));
    let one = engine(&store, &calls, settings(Hold::Kind)).await?;
    held(&one, &[]).await?;
    let other = engine(&store, &calls, settings(Hold::Kind)).await?;
    one.shutdown(seconds(1)).await;
    let mut ids = Vec::new();
    for _ in 0..10 {
        ids.push(other.submit_raw("pay", b"bank".to_vec()).await?.id);
    }
    tokio::time::sleep(WAIT - seconds(10)).await;
    assert_eq!(calls.of("bank").len(), 1);
    let kind = store.kinds().await?.remove(0);
    let parked = kind.parked.unwrap();
    assert!(parked.reason.contains("asked to wait for 1m40s: throttled 429"), "{parked:?}");
    let (job, now) = (store.get(ids[0]).await?.unwrap(), store.now().await?);
    let held = other.held(&[&job], now).await?.remove(0).unwrap();
    assert_eq!((held.because, held.until), (HeldReason::Hold, parked.until));
    tokio::time::sleep(seconds(40)).await;
    for id in ids {
        assert_eq!(state(&store, id).await, State::Succeeded);
    }
    let made = calls.of("bank");
    assert!(made[1] >= WAIT && made[2] >= made[1] + millis(100), "a probe first: {made:?}");
    assert_eq!(store.kinds().await?.remove(0).parked, None);
    other.shutdown(seconds(1)).await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_person_ends_a_hold_early() -> Tested {
    for (hold, only) in [(Hold::Host, true), (Hold::Host, false), (Hold::Kind, true)] {
        let (store, calls) = (store(), Calls::new(only));
        let engine = engine(&store, &calls, settings(hold)).await?;
        held(&engine, &[]).await?;
        let (pay, by) = (KindName::parse("pay")?, Actor::new("ops"));
        engine.change_kind(&pay, &KindChange::Reset, &by).await?;
        let id = engine.submit_raw("pay", b"bank".to_vec()).await?.id;
        tokio::time::sleep(seconds(3)).await;
        assert_eq!(state(&store, id).await, State::Succeeded, "{hold:?}");
        engine.shutdown(seconds(1)).await;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_was_told_to_wait_holds_the_kind() -> Tested {
    let (store, calls) = (store(), Calls::new(true));
    let kind = KindSettings { runner: RunnerKind::Worker, ..settings(Hold::Kind) };
    let builder = Engine::builder(Arc::new(store.clone()) as Arc<dyn Store>);
    let engine = builder.kind("pay", kind).start().await?;
    let pay = [KindName::parse("pay")?];
    for _ in 0..3 {
        engine.submit_raw("pay", b"bank".to_vec()).await?;
    }
    let worker = engine.worker_joins("w", WorkerOwner::NoToken).await?;
    let first = worker.claim(&pay, 1).await?.remove(0).job;
    let lease = Lease { job: first.id, fence: first.fence };
    worker
        .settle(vec![WorkerResult {
            lease,
            report: refused(WAIT),
            took: seconds(1),
            follow_ups: Vec::new(),
            result: None,
            code: None,
        }])
        .await?;
    assert!(worker.claim(&pay, 5).await?.is_empty(), "at once, before the store knows it");
    tokio::time::sleep(WAIT / 2).await;
    // The lease of the first worker has ended.
    let worker = engine.worker_joins("w", WorkerOwner::NoToken).await?;
    assert!(worker.claim(&pay, 5).await?.is_empty());
    tokio::time::sleep(WAIT / 2 + seconds(5)).await;
    let worker = engine.worker_joins("w", WorkerOwner::NoToken).await?;
    assert_eq!(worker.claim(&pay, 5).await?.len(), 1, "a probe");
    assert!(calls.of("bank").is_empty());
    engine.shutdown(seconds(1)).await;
    Ok(())
}
