//! `backup`: a dump that is made under load is restored into another server, where all its jobs run.

use super::database::Database;
use super::server::Server;
use crate::alone;
use crate::cell::{Cell, Settings};
use serde_json::json;
use std::time::Duration;

/// The first fence after a restore.
const FLOOR: u64 = 1 << 32;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dump_made_under_load_is_a_store_without_stuck_jobs() {
    let _alone = alone().await;
    let Some(first) = Server::start("backup", &[]).await else { return };
    let Some(second) = Server::start("backup", &[]).await else { return };
    let database = Database::on(&first.url, "backup").await;
    let cell = Cell::start(&database.store, Settings::default()).await;
    let submitter = cell.submit_on();
    // Jobs that run while the dump is made: no call of theirs ends before that.
    let mut acknowledged = Vec::new();
    for n in 0..20 {
        let job = json!({"kind": "held", "payload": {}, "key": format!("held-{n}")});
        let id = cell.submit_to(n % cell.nodes.len(), job, Duration::from_secs(60)).await;
        cell.callee.wait_for(&id, Duration::from_secs(60), |calls| !calls.is_empty()).await;
        acknowledged.push(id);
    }
    let held = acknowledged.clone();
    let dump = first.dump(&database, "chaos");
    let copy = Database::on(&second.url, "backup-copy").await;
    second.restore(&copy, &dump);

    let settings = Settings { nodes: 1, ..Settings::default() };
    let restored = Cell::start(&copy.store, settings).await;
    // Its first calls wait for this too, and the second ones.
    let released = async {
        for id in &held {
            let calls = |calls: &[crate::callee::Call]| !calls.is_empty();
            restored.callee.wait_for(id, Duration::from_secs(120), calls).await;
        }
        restored.callee.release_first();
    };
    released.await;
    let drained = restored.drain().await;
    let jobs = restored.jobs("").await;
    let (mut ran, mut had_ended) = (0, 0);
    for (id, job) in &jobs {
        assert_eq!(job["state"], "succeeded", "{job}");
        let calls = restored.callee.calls_of(id);
        match calls.iter().map(|call| call.fence).max() {
            Some(newest) => {
                assert_eq!(job["fence"].as_u64(), Some(newest), "{job}: {calls:#?}");
                assert!(calls.iter().all(|call| call.fence > FLOOR && job["kind"] == call.kind));
                ran += 1;
            }
            None => had_ended += 1,
        }
    }
    restored.callee.assert_fences_are_unique();
    assert!(ran >= held.len(), "{ran} jobs ran");
    let (_, found) = restored.doctor().await;
    assert_eq!((&found["ok"], &found["books"]["missing"]), (&json!(true), &json!(0)), "{found}");
    let epochs = "SELECT string_agg(reason, ' ' ORDER BY epoch) FROM chaos.epochs";
    second.wait_for_in(&copy.url, epochs, "created restored").await;
    println!(
        "{} jobs restored: {had_ended} had ended, {ran} ran in {:.1} s",
        jobs.len(),
        drained.as_secs_f64()
    );

    // The first store went on meanwhile.
    cell.callee.release_first();
    acknowledged.extend(submitter.end().await);
    cell.balance(&acknowledged).await;
}
