//! Starts a server with a kind whose callee fails each job once.

use crate::node::Node;
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use serde_json::Value;
use std::future::IntoFuture as _;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// Timeout for something that takes a second or two, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(180);

/// Waits until a condition holds.
pub(crate) async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let wait = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, wait).await.is_ok(), "{what}: not after {PATIENCE:?}");
}

/// The callee of the kind.
pub(crate) struct Callee {
    pub(crate) address: SocketAddr,
    heard: Arc<Mutex<Vec<String>>>,
    _serving: JoinSet<()>,
}

impl Callee {
    async fn start() -> Callee {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let heard = Arc::<Mutex<Vec<String>>>::default();
        let router = Router::new().route("/hook", post(hook)).with_state(Arc::clone(&heard));
        let mut serving = JoinSet::new();
        serving.spawn(async move { axum::serve(listener, router).into_future().await.unwrap() });
        Callee { address, heard, _serving: serving }
    }

    /// Returns the `traceparent` of each call, in order.
    pub(crate) fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }
}

async fn hook(State(heard): State<Arc<Mutex<Vec<String>>>>, headers: HeaderMap) -> StatusCode {
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap().to_owned());
    heard.lock().unwrap().push(text("traceparent").unwrap_or_default());
    let is_first = text("rewheel-attempt").as_deref() == Some("1");
    if is_first { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK }
}

/// A config with these lines in `[telemetry]`; the callee's address is added.
pub(crate) fn config(telemetry: &str) -> String {
    format!(
        r#"
[telemetry]
{telemetry}

[kinds.charge-card]
runner = "callback"
backoff = "fixed 50ms"
attempts_max = 3
[kinds.charge-card.callback]
url = "http://CALLEE/hook?token=secret"
allow = ["127.0.0.0/8"]
"#
    )
}

/// A server and its callee.
pub(crate) struct Served {
    pub(crate) node: Node,
    pub(crate) callee: Callee,
    /// The latest job.
    pub(crate) job: String,
    client: reqwest::Client,
    _folder: TempDir,
}

pub(crate) async fn serve(config: &str, env: &[(String, String)]) -> Served {
    let (callee, folder) = (Callee::start().await, tempfile::tempdir().unwrap());
    let store = format!("[store]\nurl = \"sqlite://{}\"\n", folder.path().join("db").display());
    let config = config.replace("CALLEE", &callee.address.to_string());
    let path = folder.path().join("rewheel.toml");
    std::fs::write(&path, format!("{store}{config}")).unwrap();
    let node = Node::start(&path, "one", env).await;
    let client = reqwest::Client::builder().no_proxy().timeout(PATIENCE).build().unwrap();
    Served { node, callee, job: String::new(), client, _folder: folder }
}

impl Served {
    pub(crate) async fn submit(&mut self, traceparent: Option<&str>) {
        let mut request = self.client.post(format!("{}/v1/jobs", self.node.url));
        if let Some(traceparent) = traceparent {
            request = request.header("traceparent", traceparent);
        }
        let body = r#"{"kind":"charge-card","payload":{"order":17}}"#;
        let answer = request.body(body).send().await.unwrap();
        assert_eq!(answer.status(), 201);
        let job: Value = answer.json().await.unwrap();
        self.job = job["id"].as_str().unwrap().to_owned();
    }

    pub(crate) async fn until_succeeded(&self) {
        let url = format!("{}/v1/jobs/{}", self.node.url, self.job);
        until("the job succeeds", async || {
            let job: Value = self.client.get(&url).send().await.unwrap().json().await.unwrap();
            job["state"] == "succeeded"
        })
        .await;
    }
}
