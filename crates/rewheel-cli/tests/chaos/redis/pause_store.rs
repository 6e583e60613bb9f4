//! `pause-store`: the server does not answer for a while, with its connections open, repeatedly.

use super::server::Server;
use crate::cell::{Cell, Settings};
use crate::{alone, fault_lasts};
use std::time::{Duration, Instant};

/// For less than a lease, and for longer.
const PAUSES: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(3)];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_while_the_server_is_paused() {
    let _alone = alone().await;
    let server = Server::start();
    let cell = Cell::start(&server.store(), Settings::default()).await;
    let submitter = cell.submit_on();
    let started = Instant::now();
    let mut pauses = 0;
    let mut probes = Vec::new();
    while pauses < PAUSES.len() || started.elapsed() < fault_lasts() {
        tokio::time::sleep(Duration::from_secs(1)).await;
        server.process.pause();
        tokio::time::sleep(PAUSES[pauses % PAUSES.len()]).await;
        server.process.go_on();
        pauses += 1;
        probes.extend(cell.recover(&format!("pause-{pauses}")).await);
    }
    let mut acknowledged = submitter.end().await;
    acknowledged.extend(probes);
    cell.balance(&acknowledged).await;
    println!("{pauses} pauses of the server");
}
