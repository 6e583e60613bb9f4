//! Makes one callback, and records what the callee receives.

use axum::Router;
use axum::body::Bytes;
use axum::extract::{ConnectInfo, State};
use axum::http::{HeaderMap, Method, Uri};
use axum::response::{IntoResponse, Response};
use rewheel::{CancelToken, Verdict, seconds};
use rewheel_core::{
    DueReason, Failure, Fence, Job, JobId, KindName, Lane, Priority, Report, Shard, Status,
    Timestamp, Version,
};
use rewheel_server::callback::{Callback, CallbackRunner, Clients};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

pub(super) const KIND: &str = "charge-card";

/// A server that records its requests, and always gives the same response.
pub(super) struct Callee {
    pub(super) address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    _serving: JoinSet<()>,
}

#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) from: SocketAddr,
    pub(super) method: Method,
    pub(super) uri: Uri,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
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
    pub(super) async fn answering<R: IntoResponse>(
        with: impl Fn() -> R + Send + Sync + 'static,
    ) -> Callee {
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

    pub(super) fn settings(&self) -> Value {
        json!({"url": format!("http://{}/hook", self.address), "allow": ["127.0.0.0/8"]})
    }

    pub(super) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

pub(super) fn runner(settings: &Value) -> CallbackRunner {
    let callback = Callback::parse(settings).unwrap();
    CallbackRunner::new(KindName::parse(KIND).unwrap(), callback, &Clients::new()).unwrap()
}

pub(super) fn job(payload: &Value) -> Job {
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
        instant: None,
        group: None,
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

pub(super) async fn call(settings: &Value, job: &Job, ends_in: Duration) -> Report {
    runner(settings).call(job, job.attempt + 1, ends_in, 0, &CancelToken::new()).await
}

pub(super) async fn call_once(settings: &Value) -> Report {
    call(settings, &job(&json!({"order": 17})), seconds(30)).await
}

#[track_caller]
pub(super) fn failed(report: Report) -> (Verdict, Failure) {
    let Report::AttemptFailed { verdict, failure } = report else {
        panic!("it did not fail: {report:?}");
    };
    (verdict, failure)
}

pub(super) async fn listen() -> (TcpListener, Value) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    (listener, json!({"url": url, "allow": ["127.0.0.1"]}))
}
