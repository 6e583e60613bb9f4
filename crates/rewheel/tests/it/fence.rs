//! The receiver guard on routes of axum.

#![expect(clippy::unwrap_used, reason = "test code")]

use async_trait::async_trait;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::Request;
use axum::routing::post;
use rewheel::axum::{Admitted, FenceStore, FenceStoreError, MemoryFences, fence_guard};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tower::ServiceExt;

fn app(store: impl FenceStore + 'static) -> (Router, Arc<AtomicU32>) {
    let runs = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&runs);
    let handler = async move || {
        count.fetch_add(1, Ordering::Relaxed);
    };
    (Router::new().route("/", post(handler)).layer(fence_guard(store)), runs)
}

/// Returns the status, and the code of the problem.
async fn send(app: &Router, headers: &[(&str, &str)]) -> (u16, String) {
    let mut request = Request::post("/");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = app.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    let status = response.status().as_u16();
    let body = to_bytes(response.into_body(), 10_000).await.unwrap();
    let body: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
    (status, body["code"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn an_older_attempt_does_not_run() {
    let (app, runs) = app(MemoryFences::new(10));
    let attempt =
        async |job, fence| send(&app, &[("webhook-id", job), ("rewheel-fence", fence)]).await.0;
    assert_eq!(attempt("a", "2").await, 200);
    assert_eq!(attempt("a", "1").await, 409);
    assert_eq!(attempt("a", "2").await, 200, "the request of one attempt arrived twice");
    assert_eq!(attempt("b", "1").await, 200);
    assert_eq!(runs.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn requests_without_a_fence_pass_and_wrong_ones_do_not() {
    let (app, runs) = app(MemoryFences::new(10));
    assert_eq!(send(&app, &[]).await.0, 200);
    let invalid = (400, "invalid_fence".to_owned());
    assert_eq!(send(&app, &[("rewheel-fence", "1")]).await, invalid);
    assert_eq!(send(&app, &[("rewheel-fence", "1"), ("webhook-id", "")]).await, invalid);
    for fence in ["", "-1", "1.5", "9223372036854775808", "ü"] {
        let headers = [("webhook-id", "a"), ("rewheel-fence", fence)];
        assert_eq!(send(&app, &headers).await, invalid, "{fence}");
    }
    assert_eq!(runs.load(Ordering::Relaxed), 1);
}

struct Broken;

#[async_trait]
impl FenceStore for Broken {
    async fn admit(&self, _: &str, _: u64) -> Result<Admitted, FenceStoreError> {
        Err(FenceStoreError("down".into()))
    }
}

#[tokio::test]
async fn nothing_runs_while_the_store_fails() {
    let (app, runs) = app(Broken);
    let answer = send(&app, &[("webhook-id", "a"), ("rewheel-fence", "1")]).await;
    assert_eq!(answer, (503, "fences_unavailable".to_owned()));
    assert_eq!(runs.load(Ordering::Relaxed), 0);
}
