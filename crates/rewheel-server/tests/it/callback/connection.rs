//! Tests callees that are slow, unreachable, or not allowed to be called.

use super::callee::{Callee, call, call_once, failed, job, listen, runner};
use rewheel::{CancelToken, Category, Verdict, millis, seconds};
use rewheel_core::Report;
use serde_json::json;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::Notify;

/// Accepts one connection, reads a request, sends `answer`, and keeps the connection open.
async fn half_answer(listener: TcpListener, answer: &[u8]) {
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut request = [0; 4_096];
    assert!(stream.read(&mut request).await.unwrap() > 0);
    stream.write_all(answer).await.unwrap();
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn a_slow_callee_is_given_up_in_time() {
    let (listener, settings) = listen().await;
    let job = job(&json!({}));
    let report = tokio::select! {
        report = call(&settings, &job, millis(100)) => report,
        () = half_answer(listener, b"") => unreachable!(),
    };
    let (verdict, failure) = failed(report);
    assert_eq!((verdict, failure.category()), (Verdict::Retry, Category::Timeout));
    assert!(failure.message().ends_with("within 100ms"), "{failure}");
}

#[tokio::test]
async fn a_success_whose_body_never_comes_is_a_success() {
    let (listener, settings) = listen().await;
    let job = job(&json!({}));
    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc";
    let report = tokio::select! {
        report = call(&settings, &job, seconds(1)) => report,
        () = half_answer(listener, answer) => unreachable!(),
    };
    assert_eq!(report, Report::Done);
}

#[tokio::test]
async fn a_callee_that_hangs_up_is_asked_again() {
    let (listener, settings) = listen().await;
    let hang_up = async {
        let (stream, _) = listener.accept().await.unwrap();
        drop(stream);
    };
    let (report, ()) = tokio::join!(call_once(&settings), hang_up);
    let (verdict, failure) = failed(report);
    assert_eq!((verdict, failure.category()), (Verdict::Retry, Category::Io), "{failure}");
}

#[tokio::test]
async fn a_callee_that_is_not_there_is_asked_again() {
    let (listener, settings) = listen().await;
    drop(listener);
    let (verdict, failure) = failed(call_once(&settings).await);
    assert_eq!((verdict, failure.category()), (Verdict::Retry, Category::Io));
    assert_eq!(failure.code(), Some("connection_refused"));
    let origin = settings["url"].as_str().unwrap().trim_end_matches('/');
    let expected = format!("no response from {origin}: tcp connect error: Connection refused");
    assert!(failure.message().starts_with(&expected), "{failure}");
}

#[tokio::test]
async fn what_keeps_a_call_from_being_made_has_a_name() {
    let callee = Callee::answering(|| "hello").await;
    let plain = format!("https://{}/", callee.address);
    // Longer than a host name may be: no resolver is asked.
    let unknown = format!("http://{}.invalid/", "x".repeat(64));
    for (url, code) in [(plain, "tls"), (unknown, "dns")] {
        let settings = json!({"url": url, "allow": ["127.0.0.0/8"]});
        let (verdict, failure) = failed(call_once(&settings).await);
        assert_eq!((verdict, failure.category()), (Verdict::Retry, Category::Io), "{failure}");
        assert_eq!(failure.code(), Some(code), "{failure}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_callee_that_never_shakes_hands_does_not_hold_a_place_for_long() {
    let (_listener, mut settings) = listen().await;
    let origin = settings["url"].as_str().unwrap().trim_end_matches('/').replace("http", "https");
    settings["url"] = json!(format!("{origin}/hook"));
    let (verdict, failure) = failed(call(&settings, &job(&json!({})), seconds(11)).await);
    assert_eq!((verdict, failure.category()), (Verdict::Retry, Category::Timeout), "{failure}");
    assert_eq!(failure.message(), format!("connection to {origin} timed out"));
}

#[tokio::test]
async fn a_cancelled_call_is_taken_back() {
    let (listener, settings) = listen().await;
    let runner = runner(&settings);
    let (cancel, asked) = (CancelToken::new(), Notify::new());
    let serve = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.read_u8().await.unwrap();
        asked.notify_one();
        std::future::pending::<()>().await;
    };
    let stop = async {
        asked.notified().await;
        cancel.cancel();
        std::future::pending::<()>().await;
    };
    let job = job(&json!({}));
    let report = tokio::select! {
        report = runner.call(&job, 1, seconds(30), 0, &cancel) => report,
        () = serve => unreachable!(),
        () = stop => unreachable!(),
    };
    assert_eq!(report, Report::Snooze(Duration::ZERO));
}

/// Asks the operating system whether a client has connected: tokio would need an event first.
fn was_reached(listener: &std::net::TcpListener) -> bool {
    listener.set_nonblocking(true).unwrap();
    listener.accept().is_ok()
}

#[tokio::test]
async fn an_address_that_is_not_allowed_is_not_reached() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let url = format!("http://{{payload.host}}:{port}/");
    for host in ["127.0.0.1", "2130706433", "0x7f.1", "localhost", "LOCALHOST"] {
        let job = job(&json!({"host": host}));
        let settings = json!({"url": url, "allow": ["10.0.0.0/8"]});
        let (verdict, failure) = failed(call(&settings, &job, seconds(30)).await);
        assert_eq!((verdict, failure.category()), (Verdict::Stop, Category::Rejected), "{failure}");
        let message = failure.message();
        assert!(
            message.contains("are not allowed (loopback): if jobs may call this address, add it"),
            "{message}"
        );
        assert!(message.contains("127.0.0.1") || message.contains("::1"), "{message}");
        assert!(!was_reached(&listener), "{host} was connected to");

        // If allowed, the same call succeeds.
        let settings = json!({"url": url, "allow": ["127.0.0.0/8"]});
        let reached = TcpListener::from_std(listener.try_clone().unwrap()).unwrap();
        tokio::select! {
            report = call(&settings, &job, seconds(30)) => panic!("{host}: {report:?}"),
            accepted = reached.accept() => drop(accepted.unwrap()),
        }
    }
}

#[tokio::test]
async fn a_name_that_does_not_exist_is_asked_for_again() {
    let (verdict, failure) =
        failed(call_once(&json!({"url": "http://unknown-host.invalid/"})).await);
    assert_eq!((verdict, failure.category()), (Verdict::Retry, Category::Io), "{failure}");
}
