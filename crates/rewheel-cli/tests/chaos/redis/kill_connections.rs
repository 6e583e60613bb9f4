//! `kill-connections`: the server closes all connections of the nodes, repeatedly.

use super::server::Server;
use crate::cell::{Cell, Settings};
use crate::{alone, fault_lasts};
use std::time::{Duration, Instant};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_with_the_connections() {
    let _alone = alone().await;
    let server = Server::start();
    let cell = Cell::start(&server.store(), Settings::default()).await;
    let submitter = cell.submit_on();
    let started = Instant::now();
    let mut ended = Vec::new();
    while started.elapsed() < fault_lasts() {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let kill = |sort| server.process.command::<usize>(&["CLIENT", "KILL", "TYPE", sort]);
        ended.push(kill("normal") + kill("pubsub"));
    }
    let probes = cell.recover("kill-connections").await;
    let mut acknowledged = submitter.end().await;
    acknowledged.extend(probes);
    cell.balance(&acknowledged).await;
    println!("{} connections ended in {} rounds", ended.iter().sum::<usize>(), ended.len());
    assert!(ended.iter().filter(|count| **count > 0).count() > ended.len() / 2, "{ended:?}");
}
