//! Restarts nodes gracefully, on any store that several nodes share.

use crate::cell::{Cell, Settings};
use crate::fault_lasts;
use std::time::{Duration, Instant};

/// Restarts nodes in turn while jobs are submitted: no call is cut off, and no attempt is used up. Then checks all guarantees.
pub(crate) async fn use_up_no_attempt(store: &str) {
    use_up_no_attempt_for(store, fault_lasts()).await;
}

/// Does so for this long, and restarts each node at least once.
pub(crate) async fn use_up_no_attempt_for(store: &str, lasts: Duration) {
    let mut cell = Cell::start(store, Settings::default()).await;
    let submitter = cell.submit_on();
    let started = Instant::now();
    let mut restarts = 0;
    while restarts < cell.nodes.len() || started.elapsed() < lasts {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let index = restarts % cell.nodes.len();
        let status = cell.nodes[index].terminate().await;
        assert!(status.success(), "{status}: {:#?}", cell.nodes[index].said());
        cell.restart(index).await;
        restarts += 1;
    }
    let acknowledged = submitter.end().await;
    let jobs = cell.balance(&acknowledged).await;
    println!("{restarts} restarts");
    for (id, job) in &jobs {
        let calls = cell.callee.calls_of(id);
        assert!(calls.iter().all(|call| call.answered.is_some()), "cut off: {job} {calls:#?}");
        assert_eq!(job["attempt"].as_u64(), Some(calls.len() as u64), "{job} {calls:#?}");
        assert_eq!(job["takeovers"], 0, "{job}");
    }
}
