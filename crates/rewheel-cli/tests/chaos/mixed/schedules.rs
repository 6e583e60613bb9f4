//! Two schedules that fire every second: one may overlap with itself, one may not.

use super::ended::Ended;
use crate::door::Door;
use reqwest::Method;
use rewheel_server::rfc3339;
use serde_json::{Value, json};
use std::collections::BTreeSet;

const PERIOD_MS: i64 = 1_000;

#[derive(Debug)]
pub(crate) struct Schedules {
    /// The first instant of the one that may overlap.
    first_ms: i64,
    /// Both as they were when they had been paused.
    paused: Vec<Value>,
}

impl Schedules {
    /// Puts both, before the first fault.
    pub(crate) async fn put(door: &Door) -> Schedules {
        let mut first_ms = 0;
        for (name, overlap) in [("slow-tick", "skip"), ("tick", "allow")] {
            let body =
                json!({"every": "1s", "overlap": overlap, "job": {"kind": name, "payload": {}}});
            let answer = door.send(&Method::PUT, &path(name), || Some(body.clone())).await;
            assert!(answer.status.is_success() && !answer.is_repeated, "{answer:?}");
            first_ms = millis(&answer.body["next"][0]);
        }
        Schedules { first_ms, paused: Vec::new() }
    }

    /// Pauses both, after the last fault.
    pub(crate) async fn pause(&mut self, door: &Door) {
        for name in ["tick", "slow-tick"] {
            let paused = loop {
                let pause = format!("{}/pause", path(name));
                let answer = door.send(&Method::POST, &pause, || None).await;
                // It answers 409 while the schedule fires.
                if answer.status.is_success() {
                    break answer.body;
                }
            };
            self.paused.push(paused);
        }
    }

    pub(crate) fn check(&self, ended: &Ended<'_>) {
        for schedule in &self.paused {
            let (name, id) = (&schedule["name"], schedule["id"].as_str().unwrap());
            let jobs: Vec<_> = ended.children_of(id).collect();
            let instants: BTreeSet<_> =
                jobs.iter().map(|(_, job)| millis(&job["instant"])).collect();
            assert_eq!(instants.len(), jobs.len(), "an instant of {name} has two jobs");
            assert_eq!(schedule["fired"].as_u64(), Some(jobs.len() as u64), "{schedule}");
            assert!(!jobs.is_empty(), "it never fired: {schedule}");
            for (id, job) in &jobs {
                ended.succeeded(id);
                let calls = ended.service.calls_of(id);
                assert!(
                    calls.iter().all(|call| call.instant.as_deref() == job["instant"].as_str()),
                    "{job}: {calls:?}"
                );
            }
            println!(
                "schedule {name}: {} jobs, {} missed, {} skipped",
                jobs.len(),
                schedule["missed"],
                schedule["skipped"]
            );
        }
        self.check_instants(&self.paused[0]);
        check_overlap(ended, self.paused[1]["id"].as_str().unwrap());
    }

    /// Every instant from the first to the last one made a job, or was counted as missed.
    fn check_instants(&self, schedule: &Value) {
        let last = millis(&schedule["last"]["instant"]);
        let count = (last - self.first_ms) / PERIOD_MS + 1;
        let handled = ["fired", "missed", "skipped"].map(|name| schedule[name].as_i64().unwrap());
        assert_eq!(handled.iter().sum::<i64>(), count, "since {}: {schedule}", self.first_ms);
    }
}

/// No job was submitted before the previous one had ended, by the store's clock.
fn check_overlap(ended: &Ended<'_>, id: &str) {
    let mut jobs: Vec<_> = ended.children_of(id).map(|(_, job)| job).collect();
    jobs.sort_by_key(|job| millis(&job["instant"]));
    for pair in jobs.windows(2) {
        let (finished, created) = (millis(&pair[0]["finished"]), millis(&pair[1]["created"]));
        assert!(finished <= created, "{} overlaps with {}", pair[0], pair[1]);
    }
}

fn path(name: &str) -> String {
    format!("/v1/schedules/{name}")
}

fn millis(at: &Value) -> i64 {
    rfc3339::parse(at.as_str().unwrap_or_else(|| panic!("no time: {at}"))).unwrap().as_millis()
}
