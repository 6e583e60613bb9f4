//! `kill-node`: one of three nodes is killed every second.

use super::database::Database;
use crate::{alone, kill_nodes};
use std::time::Duration;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_by_killing_nodes() {
    let _alone = alone().await;
    let database = Database::new("kill-node").await;
    kill_nodes::lose_nothing(&database.store).await;
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_of_a_killed_node_run_elsewhere_after_its_lease() {
    let _alone = alone().await;
    let database = Database::new("takeover").await;
    kill_nodes::takeover(&database.store, Some("1s"), Duration::from_secs(4)).await;
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_of_a_killed_node_run_elsewhere_within_15_seconds_by_default() {
    let _alone = alone().await;
    let database = Database::new("takeover").await;
    kill_nodes::takeover(&database.store, None, Duration::from_secs(15)).await;
    database.remove().await;
}
