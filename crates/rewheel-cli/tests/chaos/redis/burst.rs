//! `burst`: many jobs arrive at once on idle nodes, several times.

use super::server::Server;
use crate::cell::{Cell, Settings};
use crate::load::{self, Submitted};
use crate::{alone, fault_lasts};
use std::time::Duration;

/// Jobs in one request, of which a burst has several. Each is more than one script handles.
const BATCH: usize = 750;
const REQUESTS: usize = 2;

/// Each burst takes at least this long.
const EACH: Duration = Duration::from_secs(3);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bursts_lose_nothing() {
    let _alone = alone().await;
    let server = Server::start();
    let cell = Cell::start(&server.store(), Settings::default()).await;
    let bursts = fault_lasts().as_secs().div_ceil(EACH.as_secs());
    let mut all: Vec<(String, Submitted)> = Vec::new();
    for burst in 0..bursts {
        let mut submitted = Submitted::new();
        for nth in 0..REQUESTS {
            submitted.extend(load::submit(&cell, &format!("burst-{burst}-{nth}"), BATCH).await);
        }
        load::drained(&cell, &submitted).await;
        all.push((format!("burst {burst}"), submitted));
    }
    let phases: Vec<(&str, &Submitted)> =
        all.iter().map(|(when, submitted)| (when.as_str(), submitted)).collect();
    load::balance(&cell, &phases).await;
}
