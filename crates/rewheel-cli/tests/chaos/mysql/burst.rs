//! `burst`: many jobs arrive at once on idle nodes, several times.

use super::server::Server;
use crate::{alone, load};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bursts_lose_nothing() {
    let _alone = alone().await;
    let server = Server::start().await;
    load::survives_bursts(&server.store).await;
}
