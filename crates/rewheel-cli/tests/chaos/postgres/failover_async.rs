//! `failover-async`: the primary is lost while its standby lags, so that the promoted standby has forgotten acknowledged jobs.

use super::database::Database;
use super::server::{REPLICATED, Server};
use crate::cell::{Cell, Settings};
use crate::{alone, fault_lasts};
use serde_json::{Value, json};
use std::time::Duration;

/// More lanes than PostgreSQL reserves numbers for in advance: after the failover, other lanes get the same numbers.
const LANES: usize = 50;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_asynchronous_standby_did_not_have_is_counted() {
    let _alone = alone().await;
    let Some(mut primary) = Server::start("failover-async", &REPLICATED).await else { return };
    let database = Database::on(&primary.url, "failover-async").await;
    let standby = primary.standby().await;
    let store = database.on_hosts(&[primary.address(), standby.address()]);
    let cell = Cell::start(&store, Settings::default()).await;
    let submitter = cell.submit_on();
    tokio::time::sleep(fault_lasts() / 4).await;

    standby.stop_following().await;
    let mut acknowledged = many_lanes(&cell, "forgotten", "steady").await;
    tokio::time::sleep(fault_lasts() / 4).await;
    primary.kill().await;
    standby.promote().await;
    acknowledged.extend(cell.recover("failover").await);
    acknowledged.extend(many_lanes(&cell, "new", "work").await);
    tokio::time::sleep(fault_lasts() / 4).await;
    acknowledged.extend(submitter.end().await);

    let url = database.url.replace(&primary.address(), &standby.address());
    let nodes = "SELECT count(DISTINCT node)::text FROM chaos.forgotten";
    standby.wait_for_in(&url, nodes, &cell.nodes.len().to_string()).await;
    let ended = cell.ended(&acknowledged).await;
    let bad = ended.found["checks"].as_array().unwrap().iter().filter(|check| check["ok"] == false);
    let bad: Vec<&Value> = bad.collect();
    assert_eq!(bad.len(), 1, "only the failover is reported: {}", ended.found);
    let counted = counted(bad[0]);
    println!(
        "{} jobs acknowledged, {} of them forgotten; the doctor counts {counted:?} (submitted, ended)",
        acknowledged.len(),
        ended.lost.len()
    );
    assert!(ended.lost.len() >= LANES, "the failover forgot too little to prove anything");
    // A node may have acknowledged jobs whose submitter did not hear of it: a batch for each node.
    let unheard = 10 * cell.nodes.len();
    let range = ended.lost.len()..=ended.lost.len() + unheard;
    assert!(range.contains(&counted.0), "{counted:?} is not in {range:?}");
    let epochs = "SELECT string_agg(reason, ' ' ORDER BY epoch) FROM chaos.epochs";
    standby.wait_for_in(&url, epochs, "created promoted").await;
}

/// Submits one job to each of many lanes, in turn to all nodes.
async fn many_lanes(cell: &Cell, name: &str, kind: &str) -> Vec<String> {
    let mut ids = Vec::new();
    for lane in 0..LANES {
        let key = format!("{name}-{lane}");
        let job = json!({"kind": kind, "payload": {}, "key": key, "tenant": key});
        ids.push(cell.submit_to(lane % cell.nodes.len(), job, Duration::from_secs(60)).await);
    }
    ids
}

/// Returns the numbers of forgotten submits and ends in the doctor's words.
fn counted(check: &Value) -> (usize, usize) {
    assert_eq!(check["name"], "failover", "{check}");
    let message = check["message"].as_str().unwrap();
    let before = |word: &str| {
        let (before, _) = message.split_once(word).unwrap_or_else(|| panic!("{message}"));
        before.rsplit(' ').next().unwrap().parse().unwrap()
    };
    (before(" submitted jobs"), before(" jobs that had"))
}
