//! Tests the request that a callee receives.

use super::callee::{Callee, KIND, call, call_once, failed, job, runner};
use axum::http::{Method, StatusCode};
use rewheel::{CancelToken, Category, Verdict, seconds};
use rewheel_core::{Job, Key, Lane, Report, Tenant, Timestamp};
use serde_json::json;

#[tokio::test]
async fn the_request_is_what_the_wire_says() {
    let callee = Callee::answering(|| "ok").await;
    let payload = json!({"order": 17});
    let traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".to_owned();
    let job = Job {
        key: Some(Key::parse("order-17 é").unwrap()),
        lane: Lane { tenant: Some(Tenant::parse("acme").unwrap()), ..job(&payload).lane },
        deadline: Some(Timestamp::from_millis(1_700_000_000_120)),
        traceparent: Some(traceparent.clone()),
        ..job(&payload)
    };
    assert_eq!(call(&callee.settings(), &job, seconds(30)).await, Report::Done);

    let seen = callee.seen().remove(0);
    assert_eq!((seen.method, seen.uri.path()), (Method::POST, "/hook"));
    assert_eq!(seen.body, payload.to_string());
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let headers = seen.headers.iter();
    let mut headers: Vec<(String, String)> =
        headers.map(|(name, value)| (name.to_string(), text(value.as_bytes()))).collect();
    headers.sort();
    let timestamp = headers.iter().position(|(name, _)| name == "webhook-timestamp").unwrap();
    assert!(headers.remove(timestamp).1.parse::<u64>().unwrap() > 1_700_000_000);
    let expected = [
        ("accept", "*/*".to_owned()),
        ("content-length", "12".to_owned()),
        ("content-type", "application/json".to_owned()),
        ("host", callee.address.to_string()),
        ("idempotency-key", "order-17 é".to_owned()),
        ("rewheel-attempt", "3".to_owned()),
        ("rewheel-deadline", "2023-11-14T22:13:20.120Z".to_owned()),
        ("rewheel-fence", "4".to_owned()),
        ("rewheel-kind", KIND.to_owned()),
        ("rewheel-retry", "caller".to_owned()),
        ("rewheel-tenant", "acme".to_owned()),
        ("traceparent", traceparent),
        ("user-agent", format!("rewheel/{}", env!("CARGO_PKG_VERSION"))),
        ("webhook-id", job.id.to_string()),
    ];
    assert_eq!(headers, expected.map(|(name, value)| (name.to_owned(), value)));
}

/// Every secret signs each request, so that the callee can rotate secrets.
#[tokio::test]
async fn each_secret_signs() {
    use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
    use base64::{Engine, engine::general_purpose::STANDARD};
    use hmac::{Hmac, KeyInit, Mac};
    let (shared, seed) = ([5; 24], [7; 32]);
    let callee = Callee::answering(|| StatusCode::OK).await;
    let mut settings = callee.settings();
    let text = |prefix: &str, bytes: &[u8]| format!("{prefix}{}", STANDARD.encode(bytes));
    settings["secrets"] = json!([text("whsec_", &shared), text("whsk_", &seed)]);
    assert_eq!(call_once(&settings).await, Report::Done);
    let seen = callee.seen().remove(0);
    let header = |name: &str| seen.headers[name].to_str().unwrap();
    let signed = format!("{}.{}.", header("webhook-id"), header("webhook-timestamp"));
    let signed = [signed.as_bytes(), &seen.body].concat();
    let signatures: Vec<&str> = header("webhook-signature").split(' ').collect();
    let decoded = |index: usize, version: &str| {
        STANDARD.decode(signatures[index].strip_prefix(version).unwrap()).unwrap()
    };
    let mut mac = Hmac::<sha2::Sha256>::new_from_slice(&shared).unwrap();
    mac.update(&signed);
    assert!(mac.verify_slice(&decoded(0, "v1,")).is_ok());
    let public = Ed25519KeyPair::from_seed_unchecked(&seed).unwrap().public_key().as_ref().to_vec();
    let public = UnparsedPublicKey::new(&ED25519, &public);
    assert!(public.verify(&signed, &decoded(1, "v1a,")).is_ok());
    assert_eq!(signatures.len(), 2);
}

#[tokio::test]
async fn what_a_job_does_not_have_is_not_sent() {
    let callee = Callee::answering(|| "ok").await;
    call_once(&callee.settings()).await;
    let seen = callee.seen().remove(0);
    for name in ["rewheel-deadline", "rewheel-tenant", "traceparent", "webhook-signature"] {
        assert!(!seen.headers.contains_key(name), "{name} was sent");
    }
    assert_eq!(seen.headers["idempotency-key"], seen.headers["webhook-id"]);
}

#[tokio::test]
async fn a_kind_brings_its_own_method_url_headers() {
    let callee = Callee::answering(|| "ok").await;
    let mut settings = callee.settings();
    let url = format!("http://{}/{{tenant}}/{{payload.order}}?k={{kind}}", callee.address);
    settings["url"] = json!(url);
    settings["method"] = json!("PATCH");
    settings["headers"] = json!({"Content-Type": "text/plain", "x-team": "pay"});
    let mut job = job(&json!({"order": "a/b ?é"}));
    job.lane.tenant = Some(Tenant::parse("acme & co").unwrap());
    call(&settings, &job, seconds(30)).await;

    let seen = callee.seen().remove(0);
    assert_eq!(seen.method, Method::PATCH);
    assert_eq!(seen.uri, "/acme%20%26%20co/a%2Fb%20%3F%C3%A9?k=charge-card");
    assert_eq!(seen.headers["content-type"], "text/plain");
    assert_eq!(seen.headers["x-team"], "pay");
}

#[tokio::test]
async fn a_get_has_no_body() {
    let callee = Callee::answering(|| "ok").await;
    let mut settings = callee.settings();
    settings["method"] = json!("GET");
    call_once(&settings).await;
    let seen = callee.seen().remove(0);
    assert!(seen.body.is_empty() && !seen.headers.contains_key("content-type"));
}

#[tokio::test]
async fn a_payload_without_what_the_url_needs_is_not_sent() {
    let callee = Callee::answering(|| "ok").await;
    let mut settings = callee.settings();
    settings["url"] = json!(format!("http://{}/{{payload.nothing}}", callee.address));
    let (verdict, failure) = failed(call_once(&settings).await);
    assert_eq!((verdict, failure.category()), (Verdict::Stop, Category::BadPayload));
    assert!(callee.seen().is_empty());
}

#[tokio::test]
async fn connections_are_used_again() {
    let answer = || (StatusCode::INTERNAL_SERVER_ERROR, "x".repeat(10_000));
    let callee = Callee::answering(answer).await;
    let runner = runner(&callee.settings());
    for attempt in 1..=5 {
        runner.call(&job(&json!({})), attempt, seconds(30), 0, &CancelToken::new()).await;
    }
    let seen = callee.seen();
    assert_eq!(seen.len(), 5);
    assert!(seen.iter().all(|one| one.from == seen[0].from), "{seen:?}");
}
