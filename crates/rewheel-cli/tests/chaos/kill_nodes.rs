//! Kills nodes, on any store that several nodes share.

use crate::cell::{Cell, Settings, name};
use crate::fault_lasts;
use serde_json::json;
use std::time::{Duration, Instant};

/// Kills nodes in turn while jobs are submitted, then checks all guarantees.
pub(crate) async fn lose_nothing(store: &str) {
    let mut cell = Cell::start(store, Settings::default()).await;
    let submitter = cell.submit_on();
    kill_in_turn(&mut cell).await;
    let acknowledged = submitter.end().await;
    cell.balance(&acknowledged).await;
}

/// Kills and restarts one node after the other, one every second.
pub(crate) async fn kill_in_turn(cell: &mut Cell) {
    let started = Instant::now();
    let mut kills = 0;
    while started.elapsed() < fault_lasts() {
        let index = kills % cell.nodes.len();
        cell.nodes[index].kill().await;
        cell.restart(index).await;
        kills += 1;
        let next = Duration::from_secs(kills as u64).saturating_sub(started.elapsed());
        tokio::time::sleep(next).await;
    }
    println!("{kills} kills");
}

/// Kills a node in the middle of twenty attempts; other nodes must take them over within this time.
pub(crate) async fn takeover(store: &str, lease_ttl: Option<&'static str>, within: Duration) {
    let settings = Settings { lease_ttl, ..Settings::default() };
    let mut cell = Cell::start(store, settings).await;
    let within = within + cell.slowness();
    let mut held = Vec::new();
    for n in 0..20 {
        let job = json!({"kind": "held", "payload": {}, "key": format!("held-{n}")});
        held.push(cell.submit_to(0, job, within).await);
    }
    let mut of_the_killed = Vec::new();
    for id in &held {
        let calls = cell.callee.wait_for(id, within, |calls| !calls.is_empty()).await;
        if calls[0].node == name(0) {
            of_the_killed.push(id);
        }
    }
    assert!(!of_the_killed.is_empty(), "the node that was asked ran nothing");
    cell.nodes[0].kill().await;
    let killed = Instant::now();
    let mut last = killed;
    for id in &of_the_killed {
        let calls = cell.callee.wait_for(id, within, |calls| calls.len() > 1).await;
        assert_ne!(calls[1].node, name(0));
        last = last.max(calls[1].at);
    }
    let took = last - killed;
    println!(
        "lease {}: {} jobs ran elsewhere {:.2} s after their node was killed",
        lease_ttl.unwrap_or("by default"),
        of_the_killed.len(),
        took.as_secs_f64()
    );
    assert!(took <= within, "{took:?} is longer than {within:?}");
    cell.callee.release_first();
    cell.callee.release_second();
    cell.restart(0).await;
    cell.balance(&held).await;
}
