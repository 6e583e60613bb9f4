//! `lose-second`: the machine of a server with `appendfsync everysec` loses its power: what was written in the last second is gone.
//!
//! The process is killed, and its file is cut to the length that it had a second before. A killed process alone loses less, because the
//! system still writes what the process has handed over.

use super::server::Server;
use crate::cell::{Cell, Settings, name};
use crate::{alone, fault_lasts};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// What the power failure takes.
const LOST: Duration = Duration::from_secs(1);

/// Timeout for anything in this cell; only a failing cell waits for it.
const WITHIN: Duration = Duration::from_secs(60);

/// The lengths of the server's file, from the oldest to the newest.
#[derive(Debug)]
struct Lengths {
    file: PathBuf,
    seen: Vec<(Instant, u64)>,
}

impl Lengths {
    fn look(&mut self) {
        let length = std::fs::metadata(&self.file).unwrap().len();
        self.seen.push((Instant::now(), length));
    }

    /// Cuts the file to what it was before the last second.
    fn cut(&self) -> u64 {
        let now = Instant::now();
        let seen = self.seen.iter().rev().find(|(at, _)| now - *at >= LOST);
        let (_, length) = *seen.expect("the file was watched for long enough");
        let file = std::fs::File::options().write(true).open(&self.file).unwrap();
        let gone = file.metadata().unwrap().len() - length;
        file.set_len(length).unwrap();
        gone
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_power_failure_loses_no_more_than_said_and_is_counted() {
    let _alone = alone().await;
    let mut server = Server::that_writes_every_second();
    let cell = Cell::start(&server.store(), Settings::default()).await;
    let mut acknowledged: BTreeMap<String, Instant> = BTreeMap::new();
    let mut failures = Vec::new();
    let started = Instant::now();
    let mut sent = 0;
    while failures.len() < 2 || started.elapsed() < fault_lasts() {
        let mut lengths = Lengths { file: server.appended_file(), seen: Vec::new() };
        let round = Instant::now();
        while round.elapsed() < 3 * LOST {
            lengths.look();
            submit(&cell, &mut sent, &mut acknowledged).await;
        }
        server.process.kill();
        let gone = lengths.cut();
        failures.push(Instant::now());
        println!("power failure: {gone} bytes of the file are gone");
        server.process.restart();
        for id in cell.recover(&format!("power-{}", failures.len())).await {
            acknowledged.insert(id, Instant::now());
        }
    }
    check(&cell, &acknowledged, &failures).await;
}

/// Submits a few jobs, each with a key of its own, to the nodes in turn.
async fn submit(cell: &Cell, sent: &mut usize, acknowledged: &mut BTreeMap<String, Instant>) {
    for _ in 0..5 {
        *sent += 1;
        let job = json!({"kind": "work", "payload": {}, "key": format!("job-{sent}")});
        let id = cell.submit_to(*sent % cell.nodes.len(), job, WITHIN).await;
        acknowledged.insert(id, Instant::now());
    }
    tokio::time::sleep(Duration::from_millis(20)).await;
}

/// Checks that only jobs of the last second before a failure are lost, and that the doctor says how many.
async fn check(cell: &Cell, acknowledged: &BTreeMap<String, Instant>, failures: &[Instant]) {
    let ids: Vec<String> = acknowledged.keys().cloned().collect();
    let ended = cell.ended(&ids).await;
    // What the nodes still had to do when they acknowledged: not more than a job takes to be stored.
    let slack = Duration::from_millis(500);
    for id in &ended.lost {
        let at = acknowledged[id];
        let is_late = |failure: &Instant| at <= *failure && *failure - at <= LOST + slack;
        assert!(failures.iter().any(is_late), "{id} was older than a second, and is lost");
    }
    let bad = ended.found["checks"].as_array().unwrap().iter().filter(|check| check["ok"] == false);
    let bad: Vec<&Value> = bad.collect();
    let names: Vec<&Value> = bad.iter().map(|check| &check["name"]).collect();
    assert_eq!(names, ["appendfsync", "failover"], "{}", ended.found);
    assert!(bad[0]["message"].as_str().unwrap().contains("2 seconds"), "{}", bad[0]);
    let counted = submits(bad[1]);
    println!(
        "{} jobs acknowledged, {} of them forgotten by {} power failures; the doctor counts {counted}",
        ids.len(),
        ended.lost.len(),
        failures.len()
    );
    assert!(!ended.lost.is_empty(), "too little was lost to prove anything: {}", name(0));
    assert_eq!(counted, ended.lost.len(), "{}", bad[1]);
}

/// Returns the number of forgotten submits in the doctor's words.
fn submits(check: &Value) -> usize {
    let message = check["message"].as_str().unwrap();
    let (before, _) = message.split_once(" submitted jobs").unwrap_or_else(|| panic!("{message}"));
    before.rsplit(' ').next().unwrap().parse().unwrap()
}
