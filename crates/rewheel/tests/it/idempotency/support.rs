//! A test app that counts its charges.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request, Response, StatusCode};
use axum::response::IntoResponse;
use axum::routing::{get, post};
use rewheel::axum::IdempotencyLayer;
use rewheel::idempotency::{Fingerprint, Idempotency, IdempotencyKey};
use rewheel::{ManualClock, MemoryIdempotency};
use std::future::{Future, Ready, ready};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tower::ServiceExt;

/// A response, read to its end.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Said {
    pub(crate) async fn of(response: Response<Body>) -> Said {
        let (parts, body) = response.into_parts();
        let body = to_bytes(body, usize::MAX).await.expect("a body");
        let body = String::from_utf8(body.to_vec()).expect("text");
        Said { status: parts.status, headers: parts.headers, body }
    }

    pub(crate) fn is_replayed(&self) -> bool {
        self.headers.contains_key("idempotent-replayed")
    }

    /// Returns status and code of a problem, and checks its other fields.
    #[track_caller]
    pub(crate) fn problem(&self) -> (u16, String) {
        assert_eq!(self.headers["content-type"], "application/problem+json", "{self:?}");
        let problem: serde_json::Value = serde_json::from_str(&self.body).expect("JSON");
        let code = problem["code"].as_str().expect("a code").to_owned();
        assert_eq!(problem["type"], format!("urn:rewheel:problem:{code}"));
        assert_eq!(problem["status"], self.status.as_u16());
        assert!(problem["title"].is_string() && problem["detail"].is_string(), "{problem}");
        (self.status.as_u16(), code)
    }
}

/// A handler that counts how often it runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Count(Arc<AtomicU32>);

impl Count {
    pub(crate) fn up(&self) -> u32 {
        self.0.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// A handler that receives the number of its run.
    pub(crate) fn then<Fut>(
        &self,
        answer: impl Fn(u32) -> Fut + Clone + Send + Sync + 'static,
    ) -> impl Fn() -> Fut + Clone + Send + Sync + 'static {
        let count = self.clone();
        move || answer(count.up())
    }

    /// A handler that responds with the number of its run.
    pub(crate) fn told(&self) -> impl Fn() -> Ready<String> + Clone + Send + Sync + 'static {
        self.then(|number| ready(number.to_string()))
    }

    pub(crate) fn get(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }
}

/// A store with free space, and its clock.
pub(crate) fn store() -> (MemoryIdempotency, ManualClock) {
    let clock = ManualClock::new();
    (MemoryIdempotency::new(10_000, 1 << 24).clock(&clock), clock)
}

pub(crate) fn idempotency() -> Idempotency {
    Idempotency::new(store().0)
}

/// Separates callers by a header.
pub(crate) fn layer(idempotency: &Idempotency) -> IdempotencyLayer {
    IdempotencyLayer::per_caller(idempotency, |parts| {
        let account = parts.headers.get("x-account").and_then(|account| account.to_str().ok());
        account.unwrap_or_default().to_owned()
    })
}

/// An app with one handler for all methods that change something, under a layer.
pub(crate) fn app<F, Fut, R>(layer: IdempotencyLayer, handler: F) -> Router
where
    F: Fn() -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = R> + Send + 'static,
    R: IntoResponse + 'static,
{
    let change = post(handler.clone()).put(handler.clone()).delete(handler.clone());
    let change = change.merge(get(handler));
    Router::new().route("/charges", change.clone()).route("/refunds", change).layer(layer)
}

/// A charge with a key.
pub(crate) fn charge(key: &str) -> Request<Body> {
    let request = Request::post("/charges").header("x-account", "acme");
    request.header("idempotency-key", key).body(Body::from("4200")).expect("a request")
}

pub(crate) async fn send(app: &Router, request: Request<Body>) -> Said {
    Said::of(app.clone().oneshot(request).await.expect("infallible")).await
}

/// Lets all ready tasks run.
pub(crate) async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

pub(crate) fn key(key: &str) -> IdempotencyKey {
    IdempotencyKey::new("acme", key).expect("a key")
}

pub(crate) fn charged() -> Fingerprint {
    Fingerprint::of(&[b"charge"])
}
