//! Tests of the health routes.

use super::{Health, HealthChecks, HealthState};
use crate::clock::ManualClock;
use crate::duration::seconds;
use ::axum::Router;
use ::axum::body::{Body, to_bytes};
use ::axum::http::Request;
use serde_json::{Value, json};
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tower::ServiceExt;

async fn get(checks: &HealthChecks, path: &str) -> (u16, Value) {
    let app: Router = checks.router();
    let response = app.oneshot(Request::get(path).body(Body::empty()).unwrap()).await.unwrap();
    let status = response.status().as_u16();
    assert_eq!(response.headers()["cache-control"], "no-store");
    let body = to_bytes(response.into_body(), 100_000).await.unwrap();
    (status, serde_json::from_slice(&body).unwrap())
}

#[tokio::test]
async fn a_service_without_parts_is_well() {
    let checks = HealthChecks::new();
    assert_eq!(get(&checks, "/livez").await, (200, json!({"live": true})));
    assert_eq!(get(&checks, "/readyz").await, (200, json!({"ready": true})));
    assert_eq!(
        get(&checks, "/health").await,
        (200, json!({"ok": true, "state": "ok", "components": {}}))
    );
}

#[tokio::test]
async fn a_part_that_is_degraded_still_serves() {
    let checks = HealthChecks::new()
        .check("store", || async { Ok::<(), String>(()) })
        .check("disk", || async { Health::degraded("3 % are free") });
    assert_eq!(get(&checks, "/readyz").await, (200, json!({"ready": true})));
    let (status, body) = get(&checks, "/health").await;
    assert_eq!((status, &body["ok"], &body["state"]), (200, &json!(true), &json!("degraded")));
    let disk = json!({"ok": true, "state": "degraded", "message": "3 % are free"});
    assert_eq!(body["components"]["disk"], disk);
    assert_eq!(body["components"]["store"]["state"], "ok");
}

#[tokio::test]
async fn a_part_that_is_down_wants_no_requests_but_no_restart_either() {
    let asked = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&asked);
    let checks = HealthChecks::new().check("store", move || {
        count.fetch_add(1, Ordering::SeqCst);
        async { Err::<(), _>("\"no\"\n\\route\u{1}é") }
    });
    assert_eq!(get(&checks, "/livez").await.0, 200);
    assert_eq!(asked.load(Ordering::SeqCst), 0, "/livez calls no check");
    assert_eq!(get(&checks, "/readyz").await, (503, json!({"ready": false})));
    let (status, body) = get(&checks, "/health").await;
    assert_eq!((status, &body["ok"]), (503, &json!(false)));
    assert_eq!(
        body["components"]["store"]["message"], "the check failed",
        "any client can read it"
    );
    let response = checks.run().await.response();
    let body = to_bytes(response.into_body(), 100_000).await.unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(body["components"]["store"]["message"], "\"no\"\n\\route\u{1}é");
}

#[tokio::test]
async fn a_check_that_panics_is_down_and_nothing_else_is() {
    let checks = HealthChecks::new()
        .check("early", || -> std::future::Ready<Health> { panic!("at once") })
        .check("late", || async { Health::from(panic_later()) })
        .check("well", || async { Health::ok("fine") });
    let report = checks.run().await;
    let states: Vec<HealthState> =
        report.components.iter().map(|(_, health)| health.state).collect();
    assert_eq!(states, [HealthState::Down, HealthState::Down, HealthState::Ok]);
    assert_eq!(report.components[1].1.message, "the check panicked");
}

fn panic_later() -> Result<(), String> {
    panic!("later")
}

#[tokio::test]
async fn silent_checks_are_cut_at_the_same_time() {
    let clock = ManualClock::new();
    let checks = HealthChecks::new()
        .clock(&clock)
        .check("one", pending::<Health>)
        .timeout(seconds(5))
        .check("other", pending::<Health>);
    let report = clock.drive(checks.run()).await;
    assert_eq!(clock.elapsed(), seconds(5), "they do not wait for each other");
    let messages: Vec<&str> =
        report.components.iter().map(|(_, health)| health.message.as_str()).collect();
    assert_eq!(messages, ["no response within 2s", "no response within 5s"]);
    assert!(!report.is_ready());
}
