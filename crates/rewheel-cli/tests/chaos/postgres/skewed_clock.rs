//! `skewed-clock`: the clocks of the nodes differ by an hour.

use super::database::Database;
use crate::cell::{Cell, Settings};
use crate::{alone, fault_lasts};
use serde_json::json;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How the nodes' clocks differ from the server's.
const CLOCKS: [&str; 3] = ["-1h", "+0", "+1h"];

const DELAY: Duration = Duration::from_secs(2);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_whose_clocks_differ_behave_the_same() {
    let _alone = alone().await;
    if library().is_none() {
        println!("not tested: skewed-clock on PostgreSQL (libfaketime is not installed)");
        return;
    }
    let database = Database::new("skewed-clock").await;
    let settings = Settings { env, ..Settings::default() };
    let cell = Cell::start(&database.store, settings).await;
    let submitter = cell.submit_on();
    let started = Instant::now();
    let mut acknowledged = Vec::new();
    for round in 0.. {
        if started.elapsed() > fault_lasts() {
            break;
        }
        acknowledged.extend(delayed(&cell, round).await);
    }
    acknowledged.extend(submitter.end().await);
    let jobs = cell.balance(&acknowledged).await;
    let by_node = cell.callee.count_by_node();
    assert_eq!(by_node.len(), cell.nodes.len(), "a node did nothing: {by_node:?}");
    for (id, job) in &jobs {
        let calls = cell.callee.calls_of(id);
        assert_eq!(job["attempt"].as_u64(), Some(calls.len() as u64), "{job} {calls:#?}");
        assert_eq!(job["takeovers"], 0, "{job}");
    }
    drop(cell);
    database.remove().await;
}

/// Submits a delayed job to each node, and waits until all have run.
async fn delayed(cell: &Cell, round: usize) -> Vec<String> {
    let mut ids = Vec::new();
    for index in 0..cell.nodes.len() {
        let key = format!("delayed-{round}-{index}");
        let delay = format!("{}s", DELAY.as_secs());
        let job = json!({"kind": "steady", "payload": {}, "key": key, "delay": delay});
        let submitting = Instant::now();
        let id = cell.submit_to(index, job, Duration::from_secs(5)).await;
        ids.push((id, submitting, Instant::now()));
    }
    for (id, submitting, submitted) in &ids {
        let within = DELAY + Duration::from_secs(2);
        let calls = cell.callee.wait_for(id, within, |calls| !calls.is_empty()).await;
        assert!(calls[0].at - *submitting >= DELAY, "{id} ran early: {calls:?}");
        assert!(calls[0].at - *submitted <= within, "{id} ran late: {calls:?}");
    }
    ids.into_iter().map(|(id, ..)| id).collect()
}

/// The wall clock differs; the monotonic clock does not.
fn env(index: usize) -> Vec<(String, String)> {
    let library = library().expect("was there before").display().to_string();
    let pairs = [
        ("LD_PRELOAD", library.as_str()),
        ("FAKETIME", CLOCKS[index]),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
        ("DONT_FAKE_MONOTONIC", "1"),
    ];
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec()
}

/// Finds the library that fakes the time of a multi-threaded program, in Debian's folders.
fn library() -> Option<PathBuf> {
    let folders = std::fs::read_dir("/usr/lib").ok()?.flatten();
    let mut paths = folders.map(|folder| folder.path().join("faketime/libfaketimeMT.so.1"));
    paths.find(|path| path.is_file())
}
