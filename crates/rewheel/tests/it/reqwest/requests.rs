//! Which requests are sent again, and what each attempt sends.

use crate::net::{Fault, Proxy, Server, nowhere};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::any;
use rewheel::reqwest::{Announce, Client, ClientBuilder, RequestError};
use rewheel::{
    CallContext, Class, Classify, GiveUpReason, ManualClock, Retries, Retry, RetryBudget, millis,
    seconds,
};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

/// The headers and bodies of the requests that the server got.
type Seen = Arc<Mutex<Vec<(HeaderMap, Bytes)>>>;

/// A server that answers with these statuses, and then with 200.
async fn server(statuses: &[u16]) -> (Server, Seen) {
    let seen = Seen::default();
    let statuses: Vec<u16> = statuses.to_vec();
    let handler = async move |State(seen): State<Seen>, headers: HeaderMap, body: Bytes| {
        let mut seen = seen.lock().unwrap();
        seen.push((headers, body));
        let status = statuses.get(seen.len() - 1).copied().unwrap_or(200);
        (StatusCode::from_u16(status).unwrap(), "x".repeat(1_000))
    };
    let app = Router::new().route("/", any(handler)).with_state(Arc::clone(&seen));
    (Server::start(app).await, seen)
}

fn builder() -> ClientBuilder {
    let http = reqwest::Client::builder().no_proxy().retry(reqwest::retry::never());
    // Each attempt is a connection of its own, so that it meets the next fault of a proxy.
    let http = http.pool_max_idle_per_host(0).build().unwrap();
    let retry = Retry::fixed(millis(1)).attempts_max(3);
    Client::builder(http).retry(retry).attempt_timeout(seconds(60)).total_timeout(seconds(300))
}

#[tokio::test]
async fn a_get_is_repeated_until_it_succeeds() {
    let (server, seen) = server(&[503, 500]).await;
    let response = builder().build().get(server.url("/")).send().await.unwrap();
    assert_eq!((response.status().as_u16(), seen.lock().unwrap().len()), (200, 3));
}

#[tokio::test]
async fn the_last_response_is_returned_when_no_attempt_is_left() {
    let (server, seen) = server(&[503; 9]).await;
    let response = builder().build().get(server.url("/")).send().await.unwrap();
    assert_eq!((response.status().as_u16(), seen.lock().unwrap().len()), (503, 3));
}

#[tokio::test]
async fn a_post_is_sent_once_unless_it_has_a_key() {
    let (server, seen) = server(&[503; 9]).await;
    let client = builder().build();
    let post = || client.post_json(server.url("/"), &serde_json::json!({ "order": 7 }));

    assert_eq!(post().send().await.unwrap().status(), 503);
    assert_eq!(seen.lock().unwrap().len(), 1);

    assert_eq!(post().new_idempotency_key().send().await.unwrap().status(), 503);
    let seen: Vec<_> = seen.lock().unwrap().drain(1..).collect();
    assert_eq!(seen.len(), 3);
    let keys: Vec<_> = seen.iter().map(|(headers, _)| headers["idempotency-key"].clone()).collect();
    assert_eq!((keys[0].len(), &keys[0], &keys[0]), (32, &keys[1], &keys[2]));
    assert!(seen.iter().all(|(_, body)| body == r#"{"order":7}"#), "{seen:?}");
}

#[tokio::test]
async fn two_requests_have_two_keys() {
    let (server, seen) = server(&[]).await;
    let client = builder().build();
    for _ in 0..2 {
        client.post_json(server.url("/"), &7).new_idempotency_key().send().await.unwrap();
    }
    let seen = seen.lock().unwrap();
    assert_ne!(seen[0].0["idempotency-key"], seen[1].0["idempotency-key"]);
}

#[tokio::test]
async fn a_key_with_unusual_characters_is_quoted_and_a_wrong_one_sends_nothing() {
    let (server, seen) = server(&[]).await;
    let client = builder().build();
    let post = || client.post_json(server.url("/"), &7);
    post().idempotency_key(r#"a "b" \ c"#).send().await.unwrap();
    let key = rewheel_key(&seen.lock().unwrap()[0].0);
    assert_eq!(key, r#""a \"b\" \\ c""#);

    for wrong in ["", "ü", "a\nb", &"x".repeat(256)] {
        let error = post().idempotency_key(wrong).send().await.unwrap_err();
        assert!(matches!(error.last(), Some(RequestError::InvalidIdempotencyKey)), "{error}");
        assert_eq!(error.attempts(), 0);
    }
    assert_eq!(seen.lock().unwrap().len(), 1);
}

fn rewheel_key(headers: &HeaderMap) -> String {
    headers["idempotency-key"].to_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_body_that_cannot_be_copied_is_sent_once() {
    let (server, seen) = server(&[503; 9]).await;
    // Bytes are copied; a body of another type is a stream.
    let body = http_body_util::Full::new(Bytes::from_static(b"abc"));
    let request = builder().build().request(reqwest::Method::PUT, server.url("/"));
    let response = request.body(reqwest::Body::wrap(body)).send().await.unwrap();
    assert_eq!((response.status().as_u16(), seen.lock().unwrap().len()), (503, 1));
    assert_eq!(seen.lock().unwrap()[0].1, "abc");
}

#[tokio::test]
async fn faults_of_the_network_are_repeated() {
    let (server, seen) = server(&[]).await;
    for fault in [Fault::Reset, Fault::CutAfter(0), Fault::CutAfter(20), Fault::Garble] {
        let proxy = Proxy::to(server.address, &[fault, fault]).await;
        let response = builder().build().get(proxy.url("/")).send().await.unwrap();
        assert_eq!((response.status().as_u16(), proxy.connections()), (200, 3), "{fault:?}");
    }
    assert!(!seen.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_body_that_breaks_off_is_repeated_if_it_is_buffered() {
    let (server, _) = server(&[]).await;
    let proxy = Proxy::to(server.address, &[Fault::CutAfter(500)]).await;
    let client = builder().build();
    let response = client.get(proxy.url("/")).buffered(1_000).await.unwrap();
    assert_eq!(proxy.connections(), 2);
    assert_eq!((response.url().as_str(), response.status().as_u16()), (&*proxy.url("/"), 200));
    assert_eq!(response.headers()["content-length"], "1000");
    assert_eq!(response.text().await.unwrap(), "x".repeat(1_000));

    let error = client.get(proxy.url("/")).buffered(999).await.unwrap_err();
    assert!(matches!(error.last(), Some(RequestError::BodyTooLong { bytes_max: 999 })));
    assert_eq!((error.attempts(), proxy.connections()), (1, 3));
}

#[tokio::test]
async fn an_error_names_its_cause() {
    let error = builder().build().get(format!("http://{}/", nowhere())).send().await.unwrap_err();
    assert_eq!((error.reason(), error.attempts()), (GiveUpReason::AttemptsExhausted, 3));
    assert!(error.to_string().contains("Connection refused"), "{error}");
    let last = error.into_last().unwrap();
    assert_eq!(last.classify(), Class::retry(rewheel::Category::Io).with_code("connect"));
}

#[tokio::test]
async fn each_attempt_tells_its_number_its_deadline_and_who_retries() {
    let (server, seen) = server(&[503]).await;
    builder().build().get(server.url("/")).send().await.unwrap();
    let seen = seen.lock().unwrap();
    let contexts: Vec<_> = seen.iter().map(|(headers, _)| context(headers).unwrap()).collect();
    assert_eq!(contexts.iter().map(CallContext::attempt).collect::<Vec<_>>(), [1, 2]);
    assert!(contexts.iter().all(|context| context.retries() == Retries::Caller));
    assert!(contexts.iter().all(|context| context.deadline().is_some()));
}

fn context(headers: &HeaderMap) -> Option<CallContext> {
    CallContext::parse(|name| headers.get(name)?.to_str().ok())
}

#[tokio::test]
async fn a_request_that_is_not_repeated_leaves_retries_to_the_server() {
    let (server, seen) = server(&[]).await;
    builder().build().post_json(server.url("/"), &7).send().await.unwrap();
    assert_eq!(context(&seen.lock().unwrap()[0].0).unwrap().retries(), Retries::Callee);
}

#[tokio::test]
async fn a_client_with_one_attempt_leaves_retries_to_the_server() {
    let (server, seen) = server(&[]).await;
    let once = builder().retry(Retry::fixed(millis(1)).attempts_max(1)).build();
    once.get(server.url("/")).send().await.unwrap();
    assert_eq!(context(&seen.lock().unwrap()[0].0).unwrap().retries(), Retries::Callee);
}

#[tokio::test]
async fn a_budget_of_retries_per_second_is_announced_as_exhausted_only_when_it_is() {
    let (server, seen) = server(&[503]).await;
    let budget = RetryBudget::per_second(1);
    // Without delays, because nothing advances the clock.
    let retry = Retry::fixed(millis(0)).attempts_max(3);
    let client = builder().retry(retry).retry_budget(budget).clock(ManualClock::new()).build();
    let client_call = || client.get(server.url("/")).send();
    let told = || {
        let seen = seen.lock().unwrap();
        seen.iter().map(|(headers, _)| context(headers).unwrap().retries()).collect::<Vec<_>>()
    };
    client_call().await.unwrap();
    assert_eq!(told(), [Retries::Caller; 2], "the call may be repeated once, and was");
    client_call().await.unwrap();
    assert_eq!(told()[2], Retries::Exhausted);
}

#[tokio::test]
async fn nothing_is_announced_if_the_client_says_so() {
    let (server, seen) = server(&[]).await;
    builder().announce(Announce::Never).build().get(server.url("/")).send().await.unwrap();
    assert_eq!(context(&seen.lock().unwrap()[0].0), None);
}

#[tokio::test]
async fn the_deadline_of_the_caller_is_passed_on_and_a_late_call_is_not_made() {
    let (server, seen) = server(&[503; 9]).await;
    let client = builder().build();
    let deadline = SystemTime::UNIX_EPOCH + seconds(4_000_000_000);
    let outer = CallContext::new(2, Retries::Caller).with_deadline(deadline);
    let response = outer.scope(client.get(server.url("/")).send()).await.unwrap();
    assert_eq!(response.status(), 503);
    {
        let seen = seen.lock().unwrap();
        assert_eq!(seen.len(), 1, "the caller repeats it");
        let told = context(&seen[0].0).unwrap();
        assert_eq!((told.attempt(), told.retries()), (1, Retries::Caller));
        assert!(told.deadline().unwrap() < deadline, "its own attempt ends earlier");
    }

    let late = CallContext::new(1, Retries::Callee).with_deadline(SystemTime::UNIX_EPOCH);
    let error = late.scope(client.get(server.url("/")).send()).await.unwrap_err();
    assert_eq!((error.reason(), error.attempts()), (GiveUpReason::Deadline, 0));
    assert_eq!(seen.lock().unwrap().len(), 1);
}
