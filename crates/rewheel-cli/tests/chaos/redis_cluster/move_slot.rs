//! `move-slot`: the slot of the store moves from one primary to the next, repeatedly.

use crate::cell::{Cell, Settings};
use crate::{alone, fault_lasts};
use rewheel_testkit::RedisCluster;
use std::time::{Duration, Instant};

/// All keys of the store begin with this.
const PREFIX: &str = "{chaos}:";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_while_the_slot_moves() {
    let _alone = alone().await;
    let folder = tempfile::tempdir().unwrap();
    let cluster = RedisCluster::start(folder.path());
    let store = format!("{}?prefix=chaos", cluster.url());
    let cell = Cell::start(&store, Settings::default()).await;
    let submitter = cell.submit_on();
    let started = Instant::now();
    let (mut moves, mut probes) = (0, Vec::new());
    while moves < 2 || started.elapsed() < fault_lasts() {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let from = cluster.primary_of(PREFIX).unwrap();
        let to = (from + 1) % 3;
        cluster.begin_move(PREFIX, to);
        // Longer than a lease.
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        cluster.end_move(PREFIX, from, to);
        moves += 1;
        probes.extend(cell.recover(&format!("move-{moves}")).await);
    }
    let mut acknowledged = submitter.end().await;
    acknowledged.extend(probes);
    let ended = cell.ended(&acknowledged).await;
    assert!(ended.lost.is_empty(), "lost: {:?}", ended.lost);
    let submitted = ended.found["books"]["submitted"].as_u64();
    assert_eq!(submitted, Some(acknowledged.len() as u64), "{}", ended.found);
    println!("{moves} moves of the slot, {} jobs", acknowledged.len());
}
