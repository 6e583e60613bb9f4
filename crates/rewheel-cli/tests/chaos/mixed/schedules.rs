//! Two schedules that fire every second: one may overlap with itself, one may not.

use super::DRAIN_MAX;
use super::ended::Ended;
use crate::door::Door;
use reqwest::Method;
use rewheel_server::rfc3339;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const PERIOD_MS: i64 = 1_000;

/// May overlap with itself.
const TICK: &str = "tick";

/// May not, and takes longer than a period.
const SLOW_TICK: &str = "slow-tick";

#[derive(Debug)]
pub(crate) struct Schedules {
    /// The first instant of the one that may overlap.
    first_ms: i64,
}

impl Schedules {
    /// Puts both, before the first fault.
    pub(crate) async fn put(door: &Door) -> Schedules {
        let mut first_ms = 0;
        for (name, overlap) in [(SLOW_TICK, "skip"), (TICK, "allow")] {
            let job = json!({"kind": name, "payload": {}});
            let body = json!({"every": "1s", "overlap": overlap, "job": job});
            let answer = door.send(&Method::PUT, &path(name), || Some(body.clone())).await;
            assert!(answer.status.is_success() && !answer.is_repeated, "{answer:?}");
            first_ms = millis(&answer.body["next"][0]);
        }
        Schedules { first_ms }
    }

    pub(crate) async fn check(&self, ended: &Ended<'_>) {
        for name in [TICK, SLOW_TICK] {
            let (_, schedule) = ended.cell.get(&path(name)).await;
            let schedule: Value = serde_json::from_slice(&schedule).unwrap();
            let mut jobs: Vec<_> = ended.children_of(schedule["id"].as_str().unwrap()).collect();
            jobs.sort_by_key(|(_, job)| millis(&job["instant"]));
            assert!(!jobs.is_empty(), "it never fired: {schedule}");
            assert_eq!(schedule["fired"].as_u64(), Some(jobs.len() as u64), "{schedule}");
            for pair in jobs.windows(2) {
                let [one, next] = [pair[0].1, pair[1].1];
                assert_ne!(
                    one["instant"], next["instant"],
                    "an instant has two jobs: {one} {next}"
                );
                // By the store's clock.
                let is_apart = millis(&one["finished"]) <= millis(&next["created"]);
                assert!(name == TICK || is_apart, "{one} overlaps with {next}");
            }
            for (id, job) in &jobs {
                ended.succeeded(id);
                for call in ended.service.calls_of(id) {
                    assert_eq!(call.instant.as_deref(), job["instant"].as_str(), "{job}");
                }
            }
            if name == TICK {
                self.check_instants(&schedule);
            }
            let (missed, skipped) = (&schedule["missed"], &schedule["skipped"]);
            println!("schedule {name}: {} jobs, {missed} missed, {skipped} skipped", jobs.len());
        }
    }

    /// Every instant from the first to the last one made a job, or was counted as missed.
    fn check_instants(&self, schedule: &Value) {
        let last = millis(&schedule["last"]["instant"]);
        let count = (last - self.first_ms) / PERIOD_MS + 1;
        let handled = ["fired", "missed", "skipped"].map(|name| schedule[name].as_i64().unwrap());
        assert_eq!(handled.iter().sum::<i64>(), count, "since {}: {schedule}", self.first_ms);
    }
}

/// Pauses both, after the last fault. On a slow machine, the faults may leave no moment to fire in.
pub(crate) async fn pause(door: &Door) {
    for name in [TICK, SLOW_TICK] {
        wait_until_fired(door, name).await;
        let pause = format!("{}/pause", path(name));
        // While the schedule fires, it answers that it is busy.
        while !door.send(&Method::POST, &pause, || None).await.status.is_success() {}
    }
}

async fn wait_until_fired(door: &Door, name: &str) {
    let started = Instant::now();
    loop {
        let schedule = door.get(&path(name)).await;
        if schedule["fired"].as_u64().is_some_and(|fired| fired > 0) {
            return;
        }
        assert!(started.elapsed() < DRAIN_MAX, "it never fires: {schedule}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

fn path(name: &str) -> String {
    format!("/v1/schedules/{name}")
}

fn millis(at: &Value) -> i64 {
    rfc3339::parse(at.as_str().unwrap_or_else(|| panic!("no time: {at}"))).unwrap().as_millis()
}
