//! Tests that a server ends with its engine.

use super::{ServeError, Server, ServerEvent, until_failure};
use crate::config::Config;
use rewheel::{CancelToken, seconds};
use rewheel_core::Report;
use rewheel_engine::Engine;
use rewheel_stores::MemoryStore;
use rewheel_testkit::{FaultyStore, Verb};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::oneshot;
use tracing::field::{Field, Visit};
use tracing_subscriber::layer::{Context, SubscriberExt as _};

#[tokio::test(start_paused = true)]
async fn a_server_ends_with_its_engine() {
    let breaks = Arc::new(AtomicBool::new(false));
    let is_broken = Arc::clone(&breaks);
    let faulty = FaultyStore::with_faults(Arc::new(MemoryStore::new()), move |verb| {
        let is_hit = verb == Verb::Lanes && is_broken.load(Ordering::SeqCst);
        Box::pin(async move {
            assert!(!is_hit, "a bug in the driver");
            None
        })
    });
    let builder = Engine::builder(Arc::new(faulty));
    let builder = builder.raw_handler("work", |_| async { Report::Done });
    let engine = builder.start().await.unwrap();
    breaks.store(true, Ordering::SeqCst);
    let failure = until_failure(&engine, std::future::pending()).await;
    assert_eq!(failure.map(|failure| failure.name), Some("claim"));
    let asked = CancelToken::new();
    asked.cancel();
    assert_eq!(until_failure(&engine, asked.cancelled()).await, None);
    engine.shutdown(seconds(1)).await;
}

/// The messages and fields of error events.
#[derive(Clone, Default)]
struct Errors(Arc<Mutex<String>>);

impl<S: tracing::Subscriber> tracing_subscriber::Layer<S> for Errors {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        if *event.metadata().level() == tracing::Level::ERROR {
            event.record(&mut self.clone());
        }
    }
}

impl Visit for Errors {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let mut text = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        text.push_str(&format!("{}={value:?} ", field.name()));
    }
}

/// A server whose settle loop panics at the first result, and whose engine then waits for `leaves` before it deregisters.
async fn run(
    server: Server,
    leaves: oneshot::Receiver<()>,
    ready: oneshot::Sender<()>,
) -> Result<(), ServeError> {
    let leaves = Arc::new(Mutex::new(Some(leaves)));
    let start = async |_: &Config, _: Option<&super::Demo>| {
        let faulty = FaultyStore::with_faults(Arc::new(MemoryStore::new()), move |verb| {
            let leaves = Arc::clone(&leaves);
            Box::pin(async move {
                assert!(verb != Verb::Settle, "a bug in the driver");
                let is_leaving = verb == Verb::Leave;
                let gate = || leaves.lock().unwrap_or_else(PoisonError::into_inner).take();
                if let Some(gate) = is_leaving.then(gate).flatten() {
                    drop(gate.await);
                }
                None
            })
        });
        let builder = Engine::builder(Arc::new(faulty));
        Ok(builder.raw_handler("work", |_| async { Report::Done }).start().await?)
    };
    let mut ready = Some(ready);
    let say = |said: &ServerEvent| {
        if let (ServerEvent::Ready(_), Some(ready)) = (said, ready.take()) {
            ready.send(()).unwrap();
        }
    };
    server.run_over(start, std::future::pending(), say).await
}

#[tokio::test]
async fn a_server_whose_engine_fails_is_unhealthy_and_ends_with_an_error() {
    let errors = Errors::default();
    let _logged =
        tracing::subscriber::set_default(tracing_subscriber::registry().with(errors.clone()));
    let mut config = Config::default();
    config.server.listen = SocketAddr::from(([127, 0, 0, 1], 0));
    let server = Server::bind(config).await.unwrap();
    let base = format!("http://{}", server.address());
    let (leave, leaves) = oneshot::channel();
    let (ready, is_ready) = oneshot::channel();
    let client = reqwest::Client::new();
    let get = async |path: &str| {
        let answer = client.get(format!("{base}{path}")).send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    };
    let asking = async {
        is_ready.await.unwrap();
        assert_eq!(get("/readyz").await.0, 200);
        assert!(get("/metrics").await.1.contains("\nrewheel_engine_failed 0\n"));
        let job = client.post(format!("{base}/v1/jobs")).body(r#"{"kind":"work","payload":{}}"#);
        assert_eq!(job.send().await.unwrap().status().as_u16(), 201);
        // Its result cannot be settled.
        let (status, body) = loop {
            let answer = get("/readyz").await;
            if answer.0 != 200 {
                break answer;
            }
        };
        assert_eq!(status, 503, "{body}");
        assert!(body.contains("the settle loop of the engine failed"), "{body}");
        let (status, body) = get("/health").await;
        assert_eq!(status, 503, "{body}");
        assert!(body.contains("the settle loop of the engine failed"), "{body}");
        assert!(get("/metrics").await.1.contains("\nrewheel_engine_failed 1\n"));
        assert_eq!(get("/livez").await.0, 200);
        leave.send(()).unwrap();
    };
    let (ran, ()) = tokio::join!(run(server, leaves, ready), asking);
    let error = ran.unwrap_err();
    assert!(matches!(&error, ServeError::Engine(failure) if failure.name == "settle"), "{error}");
    let logged = errors.0.lock().unwrap().clone();
    let (what, why) = ("engine loop failed: this engine stops", "why=\"a bug in the driver\"");
    assert!(logged.contains(what) && logged.contains(why), "{logged}");
}
