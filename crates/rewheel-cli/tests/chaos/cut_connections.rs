//! Closes the connections of the nodes to their store, again and again, on any server.

use crate::cell::{Cell, Settings};
use crate::fault_lasts;
use std::time::{Duration, Instant};

/// `kill` closes all connections, and returns how many there were.
pub(crate) async fn lose_nothing(store: &str, kill: impl Fn() -> usize) {
    let cell = Cell::start(store, Settings::default()).await;
    let submitter = cell.submit_on();
    let started = Instant::now();
    let mut ended = Vec::new();
    while started.elapsed() < fault_lasts() / 2 {
        tokio::time::sleep(Duration::from_millis(300)).await;
        ended.push(kill());
    }
    let probes = cell.recover("kill-connections").await;
    let mut acknowledged = submitter.end().await;
    acknowledged.extend(probes);
    cell.balance(&acknowledged).await;
    println!("{} connections ended in {} rounds", ended.iter().sum::<usize>(), ended.len());
    assert!(ended.iter().filter(|count| **count > 0).count() > ended.len() / 2, "{ended:?}");
}
