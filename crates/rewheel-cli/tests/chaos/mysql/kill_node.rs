//! `kill-node`: one of three nodes is killed every second.

use super::server::Server;
use crate::{alone, kill_nodes};
use std::time::Duration;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_by_killing_nodes() {
    let _alone = alone().await;
    let server = Server::start().await;
    kill_nodes::lose_nothing(&server.store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_of_a_killed_node_run_elsewhere_after_its_lease() {
    let _alone = alone().await;
    let server = Server::start().await;
    kill_nodes::takeover(&server.store, Some("1s"), Duration::from_secs(4)).await;
}
