//! Checks what must be true when a cell ends.

use crate::callee::Call;
use crate::cell::Cell;
use reqwest::header::CONTENT_TYPE;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// How long the last job may take after the last fault.
const DRAIN_MAX: Duration = Duration::from_secs(300);

/// Tries of a request, each of which may take as long as the client waits.
const TRIES_MAX: usize = 30;

/// What the doctor may say of a cluster: its cells decide themselves what a failover may lose.
const ALLOWED: &str = "min-replicas-to-write";

/// Every job of a store, by its id.
pub(crate) type Jobs = BTreeMap<String, Value>;

/// A store whose jobs have all ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) jobs: Jobs,
    /// The acknowledged jobs that the store does not know.
    pub(crate) lost: Vec<String>,
    drained: Duration,
    /// What `rewheel doctor` found.
    pub(crate) found: Value,
}

impl Cell {
    /// Waits until every job has ended, then checks all guarantees. Returns the jobs.
    ///
    /// `acknowledged` must be all jobs that were ever submitted here, each with a key.
    pub(crate) async fn balance(&self, acknowledged: &[String]) -> Jobs {
        let Ended { jobs, lost, drained, found } = self.ended(acknowledged).await;
        assert!(lost.is_empty(), "lost: {lost:?}");
        let checks = found["checks"].as_array().unwrap().iter();
        let bad = checks.filter(|check| check["ok"] == false && check["name"] != ALLOWED);
        assert_eq!(bad.count(), 0, "{found}");
        let submitted = found["books"]["submitted"].as_u64();
        assert_eq!(submitted, Some(acknowledged.len() as u64), "one key, two jobs: {found}");
        println!(
            "{} jobs acknowledged, {} calls {:?}, drained in {:.1} s, none lost; books {}",
            acknowledged.len(),
            self.callee.count(),
            self.callee.count_by_node(),
            drained.as_secs_f64(),
            found["books"],
        );
        jobs
    }

    /// Waits until every job has ended, then checks what must be true even if the store forgot some.
    pub(crate) async fn ended(&self, acknowledged: &[String]) -> Ended {
        let ids: BTreeSet<&String> = acknowledged.iter().collect();
        assert_eq!(ids.len(), acknowledged.len(), "two keys are one job");
        let drained = self.drain().await;
        let jobs = self.jobs("").await;
        let lost = ids.iter().filter(|id| !jobs.contains_key(**id)).map(|id| (*id).clone());
        for (id, job) in &jobs {
            assert_eq!(job["state"], "succeeded", "{job}");
            let calls = self.callee.calls_of(id);
            let newest = calls.iter().map(|call| call.fence).max();
            assert_eq!(job["fence"].as_u64(), newest, "a late holder settled {job}: {calls:#?}");
            let is_its_kind = |call: &Call| job["kind"] == call.kind;
            assert!(calls.iter().all(is_its_kind), "{job} ran as another kind: {calls:#?}");
        }
        self.callee.assert_fences_are_unique();
        let (_, found) = self.doctor().await;
        assert_eq!(found["books"]["missing"], 0, "{found}");
        Ended { lost: lost.collect(), jobs, drained, found }
    }

    /// Waits until every job has ended, and returns how long that took.
    pub(crate) async fn drain(&self) -> Duration {
        let started = Instant::now();
        loop {
            let left = self.jobs("state=scheduled&state=leased&state=paused&").await;
            if left.is_empty() {
                return started.elapsed();
            }
            if started.elapsed() > DRAIN_MAX {
                let said: Vec<_> = self.nodes.iter().map(|node| node.said()).collect();
                let some: Vec<_> = left.values().take(3).collect();
                panic!("{} jobs do not end: {some:#?} {said:#?}", left.len());
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Lists the jobs that match a filter.
    pub(crate) async fn jobs(&self, filter: &str) -> Jobs {
        let mut jobs = Jobs::new();
        let mut cursor = String::new();
        loop {
            let path = format!("/v1/jobs?{filter}limit=1000{cursor}");
            let (_, page) = self.get(&path).await;
            let page: Value = serde_json::from_slice(&page).unwrap();
            let items = page["items"].as_array().unwrap_or_else(|| panic!("no list: {page}"));
            let id = |job: &Value| job["id"].as_str().unwrap().to_owned();
            jobs.extend(items.iter().map(|job| (id(job), job.clone())));
            match page["next"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return jobs,
            }
        }
    }

    /// Gets from the first node, which must be running. A busy machine may need several tries. Returns the content type and the body.
    pub(crate) async fn get(&self, path: &str) -> (String, Vec<u8>) {
        let url = format!("{}{path}", self.nodes[0].url);
        for tries in 1.. {
            let answer = async {
                let answer = self.client.get(&url).send().await?;
                let (status, content_type) =
                    (answer.status(), answer.headers()[CONTENT_TYPE].clone());
                Ok::<_, reqwest::Error>((status, content_type, answer.bytes().await?))
            };
            match answer.await {
                Ok((status, content_type, body)) => {
                    assert!(status.is_success(), "{path}: {status} {body:?}");
                    return (content_type.to_str().unwrap().to_owned(), body.to_vec());
                }
                Err(error) => assert!(tries < TRIES_MAX, "{path}: {error:?}"),
            }
        }
        unreachable!("it tries until it returns")
    }

    /// Runs `rewheel doctor`. Returns whether it found nothing wrong, and what it says.
    pub(crate) async fn doctor(&self) -> (bool, Value) {
        let output = tokio::process::Command::new(env!("CARGO_BIN_EXE_rewheel"))
            .args(["doctor", "--json", "--store", &self.store])
            .output()
            .await
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let found = serde_json::from_str(&text);
        let found = found.unwrap_or_else(|_| panic!("the doctor says nothing: {output:?}"));
        (output.status.success(), found)
    }
}
