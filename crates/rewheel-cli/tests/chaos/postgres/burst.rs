//! `burst`: many jobs arrive at once on idle nodes, several times.

use super::pressure::Pressure;
use crate::cell::Settings;
use crate::load::{self, Submitted};
use crate::{alone, fault_lasts};
use std::time::Duration;

/// Jobs in one request, of which a burst has several.
const BATCH: usize = 500;
const REQUESTS: usize = 3;

/// Each burst and the quiet time after it takes at least this long.
const EACH: Duration = Duration::from_secs(3);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bursts_lose_nothing_and_leave_idle_nodes_as_cheap_as_before() {
    let _alone = alone().await;
    let Some(pressure) = Pressure::start("burst", Settings::default()).await else { return };
    let bursts = fault_lasts().as_secs().div_ceil(EACH.as_secs());
    let mut all: Vec<(String, Submitted)> = Vec::new();
    for burst in 0..bursts {
        pressure.count_afresh().await;
        let mut submitted = Submitted::new();
        for nth in 0..REQUESTS {
            submitted.extend(pressure.submit(&format!("burst-{burst}-{nth}"), BATCH).await);
        }
        load::drained(&pressure.cell, &submitted).await;
        pressure.check_pages(&format!("in burst {burst}")).await;
        // What nodes read that have nothing to do, beside the rows that the burst left.
        pressure.count_afresh().await;
        let quiet = pressure.trickle(&format!("quiet-{burst}"), EACH / 2).await;
        pressure.check_pages(&format!("after burst {burst}")).await;
        all.extend([(format!("burst {burst}"), submitted), ("after it".to_owned(), quiet)]);
    }
    let phases: Vec<(&str, &Submitted)> =
        all.iter().map(|(when, submitted)| (when.as_str(), submitted)).collect();
    pressure.balance(&phases).await;
}
