//! Submits many jobs at once, on any store.

use crate::callee::Call;
use crate::cell::{Cell, Settings};
use crate::fault_lasts;
use crate::submitter::post;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Timeout for anything in the cells of load; only a failing cell waits for it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// How long one job of a backlog may take; only a failing cell waits for it.
const DRAIN_MAX: Duration = Duration::from_secs(300);

/// Jobs that were acknowledged, with the time of their submit.
pub(crate) type Submitted = Vec<(String, Instant)>;

/// Submits jobs in one request, to the nodes in turn until one acknowledges them.
pub(crate) async fn submit(cell: &Cell, name: &str, jobs: usize) -> Submitted {
    let job = |n| json!({"kind": "work", "payload": {}, "key": format!("{name}-{n}")});
    let body = json!({ "jobs": (0..jobs).map(job).collect::<Vec<_>>() });
    let started = Instant::now();
    for node in cell.nodes.iter().cycle() {
        match post(&cell.client, &format!("{}/v1/jobs/batch", node.url), &body).await {
            Ok(answer) => {
                let results = answer["results"].as_array().unwrap().iter();
                let id = |result: &Value| result["id"].as_str().unwrap().to_owned();
                return results.map(|result| (id(result), started)).collect();
            }
            Err(why) => assert!(started.elapsed() < PATIENCE, "no node takes jobs: {why}"),
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    unreachable!("a cell has nodes")
}

/// Waits until each job was answered with success.
pub(crate) async fn drained(cell: &Cell, submitted: &Submitted) {
    let ran = |call: &Call| call.answered.is_some_and(|status| status.is_success());
    for (id, _) in submitted {
        cell.callee.wait_for(id, DRAIN_MAX, |calls| calls.iter().any(ran)).await;
    }
}

/// Waits until all jobs have ended, checks every guarantee, and prints how long jobs waited for their first call.
pub(crate) async fn balance(cell: &Cell, phases: &[(&str, &Submitted)]) {
    let all = phases.iter().flat_map(|(_, submitted)| submitted.iter());
    let ids: Vec<String> = all.map(|(id, _)| id.clone()).collect();
    cell.balance(&ids).await;
    for (when, submitted) in phases {
        let mut waits: Vec<Duration> = submitted
            .iter()
            .filter_map(|(id, at)| Some(cell.callee.calls_of(id).first()?.at - *at))
            .collect();
        waits.sort_unstable();
        let quantile = |part: usize| {
            let wait = waits.get(waits.len() * part / 100).copied();
            wait.unwrap_or_default().as_secs_f64() * 1e3
        };
        println!(
            "{when}: submit to first call p50 {:.0} ms, p99 {:.0} ms",
            quantile(50),
            quantile(99)
        );
    }
}

/// Jobs in one request of a burst, which has several. On Redis each is more than one script handles.
const BURST: usize = 750;
const REQUESTS: usize = 2;

/// For each of these spans of a fault there is one burst.
const EACH: Duration = Duration::from_secs(4);

/// Submits many jobs at once to idle nodes, several times, and checks every guarantee.
pub(crate) async fn survives_bursts(store: &str) {
    let cell = Cell::start(store, Settings::default()).await;
    let bursts = fault_lasts().as_secs().div_ceil(EACH.as_secs());
    let mut all: Vec<(String, Submitted)> = Vec::new();
    for burst in 0..bursts {
        let mut submitted = Submitted::new();
        for nth in 0..REQUESTS {
            submitted.extend(submit(&cell, &format!("burst-{burst}-{nth}"), BURST).await);
        }
        drained(&cell, &submitted).await;
        all.push((format!("burst {burst}"), submitted));
    }
    let phases: Vec<(&str, &Submitted)> =
        all.iter().map(|(when, submitted)| (when.as_str(), submitted)).collect();
    balance(&cell, &phases).await;
}
