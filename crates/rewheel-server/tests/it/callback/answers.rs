//! Tests what follows from the response of a callee.

use super::callee::{Callee, call_once, failed};
use axum::http::StatusCode;
use rewheel::{Category, Verdict, seconds};
use rewheel_core::Report;
use serde_json::json;
use std::time::Duration;

#[tokio::test]
async fn a_status_says_what_follows() {
    use Category::{Rejected, Throttled, Timeout, Transient};
    for (status, verdict, category) in [
        (301, Verdict::Stop, Rejected),
        (304, Verdict::Stop, Rejected),
        (400, Verdict::Stop, Rejected),
        (401, Verdict::Stop, Rejected),
        (404, Verdict::Stop, Rejected),
        (408, Verdict::Retry, Timeout),
        (409, Verdict::Stop, Rejected),
        (410, Verdict::Stop, Rejected),
        (422, Verdict::Stop, Rejected),
        (425, Verdict::Retry, Transient),
        (429, Verdict::Retry, Throttled),
        (500, Verdict::Retry, Transient),
        (501, Verdict::Stop, Rejected),
        (503, Verdict::Retry, Transient),
        (504, Verdict::Retry, Timeout),
        (599, Verdict::Retry, Transient),
    ] {
        let answer = move || (StatusCode::from_u16(status).unwrap(), "sorry");
        let callee = Callee::answering(answer).await;
        let (said, failure) = failed(call_once(&callee.settings()).await);
        assert_eq!((said, failure.category()), (verdict, category), "{status}");
        assert_eq!(failure.code(), Some(status.to_string().as_str()));
        assert!(failure.message().starts_with(&status.to_string()), "{failure}");
    }
}

#[tokio::test]
async fn a_success_is_what_the_kind_says() {
    for status in [200, 201, 202, 204, 299] {
        let callee = Callee::answering(move || StatusCode::from_u16(status).unwrap()).await;
        assert_eq!(call_once(&callee.settings()).await, Report::Done, "{status}");
    }
    let callee = Callee::answering(|| StatusCode::CONFLICT).await;
    let mut settings = callee.settings();
    settings["success"] = json!(["200", "409"]);
    assert_eq!(call_once(&settings).await, Report::Done);

    let callee = Callee::answering(|| StatusCode::NO_CONTENT).await;
    let mut settings = callee.settings();
    settings["success"] = json!(["200"]);
    let (verdict, failure) = failed(call_once(&settings).await);
    assert_eq!((verdict, failure.code()), (Verdict::Stop, Some("204")));
}

#[tokio::test]
async fn retry_after_is_honoured() {
    let asked =
        |value: &'static str| move || (StatusCode::SERVICE_UNAVAILABLE, [("retry-after", value)]);
    for (value, expected) in [
        ("7", Verdict::RetryAfter(seconds(7))),
        ("0", Verdict::RetryAfter(Duration::ZERO)),
        ("soon", Verdict::Retry),
        ("-1", Verdict::Retry),
        ("999999999", Verdict::RetryAfter(seconds(3_600))),
    ] {
        let callee = Callee::answering(asked(value)).await;
        let (verdict, _) = failed(call_once(&callee.settings()).await);
        assert_eq!(verdict, expected, "{value}");
    }

    // The response of an idempotency layer while the first request with this key is running.
    let callee = Callee::answering(|| (StatusCode::CONFLICT, [("retry-after", "1")])).await;
    let (verdict, _) = failed(call_once(&callee.settings()).await);
    assert_eq!(verdict, Verdict::RetryAfter(seconds(1)));

    let callee = Callee::answering(asked("7")).await;
    let mut settings = callee.settings();
    settings["retry_after_max"] = json!("2s");
    let (verdict, _) = failed(call_once(&settings).await);
    assert_eq!(verdict, Verdict::RetryAfter(seconds(2)));
}

#[tokio::test]
async fn retry_after_a_date_goes_by_the_callees_clock() {
    let callee = Callee::answering(|| {
        let date = ("date", "Sun, 06 Nov 1994 08:49:37 GMT");
        let retry_after = ("retry-after", "Sun, 06 Nov 1994 08:50:07 GMT");
        (StatusCode::TOO_MANY_REQUESTS, [date, retry_after])
    })
    .await;
    let (verdict, failure) = failed(call_once(&callee.settings()).await);
    assert_eq!(verdict, Verdict::RetryAfter(seconds(30)));
    assert_eq!(failure.category(), Category::Throttled);
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = Callee::answering(|| "gone too far").await;
    let target = format!("http://{}/there?token=secret", elsewhere.address);
    let redirect = move || (StatusCode::FOUND, [("location", target.clone())]);
    let callee = Callee::answering(redirect).await;
    let (verdict, failure) = failed(call_once(&callee.settings()).await);
    assert_eq!((verdict, failure.category()), (Verdict::Stop, Category::Rejected));
    assert_eq!(failure.code(), Some("302"));
    let told = format!(
        "302 Found: Rewheel does not follow the redirect to http://{}/there?***",
        elsewhere.address
    );
    assert!(failure.message().starts_with(&told), "{failure}");
    assert!(elsewhere.seen().is_empty());
}

#[tokio::test]
async fn of_a_long_answer_the_beginning_is_kept() {
    let callee = Callee::answering(|| (StatusCode::BAD_REQUEST, "é".repeat(5_000_000))).await;
    let (_, failure) = failed(call_once(&callee.settings()).await);
    let body = failure.message().strip_prefix("400 Bad Request: ").unwrap();
    assert_eq!(body, "é".repeat(500));
}
