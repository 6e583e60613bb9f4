//! `rolling-restart`: each node in turn is shut down gracefully and started again.

use super::server::Server;
use crate::cell::{Cell, Settings};
use crate::{alone, fault_lasts};
use std::time::{Duration, Instant};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolling_restart_loses_nothing_and_uses_up_no_attempt() {
    let _alone = alone().await;
    let server = Server::start();
    let mut cell = Cell::start(&server.store(), Settings::default()).await;
    let submitter = cell.submit_on();
    let started = Instant::now();
    let mut restarts = 0;
    while restarts < cell.nodes.len() || started.elapsed() < fault_lasts() {
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
