//! `kill-node`: one of three nodes is killed every second.

use super::cluster::Cluster;
use crate::{alone, kill_nodes};
use std::time::Duration;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_of_a_killed_node_run_elsewhere_after_its_lease() {
    let _alone = alone().await;
    let cluster = Cluster::start();
    kill_nodes::takeover(&cluster.store(), Some("1s"), Duration::from_secs(4)).await;
}
