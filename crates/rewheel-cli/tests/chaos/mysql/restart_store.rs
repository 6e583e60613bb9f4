//! `restart-store`: the database server is killed with SIGKILL and started again, repeatedly.

use super::server::Server;
use crate::cell::{Cell, Settings};
use crate::{alone, fault_lasts};
use std::time::{Duration, Instant};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_by_killing_the_server() {
    let _alone = alone().await;
    let mut server = Server::start().await;
    let cell = Cell::start(&server.store, Settings::default()).await;
    let submitter = cell.submit_on();
    let started = Instant::now();
    let mut kills: u64 = 0;
    let mut probes = Vec::new();
    while kills < 2 || started.elapsed() < fault_lasts() {
        tokio::time::sleep(Duration::from_secs(1)).await;
        server.kill().await;
        // For less than a lease, and for longer.
        tokio::time::sleep(Duration::from_millis(200 + kills % 2 * 1_800)).await;
        server.go_on().await;
        kills += 1;
        probes.extend(cell.recover(&format!("kill-{kills}")).await);
    }
    let mut acknowledged = submitter.end().await;
    acknowledged.extend(probes);
    cell.balance(&acknowledged).await;
    println!("{kills} kills of the server");
}
