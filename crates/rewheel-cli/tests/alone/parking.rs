//! Tests which nodes stop claiming a kind during an outage, and how they resume it.

#![expect(clippy::disallowed_methods, reason = "a test of real processes, in real time")]

use crate::fleet::{Fleet, PATIENCE, until};
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use rewheel::{Category, Verdict, millis, seconds};
use rewheel_core::store::Store;
use rewheel_core::{Failure, Report};
use rewheel_engine::{BreakerSettings, Engine, EngineSettings, KindSettings};
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

const LEASE_TTL: Duration = seconds(3);

/// Starts one of three engines: `calls` counts its attempts, all of which fail if its network is broken.
async fn engine(
    store: &Arc<dyn Store>,
    name: &str,
    is_broken: bool,
    calls: &Arc<AtomicUsize>,
) -> Engine {
    let calls = Arc::clone(calls);
    let breaker = BreakerSettings { window: 10, open_for: seconds(2), failure_ratio: 0.5 };
    let charge =
        KindSettings { attempts_max: 100, breaker: Some(breaker), ..KindSettings::default() };
    let settings =
        EngineSettings { name: name.to_owned(), concurrency: 20, ..EngineSettings::default() };
    Engine::builder(Arc::clone(store))
        .settings(settings)
        .kind("charge", charge)
        .raw_handler("charge", move |_| {
            calls.fetch_add(1, Ordering::SeqCst);
            async move {
                tokio::time::sleep(millis(20)).await;
                if !is_broken {
                    return Report::Done;
                }
                let failure = Failure::new(Category::Io, Some("ENETUNREACH"), "no route to host");
                Report::AttemptFailed { verdict: Verdict::Retry, failure }
            }
        })
        .start()
        .await
        .unwrap()
}

/// All jobs are submitted to the engine with the broken network, so that it tries as many as it can.
async fn one_of_three_is_broken(store: Arc<dyn Store>) {
    let (bad, good) = (Arc::default(), Arc::default());
    let broken = engine(&store, "broken", true, &bad).await;
    let others = [engine(&store, "a", false, &good).await, engine(&store, "b", false, &good).await];
    let (mut submitted, began) = (0, Instant::now());
    for _ in 0..20 {
        for _ in 0..15 {
            broken.submit_raw("charge", Vec::new()).await.unwrap();
            submitted += 1;
        }
        tokio::time::sleep(millis(250)).await;
        let kinds = store.kinds().await.unwrap();
        assert!(kinds.iter().all(|kind| kind.parked.is_none()), "{kinds:?}");
    }
    until("all are done", async || store.books().await.unwrap().live == 0).await;
    let took = began.elapsed();
    // Its own breaker blocks most of them: only a few probes each time it opens.
    let (bad, good) = (bad.load(Ordering::SeqCst), good.load(Ordering::SeqCst));
    // The rounds take five seconds, or longer on a slow machine: then the breaker opens more often.
    let fives = usize::try_from(took.as_secs() / 5).unwrap();
    assert!((10..100 * (fives + 1)).contains(&bad), "{bad} of its attempts failed in {took:?}");
    assert!(good >= submitted, "{good} of {submitted} were done by the others");
    let log = store.audit(None, None, 1_000).await.unwrap();
    assert!(
        log.iter().any(|entry| entry.what == "suspect kind"),
        "the node reported nothing: {log:?}"
    );
    for engine in others.into_iter().chain([broken]) {
        engine.shutdown(seconds(5)).await;
    }
    store.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_holder_whose_network_is_broken_parks_nothing_for_the_others_on_sqlite() {
    let _alone = crate::alone().await;
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}", folder.path().join("parking.db").display());
    one_of_three_is_broken(rewheel_stores::connect(&url).await.unwrap()).await;
}

#[cfg(feature = "test-postgres")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_holder_whose_network_is_broken_parks_nothing_for_the_others_on_postgres() {
    let _alone = crate::alone().await;
    let schema = rewheel_testkit::Schema::fresh();
    one_of_three_is_broken(rewheel_stores::connect(schema.url()).await.unwrap()).await;
}

/// The behaviour of the dependency.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    Down,
    /// Keeps callers waiting.
    Silent,
    Up,
}

/// The dependency of the nodes' callbacks.
struct Dependency {
    url: String,
    mode: Arc<Mutex<Mode>>,
    /// The calling node and the time of each call.
    calls: mpsc::UnboundedReceiver<(String, Instant)>,
    _serving: JoinSet<()>,
}

#[derive(Clone)]
struct Door {
    mode: Arc<Mutex<Mode>>,
    calls: mpsc::UnboundedSender<(String, Instant)>,
}

impl Dependency {
    async fn start() -> Dependency {
        let mode = Arc::new(Mutex::new(Mode::Down));
        let (seen, calls) = mpsc::unbounded_channel();
        let door = Door { mode: Arc::clone(&mode), calls: seen };
        let app = Router::new().route("/", post(called).with_state(door));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let mut serving = JoinSet::new();
        serving.spawn(async move { axum::serve(listener, app).await.unwrap() });
        Dependency { url, mode, calls, _serving: serving }
    }

    fn set(&self, mode: Mode) {
        *self.mode.lock().unwrap() = mode;
    }

    /// Returns the next caller, and the time of the call.
    async fn next(&mut self) -> (String, Instant) {
        tokio::time::timeout(PATIENCE, self.calls.recv()).await.expect("no call arrived").unwrap()
    }

    /// Waits until there were no calls for a while: attempts from before the kind was parked are over.
    async fn quiet(&mut self) {
        while tokio::time::timeout(seconds(1), self.calls.recv()).await.is_ok() {}
    }

    fn config(&self, store: &str) -> String {
        let (url, ttl) = (&self.url, LEASE_TTL.as_secs());
        format!(
            r#"
            [store]
            url = "{store}"
            [engine]
            lease_ttl = "{ttl}s"
            housekeeping = "500ms"
            [kinds.charge]
            runner = "callback"
            attempts_max = 1000
            breaker = {{ window = 10, failure_ratio = 0.5, open_for = "2s" }}
            [kinds.charge.callback]
            url = "{url}"
            allow = ["127.0.0.0/8"]
            headers = {{ x-node = "${{NODE}}" }}
            "#
        )
    }
}

async fn called(State(door): State<Door>, headers: HeaderMap) -> StatusCode {
    let node = headers["x-node"].to_str().unwrap().to_owned();
    let mode = *door.mode.lock().unwrap();
    door.calls.send((node, Instant::now())).unwrap();
    match mode {
        Mode::Down => StatusCode::SERVICE_UNAVAILABLE,
        Mode::Silent => std::future::pending().await,
        Mode::Up => StatusCode::OK,
    }
}

#[expect(clippy::print_stdout, reason = "prints the measurement")]
async fn the_prober_is_killed(store: &str, nodes: usize) {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("rewheel.toml");
    let mut dependency = Dependency::start().await;
    std::fs::write(&config, dependency.config(store)).unwrap();
    let starting = Instant::now();
    let mut fleet = Fleet::start(&config, nodes).await;
    let control = starting.elapsed();
    let job = json!({"kind": "charge", "payload": {}});
    fleet.post("/v1/jobs/batch", json!({"jobs": vec![job; 100]})).await;
    until("it is parked", async || fleet.kind("charge").await["parked"] == true).await;
    dependency.quiet().await;

    dependency.set(Mode::Silent);
    let (prober, _) = dependency.next().await;
    dependency.set(Mode::Up);
    let killed = Instant::now();
    fleet.kill(&prober).await;
    let (other, at) = dependency.next().await;
    let waited = at - killed;
    println!("{prober} was killed, {other} probed {waited:?} later");
    assert_ne!(other, prober);
    // The holder expires after one lease duration of silence, not earlier. The rest may take at most another lease duration, plus the
    // time this machine needs to start nodes.
    assert!(waited < 2 * LEASE_TTL + 10 * control, "{waited:?}; nodes started in {control:?}");
    until("it is not parked", async || fleet.kind("charge").await["parked"] == false).await;
    until("all are done", async || {
        let list = fleet.get("/v1/jobs?state=succeeded&limit=1000").await;
        list["items"].as_array().unwrap().len() == 100
    })
    .await;
    fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_prober_is_killed_and_another_probes_within_a_lease_life_on_sqlite() {
    let _alone = crate::alone().await;
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}", folder.path().join("parking.db").display());
    // A file has one node at a time: the other node is the one started in its place.
    the_prober_is_killed(&url, 1).await;
}

#[cfg(feature = "test-postgres")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_prober_is_killed_and_another_probes_within_a_lease_life_on_postgres() {
    let _alone = crate::alone().await;
    let schema = rewheel_testkit::Schema::fresh();
    the_prober_is_killed(schema.url(), 3).await;
}
