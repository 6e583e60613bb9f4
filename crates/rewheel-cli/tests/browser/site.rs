//! A server whose jobs fail when a test says so.

use crate::browser::{Browser, Scripts, until};
use crate::node::Node;
use serde_json::{Value, json};
use tempfile::TempDir;

/// The admin token in the config of closed servers.
pub(crate) const ADMIN: &str = "0123456789abcdef0123456789abcdef";

/// Jobs of `mail` stay as they are, because nothing runs them; jobs of `charge-card` end as [`Site::settle`] says.
const CONFIG: &str = "
[store]
url = \"memory://\"
[kinds.mail]
[kinds.charge-card]
runner = \"worker\"
attempts_max = 3
";

/// A running server; it is killed when this value is dropped.
pub(crate) struct Site {
    node: Node,
    client: reqwest::Client,
    token: Option<&'static str>,
    _folder: TempDir,
}

impl Site {
    /// A server without tokens, which is open to its machine.
    pub(crate) async fn open() -> Site {
        Site::start(None).await
    }

    /// A server that asks for a token.
    pub(crate) async fn closed() -> Site {
        Site::start(Some(ADMIN)).await
    }

    async fn start(token: Option<&'static str>) -> Site {
        let folder = TempDir::new().unwrap();
        let config = folder.path().join("rewheel.toml");
        std::fs::write(&config, CONFIG).unwrap();
        let admin = |token: &str| ("REWHEEL__SERVER__ADMIN_TOKEN".to_owned(), token.to_owned());
        let environment: Vec<_> = token.into_iter().map(admin).collect();
        let node = Node::start(&config, "node-1", &environment).await;
        let client = reqwest::Client::builder().no_proxy().timeout(crate::PATIENCE);
        Site { node, client: client.build().unwrap(), token, _folder: folder }
    }

    pub(crate) fn url(&self) -> &str {
        &self.node.url
    }

    /// Returns a browser that runs scripts.
    pub(crate) async fn browser(&self) -> Browser {
        Browser::start(self.url(), Scripts::On).await
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        self.ask("GET", path, Value::Null).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Value {
        self.ask("POST", path, body).await
    }

    /// Sends a request to REST, as admin.
    pub(crate) async fn ask(&self, method: &str, path: &str, body: Value) -> Value {
        let url = format!("{}{path}", self.url());
        let mut request = self.client.request(method.parse().unwrap(), url);
        if let Some(token) = self.token {
            request = request.bearer_auth(token);
        }
        if !body.is_null() {
            request = request.body(body.to_string());
        }
        let answer = request.send().await.unwrap();
        let (status, text) = (answer.status(), answer.text().await.unwrap());
        assert!(status.is_success(), "{method} {path}: {status} {text}");
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// Submits a job, and returns its id.
    pub(crate) async fn submit(&self, job: Value) -> String {
        self.post("/v1/jobs", job).await["id"].as_str().unwrap().to_owned()
    }

    /// Submits jobs of `charge-card`.
    pub(crate) async fn charge(&self, count: usize) {
        let job = |order| json!({ "kind": "charge-card", "payload": { "order": order } });
        let jobs: Vec<Value> = (0..count).map(job).collect();
        self.post("/v1/jobs/batch", json!({ "jobs": jobs })).await;
    }

    /// Runs this number of due jobs of `charge-card` as a worker, each with this result.
    pub(crate) async fn settle(&self, count: usize, result: Value) {
        let mut left = count;
        let mut holder = Value::Null;
        until("the jobs are due", async || {
            let ask = json!({
                "holder": holder, "name": "worker-1", "kinds": ["charge-card"], "max": left, "wait": "5s",
            });
            let claimed = self.post("/v1/workers/claim", ask).await;
            holder = claimed["holder"].clone();
            let results: Vec<Value> =
                claimed["jobs"].as_array().unwrap().iter().map(|job| ended(job, &result)).collect();
            left -= results.len();
            if !results.is_empty() {
                let body = json!({ "holder": holder, "results": results });
                self.post("/v1/workers/settle", body).await;
            }
            left == 0
        })
        .await;
        self.post("/v1/workers/leave", json!({ "holder": holder })).await;
    }

    /// Makes dead letters of one cause.
    pub(crate) async fn dead_letters(&self, count: usize) {
        self.charge(count).await;
        self.settle(count, timeout()).await;
    }

    /// Returns the number of jobs of `charge-card` in a state.
    pub(crate) async fn jobs(&self, state: &str) -> usize {
        let listed = self.get(&format!("/v1/jobs?limit=1000&kind=charge-card&state={state}")).await;
        listed["items"].as_array().unwrap().len()
    }
}

/// A failure after which no attempt can help.
pub(crate) fn timeout() -> Value {
    json!({ "verdict": "dead", "category": "timeout", "code": "504", "message": "no answer of pay.example" })
}

fn ended(job: &Value, result: &Value) -> Value {
    let mut result = result.clone();
    result["id"] = job["id"].clone();
    result["fence"] = job["fence"].clone();
    result
}
