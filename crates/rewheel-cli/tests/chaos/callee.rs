//! The callback server of the jobs: it records every call.

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// One call as the callee saw it.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) node: String,
    pub(crate) fence: u64,
    /// The kind that the node named.
    pub(crate) kind: String,
    pub(crate) at: Instant,
    /// `None` while it waits for its response, and forever if the caller disconnected.
    pub(crate) answered: Option<StatusCode>,
}

/// A server with three paths: `/work` fails every fifth time, `/held` delays the first two calls of
/// each job, `/steady` always succeeds.
#[derive(Debug)]
pub(crate) struct Callee {
    pub(crate) url: String,
    seen: Arc<Seen>,
    _serving: JoinSet<()>,
}

#[derive(Debug)]
struct Seen {
    calls: Mutex<BTreeMap<String, Vec<Call>>>,
    count: Mutex<u64>,
    /// How often `/held` was told to answer first calls and second calls.
    released: [watch::Sender<u64>; 2],
}

impl Callee {
    pub(crate) async fn start() -> Callee {
        let seen = Arc::new(Seen {
            calls: Mutex::default(),
            count: Mutex::default(),
            released: [watch::Sender::new(0), watch::Sender::new(0)],
        });
        let app = Router::new()
            .route("/work", post(work))
            .route("/held", post(held))
            .route("/steady", post(steady))
            .with_state(Arc::clone(&seen));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let mut serving = JoinSet::new();
        serving.spawn(async move { axum::serve(listener, app).await.unwrap() });
        Callee { url, seen, _serving: serving }
    }

    /// Answers the first calls that `/held` delays, with success; later ones wait again.
    pub(crate) fn release_first(&self) {
        self.seen.released[0].send_modify(|times| *times += 1);
    }

    /// Answers the second calls that `/held` delays, with success; later ones wait again.
    pub(crate) fn release_second(&self) {
        self.seen.released[1].send_modify(|times| *times += 1);
    }

    pub(crate) fn calls_of(&self, job: &str) -> Vec<Call> {
        self.seen.calls.lock().unwrap().get(job).cloned().unwrap_or_default()
    }

    /// Checks that no two attempts of a job had the same fence: a callee can tell them apart.
    pub(crate) fn assert_fences_are_unique(&self) {
        for (job, calls) in self.seen.calls.lock().unwrap().iter() {
            let fences: BTreeSet<u64> = calls.iter().map(|call| call.fence).collect();
            assert_eq!(fences.len(), calls.len(), "{job}: {calls:#?}");
        }
    }

    /// Returns the number of calls.
    pub(crate) fn count(&self) -> u64 {
        *self.seen.count.lock().unwrap()
    }

    /// Returns how many calls each node made.
    pub(crate) fn count_by_node(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for call in self.seen.calls.lock().unwrap().values().flatten() {
            *counts.entry(call.node.clone()).or_default() += 1;
        }
        counts
    }

    /// Waits until the calls of a job are as wanted, and returns them.
    pub(crate) async fn wait_for(
        &self,
        job: &str,
        within: Duration,
        wanted: impl Fn(&[Call]) -> bool,
    ) -> Vec<Call> {
        let started = Instant::now();
        loop {
            let calls = self.calls_of(job);
            if wanted(&calls) {
                return calls;
            }
            assert!(started.elapsed() < within, "{job} after {within:?}: {calls:?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

impl Seen {
    /// Records the call, and returns how many there were before: of this job, and in total.
    fn enter(&self, headers: &HeaderMap) -> (Entry, u64) {
        let header = |name: &str| headers[name].to_str().unwrap().to_owned();
        let call = Call {
            node: header("x-node"),
            fence: header("rewheel-fence").parse().unwrap(),
            kind: header("rewheel-kind"),
            at: Instant::now(),
            answered: None,
        };
        let job = header("webhook-id");
        let mut calls = self.calls.lock().unwrap();
        let of_job = calls.entry(job.clone()).or_default();
        of_job.push(call);
        let index = of_job.len() - 1;
        let mut count = self.count.lock().unwrap();
        *count += 1;
        (Entry { job, index }, *count - 1)
    }

    fn answer(&self, entry: &Entry, status: StatusCode) -> StatusCode {
        let mut calls = self.calls.lock().unwrap();
        calls.get_mut(&entry.job).unwrap()[entry.index].answered = Some(status);
        status
    }
}

/// The number of a call, and its job.
struct Entry {
    job: String,
    index: usize,
}

async fn work(State(seen): State<Arc<Seen>>, headers: HeaderMap) -> StatusCode {
    let (entry, before) = seen.enter(&headers);
    tokio::time::sleep(Duration::from_millis(before % 20)).await;
    let fails = before.is_multiple_of(5);
    seen.answer(&entry, if fails { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK })
}

async fn held(State(seen): State<Arc<Seen>>, headers: HeaderMap) -> StatusCode {
    let (entry, _) = seen.enter(&headers);
    if let Some(released) = seen.released.get(entry.index) {
        let mut released = released.subscribe();
        let before = *released.borrow();
        released.wait_for(|times| *times > before).await.unwrap();
    }
    seen.answer(&entry, StatusCode::OK)
}

async fn steady(State(seen): State<Arc<Seen>>, headers: HeaderMap) -> StatusCode {
    let (entry, _) = seen.enter(&headers);
    seen.answer(&entry, StatusCode::OK)
}
