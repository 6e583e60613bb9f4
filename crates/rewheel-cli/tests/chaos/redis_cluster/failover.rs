//! `failover`: the primary of the store's slot is killed and comes back as a replica, repeatedly.

use crate::cell::{Cell, Settings};
use crate::{alone, fault_lasts};
use rewheel_testkit::RedisCluster;
use serde_json::Value;
use std::time::{Duration, Instant};

/// All keys of the store begin with this.
const PREFIX: &str = "{chaos}:";

/// Replication is asynchronous: a failover may lose what the replica has not received. The doctor must count exactly that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_work_on_after_a_failover_and_count_what_it_lost() {
    let _alone = alone().await;
    let folder = tempfile::tempdir().unwrap();
    let mut cluster = RedisCluster::start_with_failover(folder.path());
    let store = format!("{}?prefix=chaos", cluster.url());
    let cell = Cell::start(&store, Settings::default()).await;
    let submitter = cell.submit_on();
    let started = Instant::now();
    let (mut failovers, mut probes) = (0, Vec::new());
    while failovers < 2 || started.elapsed() < fault_lasts() {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let old = cluster.primary_of(PREFIX).unwrap();
        cluster.node_mut(old).kill();
        cluster.wait_for_new_primary(PREFIX, old);
        failovers += 1;
        probes.extend(cell.recover(&format!("failover-{failovers}")).await);
        cluster.node_mut(old).restart();
        cluster.wait_until_whole();
    }
    let mut acknowledged = submitter.end().await;
    acknowledged.extend(probes);
    let ended = cell.ended(&acknowledged).await;
    let bad = ended.found["checks"].as_array().unwrap().iter().filter(|check| check["ok"] == false);
    // With replicas that a primary does not wait for, a failover may lose jobs: that is a risk as well.
    let bad: Vec<&Value> = bad.filter(|check| check["name"] != "min-replicas-to-write").collect();
    println!(
        "{failovers} failovers, {} jobs acknowledged, {} forgotten; the doctor says {bad:?}",
        acknowledged.len(),
        ended.lost.len()
    );
    if ended.lost.is_empty() {
        return;
    }
    assert_eq!(bad.len(), 1, "{}", ended.found);
    let message = bad[0]["message"].as_str().unwrap();
    let (before, _) = message.split_once(" submitted jobs").unwrap_or_else(|| panic!("{message}"));
    let counted: usize = before.rsplit(' ').next().unwrap().parse().unwrap();
    // A node may have acknowledged jobs whose submitter did not hear of it: a batch for each node and failover.
    let range = ended.lost.len()..=ended.lost.len() + 10 * cell.nodes.len() * failovers;
    assert!(range.contains(&counted), "{counted} is not in {range:?}");
}
