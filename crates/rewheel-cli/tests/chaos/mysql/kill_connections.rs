//! `kill-connections`: the server closes all connections of the nodes, repeatedly.

use super::server::Server;
use crate::{alone, cut_connections};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_with_the_connections() {
    let _alone = alone().await;
    let server = Server::start().await;
    cut_connections::lose_nothing(&server.store, || server.kill_connections()).await;
}
