//! The service that the jobs of the mixed workload call: it records every call with its turn, fence and payload.

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// How long every third call of `slow-tick` takes: longer than the period of its schedule.
const SLOW: Duration = Duration::from_millis(1_200);

/// One call.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) turn: Option<u64>,
    pub(crate) fence: u64,
    pub(crate) instant: Option<String>,
    pub(crate) payload: Value,
    pub(crate) at: Instant,
    /// `None` while it waits for its response, and forever if the caller disconnected.
    pub(crate) answered: Option<(Instant, StatusCode)>,
}

impl Call {
    /// The order of calls within a group.
    pub(crate) fn order(&self) -> (Option<u64>, u64) {
        (self.turn, self.fence)
    }
}

/// A server with one path for each kind.
#[derive(Debug)]
pub(crate) struct Service {
    pub(crate) url: String,
    /// The same service at another address, which asks callers to wait: only its own kinds do so.
    pub(crate) throttling_url: String,
    seen: Arc<Seen>,
    _serving: JoinSet<()>,
}

#[derive(Debug, Default)]
struct Seen {
    /// The calls of each job.
    calls: Mutex<BTreeMap<String, Vec<Call>>>,
    /// Number of calls of each kind.
    counts: Mutex<BTreeMap<String, u64>>,
    /// Number of calls of each kind that were told to wait.
    throttled: Mutex<BTreeMap<String, u64>>,
    /// Jobs with a mistake that an operator has repaired.
    repaired: Mutex<BTreeSet<String>>,
}

impl Service {
    pub(crate) async fn start() -> Service {
        let seen = Arc::new(Seen::default());
        let app = Router::new().route("/{kind}", post(call)).with_state(Arc::clone(&seen));
        let mut serving = JoinSet::new();
        let mut urls = Vec::new();
        for _ in 0..2 {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            urls.push(format!("http://{}", listener.local_addr().unwrap()));
            let app = app.clone();
            serving.spawn(async move { axum::serve(listener, app).await.unwrap() });
        }
        let (throttling_url, url) = (urls.remove(1), urls.remove(0));
        Service { url, throttling_url, seen, _serving: serving }
    }

    pub(crate) fn calls_of(&self, job: &str) -> Vec<Call> {
        self.seen.calls.lock().unwrap().get(job).cloned().unwrap_or_default()
    }

    /// Returns the number of calls of each kind.
    pub(crate) fn counts(&self) -> BTreeMap<String, u64> {
        self.seen.counts.lock().unwrap().clone()
    }

    /// Returns the number of calls of each kind that were told to wait.
    pub(crate) fn throttled(&self) -> BTreeMap<String, u64> {
        self.seen.throttled.lock().unwrap().clone()
    }

    /// Removes the mistake of a job that is rejected.
    pub(crate) fn repair(&self, job: &str) {
        self.seen.repaired.lock().unwrap().insert(job.to_owned());
    }
}

impl Seen {
    /// Records a call. Returns its index among those of its job, and how many there were of its kind.
    fn enter(&self, kind: &str, job: &str, call: Call) -> (usize, u64) {
        let mut calls = self.calls.lock().unwrap();
        let of_job = calls.entry(job.to_owned()).or_default();
        of_job.push(call);
        let mut counts = self.counts.lock().unwrap();
        let count = counts.entry(kind.to_owned()).or_default();
        *count += 1;
        (of_job.len() - 1, *count - 1)
    }

    /// Returns how a call is answered, and after what time.
    fn decide(
        &self,
        kind: &str,
        job: &str,
        payload: &Value,
        before: u64,
    ) -> (StatusCode, Duration) {
        let is_broken = payload["dies"] == true && !self.repaired.lock().unwrap().contains(job);
        let status = match kind {
            "doomed" => StatusCode::SERVICE_UNAVAILABLE,
            _ if is_broken => StatusCode::UNPROCESSABLE_ENTITY,
            "metered" | "polite" if before % 20 == 5 => StatusCode::TOO_MANY_REQUESTS,
            _ if before % 6 == 1 => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::OK,
        };
        let takes = match kind {
            "slow-tick" if before.is_multiple_of(3) => SLOW,
            _ => Duration::from_millis(before % 15),
        };
        (status, takes)
    }
}

async fn call(
    State(seen): State<Arc<Seen>>,
    Path(kind): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let header = |name: &str| headers.get(name).map(|value| value.to_str().unwrap().to_owned());
    let job = header("webhook-id").unwrap();
    let fence = header("rewheel-fence").unwrap().parse().unwrap();
    let payload: Value = serde_json::from_slice(&body).unwrap();
    let call = Call {
        turn: header("rewheel-turn").map(|turn| turn.parse().unwrap()),
        fence,
        instant: header("rewheel-instant"),
        payload: payload.clone(),
        at: Instant::now(),
        answered: None,
    };
    let (index, before) = seen.enter(&kind, &job, call);
    let (status, takes) = seen.decide(&kind, &job, &payload, before);
    tokio::time::sleep(takes).await;
    seen.calls.lock().unwrap().get_mut(&job).unwrap()[index].answered =
        Some((Instant::now(), status));
    let more: &[(HeaderName, &str)] = match status {
        StatusCode::TOO_MANY_REQUESTS => {
            *seen.throttled.lock().unwrap().entry(kind).or_default() += 1;
            &[(RETRY_AFTER, "1")]
        }
        _ => &[(CONTENT_TYPE, "application/json")],
    };
    let headers: HeaderMap =
        more.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect();
    // The body is the result of a kind that keeps results.
    (status, headers, json!({ "fence": fence }).to_string()).into_response()
}
