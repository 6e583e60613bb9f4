//! `mixed-restart-store`: the database server and a node are killed together, with jobs that use every feature.

use super::server::Server;
use crate::cell::Cell;
use crate::mixed::Mixed;
use crate::{alone, fault_lasts};
use std::time::{Duration, Instant};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_feature_survives_killing_the_database() {
    let _alone = alone().await;
    let mut server = Server::start().await;
    let mixed = Mixed::start(&server.store, 3).await;
    let running = mixed.run(async |cell: &mut Cell| {
        let (started, mut kills) = (Instant::now(), 0);
        while kills < 2 || started.elapsed() < fault_lasts() {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let index = kills % cell.nodes.len();
            server.kill().await;
            cell.nodes[index].kill().await;
            // For less than a lease, and for longer.
            tokio::time::sleep(Duration::from_millis(200 + kills as u64 % 2 * 1_800)).await;
            server.go_on().await;
            cell.restart(index).await;
            kills += 1;
        }
        println!("{kills} kills of the server");
    });
    Box::pin(running).await;
}
