//! Tests clients that behave badly.

use super::{Connections, Plain};
use crate::config::LimitSettings;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::response::IntoResponse;
use axum::routing::{get, post};
use futures_util::stream;
use rewheel::{CancelToken, millis, seconds};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

/// Timeout for anything in these tests, also on a slow machine.
const PATIENCE: Duration = seconds(120);

const GOOD: &[u8] = b"GET /good HTTP/1.1\r\nhost: a\r\n\r\n";

/// Short timeouts, because tests wait for them; long enough that a test that loses the CPU for a moment does not hit them.
fn limits() -> LimitSettings {
    LimitSettings {
        head_timeout: seconds(3),
        idle_timeout: seconds(4),
        write_timeout: seconds(3),
        ..LimitSettings::default()
    }
}

/// An endless response, counted while the server keeps it.
struct Flood {
    chunk: Bytes,
    count: Arc<AtomicUsize>,
}

impl Flood {
    fn new(count: &Arc<AtomicUsize>) -> Flood {
        count.fetch_add(1, Ordering::SeqCst);
        Flood { chunk: Bytes::from(vec![b'x'; 64 * 1024]), count: Arc::clone(count) }
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Runs a server while a test acts as the client.
async fn with(limits: LimitSettings, test: impl AsyncFnOnce(SocketAddr)) {
    let id = [("x-request-id", "1")];
    let floods = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&floods);
    let flood = move || {
        let flood = Flood::new(&count);
        async move {
            Body::from_stream(stream::repeat_with(move || Ok::<_, Infallible>(flood.chunk.clone())))
        }
    };
    let are_over = move || {
        let over = floods.load(Ordering::SeqCst) == 0;
        async move { if over { "over" } else { "on" } }
    };
    let router = Router::new()
        .route("/good", get(move || async move { (id, "good").into_response() }))
        .route("/refuse", post(move || async move { (id, "no").into_response() }))
        .route("/flood", get(flood))
        .route("/floods", get(are_over));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let quiet = CancelToken::new();
    let serving = Connections::new(&limits).serve(listener, Plain, router, quiet.clone());
    let testing = async {
        test(address).await;
        quiet.cancel();
    };
    timeout(PATIENCE, async { tokio::join!(serving, testing) }).await.unwrap();
}

/// Sends data, and returns everything received until the server closes the connection.
async fn say(address: SocketAddr, said: &[u8]) -> String {
    let mut client = TcpStream::connect(address).await.unwrap();
    client.write_all(said).await.unwrap();
    rest(&mut client).await
}

async fn rest(client: &mut TcpStream) -> String {
    let mut heard = Vec::new();
    timeout(PATIENCE, client.read_to_end(&mut heard)).await.unwrap().unwrap();
    String::from_utf8(heard).unwrap()
}

/// Sends a request on an open connection, and keeps it open.
async fn ask(client: &mut TcpStream) {
    client.write_all(GOOD).await.unwrap();
    let (mut heard, mut more) = (Vec::new(), [0; 1024]);
    while !heard.ends_with(b"good") {
        let bytes = client.read(&mut more).await.unwrap();
        assert!(bytes > 0, "the connection was closed");
        heard.extend_from_slice(&more[..bytes]);
    }
}

#[track_caller]
fn check(answer: &str, status: u16, code: &str) {
    assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
    assert!(answer.contains("content-type: application/problem+json\r\n"), "{answer}");
    assert!(answer.contains(&format!("\"code\":\"{code}\"")), "{answer}");
}

#[tokio::test]
async fn what_is_no_http_gets_a_problem() {
    with(limits(), async |address| {
        for nonsense in [&b"\0\0\0\0\r\n\r\n"[..], b"GET\r\n\r\n", b"\xff\xfe / HTTP/1.1\r\n\r\n"] {
            check(&say(address, nonsense).await, 400, "bad_request");
        }
        let header = b"GET /good HTTP/1.1\r\na\0b: c\r\n\r\n";
        check(&say(address, header).await, 400, "bad_request");
        let many = format!("GET /good HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(101));
        check(&say(address, many.as_bytes()).await, 431, "headers_too_large");
        let long = format!("GET /good HTTP/1.1\r\na: {}\r\n\r\n", "b".repeat(40_000));
        check(&say(address, long.as_bytes()).await, 431, "headers_too_large");
    })
    .await;
}

#[tokio::test]
async fn a_head_that_is_torn_or_endless_gets_a_problem() {
    with(limits(), async |address| {
        let mut client = TcpStream::connect(address).await.unwrap();
        client.write_all(b"GET /good HT").await.unwrap();
        client.shutdown().await.unwrap();
        check(&rest(&mut client).await, 400, "bad_request");
        check(&say(address, b"GET /good HTTP/1.1\r\nhost:").await, 408, "too_slow");
        let endless = format!("GET /good HTTP/1.1\r\na: {}", "b".repeat(3_000_000));
        let mut client = TcpStream::connect(address).await.unwrap();
        // The connection may close while the client still sends; the response must arrive anyway.
        let _ = client.write_all(endless.as_bytes()).await;
        let mut heard = [0; 12];
        client.read_exact(&mut heard).await.unwrap();
        assert_eq!(&heard, b"HTTP/1.1 431");
    })
    .await;
}

#[tokio::test]
async fn who_says_nothing_is_cut_off_without_a_word() {
    with(limits(), async |address| {
        assert_eq!(say(address, b"").await, "");
        let mut client = TcpStream::connect(address).await.unwrap();
        ask(&mut client).await;
        ask(&mut client).await;
        assert_eq!(rest(&mut client).await, "");
    })
    .await;
}

#[tokio::test]
async fn a_reader_that_does_not_read_is_cut_off() {
    with(limits(), async |address| {
        let mut client = TcpStream::connect(address).await.unwrap();
        client.write_all(b"GET /flood HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
        // Read nothing until the server has given up: then the response has an end.
        let mut first = [0; 1];
        client.read_exact(&mut first).await.unwrap();
        let ask = b"GET /floods HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
        while !say(address, ask).await.ends_with("over") {
            tokio::time::sleep(millis(50)).await;
        }
        let mut heard = Vec::new();
        let end = timeout(PATIENCE, client.read_to_end(&mut heard)).await.unwrap();
        assert!(end.is_err() || heard.len() < 64 * 1024 * 1024, "{} bytes", heard.len());
    })
    .await;
}

#[tokio::test]
async fn a_newcomer_takes_the_place_of_who_waits_longest() {
    let patient = LimitSettings { connections_max: 3, head_timeout: seconds(60), ..limits() };
    with(LimitSettings { idle_timeout: seconds(60), ..patient }, async |address| {
        let mut idle = TcpStream::connect(address).await.unwrap();
        ask(&mut idle).await;
        let mut slow = TcpStream::connect(address).await.unwrap();
        slow.write_all(b"GET /go").await.unwrap();
        let mut flood = TcpStream::connect(address).await.unwrap();
        flood.write_all(b"GET /flood HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
        flood.read_exact(&mut [0; 1]).await.unwrap();
        let mut newcomer = TcpStream::connect(address).await.unwrap();
        ask(&mut newcomer).await;
        check(&rest(&mut slow).await, 503, "overloaded");
        // A connection that was served before is closed last.
        ask(&mut idle).await;
    })
    .await;
}

#[tokio::test]
async fn where_all_are_busy_a_newcomer_is_refused() {
    let few = LimitSettings { connections_max: 1, write_timeout: seconds(60), ..limits() };
    with(few, async |address| {
        let mut flood = TcpStream::connect(address).await.unwrap();
        flood.write_all(b"GET /flood HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
        flood.read_exact(&mut [0; 1]).await.unwrap();
        let refused = say(address, GOOD).await;
        check(&refused, 503, "overloaded");
        assert!(refused.contains("retry-after: 1\r\n"), "{refused}");
    })
    .await;
}

#[tokio::test]
async fn who_is_answered_while_still_talking_hears_it() {
    with(limits(), async |address| {
        let part = "x".repeat(100_000);
        let head = "POST /refuse HTTP/1.1\r\nhost: a\r\ncontent-length: 500000\r\n\r\n";
        let mut client = TcpStream::connect(address).await.unwrap();
        client.write_all(head.as_bytes()).await.unwrap();
        client.write_all(part.as_bytes()).await.unwrap();
        // The response has arrived, and the server is waiting to close.
        client.readable().await.unwrap();
        for _ in 0..4 {
            client.write_all(part.as_bytes()).await.unwrap();
        }
        let answer = rest(&mut client).await;
        assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("no"), "{answer}");
        assert!(answer.contains("connection: close\r\n"), "it must not be used again: {answer}");
    })
    .await;
}
