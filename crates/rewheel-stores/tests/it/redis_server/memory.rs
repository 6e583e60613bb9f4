//! Tests how much memory a waiting job needs, and that ended jobs leave nothing behind.

use super::server::{Server, holder, jobs, visit};
use rewheel::Random;
use rewheel_core::Retain;
use rewheel_core::store::{Claim, Insert, Settlement, SubmitStore, WorkStore};
use std::collections::BTreeSet;
use std::time::Duration;

fn used(server: &Server) -> usize {
    let info: String = server.command(&["INFO", "memory"]);
    let line = info.lines().find_map(|line| line.strip_prefix("used_memory:")).expect("a line");
    line.trim().parse().expect("a number")
}

/// The documentation says how much memory a job needs.
#[tokio::test]
async fn a_waiting_job_of_200_bytes_needs_less_than_700() {
    const JOBS: usize = 20_000;
    let server = Server::start("").await;
    let store = server.open().await.unwrap();
    let random = Random::thread();
    // The scripts and the structures themselves are not part of a job.
    store.insert(&Insert::new(&jobs(&random, 100, 200))).await.unwrap();
    let before = used(&server);
    for _ in 0..JOBS / 500 {
        store.insert(&Insert::new(&jobs(&random, 500, 200))).await.unwrap();
    }
    let bytes = (used(&server) - before) / JOBS;
    assert!((200..700).contains(&bytes), "{bytes} bytes");
}

#[tokio::test]
async fn a_job_without_retention_leaves_nothing_behind() {
    let server = Server::start("").await;
    let store = server.open().await.unwrap();
    let random = Random::thread();
    let holder = holder(&store, &random).await;
    store.insert(&Insert::new(&jobs(&random, 30, 2_000))).await.unwrap();
    let visits = [visit(30)];
    let claim = Claim { holder, visits: &visits, horizon: Duration::ZERO, limit: 30 };
    let keep = Retain { job: Duration::ZERO, key: Duration::ZERO };
    let done: Vec<Settlement> = store
        .claim(&claim)
        .await
        .unwrap()
        .iter()
        .map(|leased| Settlement { keep, ..Settlement::succeed(leased.lease()) })
        .collect();
    store.settle(holder, &done).await.unwrap();
    let keys: BTreeSet<String> = server.command(&["KEYS", "*"]);
    let left = ["audit", "holders", "holding", "kinds", "kinds_changed", "ledger", "meta"];
    assert_eq!(keys, left.iter().map(|key| format!("{{rewheel}}:{key}")).collect());
}
