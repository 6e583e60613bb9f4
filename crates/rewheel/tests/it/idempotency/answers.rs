//! Tests of which responses are stored, and which parts of them.

use super::support::{Count, app, charge, idempotency, layer, send, store};
use axum::Extension;
use axum::body::{Body, Bytes};
use axum::http::{HeaderName, Request, StatusCode};
use axum::routing::post;
use axum::{Router, response::IntoResponse};
use futures_util::stream;
use rewheel::axum::{IdempotencyLayer, KeptResponse};
use rewheel::idempotency::{Finished, Idempotency, IdempotencyStore, Ticket};
use rewheel::{MemoryIdempotency, seconds};

#[tokio::test]
async fn who_asks_again_gets_the_same_answer() {
    let count = Count::default();
    let handler = count.then(move |number| async move {
        let headers = [
            ("content-type", "application/json"),
            ("location", "/charges/1"),
            ("set-cookie", "session=secret"),
            ("x-trace", "abc"),
        ];
        (StatusCode::CREATED, headers, format!("{{\"charge\":{number}}}"))
    });
    let layer = layer(&idempotency()).keep_headers([HeaderName::from_static("x-trace")]);
    let app = app(layer, handler);
    let first = send(&app, charge("order-17")).await;
    let again = send(&app, charge("\"order-17\"")).await;
    assert_eq!(count.get(), 1);
    assert!(!first.is_replayed() && again.is_replayed());
    assert_eq!((first.status, &first.body), (StatusCode::CREATED, &"{\"charge\":1}".to_owned()));
    assert_eq!((again.status, &again.body), (first.status, &first.body));
    for name in ["content-type", "location", "x-trace"] {
        assert_eq!(again.headers[name], first.headers[name], "{name}");
    }
    assert!(first.headers.contains_key("set-cookie"), "the first answer is left alone");
    assert!(!again.headers.contains_key("set-cookie"), "the layer does not store this header");
}

#[tokio::test]
async fn a_failure_that_passes_is_not_frozen() {
    for status in [401, 403, 408, 425, 429, 500, 502, 503, 504] {
        let count = Count::default();
        let handler = count.then(move |number| {
            let status = if number == 1 { status } else { 200 };
            async move { StatusCode::from_u16(status).expect("a status") }
        });
        let app = app(layer(&idempotency()), handler);
        let said = [send(&app, charge("k")).await, send(&app, charge("k")).await];
        assert_eq!(said.map(|said| said.status.as_u16()), [status, 200]);
        assert!(send(&app, charge("k")).await.is_replayed());
        assert_eq!(count.get(), 2);
    }
}

#[tokio::test]
async fn a_refusal_that_names_a_time_is_not_frozen() {
    let count = Count::default();
    let handler = count.then(|_| async { (StatusCode::CONFLICT, [("retry-after", "1")]) });
    let app = app(layer(&idempotency()), handler);
    for _ in 0..2 {
        assert_eq!(send(&app, charge("k")).await.headers["retry-after"], "1");
    }
    assert_eq!(count.get(), 2);
}

#[tokio::test]
async fn a_refusal_is_kept_as_is_a_success() {
    for status in [200, 204, 303, 400, 404, 409, 410, 422] {
        let count = Count::default();
        let handler =
            count.then(move |_| async move { StatusCode::from_u16(status).expect("a status") });
        let app = app(layer(&idempotency()), handler);
        for _ in 0..2 {
            assert_eq!(send(&app, charge("k")).await.status.as_u16(), status);
        }
        assert_eq!(count.get(), 1, "{status}");
    }
}

#[tokio::test]
async fn a_service_may_keep_every_answer() {
    let count = Count::default();
    let handler = count.then(move |_| async { StatusCode::INTERNAL_SERVER_ERROR });
    let app = app(layer(&idempotency()).keep_when(|_| true), handler);
    for replayed in [false, true] {
        let said = send(&app, charge("k")).await;
        assert_eq!((said.status.as_u16(), said.is_replayed()), (500, replayed));
    }
    assert_eq!(count.get(), 1);
}

#[tokio::test]
async fn an_answer_that_is_too_large_is_passed_on_and_not_done_again() {
    let count = Count::default();
    let handler = count.then(move |_| {
        // Of unknown length, so that it has to be read.
        let piece = |_| Ok::<_, std::io::Error>(Bytes::from(vec![b'x'; 100]));
        let pieces: Vec<_> = (0..5).map(piece).collect();
        async { Body::from_stream(stream::iter(pieces)).into_response() }
    });
    let app = app(layer(&idempotency()).answer_bytes_max(499), handler);
    assert_eq!(send(&app, charge("k")).await.body, "x".repeat(500));
    for _ in 0..2 {
        let said = send(&app, charge("k")).await;
        assert_eq!(said.problem(), (409, "answer_not_kept".to_owned()));
    }
    assert_eq!(count.get(), 1);
}

#[tokio::test]
async fn an_answer_for_which_there_is_no_room_is_passed_on_and_not_done_again() {
    let count = Count::default();
    let handler = count.then(move |_| async { "x".repeat(500) });
    let app = app(layer(&Idempotency::new(MemoryIdempotency::new(10, 400))), handler);
    assert_eq!(send(&app, charge("k")).await.body.len(), 500);
    assert_eq!(send(&app, charge("k")).await.problem(), (409, "answer_not_kept".to_owned()));
    assert_eq!(count.get(), 1);
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_not_kept() {
    let count = Count::default();
    let handler = count.then(move |number| {
        let mut pieces = vec![Ok(Bytes::from_static(b"half"))];
        if number == 1 {
            pieces.push(Err(std::io::Error::other("cut")));
        }
        async { Body::from_stream(stream::iter(pieces)).into_response() }
    });
    let app = app(layer(&idempotency()), handler);
    let cut = tower::ServiceExt::oneshot(app.clone(), charge("k")).await.expect("infallible");
    assert!(axum::body::to_bytes(cut.into_body(), 100).await.is_err());
    assert_eq!(send(&app, charge("k")).await.body, "half");
    assert_eq!(count.get(), 2);
}

#[tokio::test]
async fn a_handler_may_store_its_answer_itself() {
    let (store, _) = store();
    let own = store.clone();
    let handler = move |Extension(ticket): Extension<Ticket>| async move {
        let answer = KeptResponse::new(StatusCode::CREATED, Default::default(), "of the handler");
        assert_eq!(
            own.finish(&ticket, &answer.to_bytes()).await.expect("stored"),
            Finished::Stored
        );
        // A later response of the handler must not replace the first one.
        (StatusCode::INTERNAL_SERVER_ERROR, "later")
    };
    let layer = IdempotencyLayer::one_caller(&Idempotency::new(store));
    let app = Router::new().route("/charges", post(handler)).layer(layer);
    assert_eq!(send(&app, charge("k")).await.status, StatusCode::INTERNAL_SERVER_ERROR);
    let again = send(&app, charge("k")).await;
    assert_eq!((again.status, again.body.as_str()), (StatusCode::CREATED, "of the handler"));
}

#[tokio::test]
async fn answers_are_forgotten_after_their_time() {
    let (store, clock) = store();
    let count = Count::default();
    let handler = count.then(move |_| async { "charged" });
    let app = app(layer(&Idempotency::new(store.clone()).keep(seconds(60))), handler);
    send(&app, charge("k")).await;
    clock.advance(seconds(59));
    assert!(send(&app, charge("k")).await.is_replayed());
    clock.advance(seconds(1));
    assert!(!send(&app, charge("k")).await.is_replayed());
    assert_eq!(count.get(), 2);

    // No explicit cleanup is needed: other requests prune expired keys.
    clock.advance(seconds(60));
    for number in 0..64 {
        send(&app, charge(&format!("order-{number}"))).await;
    }
    assert!(store.len() <= 64, "{} keys", store.len());
    let request = Request::get("/charges").body(Body::empty()).expect("a request");
    send(&app, request).await;
}
