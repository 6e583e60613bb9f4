//! Tests the responses while there is no engine, or no store.

use super::router;
use crate::app::App;
use crate::config::Config;
use axum::body::Body;
use axum::http::{Method, Request};
use rewheel::{Clock, millis, seconds};
use rewheel_core::Report;
use rewheel_engine::{Engine, KindSettings};
use rewheel_stores::{MemoryStore, connect};
use rewheel_testkit::{Fault, FaultyStore, Verb};
use serde_json::Value;
use std::sync::{Arc, Mutex};
use tower::ServiceExt;

async fn ask(app: &Arc<App>, method: Method, path: &str) -> (u16, Option<String>, Value) {
    send(app, method, path, "{}").await
}

async fn send(
    app: &Arc<App>,
    method: Method,
    path: &str,
    body: &'static str,
) -> (u16, Option<String>, Value) {
    let request = Request::builder().method(method).uri(path).body(Body::from(body)).unwrap();
    let response = router(Arc::clone(app)).oneshot(request).await.unwrap();
    let status = response.status().as_u16();
    let wait = response.headers().get("retry-after").map(|wait| wait.to_str().unwrap().to_owned());
    let body = axum::body::to_bytes(response.into_body(), 100_000).await.unwrap();
    (status, wait, serde_json::from_slice(&body).unwrap())
}

async fn started() -> (Arc<App>, Engine) {
    let app = Arc::new(App::new(Config::default()));
    let engine = Engine::builder(connect("memory://").await.unwrap()).start().await.unwrap();
    app.started(engine.clone());
    (app, engine)
}

#[tokio::test]
async fn a_server_that_starts_is_live_but_not_ready() {
    let app = Arc::new(App::new(Config::default()));
    assert_eq!(ask(&app, Method::GET, "/livez").await.0, 200);
    for (method, path) in [
        (Method::GET, "/readyz"),
        (Method::GET, "/v1/jobs"),
        (Method::POST, "/v1/jobs"),
        (Method::POST, "/v1/jobs/batch"),
        (Method::GET, "/v1/kinds"),
        (Method::PUT, "/v1/kinds/a"),
    ] {
        let (status, wait, body) = ask(&app, method, path).await;
        assert_eq!((status, wait.as_deref()), (503, Some("1")), "{path}");
        assert_eq!(body["detail"], "the server is starting", "{path}");
    }
}

#[tokio::test]
async fn a_server_that_ends_takes_nothing_but_shows_what_there_is() {
    let (app, _engine) = started().await;
    assert_eq!(ask(&app, Method::GET, "/readyz").await.0, 200);
    app.stop();
    for (method, path) in [
        (Method::GET, "/readyz"),
        (Method::POST, "/v1/jobs"),
        (Method::POST, "/v1/jobs/batch"),
        (Method::PUT, "/v1/kinds/a"),
    ] {
        let (status, wait, body) = ask(&app, method, path).await;
        assert_eq!((status, wait.is_some()), (503, true), "{path}");
        assert_eq!(body["code"], "shutting_down", "{path}");
    }
    assert_eq!(ask(&app, Method::GET, "/v1/jobs").await.0, 200);
    assert_eq!(ask(&app, Method::GET, "/livez").await.0, 200);
}

#[tokio::test]
async fn a_server_without_its_store_is_live_but_not_ready() {
    let (app, engine) = started().await;
    engine.store().close().await.unwrap();
    assert_eq!(ask(&app, Method::GET, "/livez").await.0, 200);
    for path in ["/readyz", "/v1/jobs", "/v1/kinds"] {
        let (status, wait, body) = ask(&app, Method::GET, path).await;
        assert_eq!((status, wait.as_deref()), (503, Some("1")), "{path}");
        assert_eq!(body["code"], "store_unavailable", "{path}");
    }
}

/// A server on a store with injected faults.
async fn over(store: FaultyStore) -> Arc<App> {
    let app = Arc::new(App::new(Config::default()));
    let engine = Engine::builder(Arc::new(store))
        .kind("work", KindSettings::default())
        .raw_handler("work", |_| async { Report::Done })
        .start();
    app.started(engine.await.unwrap());
    app
}

#[tokio::test(start_paused = true)]
async fn a_server_whose_store_is_away_says_so_quickly_until_it_is_back() {
    for (fault, limit) in [(Fault::Before, millis(300)), (Fault::NoAnswer, seconds(2))] {
        let fault_now = Arc::new(Mutex::new(None));
        let weather = Arc::clone(&fault_now);
        let app = over(FaultyStore::with_faults(Arc::new(MemoryStore::new()), move |_verb| {
            let fault = *weather.lock().unwrap();
            Box::pin(async move { fault })
        }))
        .await;
        assert_eq!(ask(&app, Method::GET, "/readyz").await.0, 200);
        *fault_now.lock().unwrap() = Some(fault);
        for _ in 0..100 {
            let asked = Clock::system().now();
            let (status, wait, body) = ask(&app, Method::GET, "/readyz").await;
            assert_eq!((status, wait.as_deref()), (503, Some("1")), "{body}");
            let took = Clock::system().now().since(asked);
            assert!(took <= limit + millis(5), "{took:?}");
            tokio::time::sleep(millis(500)).await;
        }
        if fault == Fault::Before {
            let (_, _, body) = ask(&app, Method::GET, "/v1/jobs").await;
            let detail = body["detail"].as_str().unwrap();
            assert!(detail.contains("no call to the store succeeded for 5"), "{detail}");
            assert_eq!(body["hint"], "nothing was stored; send the request again in a moment");
        }
        *fault_now.lock().unwrap() = None;
        tokio::time::sleep(seconds(2)).await;
        assert_eq!(ask(&app, Method::GET, "/readyz").await.0, 200);
    }
}

#[tokio::test(start_paused = true)]
async fn a_submit_whose_answer_was_lost_is_created_once() {
    let store = FaultyStore::new(Arc::new(MemoryStore::new()));
    store.fail_next(Verb::Insert, Fault::After);
    let app = over(store).await;
    let body = r#"{"kind":"work","payload":{}}"#;
    let (status, _, job) = send(&app, Method::POST, "/v1/jobs", body).await;
    assert_eq!((status, &job["duplicate"]), (201, &Value::Bool(false)), "{job}");
    let (_, _, page) = ask(&app, Method::GET, "/v1/jobs").await;
    assert_eq!(page["items"].as_array().unwrap().len(), 1);
}
