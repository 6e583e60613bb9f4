//! Pauses nodes for longer than their leases, on any store that several nodes share.

use crate::cell::{Cell, Settings, name};
use crate::fault_lasts;
use serde_json::json;
use std::time::{Duration, Instant};

/// How long something that must happen may take.
pub(crate) const WITHIN: Duration = Duration::from_secs(60);

/// Pauses nodes in turn while jobs are submitted: their late results must not count. Then checks all guarantees.
pub(crate) async fn settle_nothing_late(store: &str) {
    settle_nothing_late_for(store, fault_lasts()).await;
}

/// Does so for this long, and pauses at least one node.
pub(crate) async fn settle_nothing_late_for(store: &str, lasts: Duration) {
    let cell = Cell::start(store, Settings::default()).await;
    let submitter = cell.submit_on();
    let mut acknowledged = Vec::new();
    let mut late = 0;
    let started = Instant::now();
    for round in 0.. {
        if round > 0 && started.elapsed() > lasts {
            break;
        }
        let index = round % cell.nodes.len();
        let (held, of_the_paused) = pause(&cell, round, index).await;
        late += of_the_paused;
        acknowledged.extend(held);
    }
    acknowledged.extend(submitter.end().await);
    cell.balance(&acknowledged).await;
    println!("{late} attempts of paused nodes ended after their jobs had been taken over");
}

/// Pauses one node in the middle of attempts that succeed while it is paused.
///
/// Returns the jobs, and how many of them belonged to that node.
async fn pause(cell: &Cell, round: usize, index: usize) -> (Vec<String>, usize) {
    let mut held = Vec::new();
    for n in 0..10 {
        let job = json!({"kind": "held", "payload": {}, "key": format!("held-{round}-{n}")});
        held.push(cell.submit_to(index, job, WITHIN).await);
    }
    let mut of_the_paused = Vec::new();
    for id in &held {
        let calls = cell.callee.wait_for(id, WITHIN, |calls| !calls.is_empty()).await;
        if calls[0].node == name(index) {
            of_the_paused.push(id);
        }
    }
    assert!(!of_the_paused.is_empty(), "the node that was asked ran nothing");
    cell.nodes[index].pause();
    for id in &of_the_paused {
        let calls = cell.callee.wait_for(id, WITHIN, |calls| calls.len() > 1).await;
        assert_ne!(calls[1].node, name(index));
    }
    // The responses wait in the paused node's sockets; it will read them first.
    cell.callee.release_first();
    for id in &of_the_paused {
        cell.callee.wait_for(id, WITHIN, |calls| calls[0].answered.is_some()).await;
    }
    cell.nodes[index].go_on();
    // It works again, as a new holder.
    let probe = json!({"kind": "steady", "payload": {}, "key": format!("probe-{round}")});
    let probe = cell.submit_to(index, probe, WITHIN).await;
    cell.callee.wait_for(&probe, WITHIN, |calls| !calls.is_empty()).await;
    let leased = cell.jobs("state=leased&kind=held&").await;
    for id in &of_the_paused {
        assert!(leased.contains_key(*id), "{id} was settled by the one that was paused");
    }
    cell.callee.release_second();
    let count = of_the_paused.len();
    held.push(probe);
    (held, count)
}
