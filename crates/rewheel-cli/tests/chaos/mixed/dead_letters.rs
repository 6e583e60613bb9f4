//! Jobs that end at their deadline, and the job that a route submits for each dead letter.

use super::ended::Ended;
use super::{Enough, PAUSE};
use crate::cell::Cell;
use crate::door::{Door, id_of};
use crate::ledger::Jobs;
use reqwest::{Method, StatusCode};
use rewheel_core::Timestamp;
use rewheel_server::rfc3339;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

const DEADLINE: Duration = Duration::from_secs(3);

/// The acknowledged jobs with a deadline.
#[derive(Debug)]
pub(crate) struct DeadLetters {
    doomed: Vec<String>,
}

impl DeadLetters {
    pub(crate) async fn submit(door: &Door, enough: &Enough) -> DeadLetters {
        let mut doomed = Vec::new();
        let mut nth = 0;
        while !enough.is_reached() {
            let job = || {
                Some(
                    json!({"kind": "doomed", "payload": {}, "key": nth.to_string(), "deadline": deadline()}),
                )
            };
            let answer = door.send(&Method::POST, "/v1/jobs", job).await;
            // On a busy machine the deadline passes before the request arrives: then nothing was stored.
            if answer.status != StatusCode::UNPROCESSABLE_ENTITY {
                assert!(answer.status.is_success(), "{answer:?}");
                doomed.push(id_of(&answer.body));
                nth += 1;
            }
            tokio::time::sleep(2 * PAUSE).await;
        }
        DeadLetters { doomed }
    }

    /// Returns how many dead letters wait for the job that the route submits.
    pub(crate) async fn left(cell: &Cell) -> usize {
        let dead = cell.jobs("state=dead&kind=doomed&kind=invoice&").await;
        let refunds = cell.jobs("kind=refund&").await;
        let parents = parents(&refunds);
        dead.keys().filter(|id| !parents.contains(id.as_str())).count()
    }

    pub(crate) async fn check(&self, ended: &Ended<'_>) {
        for id in &self.doomed {
            let job = ended.job(id);
            let end = (&job["state"], &job["failure"]["category"]);
            assert_eq!(end, (&json!("dead"), &json!("deadline")), "{job}");
        }
        let (mut dead, mut refunds) = (BTreeSet::new(), BTreeSet::new());
        for (id, job) in ended.of_kind("doomed").chain(ended.of_kind("invoice")) {
            if job["state"] == "dead" {
                dead.insert(id.as_str());
            }
        }
        for (id, job) in ended.of_kind("refund") {
            let parent = job["parent"].as_str().unwrap();
            assert!(refunds.insert(parent), "two refunds of {parent}");
            assert_eq!(job["key"], format!("dead-letter:{parent}"));
            ended.succeeded(id);
            ended.settled_by_newest(id);
            assert_eq!(ended.whole(id).await["payload"]["id"], parent);
        }
        assert_eq!(dead, refunds, "dead letters, and those with a refund");
        assert!(!self.doomed.is_empty(), "no job had a deadline");
        println!(
            "dead letters: {} at their deadline, {} refunds",
            self.doomed.len(),
            refunds.len()
        );
    }
}

fn parents(jobs: &Jobs) -> BTreeSet<&str> {
    jobs.values().map(|job: &Value| job["parent"].as_str().unwrap()).collect()
}

/// By this machine's clock, which is also the store's.
fn deadline() -> String {
    let at = SystemTime::now() + DEADLINE;
    let at = at.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis();
    rfc3339::text(Timestamp::from_millis(i64::try_from(at).unwrap()))
}
