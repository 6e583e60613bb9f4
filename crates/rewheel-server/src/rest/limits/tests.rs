//! Tests how long a request body counts against the memory limit.

use super::super::router;
use crate::app::App;
use crate::config::{Config, PublicUrl};
use axum::body::Body;
use axum::http::{Request, StatusCode};
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::future::poll_immediate;
use rewheel::seconds;
use rewheel_core::Report;
use rewheel_engine::{Engine, KindSettings, RunnerKind};
use rewheel_stores::MemoryStore;
use rewheel_testkit::{FaultyStore, Verb};
use std::io::Write;
use std::sync::Arc;
use tokio::sync::Notify;
use tower::ServiceExt;

const MIB: usize = 1024 * 1024;

/// A server whose store inserts nothing until it is told to.
async fn slow() -> (Arc<App>, Arc<Notify>) {
    let told = Arc::new(Notify::new());
    let gate = Arc::clone(&told);
    let store = FaultyStore::with_faults(Arc::new(MemoryStore::new()), move |verb| {
        let gate = Arc::clone(&gate);
        Box::pin(async move {
            if verb == Verb::Insert {
                gate.notified().await;
            }
            None
        })
    });
    let mut config = Config::default();
    config.server.body_bytes_max = MIB;
    config.server.limits.bodies_bytes_max = 8 * MIB;
    let app = Arc::new(App::new(config));
    let worker = KindSettings { runner: RunnerKind::Worker, ..KindSettings::default() };
    let engine = Engine::builder(Arc::new(store))
        .kind("mail", KindSettings::default())
        .raw_handler("mail", |_| async { Report::Done })
        .kind("work", worker)
        .start();
    app.started(engine.await.unwrap());
    (app, told)
}

fn packed(text: &str) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(text.as_bytes()).unwrap();
    packed.finish().unwrap()
}

fn post(path: &str, coding: &str, body: Vec<u8>) -> Request<Body> {
    Request::post(path)
        .header("host", "127.0.0.1")
        .header("content-encoding", coding)
        .body(Body::from(body))
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_body_and_the_jobs_in_it_are_counted_until_they_are_stored() {
    let (app, go) = slow().await;
    let job = format!(r#"{{"kind":"mail","payload":"{}"}}"#, "x".repeat(200_000));
    let batch = format!(r#"{{"jobs":[{job},{job},{job},{job}]}}"#);
    for (path, text, counted) in [("/v1/jobs", &job, 2), ("/v1/jobs/batch", &batch, 1)] {
        for (coding, body) in [("identity", text.clone().into_bytes()), ("gzip", packed(text))] {
            let mut answer = Box::pin(router(Arc::clone(&app)).oneshot(post(path, coding, body)));
            for _ in 0..1_000 {
                let early = poll_immediate(&mut answer).await;
                assert!(early.is_none(), "{path} {coding}: {early:?}");
                if app.bodies().used() == counted * text.len() {
                    break;
                }
                tokio::task::yield_now().await;
            }
            // The store has the jobs by now and does not respond: nothing changes.
            for _ in 0..10 {
                assert!(poll_immediate(&mut answer).await.is_none());
                tokio::task::yield_now().await;
            }
            assert_eq!(app.bodies().used(), counted * text.len(), "{path} {coding}");
            go.notify_one();
            assert_eq!(answer.await.unwrap().status(), StatusCode::CREATED);
            assert_eq!(app.bodies().used(), 0, "{path} {coding}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_waits_takes_no_room() {
    let (app, _go) = slow().await;
    let claim = format!(r#"{{"kinds":["work"],"wait":"60s"{}}}"#, " ".repeat(MIB / 2));
    let answer = router(Arc::clone(&app)).oneshot(post("/v1/workers/claim", "", claim.into()));
    let mut answer = Box::pin(answer);
    assert!(tokio::time::timeout(seconds(30), &mut answer).await.is_err(), "it waits");
    assert_eq!(app.bodies().used(), 0);
    assert_eq!(answer.await.unwrap().status(), StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn small_submits_pass_while_large_bodies_fill_the_rest() {
    let (app, go) = slow().await;
    let limits = &app.config().server;
    let large = vec![b' '; limits.body_bytes_max - 1];
    let mut hostile = Vec::new();
    for _ in 0..16 {
        // The body never ends, so it is never parsed.
        let chunk = axum::body::Bytes::from(large.clone());
        let chunks = futures_util::stream::iter([Ok::<_, std::io::Error>(chunk)]);
        let body = Body::from_stream(futures_util::StreamExt::chain(
            chunks,
            futures_util::stream::pending(),
        ));
        let request = Request::post("/v1/jobs/batch").header("host", "127.0.0.1").body(body);
        let mut answer = Box::pin(router(Arc::clone(&app)).oneshot(request.unwrap()));
        for _ in 0..10 {
            if poll_immediate(&mut answer).await.is_some() {
                break;
            }
        }
        hostile.push(answer);
    }
    assert!(app.bodies().used() > limits.limits.bodies_bytes_max / 2, "they take most of it");
    let small = format!(r#"{{"kind":"mail","payload":"{}"}}"#, "x".repeat(60_000));
    go.notify_one();
    let answer = router(Arc::clone(&app)).oneshot(post("/v1/jobs", "", small.into()));
    assert_eq!(answer.await.unwrap().status(), StatusCode::CREATED);
}

#[tokio::test]
async fn health_checks_take_no_room_below_a_base_path() {
    let mut config = Config::default();
    config.server.public_url = PublicUrl::parse("https://ops.example/a/b").ok();
    config.server.limits.requests_max = 1;
    let app = Arc::new(App::new(config));
    let _room = app.request().unwrap();
    let status = async |path: &str| {
        let request = Request::get(path).header("host", "127.0.0.1").body(Body::empty()).unwrap();
        router(Arc::clone(&app)).oneshot(request).await.unwrap().status()
    };
    for prefix in ["", "/a/b"] {
        assert_eq!(status(&format!("{prefix}/livez")).await, StatusCode::OK, "{prefix}");
        let full = status(&format!("{prefix}/openapi.json")).await;
        assert_eq!(full, StatusCode::SERVICE_UNAVAILABLE, "{prefix}");
    }
}
