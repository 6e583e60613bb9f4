//! `pause-node`: a node is paused for longer than its lease, and then resumed.

use super::database::Database;
use crate::alone;
use crate::cell::{Cell, Settings, name};
use crate::pause_nodes::{self, WITHIN};
use serde_json::json;
use std::time::{Duration, Instant};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paused_node_cannot_settle_what_was_taken_over() {
    let _alone = alone().await;
    let database = Database::new("pause-node").await;
    pause_nodes::settle_nothing_late(&database.store).await;
    database.remove().await;
}

/// A node that is paused in the middle of a transaction keeps its locks. Other nodes cannot expire
/// it meanwhile, but that must not stop their work.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paused_nodes_locks_do_not_stop_the_others() {
    let _alone = alone().await;
    let database = Database::new("paused-locks").await;
    let cell = Cell::start(&database.store, Settings::default()).await;
    let job = json!({"kind": "held", "payload": {}, "key": "held"});
    let held = cell.submit_to(2, job, WITHIN).await;
    let calls = cell.callee.wait_for(&held, WITHIN, |calls| !calls.is_empty()).await;
    assert_eq!(calls[0].node, name(2));

    let connection = database.connect().await;
    let lock = "BEGIN; SELECT FROM chaos.holders WHERE name = 'node-2' FOR KEY SHARE";
    connection.client.batch_execute(lock).await.unwrap();
    cell.nodes[2].pause();
    let mut acknowledged = vec![held.clone()];
    let started = Instant::now();
    for n in 0.. {
        if started.elapsed() > Duration::from_secs(4) {
            break;
        }
        let index = n % 2;
        let job = json!({"kind": "steady", "payload": {}, "key": format!("steady-{n}")});
        let id = cell.submit_to(index, job, WITHIN).await;
        cell.callee.wait_for(&id, WITHIN, |calls| !calls.is_empty()).await;
        acknowledged.push(id);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(cell.callee.calls_of(&held).len(), 1, "its holder was not expired");
    connection.client.batch_execute("ROLLBACK").await.unwrap();
    cell.callee.wait_for(&held, WITHIN, |calls| calls.len() == 2).await;
    cell.callee.release_first();
    cell.callee.release_second();
    cell.nodes[2].go_on();
    cell.balance(&acknowledged).await;
    drop(cell);
    database.remove().await;
}
