//! `pause-node`: a node is paused for longer than its lease, and then resumed.

use super::cluster::Cluster;
use crate::{alone, fault_lasts, pause_nodes};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paused_node_cannot_settle_what_was_taken_over() {
    let _alone = alone().await;
    let cluster = Cluster::start();
    pause_nodes::settle_nothing_late_for(&cluster.store(), fault_lasts() / 4).await;
}
