//! Sends requests to any node until one of them answers.

use crate::submitter::Urls;
use reqwest::{Client, Method, StatusCode};
use serde_json::Value;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The nodes of a cell, as a client sees them.
#[derive(Debug)]
pub(crate) struct Door {
    client: Client,
    urls: Urls,
    /// Number of requests that were sent.
    sent: AtomicUsize,
}

/// A response that is not the error of a node.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) body: Value,
    /// Whether an earlier try had no response. The node may have done what it asked for, or may still do it.
    pub(crate) is_repeated: bool,
}

impl Door {
    pub(crate) fn new(client: Client, urls: Urls) -> Door {
        Door { client, urls, sent: AtomicUsize::new(0) }
    }

    /// Posts until a node has done it. A rejected request is a bug.
    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        let answer = self.send(&Method::POST, path, || Some(body.clone())).await;
        assert!(answer.status.is_success(), "{path} {body}: {answer:?}");
        answer
    }

    /// Gets until a node responds.
    pub(crate) async fn get(&self, path: &str) -> Value {
        let answer = self.send(&Method::GET, path, || None).await;
        assert!(answer.status.is_success(), "{path}: {answer:?}");
        answer.body
    }

    /// Sends to one node after the other until one responds with anything but the error of a server. Each try has a new body.
    pub(crate) async fn send(
        &self,
        method: &Method,
        path: &str,
        body: impl Fn() -> Option<Value>,
    ) -> Answer {
        let mut is_repeated = false;
        loop {
            if let Some((status, body)) = self.send_once(method, path, body()).await {
                return Answer { status, body, is_repeated };
            }
            is_repeated = true;
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn send_once(
        &self,
        method: &Method,
        path: &str,
        body: Option<Value>,
    ) -> Option<(StatusCode, Value)> {
        let sent = self.sent.fetch_add(1, Ordering::Relaxed);
        let url = {
            let urls = self.urls.lock().unwrap();
            format!("{}{path}", urls[sent % urls.len()])
        };
        let mut request = self.client.request(method.clone(), url);
        if let Some(body) = body {
            request = request.json(&body);
        }
        let answer = request.send().await.ok()?;
        let status = answer.status();
        let text = answer.text().await.ok()?;
        if status.is_server_error() {
            return None;
        }
        Some((status, serde_json::from_str(&text).unwrap_or_else(|_| panic!("{path}: {text}"))))
    }
}

/// Returns the id of a job in a response.
pub(crate) fn id_of(job: &Value) -> String {
    job["id"].as_str().unwrap_or_else(|| panic!("no id: {job}")).to_owned()
}

/// Returns the ids in the response to a batch, in its order.
pub(crate) fn ids_of(batch: &Answer) -> Vec<String> {
    batch.body["results"].as_array().unwrap().iter().map(id_of).collect()
}
