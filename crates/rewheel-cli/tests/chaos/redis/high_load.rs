//! `high-load`: more jobs are submitted than the nodes can run, by several clients at once.

use super::server::Server;
use crate::cell::{Cell, Settings};
use crate::load::{self, Submitted};
use crate::{alone, fault_lasts};

/// Jobs in one request.
const BATCH: usize = 250;

/// Jobs for each second of the fault: a debug build runs fewer.
const JOBS_PER_SECOND: usize = 750;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backlog_loses_nothing() {
    let _alone = alone().await;
    let server = Server::start();
    let cell = Cell::start(&server.store(), Settings::default()).await;
    let jobs = JOBS_PER_SECOND * usize::try_from(fault_lasts().as_secs()).unwrap();
    let requests = jobs.div_ceil(4 * BATCH);
    let client = async |client: usize| {
        let mut submitted = Submitted::new();
        for nth in 0..requests {
            submitted.extend(load::submit(&cell, &format!("load-{client}-{nth}"), BATCH).await);
        }
        submitted
    };
    let (one, two, three, four) = tokio::join!(client(0), client(1), client(2), client(3));
    let submitted: Submitted = [one, two, three, four].into_iter().flatten().collect();
    load::drained(&cell, &submitted).await;
    let (first, last) = submitted.split_at(submitted.len() / 2);
    load::balance(&cell, &[("first half", &first.to_vec()), ("second half", &last.to_vec())]).await;
}
