//! Submits jobs continuously and records which were acknowledged.

use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinSet;

/// The current addresses of the nodes: a restarted node has a new one.
pub(crate) type Urls = Arc<Mutex<Vec<String>>>;

const BATCH: usize = 10;

/// A running submitter.
pub(crate) struct Submitter {
    enough: Arc<AtomicBool>,
    work: JoinSet<Vec<String>>,
}

impl Submitter {
    pub(crate) fn start(client: reqwest::Client, urls: Urls, pause: Duration) -> Submitter {
        let enough = Arc::new(AtomicBool::new(false));
        let mut work = JoinSet::new();
        work.spawn(submit(client, urls, pause, Arc::clone(&enough)));
        Submitter { enough, work }
    }

    /// Ends after the current batch; returns the ids of all acknowledged jobs.
    pub(crate) async fn end(mut self) -> Vec<String> {
        self.enough.store(true, Ordering::Relaxed);
        self.work.join_next().await.unwrap().unwrap()
    }
}

/// A batch without an acknowledgement may still be stored: it is submitted again with its keys
/// until a node acknowledges it, so that each key becomes one job.
async fn submit(
    client: reqwest::Client,
    urls: Urls,
    pause: Duration,
    enough: Arc<AtomicBool>,
) -> Vec<String> {
    let mut acknowledged = Vec::new();
    let mut node = 0;
    for batch in 0.. {
        if enough.load(Ordering::Relaxed) {
            break;
        }
        let job = |n| json!({"kind": "work", "payload": {}, "key": format!("job-{batch}-{n}")});
        let jobs = json!({ "jobs": (0..BATCH).map(job).collect::<Vec<_>>() });
        let answer = loop {
            node += 1;
            let url = {
                let urls = urls.lock().unwrap();
                format!("{}/v1/jobs/batch", urls[node % urls.len()])
            };
            match post(&client, &url, &jobs).await {
                Ok(answer) => break answer,
                Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        };
        let results = answer["results"].as_array().unwrap();
        let ids = results.iter().map(|result| result["id"].as_str().unwrap().to_owned());
        acknowledged.extend(ids);
        tokio::time::sleep(pause).await;
    }
    acknowledged
}

/// Posts once. An unavailable or failing node is an error; a rejected request is a bug.
pub(crate) async fn post(
    client: &reqwest::Client,
    url: &str,
    body: &Value,
) -> Result<Value, String> {
    let answer = client.post(url).json(body).send().await.map_err(|error| format!("{error:?}"))?;
    let status = answer.status();
    let text = answer.text().await.map_err(|error| format!("{error:?}"))?;
    if status.is_success() {
        return Ok(serde_json::from_str(&text).unwrap());
    }
    assert!(status.is_server_error(), "{status}: {text}");
    Err(format!("{status}: {text}"))
}
