//! Tests callbacks with several URLs against real HTTP servers on this machine.

use axum::Router;
use axum::http::StatusCode;
use rewheel::{Backoff, Category, millis, seconds};
use rewheel_core::store::{ReadStore, Store};
use rewheel_core::{Job, JobId, State};
use rewheel_engine::{BreakerSettings, Engine, KindSettings, RunnerKind};
use rewheel_server::callback::{Callback, CallbackRunner, Clients};
use rewheel_stores::MemoryStore;
use serde_json::json;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// A server that counts calls, and responds as it is told.
struct Callee {
    address: SocketAddr,
    status: Arc<AtomicU16>,
    calls: Arc<AtomicUsize>,
    _serving: JoinSet<()>,
}

impl Callee {
    async fn answering(status: u16) -> Callee {
        let (status, calls) = (Arc::new(AtomicU16::new(status)), Arc::new(AtomicUsize::new(0)));
        let handler = {
            let (status, calls) = (Arc::clone(&status), Arc::clone(&calls));
            move || async move {
                calls.fetch_add(1, Ordering::SeqCst);
                StatusCode::from_u16(status.load(Ordering::SeqCst)).unwrap()
            }
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            axum::serve(listener, Router::new().fallback(handler)).await.unwrap();
        });
        Callee { address, status, calls, _serving: serving }
    }

    fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    fn turn(&self, status: u16) {
        self.status.store(status, Ordering::SeqCst);
    }
}

/// An engine whose jobs go to the first callee, or else to the second.
struct Shop {
    store: MemoryStore,
    engine: Engine,
}

impl Shop {
    async fn open(first: &Callee, second: &Callee, breaker: Option<BreakerSettings>) -> Shop {
        let callback =
            json!({"url": first.url(), "failover": [second.url()], "allow": ["127.0.0.0/8"]});
        let settings = KindSettings {
            runner: RunnerKind::Callback,
            callback: Some(callback),
            attempts_max: 50,
            backoff: Backoff::fixed(millis(10)),
            breaker,
            ..KindSettings::default()
        };
        let (store, clients) = (MemoryStore::new(), Clients::new());
        let runners = move |kind: &_, settings: &KindSettings| {
            let callback = Callback::parse(settings.callback.as_ref()?).ok()?;
            let runner = CallbackRunner::new(Clone::clone(kind), callback, &clients).ok()?;
            Some(Arc::new(runner) as Arc<dyn rewheel_engine::Runner>)
        };
        let engine = Engine::builder(Arc::new(store.clone()) as Arc<dyn Store>)
            .kind("hook", settings)
            .runners(runners)
            .start()
            .await
            .unwrap();
        Shop { store, engine }
    }

    async fn submit(&self) -> JobId {
        self.engine.submit_raw("hook", b"{}".to_vec()).await.unwrap().id
    }

    /// Polls a job until a condition holds.
    async fn job_when(&self, id: JobId, is_right: impl Fn(&Job) -> bool) -> Job {
        let waiting = async {
            loop {
                let job = self.store.get(id).await.unwrap().unwrap();
                if is_right(&job) {
                    return job;
                }
                tokio::time::sleep(millis(2)).await;
            }
        };
        tokio::time::timeout(seconds(120), waiting).await.expect("in time")
    }

    async fn run(&self) -> Job {
        let id = self.submit().await;
        self.job_when(id, |job| job.state() == State::Succeeded).await
    }
}

fn breaker(open_for: Duration) -> Option<BreakerSettings> {
    Some(BreakerSettings { window: 4, failure_ratio: 0.5, open_for })
}

#[tokio::test]
async fn an_attempt_that_failed_is_followed_by_one_elsewhere() {
    let (first, second) = (Callee::answering(503).await, Callee::answering(200).await);
    let shop = Shop::open(&first, &second, None).await;
    let job = shop.run().await;
    assert_eq!((job.attempt, first.calls(), second.calls()), (2, 1, 1));
    let records = shop.store.attempts(job.id).await.unwrap();
    let message = records[0].failure().expect("it failed").message().to_owned();
    assert_eq!(message, format!("http://{}: 503 Service Unavailable", first.address));
}

#[tokio::test]
async fn who_rejects_a_job_is_not_appealed_against() {
    let (first, second) = (Callee::answering(422).await, Callee::answering(200).await);
    let shop = Shop::open(&first, &second, None).await;
    let id = shop.submit().await;
    shop.job_when(id, |job| job.state() == State::Dead).await;
    assert_eq!((first.calls(), second.calls()), (1, 0));
}

#[tokio::test]
async fn one_that_is_down_is_passed_over_until_it_is_back() {
    let (first, second) = (Callee::answering(503).await, Callee::answering(200).await);
    let shop = Shop::open(&first, &second, breaker(millis(300))).await;
    for _ in 0..4 {
        shop.run().await;
    }
    // Its breaker is open: jobs go to the other callee with their first attempt.
    let before = first.calls();
    let attempts: Vec<u32> = {
        let mut attempts = Vec::new();
        for _ in 0..10 {
            attempts.push(shop.run().await.attempt);
        }
        attempts
    };
    let probes = first.calls() - before;
    assert!(attempts.iter().filter(|attempt| **attempt > 1).count() <= probes, "{attempts:?}");
    assert!(probes <= 3, "{probes} calls of one that is down");

    first.turn(200);
    let back = async {
        while first.calls() < before + 10 {
            shop.run().await;
        }
    };
    tokio::time::timeout(seconds(120), back).await.expect("it is never taken up again");
}

#[tokio::test]
async fn without_a_breaker_of_the_kind_each_url_has_one_too() {
    let (first, second) = (Callee::answering(503).await, Callee::answering(200).await);
    let shop = Shop::open(&first, &second, None).await;
    for _ in 0..60 {
        shop.run().await;
    }
    // The breaker opens after twenty attempts, see `BreakerSettings::default`.
    assert!(first.calls() <= 21, "{} calls of one that is down", first.calls());
}

#[tokio::test]
async fn while_all_are_down_no_attempts_are_used_up() {
    let (first, second) = (Callee::answering(503).await, Callee::answering(503).await);
    let shop = Shop::open(&first, &second, breaker(seconds(600))).await;
    let id = shop.submit().await;
    let is_left_alone = |job: &Job| {
        let failure = job.failure.as_ref();
        failure.is_some_and(|failure| failure.category() == Category::CircuitOpen)
    };
    let job = shop.job_when(id, is_left_alone).await;
    let calls = first.calls() + second.calls();
    assert_eq!((job.attempt as usize, job.state()), (calls, State::Scheduled));
    assert!(calls <= 8, "{calls} calls");
    let mut names = [first.address.to_string(), second.address.to_string()];
    names.sort();
    let expected = format!("{} are skipped: too many attempts failed there", names.join(", "));
    assert_eq!(job.failure.unwrap().message(), expected);
}
