//! `rolling-restart`: each node in turn is shut down gracefully and started again.

use super::server::Server;
use crate::{alone, fault_lasts, restart_nodes};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolling_restart_loses_nothing_and_uses_up_no_attempt() {
    let _alone = alone().await;
    let server = Server::start().await;
    restart_nodes::use_up_no_attempt_for(&server.store, fault_lasts() / 4).await;
}
