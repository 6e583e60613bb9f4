//! `mixed-kill-node`: one of three nodes is killed every second, with jobs that use every feature.

use super::server::Server;
use crate::alone;
use crate::cell::Cell;
use crate::kill_nodes::kill_in_turn;
use crate::mixed::Mixed;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_feature_survives_killing_nodes() {
    let _alone = alone().await;
    let server = Server::start().await;
    let mixed = Mixed::start(&server.store, 3).await;
    mixed.run(async |cell: &mut Cell| kill_in_turn(cell).await).await;
}
