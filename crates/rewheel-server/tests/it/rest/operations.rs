//! Tests changing many jobs, by filter or by incident.

#![expect(clippy::disallowed_methods, reason = "who is called ends with the test")]

use super::served::{Answer, Api, config, served};
use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A callee that rejects requests until it is repaired, for a number of calls.
async fn shop() -> (String, Arc<AtomicUsize>) {
    let mended = Arc::new(AtomicUsize::new(0));
    let left = Arc::clone(&mended);
    let answer = move || async move {
        let spend = |left: usize| left.checked_sub(1);
        match left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, spend) {
            Ok(_) => (StatusCode::OK, ""),
            Err(_) => (StatusCode::NOT_FOUND, "order 17 does not exist"),
        }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    tokio::spawn(
        async move { axum::serve(listener, Router::new().route("/hook", post(answer))).await },
    );
    (url, mended)
}

async fn put(api: &Api, kind: &str, url: &str) {
    let callback = json!({"url": url, "allow": ["127.0.0.0/8"]});
    let settings = json!({"runner": "callback", "callback": callback}).to_string();
    let put = api.put(&format!("/v1/kinds/{kind}"), &settings).await;
    assert_eq!(put.status, 200, "{put:?}");
}

/// Submits jobs, and waits until they are dead letters.
async fn die(api: &Api, kind: &str, count: usize) {
    let job = json!({"kind": kind, "payload": {"order": 17}});
    let jobs = json!({"jobs": vec![job; count]}).to_string();
    assert_eq!(api.post("/v1/jobs/batch", &jobs).await.status, 201);
    while dead(api, kind).await != count {}
}

async fn dead(api: &Api, kind: &str) -> usize {
    let kinds = api.get(&format!("/v1/kinds/{kind}")).await.body;
    usize::try_from(kinds["jobs"]["dead"].as_u64().unwrap()).unwrap()
}

/// Waits until an operation has ended.
async fn ended(api: &Api, ordered: &Answer) -> Value {
    assert_eq!(ordered.status, 202, "{ordered:?}");
    let place = ordered.headers["location"].to_str().unwrap();
    assert_eq!(place, format!("/v1/operations/{}", ordered.body["id"].as_str().unwrap()));
    loop {
        let operation = api.get(place).await;
        assert_eq!(operation.status, 200, "{operation:?}");
        if operation.body["state"] != "running" {
            return operation.body;
        }
    }
}

#[tokio::test]
async fn dead_letters_are_counted_then_redriven() {
    let (url, mended) = shop().await;
    served(config(), async |api| {
        put(&api, "parcel", &url).await;
        put(&api, "letter", &url).await;
        die(&api, "parcel", 30).await;
        die(&api, "letter", 2).await;
        let order = json!({"filter": {"kind": "parcel", "category": "rejected"}, "dry_run": true});
        let count = api.post("/v1/jobs/redrive", &order.to_string()).await;
        assert_eq!(count.status, 200, "{count:?}");
        assert_eq!((&count.body["count"], &count.body["complete"]), (&json!(30), &json!(true)));
        assert_eq!(count.body["sample"].as_array().map(Vec::len), Some(10));
        assert_eq!(dead(&api, "parcel").await, 30);

        mended.store(usize::MAX, Ordering::SeqCst);
        let order = json!({"filter": {"kind": "parcel"}, "rate": "1000/s", "canary": [1, 10]});
        let ordered = api.post("/v1/jobs/redrive", &order.to_string()).await;
        assert_eq!(
            (&ordered.body["verb"], &ordered.body["total"]),
            (&json!("redrive"), &json!(30))
        );
        let operation = ended(&api, &ordered).await;
        let figures = (&operation["state"], &operation["done"], &operation["failed"]);
        assert_eq!(figures, (&json!("done"), &json!(30), &json!(0)), "{operation}");
        let canary = &operation["canary"];
        assert_eq!((&canary["step"], &canary["rest"]), (&json!(null), &json!(19)), "{operation}");
        assert!(operation["reason"].is_null() && operation["finished"].is_string());
        assert_eq!((dead(&api, "parcel").await, dead(&api, "letter").await), (0, 2));
        let listed = api.get("/v1/operations").await.body;
        assert_eq!(listed["items"], json!([operation]));
    })
    .await;
}

#[tokio::test]
async fn a_canary_that_fails_says_why() {
    let (url, mended) = shop().await;
    served(config(), async |api| {
        put(&api, "parcel", &url).await;
        die(&api, "parcel", 20).await;
        mended.store(1, Ordering::SeqCst);
        let incidents = api.get("/v1/incidents").await.body;
        let id = incidents["items"][0]["id"].as_str().unwrap().to_owned();
        let path = format!("/v1/incidents/{id}/redrive");
        let operation = ended(&api, &api.post(&path, r#"{"canary":[1,5]}"#).await).await;
        assert_eq!((&operation["state"], &operation["done"]), (&json!("aborted"), &json!(6)));
        let reason = operation["reason"].as_str().unwrap();
        assert!(reason.starts_with("step 2 of 2 of the canary failed: "), "{reason}");
        assert!(reason.contains("rejected 404") && reason.ends_with("not changed: 14"));
        let canary = &operation["canary"];
        assert_eq!((&canary["step"], &canary["sizes"]), (&json!(2), &json!([1, 5])));
        assert_eq!((&canary["redriven"], &canary["rest"]), (&json!(5), &json!(14)));
        let failed = canary["failed_job"].as_str().unwrap();
        assert_eq!(api.get(&format!("/v1/jobs/{failed}")).await.body["kind"], "parcel");
        assert_eq!(operation["incident"], json!(id));
    })
    .await;
}

#[tokio::test]
async fn jobs_that_wait_are_paused_resumed_and_cancelled_together() {
    served(config(), async |api| {
        for _ in 0..3 {
            api.submit(r#","delay":"1h","tenant":"shop""#).await;
        }
        let other = api.submit(r#","delay":"1h""#).await;
        let order = r#"{"filter":{"tenant":"shop"}}"#;
        for (verb, state) in [("pause", "paused"), ("resume", "scheduled"), ("cancel", "cancelled")]
        {
            let operation = ended(&api, &api.post(&format!("/v1/jobs/{verb}"), order).await).await;
            assert_eq!((&operation["verb"], &operation["done"]), (&json!(verb), &json!(3)));
            let jobs = api.get(&format!("/v1/jobs?tenant=shop&state={state}")).await.body;
            assert_eq!(jobs["items"].as_array().map(Vec::len), Some(3), "{verb}");
        }
        let other = api.get(&format!("/v1/jobs/{other}")).await.body;
        assert_eq!(other["state"], "scheduled");
    })
    .await;
}

#[tokio::test]
async fn an_operation_is_aborted() {
    let (url, mended) = shop().await;
    served(config(), async |api| {
        put(&api, "parcel", &url).await;
        die(&api, "parcel", 5).await;
        mended.store(usize::MAX, Ordering::SeqCst);
        let order = r#"{"filter":{"kind":"parcel"},"rate":"1/h"}"#;
        let ordered = api.post("/v1/jobs/redrive", order).await;
        let path = format!("/v1/operations/{}", ordered.body["id"].as_str().unwrap());
        while api.get(&path).await.body["done"] == 0 {}
        assert_eq!(api.post(&format!("{path}/abort"), "").await.status, 200);
        let operation = ended(&api, &ordered).await;
        assert_eq!((&operation["state"], &operation["done"]), (&json!("aborted"), &json!(1)));
        assert_eq!(operation["reason"], "an operator aborted the operation");
    })
    .await;
}

#[tokio::test]
async fn what_cannot_be_ordered_is_refused() {
    served(config(), async |api| {
        let id = api.submit(r#","delay":"1h""#).await;
        for (path, body, status, code) in [
            ("/v1/jobs/cancel", "{}", 422, "invalid_field"),
            ("/v1/jobs/cancel", r#"{"filter":{}}"#, 422, "invalid_field"),
            ("/v1/jobs/redrive", r#"{"filter":{"state":"leased"}}"#, 422, "invalid_field"),
            ("/v1/jobs/redrive", "[]", 400, "bad_json"),
            ("/v1/jobs/redrive?now=1", "{}", 400, "bad_query"),
            ("/v1/incidents/00ff/redrive", "", 404, "not_found"),
            ("/v1/incidents/00ff/hold", r#"{"canary":[1]}"#, 422, "invalid_field"),
            ("/v1/operations/17/abort", "", 404, "not_found"),
            (&format!("/v1/operations/{id}/abort"), "", 404, "not_found"),
        ] {
            let answer = api.post(path, body).await;
            assert_eq!((answer.status, answer.problem()), (status, code), "{path} {body}");
        }
        assert_eq!(api.get(&format!("/v1/operations/{id}")).await.status, 404);
        let own = api.post("/v1/jobs", r#"{"kind":"rewheel.operation","payload":{}}"#).await;
        assert_eq!((own.status, own.blamed()), (422, vec!["/kind"]));
        let own = api.put("/v1/kinds/rewheel.operation", "{}").await;
        assert_eq!((own.status, own.blamed()), (422, vec!["/kind"]));
        assert_eq!(api.count().await, 1);
    })
    .await;
}

#[tokio::test]
async fn an_edit_with_an_old_version_is_refused() {
    served(config(), async |api| {
        let id = api.submit(r#","delay":"1h""#).await;
        let path = format!("/v1/jobs/{id}");
        let etag = api.get(&path).await.headers["etag"].to_str().unwrap().to_owned();
        let edit = r#"{"payload":{"to":"b"},"priority":9,"attempts_max":2,"deadline":"2100-01-01T00:00:00Z"}"#;
        let guarded = |tag: &str| {
            let request = api.request(reqwest::Method::PATCH, &path).header("if-match", tag);
            Answer::of(request.body(edit))
        };
        let edited = guarded(&etag).await;
        assert_eq!(edited.status, 200, "{edited:?}");
        assert_eq!(edited.body["payload"], json!({"to": "b"}));
        assert_eq!((&edited.body["priority"], &edited.body["attempts_max"]), (&json!(9), &json!(2)));
        assert_eq!(edited.body["audit"][0]["before"]["priority"], "5");
        assert_ne!(edited.headers["etag"].to_str().unwrap(), etag);
        let late = guarded(&etag).await;
        assert_eq!((late.status, late.problem()), (412, "version_changed"));
        let odd = guarded("yesterday").await;
        assert_eq!((odd.status, odd.problem()), (400, "bad_query"));
        let none = api.patch(&path, r#"{"deadline":null}"#).await;
        assert_eq!((none.status, &none.body["deadline"]), (200, &Value::Null));
        let past = api.patch(&path, r#"{"deadline":"2001-01-01T00:00:00Z"}"#).await;
        assert_eq!((past.status, past.problem()), (409, "wrong_state"));
        let paused = api.post(&format!("{path}/pause"), "").await;
        assert_eq!((paused.status, &paused.body["state"]), (200, &json!("paused")));
        let resumed = api.post(&format!("{path}/resume"), "").await;
        assert_eq!((resumed.status, &resumed.body["state"]), (200, &json!("scheduled")));
        api.post(&format!("{path}/cancel"), "").await;
        let ended = api.patch(&path, r#"{"priority":1}"#).await;
        assert_eq!((ended.status, ended.problem()), (409, "wrong_state"));
    })
    .await;
}
