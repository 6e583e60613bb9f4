//! Tests callbacks against real HTTP servers on this machine.

#![expect(clippy::unwrap_used, reason = "test code")]

use axum::Router;
use axum::body::Bytes;
use axum::extract::{ConnectInfo, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use rewheel::{CancelToken, Category, Verdict, millis, seconds};
use rewheel_core::{
    DueReason, Failure, Fence, Job, JobId, Key, KindName, Lane, Priority, Report, Shard, Status,
    Tenant, Timestamp, Version,
};
use rewheel_server::callback::{Callback, CallbackRunner, Clients};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinSet;

const KIND: &str = "charge-card";

/// A server that records its requests, and always gives the same response.
struct Callee {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    _serving: JoinSet<()>,
}

#[derive(Clone, Debug)]
struct Seen {
    from: SocketAddr,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
}

#[derive(Clone)]
struct Answers {
    seen: Arc<Mutex<Vec<Seen>>>,
    answer: Arc<dyn Fn() -> Response + Send + Sync>,
}

async fn answer(
    State(answers): State<Answers>,
    ConnectInfo(from): ConnectInfo<SocketAddr>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    answers.seen.lock().unwrap().push(Seen { from, method, uri, headers, body });
    (answers.answer)()
}

impl Callee {
    async fn answering<R: IntoResponse>(with: impl Fn() -> R + Send + Sync + 'static) -> Callee {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let answers =
            Answers { seen: Arc::clone(&seen), answer: Arc::new(move || with().into_response()) };
        let router = Router::new().fallback(answer).with_state(answers);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let service = router.into_make_service_with_connect_info::<SocketAddr>();
            axum::serve(listener, service).await.unwrap();
        });
        Callee { address, seen, _serving: serving }
    }

    fn settings(&self) -> Value {
        json!({"url": format!("http://{}/hook", self.address), "allow": ["127.0.0.0/8"]})
    }

    fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

fn runner(settings: &Value) -> CallbackRunner {
    let callback = Callback::parse(settings).unwrap();
    CallbackRunner::new(KindName::parse(KIND).unwrap(), callback, &Clients::new()).unwrap()
}

fn job(payload: &Value) -> Job {
    Job {
        id: JobId::from_bytes([7; 16]),
        lane: Lane {
            kind: KindName::parse(KIND).unwrap(),
            tenant: None,
            priority: Priority::DEFAULT,
            shard: Shard::NONE,
        },
        key: None,
        shard_key: None,
        payload: Some(payload.to_string().into_bytes()),
        attempts_max: None,
        attempt_timeout: None,
        backoff: None,
        traceparent: None,
        parent: None,
        created: Timestamp::from_millis(0),
        deadline: None,
        due: Timestamp::from_millis(0),
        because: DueReason::Submitted,
        status: Status::Scheduled,
        fence: Fence::new(4),
        version: Version::new(1),
        attempt: 2,
        attempts_before: 0,
        takeovers: 0,
        takeovers_counted: 0,
        failure: None,
    }
}

async fn call(settings: &Value, job: &Job, ends_in: Duration) -> Report {
    runner(settings).call(job, job.attempt + 1, ends_in, 0, &CancelToken::new()).await
}

async fn call_once(settings: &Value) -> Report {
    call(settings, &job(&json!({"order": 17})), seconds(30)).await
}

#[track_caller]
fn failed(report: Report) -> (Verdict, Failure) {
    let Report::AttemptFailed { verdict, failure } = report else {
        panic!("it did not fail: {report:?}");
    };
    (verdict, failure)
}

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
        (501, Verdict::Retry, Transient),
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
        "302 Found: the server does not follow the redirect to http://{}/there?***",
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
    let seen = callee.seen.lock().unwrap()[0].clone();
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

/// Accepts one connection, reads a request, sends `answer`, and keeps the connection open.
async fn half_answer(listener: TcpListener, answer: &[u8]) {
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut request = [0; 4_096];
    assert!(stream.read(&mut request).await.unwrap() > 0);
    stream.write_all(answer).await.unwrap();
    std::future::pending::<()>().await;
}

async fn listen() -> (TcpListener, Value) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    (listener, json!({"url": url, "allow": ["127.0.0.1"]}))
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
            message.contains("are not allowed (loopback): add the address to `callback.allow`"),
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
    let (verdict, failure) = failed(call_once(&json!({"url": "http://nobody.invalid/"})).await);
    assert_eq!((verdict, failure.category()), (Verdict::Retry, Category::Io), "{failure}");
}
