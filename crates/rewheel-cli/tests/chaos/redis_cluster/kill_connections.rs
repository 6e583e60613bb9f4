//! `kill-connections`: the primary of the store closes all connections of the nodes, repeatedly.

use super::cluster::Cluster;
use crate::{alone, cut_connections};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_with_the_connections() {
    let _alone = alone().await;
    let cluster = Cluster::start();
    cut_connections::lose_nothing(&cluster.store(), || cluster.kill_connections()).await;
}
