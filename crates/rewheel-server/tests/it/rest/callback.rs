//! Tests the path of a job from REST to its callback.

use super::served::{Answer, Api, config, served};
use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use serde_json::{Value, json};
use std::future::IntoFuture;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio::net::TcpListener;

/// Polls until a job has ended. Each poll is a round trip, so this does not spin.
async fn ended(api: &Api, id: &str) -> Answer {
    loop {
        let shown = api.get(&format!("/v1/jobs/{id}")).await;
        if shown.body["finished"].is_string() {
            return shown;
        }
    }
}

#[tokio::test]
async fn a_callback_that_fails_first_is_made_again() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    let hook = post(move || async move {
        let first = counted.fetch_add(1, Ordering::SeqCst) == 0;
        if first { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK }
    });
    let callee = axum::serve(listener, Router::new().route("/hook", hook)).into_future();
    let test = served(config(), async |api| {
        let settings = json!({
            "runner": "callback", "backoff": "fixed 1ms",
            "callback": {"url": url, "allow": ["127.0.0.0/8"]},
        });
        let put = api.put("/v1/kinds/hook", &settings.to_string()).await;
        assert_eq!((put.status, &put.body["runnable"]), (200, &json!(true)), "{put:?}");
        let job = api.post("/v1/jobs", r#"{"kind":"hook","payload":1}"#).await;
        let leased = (&job.body["state"], &job.body["attempt"], &job.body["fence"]);
        assert_eq!(leased, (&json!("leased"), &json!(1), &json!(1)), "{job:?}");
        let done = ended(&api, job.body["id"].as_str().unwrap()).await;
        assert_eq!((&done.body["state"], &done.body["attempt"]), (&json!("succeeded"), &json!(2)));
        let failed = &done.body["attempts"][0];
        assert_eq!((&failed["attempt"], &failed["code"]), (&json!(1), &json!("503")));
        assert_eq!((&failed["decision"], &failed["delay"]), (&json!("retry"), &json!("1ms")));
        let again = api.post("/v1/jobs", r#"{"kind":"hook","payload":1}"#).await;
        assert_eq!(
            ended(&api, again.body["id"].as_str().unwrap()).await.body["state"],
            "succeeded"
        );
    });
    tokio::select! {
        () = test => {}
        _ = callee => unreachable!("the callee outlives the test"),
    }
    assert_eq!(calls.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn a_rule_lets_a_callback_that_conflicts_wait_without_using_an_attempt() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let calls = Arc::new(AtomicU32::new(0));
    let hook = post(move || async move {
        let call = calls.fetch_add(1, Ordering::SeqCst);
        if call < 2 { StatusCode::CONFLICT } else { StatusCode::GONE }
    });
    let callee = axum::serve(listener, Router::new().route("/hook", hook)).into_future();
    let test = served(config(), async |api| {
        let settings = json!({
            "runner": "callback", "attempts_max": 1,
            "callback": {"url": url, "allow": ["127.0.0.0/8"]},
            "failure_rules": [
                {"when": {"status": "409"}, "then": "snooze 100ms"},
                {"when": {"status": "4xx"}, "then": "fail"},
            ],
        });
        let put = api.put("/v1/kinds/hook", &settings.to_string()).await;
        assert_eq!(put.status, 200, "{put:?}");
        let job = api.post("/v1/jobs", r#"{"kind":"hook","payload":1}"#).await;
        let done = ended(&api, job.body["id"].as_str().unwrap()).await;
        assert_eq!((&done.body["state"], &done.body["attempt"]), (&json!("failed"), &json!(1)));
        let attempts = done.body["attempts"].as_array().unwrap();
        let told = |name: &str| -> Vec<&str> {
            attempts.iter().map(|attempt| attempt[name].as_str().unwrap()).collect()
        };
        assert_eq!(told("code"), ["409", "409", "410"]);
        assert_eq!(told("decision"), ["snooze", "snooze", "fail"]);
        assert_eq!(attempts[0]["delay"], "100ms");
        let why =
            "attempt 1 was rejected with 409; snoozed for 100ms, and the attempt is not counted";
        assert_eq!(done.body["due_because"], json!({"reason": "snooze", "text": why}));
    });
    tokio::select! {
        () = test => {}
        _ = callee => unreachable!("the callee outlives the test"),
    }
}

/// Polls a job until it is as expected.
async fn until(api: &Api, id: &str, is: impl Fn(&Value) -> bool) -> Value {
    loop {
        let shown = api.get(&format!("/v1/jobs/{id}")).await;
        if is(&shown.body) {
            return shown.body;
        }
    }
}

#[tokio::test]
async fn a_callee_that_asks_to_wait_is_called_again_when_a_person_says_so() {
    for hold in ["host", "kind"] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let calls = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&calls);
        let hook = post(move || async move {
            let first = counted.fetch_add(1, Ordering::SeqCst) == 0;
            let status = if first { StatusCode::TOO_MANY_REQUESTS } else { StatusCode::OK };
            (status, [("retry-after", "3600")])
        });
        let callee = axum::serve(listener, Router::new().route("/hook", hook)).into_future();
        let test = served(config(), async |api| {
            let callback = json!({"url": url, "allow": ["127.0.0.0/8"]});
            let settings = json!({"runner": "callback", "hold": hold, "callback": callback});
            let put = api.put("/v1/kinds/hook", &settings.to_string()).await;
            assert_eq!(put.status, 200, "{put:?}");
            let submit = async || {
                let job = api.post("/v1/jobs", r#"{"kind":"hook","payload":1}"#).await;
                job.body["id"].as_str().unwrap().to_owned()
            };
            let refused = submit().await;
            let is_refused = |job: &Value| job["attempt"] == 1 && job["state"] == "scheduled";
            let refused = until(&api, &refused, is_refused).await;
            assert_eq!(refused["due_because"]["reason"], "retry_after", "{refused}");
            let other = submit().await;
            let held = until(&api, &other, |job| job["held_because"]["reason"] == "hold").await;
            assert!(held["held_because"]["until"].is_string(), "{held}");
            if hold == "kind" {
                let kind = api.get("/v1/kinds/hook").await;
                assert!(kind.body["breaker"]["until"].is_string(), "{kind:?}");
            }
            assert_eq!(api.post("/v1/kinds/hook/breaker/reset", "").await.status, 200);
            assert_eq!(ended(&api, &other).await.body["state"], "succeeded");
        });
        tokio::select! {
            () = test => {}
            _ = callee => unreachable!("the callee outlives the test"),
        }
        assert_eq!(calls.load(Ordering::SeqCst), 2, "{hold}");
    }
}

#[tokio::test]
async fn a_wrong_hold_is_refused() {
    served(config(), async |api| {
        let put = api.put("/v1/kinds/hook", r#"{"hold":"world"}"#).await;
        assert_eq!(
            (put.status, &put.body["errors"][0]["field"]),
            (422, &json!("/hold")),
            "{put:?}"
        );
    })
    .await;
}
