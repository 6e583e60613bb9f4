//! `high-load`: more jobs are submitted than the nodes can run, by several clients at once.

use super::pressure::Pressure;
use crate::cell::Settings;
use crate::load::{self, Submitted};
use crate::{alone, fault_lasts};

/// Clients that submit at the same time.
const CLIENTS: usize = 4;

/// Jobs in one request.
const BATCH: usize = 250;

/// Jobs for each second of the fault: a debug build runs fewer.
const JOBS_PER_SECOND: usize = 750;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backlog_loses_nothing_and_costs_the_same_to_the_end() {
    let _alone = alone().await;
    let Some(pressure) = Pressure::start("high-load", Settings::default()).await else { return };
    let jobs = JOBS_PER_SECOND * usize::try_from(fault_lasts().as_secs()).unwrap();
    let requests = jobs.div_ceil(CLIENTS * BATCH);
    let client = async |client: usize| {
        let mut submitted = Submitted::new();
        for nth in 0..requests {
            submitted.extend(pressure.submit(&format!("load-{client}-{nth}"), BATCH).await);
        }
        submitted
    };
    let (one, two, three, four) = tokio::join!(client(0), client(1), client(2), client(3));
    let submitted: Submitted = [one, two, three, four].into_iter().flatten().collect();
    pressure.check_pages("while jobs were submitted").await;
    pressure.count_afresh().await;
    let (first, last) = submitted.split_at(submitted.len() / 2);
    let (first, last) = (first.to_vec(), last.to_vec());
    load::drained(&pressure.cell, &submitted).await;
    pressure.check_pages("until the backlog was gone").await;
    pressure.balance(&[("first half", &first), ("second half", &last)]).await;
}
