//! Server layers on a real server, and the client layer with bodies of any length.

#![expect(clippy::unwrap_used, reason = "test code")]

use crate::net::Server;
use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::http::{Request, Response, StatusCode};
use axum::routing::get;
use rewheel::http::{
    AtDeadline, CallContextLayer, HttpPipelineLayer, RateLimitLayer, Repeatable, ShedLayer,
};
use rewheel::{
    AdaptiveLimit, Bulkhead, CallContext, ManualClock, Pipeline, RateLimiter, Retries, Retry,
    millis, seconds,
};
use std::convert::Infallible;
use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;
use tokio::sync::Notify;
use tower::{ServiceBuilder, ServiceExt, service_fn};

fn with_context(context: CallContext) -> Request<Body> {
    let mut request = Request::get("/");
    for (name, value) in context.headers() {
        request = request.header(name, value);
    }
    request.body(Body::empty()).unwrap()
}

fn unreachable_handler() {
    panic!("the handler ran")
}

async fn problem(response: Response<Body>) -> (u16, String) {
    let status = response.status().as_u16();
    let body = to_bytes(response.into_body(), 10_000).await.unwrap();
    let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(body["status"], status);
    (status, body["code"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn a_request_after_its_deadline_does_not_start() {
    let app = Router::new()
        .route("/", get(|| async { unreachable_handler() }))
        .layer(CallContextLayer::new());
    let late = CallContext::new(1, Retries::Callee).with_deadline(SystemTime::UNIX_EPOCH);
    let response = app.oneshot(with_context(late)).await.unwrap();
    assert_eq!(problem(response).await, (504, "deadline_passed".to_owned()));
}

/// A deadline in the year 2096.
fn in_time() -> CallContext {
    let deadline = SystemTime::UNIX_EPOCH + seconds(4_000_000_000);
    CallContext::new(2, Retries::Caller).with_deadline(deadline)
}

#[tokio::test]
async fn a_request_that_runs_at_its_deadline_is_stopped() {
    let (clock, started) = (ManualClock::new(), Arc::new(Notify::new()));
    let signal = Arc::clone(&started);
    let handler = async move || {
        signal.notify_one();
        pending::<()>().await;
    };
    let layer = CallContextLayer::new().clock(&clock);
    let app = Router::new().route("/", get(handler)).layer(layer);
    let time = async {
        started.notified().await;
        clock.advance(seconds(4_000_000_000));
    };
    let (response, ()) = tokio::join!(app.oneshot(with_context(in_time())), time);
    assert_eq!(problem(response.unwrap()).await, (504, "deadline_passed".to_owned()));
}

#[tokio::test]
async fn a_request_may_finish_after_its_deadline_if_the_layer_says_so() {
    let (clock, started) = (ManualClock::new(), Arc::new(Notify::new()));
    let (signal, late) = (Arc::clone(&started), Arc::new(Notify::new()));
    let go_on = Arc::clone(&late);
    let handler = async move || {
        signal.notify_one();
        go_on.notified().await;
    };
    let layer = CallContextLayer::new().clock(&clock).at_deadline(AtDeadline::Finish);
    let app = Router::new().route("/", get(handler)).layer(layer);
    let time = async {
        started.notified().await;
        clock.advance(seconds(4_000_000_000));
        late.notify_one();
    };
    let (response, ()) = tokio::join!(app.oneshot(with_context(in_time())), time);
    assert_eq!(response.unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn the_handler_knows_its_context_and_a_request_without_one_is_not_changed() {
    let show = || async { format!("{:?}", CallContext::current().map(|own| own.attempt())) };
    let app = Router::new().route("/", get(show)).layer(CallContextLayer::new());
    let server = Server::start(app).await;
    let client = reqwest_free_get(&server, "rewheel-attempt: 7\r\n").await;
    assert!(client.ends_with("Some(7)"), "{client}");
    let client = reqwest_free_get(&server, "rewheel-attempt: seven\r\n").await;
    assert!(client.ends_with("None"), "{client}");
}

/// Sends a request by hand: this test needs no client.
async fn reqwest_free_get(server: &Server, headers: &str) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect(server.address).await.unwrap();
    let request = format!("GET / HTTP/1.1\r\nhost: test\r\nconnection: close\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    response
}

#[tokio::test]
async fn each_key_has_a_rate_of_its_own() {
    let clock = ManualClock::new();
    let limits = RateLimiter::per(1, seconds(90)).burst(1).clock(&clock).keyed::<String>(100);
    let key = |parts: &axum::http::request::Parts| parts.uri.query().unwrap_or("").to_owned();
    let app = Router::new().route("/", get(|| async {})).layer(RateLimitLayer::new(&limits, key));
    let get = |uri: &str| app.clone().oneshot(Request::get(uri).body(Body::empty()).unwrap());

    assert_eq!(get("/?a").await.unwrap().status(), StatusCode::OK);
    clock.advance(millis(500));
    let rejected = get("/?a").await.unwrap();
    assert_eq!(rejected.headers()["retry-after"], "90", "not earlier than the limit allows");
    assert_eq!(problem(rejected).await, (429, "rate_limited".to_owned()));
    assert_eq!(get("/?b").await.unwrap().status(), StatusCode::OK);
    clock.advance(seconds(90));
    assert_eq!(get("/?a").await.unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn requests_above_the_limit_are_shed_and_slots_come_back() {
    let slots = Bulkhead::concurrency(1).build();
    let started = Arc::new(Notify::new());
    let signal = Arc::clone(&started);
    let handler = async move || {
        signal.notify_one();
        pending::<()>().await;
    };
    let app = Router::new()
        .route("/hang", get(handler))
        .route("/", get(|| async {}))
        .layer(ShedLayer::new(&slots).retry_after(seconds(3)));
    let get = |uri: &str| app.clone().oneshot(Request::get(uri).body(Body::empty()).unwrap());

    {
        let mut hanging = std::pin::pin!(get("/hang"));
        tokio::select! {
            _ = &mut hanging => panic!("the request hangs"),
            () = started.notified() => {}
        }
        let shed = get("/").await.unwrap();
        assert_eq!(shed.headers()["retry-after"], "3");
        assert_eq!(problem(shed).await, (503, "overloaded".to_owned()));
    }
    assert_eq!(slots.free(), 1, "a request that is dropped keeps its slot");
    assert_eq!(get("/").await.unwrap().status(), StatusCode::OK);
}

/// Returns the limit of a server after many requests, one at a time, that it answers with this status.
async fn limit_after(status: u16) -> usize {
    let clock = ManualClock::new();
    let slots = AdaptiveLimit::between(1, 2).initial(2).clock(&clock).build();
    let handler = async move || {
        clock.advance(millis(20));
        StatusCode::from_u16(status).unwrap()
    };
    let app = Router::new().route("/", get(handler)).layer(ShedLayer::adaptive(&slots));
    let server = Server::start(app).await;
    for _ in 0..60 {
        let response = reqwest_free_get(&server, "").await;
        assert!(response.starts_with(&format!("HTTP/1.1 {status} ")), "{response}");
    }
    assert_eq!(slots.in_use(), 0);
    slots.limit()
}

#[tokio::test]
async fn statuses_that_mean_too_much_load_lower_an_adaptive_limit() {
    for (status, limit) in [(200, 2), (404, 2), (429, 2), (500, 2), (503, 1), (504, 1)] {
        assert_eq!(limit_after(status).await, limit, "{status}");
    }
}

#[tokio::test]
async fn requests_above_an_adaptive_limit_are_shed_and_slots_come_back() {
    let slots = AdaptiveLimit::between(1, 1).build();
    let (started, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (signal, wait) = (Arc::clone(&started), Arc::clone(&go_on));
    let handler = async move || {
        signal.notify_one();
        wait.notified().await;
    };
    let app = Router::new()
        .route("/slow", get(handler))
        .route("/", get(|| async {}))
        .layer(ShedLayer::adaptive(&slots));
    let get = |uri: &str| app.clone().oneshot(Request::get(uri).body(Body::empty()).unwrap());
    {
        let mut slow = std::pin::pin!(get("/slow"));
        tokio::select! {
            _ = &mut slow => panic!("the request waits"),
            () = started.notified() => {}
        }
        let shed = get("/").await.unwrap();
        assert_eq!(shed.headers()["retry-after"], "1");
        assert_eq!(problem(shed).await, (503, "overloaded".to_owned()));
    }
    assert_eq!((slots.in_use(), slots.baseline()), (0, None), "a dropped request does not count");
    assert_eq!(get("/").await.unwrap().status(), StatusCode::OK);
}

/// Sends a request to a service that always answers 503; returns the bodies that it got.
async fn bodies_sent(request: Request<Body>, repeatable: Repeatable) -> Vec<Bytes> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let bodies = Arc::clone(&seen);
    let service = service_fn(move |request: Request<Body>| {
        let bodies = Arc::clone(&bodies);
        async move {
            let body = to_bytes(request.into_body(), usize::MAX).await.unwrap();
            bodies.lock().unwrap().push(body);
            let response = Response::builder().status(503).body(Body::empty()).unwrap();
            Ok::<_, Infallible>(response)
        }
    });
    let policies = Pipeline::new().retry(Retry::fixed(millis(1)).attempts_max(3));
    let layer = HttpPipelineLayer::new(&policies).body_bytes_max(10).repeatable(repeatable);
    let client = ServiceBuilder::new().layer(layer).service(service);
    assert_eq!(client.oneshot(request).await.unwrap().status(), 503);
    std::mem::take(&mut *seen.lock().unwrap())
}

/// A body whose length is not known before it is read.
fn stream(pieces: &[&'static str]) -> Body {
    let pieces: Vec<_> = pieces.iter().map(|piece| Ok::<_, Infallible>(*piece)).collect();
    Body::from_stream(futures_util::stream::iter(pieces))
}

#[tokio::test]
async fn a_body_up_to_the_limit_is_sent_with_each_attempt() {
    for body in [Body::from("0123456789"), stream(&["01234", "56789"])] {
        let request = Request::put("/").body(body).unwrap();
        assert_eq!(bodies_sent(request, Repeatable::Idempotent).await, ["0123456789"; 3]);
    }
}

#[tokio::test]
async fn a_longer_body_arrives_whole_and_once() {
    for body in [Body::from("0123456789a"), stream(&["0123456789", "a", "b"])] {
        let request = Request::put("/").body(body).unwrap();
        let sent = bodies_sent(request, Repeatable::Idempotent).await;
        assert_eq!(sent.len(), 1);
        assert!(sent[0].starts_with(b"0123456789a"), "{sent:?}");
    }
}

#[tokio::test]
async fn a_post_is_repeated_only_with_a_key_or_if_the_layer_says_so() {
    let post = || Request::post("/");
    let plain = post().body(Body::from("x")).unwrap();
    assert_eq!(bodies_sent(plain, Repeatable::Idempotent).await.len(), 1);
    let with_key = post().header("idempotency-key", "7").body(Body::from("x")).unwrap();
    assert_eq!(bodies_sent(with_key, Repeatable::Idempotent).await.len(), 3);
    let plain = post().body(Body::from("x")).unwrap();
    assert_eq!(bodies_sent(plain, Repeatable::All).await.len(), 3);
}
