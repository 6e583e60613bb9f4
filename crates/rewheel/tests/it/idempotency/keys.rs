//! Tests of the scope of an idempotency key.

use super::support::{Count, app, charge, idempotency, layer, send};
use axum::Router;
use axum::body::Body;
use axum::http::Request;
use axum::routing::post;

#[tokio::test]
async fn a_key_stands_for_one_request() {
    let count = Count::default();
    let app = app(layer(&idempotency()), count.told());
    assert_eq!(send(&app, charge("k")).await.status, 200);
    type Change = fn(&mut Request<Body>);
    let changes: [(&str, Change); 5] = [
        ("body", |request| *request.body_mut() = Body::from("9900")),
        ("method", |request| *request.method_mut() = axum::http::Method::PUT),
        ("path", |request| *request.uri_mut() = "/refunds".parse().expect("a path")),
        ("query", |request| *request.uri_mut() = "/charges?fast=1".parse().expect("a path")),
        ("content type", |request| {
            request.headers_mut().insert("content-type", "text/csv".parse().expect("a value"));
        }),
    ];
    for (what, change) in changes {
        let mut request = charge("k");
        change(&mut request);
        let said = send(&app, request).await;
        assert_eq!(said.problem(), (422, "key_reused".to_owned()), "{what}");
    }
    let mut request = charge("k");
    request.headers_mut().insert("user-agent", "other".parse().expect("a value"));
    assert!(send(&app, request).await.is_replayed(), "what a client may change");
    assert_eq!(count.get(), 1);
}

#[tokio::test]
async fn the_whole_path_counts_within_a_nested_router() {
    let count = Count::default();
    let inner = || Router::new().route("/", post(count.told()));
    let layer = layer(&idempotency());
    let app = Router::new()
        .nest("/charges", inner().layer(layer.clone()))
        .nest("/refunds", inner().layer(layer));
    assert_eq!(send(&app, charge("k")).await.status, 200);
    let mut refund = charge("k");
    *refund.uri_mut() = "/refunds".parse().expect("a path");
    assert_eq!(send(&app, refund).await.problem(), (422, "key_reused".to_owned()));
}

#[tokio::test]
async fn callers_have_keys_of_their_own() {
    let count = Count::default();
    let app = app(layer(&idempotency()), count.told());
    let by = |account: &str| {
        let mut request = charge("k");
        request.headers_mut().insert("x-account", account.parse().expect("a value"));
        request
    };
    assert_eq!(send(&app, by("acme")).await.body, "1");
    let rival = send(&app, by("rival")).await;
    assert_eq!((rival.body.as_str(), rival.is_replayed()), ("2", false), "another's answer");
    assert_eq!(send(&app, by("acme")).await.body, "1");
}

fn without_key() -> Request<Body> {
    let mut request = charge("k");
    request.headers_mut().remove("idempotency-key");
    request
}

#[tokio::test]
async fn a_key_is_optional_unless_it_is_required() {
    let count = Count::default();
    let optional = layer(&idempotency());
    let app_optional = app(optional.clone(), count.told());
    for number in ["1", "2"] {
        assert_eq!(send(&app_optional, without_key()).await.body, number);
    }
    let app_required = app(optional.required(), count.told());
    let said = send(&app_required, without_key()).await;
    assert_eq!(said.problem(), (400, "key_missing".to_owned()));
    let read = Request::get("/charges").body(Body::empty()).expect("a request");
    assert_eq!(send(&app_required, read).await.body, "3", "reading needs no key");
    assert_eq!(send(&app_required, charge("k")).await.body, "4");
}

#[tokio::test]
async fn what_reads_is_never_replayed() {
    let count = Count::default();
    let app = app(layer(&idempotency()), count.told());
    for number in ["1", "2"] {
        let read = Request::get("/charges").header("idempotency-key", "k");
        assert_eq!(send(&app, read.body(Body::empty()).expect("a request")).await.body, number);
    }
}

#[tokio::test]
async fn a_key_that_cannot_be_read_is_refused() {
    let count = Count::default();
    let app = app(layer(&idempotency()), count.told());
    for key in ["", "two words", "\"half", "a,b", &"k".repeat(256)] {
        let said = send(&app, charge(key)).await;
        assert_eq!(said.problem(), (400, "key_invalid".to_owned()), "{key}");
    }
    let mut twice = charge("one");
    twice.headers_mut().append("idempotency-key", "two".parse().expect("a value"));
    assert_eq!(send(&app, twice).await.problem(), (400, "key_invalid".to_owned()));
    assert_eq!(count.get(), 0);
}

#[tokio::test]
async fn a_request_that_is_too_large_is_refused() {
    let count = Count::default();
    let app = app(layer(&idempotency()).request_bytes_max(4), count.told());
    assert_eq!(send(&app, charge("fits")).await.status, 200);
    let mut large = charge("large");
    *large.body_mut() = Body::from("42000");
    assert_eq!(send(&app, large).await.problem(), (413, "too_large".to_owned()));
    let mut unkeyed = without_key();
    *unkeyed.body_mut() = Body::from("42000");
    assert_eq!(send(&app, unkeyed).await.body, "2", "without a key it is not read");
}

#[tokio::test]
async fn a_caller_that_is_not_known_is_refused() {
    let count = Count::default();
    let known = rewheel::axum::IdempotencyLayer::per_caller(&idempotency(), |parts| {
        parts.headers.get("x-account").and_then(|name| name.to_str().ok()).map(str::to_owned)
    });
    let app = app(known, count.told());
    let mut unknown = charge("k");
    unknown.headers_mut().remove("x-account");
    assert_eq!(send(&app, unknown).await.problem(), (403, "caller_unknown".to_owned()));
    assert_eq!(count.get(), 0);
    assert_eq!(send(&app, charge("k")).await.status, 200);
}

/// Clients choose a new boundary each time they build a form.
#[tokio::test]
async fn the_boundary_of_a_form_is_not_part_of_the_request() {
    let count = Count::default();
    let app = app(layer(&idempotency()), count.told());
    let form = |boundary: &str, amount: &str| {
        let mut request = charge("k");
        let kind = format!("multipart/form-data; boundary={boundary}");
        request.headers_mut().insert("content-type", kind.parse().expect("a value"));
        let part = "Content-Disposition: form-data; name=\"amount\"";
        let body = format!("--{boundary}\r\n{part}\r\n\r\n{amount}\r\n--{boundary}--\r\n");
        *request.body_mut() = Body::from(body);
        request
    };
    assert_eq!(send(&app, form("aaa", "4200")).await.status, 200);
    assert!(send(&app, form("bbb", "4200")).await.is_replayed());
    let other = send(&app, form("aaa", "9900")).await;
    assert_eq!(other.problem(), (422, "key_reused".to_owned()));
    assert_eq!(count.get(), 1);
}
