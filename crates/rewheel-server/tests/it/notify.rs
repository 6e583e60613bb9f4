//! Tests notices from the config to real HTTP servers on this machine.

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use rewheel::{Category, Verdict, seconds};
use rewheel_core::{Failure, Report, Timestamp};
use rewheel_engine::Engine;
use rewheel_engine::notify::{Notice, NotifyError};
use rewheel_server::notify::{Built, NotifyConfig, RouteTestResult, build_with, try_out};
use rewheel_stores::MemoryStore;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// A server that records its requests, and responds as it is told.
struct Receiver {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    count: watch::Sender<usize>,
    _serving: JoinSet<()>,
}

#[derive(Clone, Debug)]
struct Seen {
    uri: Uri,
    headers: HeaderMap,
    body: Value,
}

type Answer = Arc<dyn Fn(usize) -> Response + Send + Sync>;

#[derive(Clone)]
struct Desk {
    seen: Arc<Mutex<Vec<Seen>>>,
    count: watch::Sender<usize>,
    answer: Answer,
}

async fn answer(State(desk): State<Desk>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let body = serde_json::from_slice(&body).unwrap();
    let mut seen = desk.seen.lock().unwrap();
    seen.push(Seen { uri, headers, body });
    desk.count.send_replace(seen.len());
    (desk.answer)(seen.len())
}

impl Receiver {
    /// `with` gets the number of the request, from 1.
    async fn answering<R: IntoResponse>(
        with: impl Fn(usize) -> R + Send + Sync + 'static,
    ) -> Receiver {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let count = watch::Sender::new(0);
        let answers: Answer = Arc::new(move |number| with(number).into_response());
        let desk = Desk { seen: Arc::clone(&seen), count: count.clone(), answer: answers };
        let router = Router::new().fallback(answer).with_state(desk);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut serving = JoinSet::new();
        serving.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Receiver { address, seen, count, _serving: serving }
    }

    fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    fn config(&self, to: &str, more: &str) -> NotifyConfig {
        let url = format!("http://{}/hook/s3cret?a=1", self.address);
        toml::from_str(&format!("[[route]]\nto = \"{to}\"\nurl = \"{url}\"\n{more}")).unwrap()
    }

    fn built(&self, to: &str, more: &str) -> Built {
        build_with(&self.config(to, more), &|_| None).unwrap().remove(0)
    }

    async fn tell(&self, to: &str) -> Result<(), NotifyError> {
        let notice = Notice::test(Timestamp::from_millis(0));
        self.built(to, "").notifier.unwrap().notify(&notice).await
    }
}

#[tokio::test]
async fn a_webhook_gets_the_notice_as_json() {
    let receiver = Receiver::answering(|_| StatusCode::NO_CONTENT).await;
    receiver.tell("webhook").await.unwrap();
    let seen = receiver.seen().remove(0);
    assert_eq!(seen.uri, "/hook/s3cret?a=1");
    assert_eq!(seen.headers["content-type"], "application/json; charset=utf-8");
    assert!(seen.headers["user-agent"].to_str().unwrap().starts_with("rewheel/"));
    assert_eq!((&seen.body["event"], &seen.body["severity"]), (&json!("test"), &json!("info")));
}

#[tokio::test]
async fn each_chat_gets_its_own_language() {
    let receiver = Receiver::answering(|_| r#"{"code":0,"errcode":0}"#).await;
    for to in ["slack", "feishu", "dingtalk"] {
        receiver.tell(to).await.unwrap();
    }
    let seen = receiver.seen();
    let texts =
        [&seen[0].body["text"], &seen[1].body["content"]["text"], &seen[2].body["text"]["content"]];
    for text in texts {
        let text = text.as_str().unwrap();
        assert!(text.starts_with("[info] test: test notification"), "{text}");
    }
}

#[track_caller]
fn check(told: Result<(), NotifyError>, verdict: Verdict, message: &str) {
    let error = told.unwrap_err();
    assert_eq!(error.verdict, verdict, "{error}");
    assert!(error.message.contains(message), "{error} does not say {message:?}");
    assert!(!error.message.contains("s3cret"), "{error} gives the secret away");
}

#[tokio::test]
async fn what_may_pass_is_tried_again_and_what_may_not_is_not() {
    let busy = Receiver::answering(|_| (StatusCode::SERVICE_UNAVAILABLE, "busy")).await;
    check(busy.tell("webhook").await, Verdict::Retry, "503 Service Unavailable: busy");
    let gone = Receiver::answering(|_| (StatusCode::NOT_FOUND, "no_team")).await;
    check(gone.tell("slack").await, Verdict::Stop, "404 Not Found: no_team");
    let fast =
        Receiver::answering(|_| (StatusCode::TOO_MANY_REQUESTS, [("retry-after", "7")], "")).await;
    check(fast.tell("slack").await, Verdict::RetryAfter(seconds(7)), "429");
    let elsewhere =
        Receiver::answering(|_| (StatusCode::FOUND, [("location", "http://127.0.0.1:1/")], ""))
            .await;
    check(elsewhere.tell("webhook").await, Verdict::Stop, "302");
    let unsigned = Receiver::answering(|_| r#"{"code":19021,"msg":"sign match fail"}"#).await;
    check(unsigned.tell("feishu").await, Verdict::Stop, "sign match fail");
}

#[tokio::test]
async fn a_missing_receiver_is_reported_without_the_path() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let absent = Receiver {
        address,
        seen: Arc::default(),
        count: watch::Sender::new(0),
        _serving: JoinSet::new(),
    };
    check(absent.tell("webhook").await, Verdict::Retry, &format!("from http://{address}: "));
}

#[tokio::test]
async fn a_url_and_a_secret_may_come_from_the_environment() {
    let receiver = Receiver::answering(|_| r#"{"code":0}"#).await;
    let text = "[[route]]\nto = \"feishu\"\nurl = \"http://${HOST}/x\"\nsecrets = [\"${SECRET}\"]";
    let config: NotifyConfig = toml::from_str(text).unwrap();
    let host = receiver.address.to_string();
    let built = build_with(&config, &|name| match name {
        "HOST" => Some(host.clone()),
        "SECRET" => Some("hunter2".to_owned()),
        _ => None,
    });
    let built = built.unwrap().remove(0);
    built
        .notifier
        .as_ref()
        .unwrap()
        .notify(&Notice::test(Timestamp::from_millis(0)))
        .await
        .unwrap();
    assert!(receiver.seen()[0].body["sign"].is_string());
    assert!(!format!("{built:?}").contains("hunter2"));
    let error = build_with(&config, &|_| None).unwrap_err().to_string();
    assert_eq!(
        error,
        "notify.route.0.url: uses the environment variable `HOST`, which is not set: set it and restart the server"
    );
}

#[tokio::test]
async fn what_an_answer_repeats_of_the_url_is_masked_and_on_one_line() {
    let repeats =
        Receiver::answering(|_| (StatusCode::NOT_FOUND, "no /hook/s3cret-path\n\x1b[2J")).await;
    let url = format!("http://{}/hook/s3cret-path", repeats.address);
    let text = format!("[[route]]\nto = \"slack\"\nurl = \"{url}\"");
    let config: NotifyConfig = toml::from_str(&text).unwrap();
    assert!(!format!("{config:?}").contains("s3cret"), "{config:?}");
    let built = build_with(&config, &|_| None).unwrap().remove(0);
    let told =
        built.notifier.as_ref().unwrap().notify(&Notice::test(Timestamp::from_millis(0))).await;
    check(told, Verdict::Stop, r"404 Not Found: no /hook/***\n\u{1b}[2J");
}

/// From a job to the wire, with a first response that asks for a retry.
#[tokio::test]
async fn a_dead_letter_arrives_though_the_first_try_fails() {
    let receiver =
        Receiver::answering(
            |number| {
                if number == 1 { StatusCode::BAD_GATEWAY } else { StatusCode::OK }
            },
        )
        .await;
    let config = receiver.config("webhook", "events = [\"not_retryable\"]");
    let mut engine = Engine::builder(Arc::new(MemoryStore::new()))
        .notify_settings(config.settings())
        .raw_handler("mail", |_| async {
            Report::Dead(Failure::new(Category::Rejected, Some("404"), "no such user"))
        });
    for built in build_with(&config, &|_| None).unwrap() {
        engine = engine.notifier(&built.name, built.route, built.notifier.unwrap());
    }
    let engine = engine.start().await.unwrap();
    let job = engine.submit_raw("mail", Vec::new()).await.unwrap().id;
    receiver.count.subscribe().wait_for(|count| *count == 2).await.unwrap();
    engine.shutdown(seconds(1)).await;
    let seen = receiver.seen();
    assert_eq!((seen.len(), &seen[0].body), (2, &seen[1].body));
    let ids = [0, 1].map(|attempt: usize| &seen[attempt].headers["webhook-id"]);
    assert_eq!(ids[0], ids[1], "a receiver must see that it is the same message");
    assert_eq!(seen[1].body["job"], job.to_string());
    assert_eq!(seen[1].body["reason"], "not_retryable");
    assert_eq!(seen[1].body["error"], "rejected 404: no such user");
    let counts = engine.notify_counts().remove(0);
    assert_eq!((counts.name.as_str(), counts.sent, counts.failed), ("webhook (route 0)", 1, 0));
}

#[tokio::test]
async fn trying_out_tells_of_each_route_what_happened() {
    let good = Receiver::answering(|_| "ok").await;
    let bad = Receiver::answering(|_| (StatusCode::FORBIDDEN, "invalid_token")).await;
    let mut config = good.config("slack", "severity = \"critical\"\nkinds = [\"mail\"]");
    config.route.extend(bad.config("slack", "").route);
    let refunds: NotifyConfig = toml::from_str("[[route]]\nto = \"job:refund\"").unwrap();
    config.route.extend(refunds.route);
    let tried = try_out(&config).await.unwrap();
    let told: Vec<_> = tried.into_iter().map(|t| (t.name, t.result)).collect();
    let failed = RouteTestResult::Failed("403 Forbidden: invalid_token".to_owned());
    let expected = [
        ("slack (route 0)", RouteTestResult::Sent),
        ("slack (route 1)", failed),
        ("job:refund (route 2)", RouteTestResult::NotTried),
    ];
    assert_eq!(told, expected.map(|(name, result)| (name.to_owned(), result)));
    assert_eq!((good.seen().len(), bad.seen().len()), (1, 1));
}
