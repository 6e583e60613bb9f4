//! What is answered while there is no engine, or no store.

use super::router;
use crate::app::App;
use crate::config::Config;
use axum::body::Body;
use axum::http::{Method, Request};
use rewheel_engine::Engine;
use rewheel_stores::connect;
use serde_json::Value;
use std::sync::Arc;
use tower::ServiceExt;

async fn ask(app: &Arc<App>, method: Method, path: &str) -> (u16, Option<String>, Value) {
    let request = Request::builder().method(method).uri(path).body(Body::from("{}")).unwrap();
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
