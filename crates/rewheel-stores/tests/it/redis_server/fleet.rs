//! Tests that nodes wake each other, and that prefixes keep stores apart.

use super::server::{Server, jobs};
use rewheel::Random;
use rewheel_core::store::{Insert, ReadStore, Store, StoreChange, SubmitStore};
use rewheel_stores::RedisStore;
use std::time::Duration;

/// Waits until a node hears the others.
async fn listens(store: &RedisStore) {
    for _ in 0..1_000 {
        if store.unreported_changes().await.expect("a number") == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the node does not listen");
}

#[tokio::test]
async fn a_submit_wakes_the_other_nodes() {
    let mut server = Server::start("--appendonly yes").await;
    let (one, other) = (server.open().await.unwrap(), server.open().await.unwrap());
    for round in 0..2 {
        listens(&other).await;
        let mut watch = other.watch();
        let batch = jobs(&Random::thread(), 1, 10);
        listens(&one).await;
        one.insert(&Insert::new(&batch)).await.unwrap();
        let heard = tokio::time::timeout(Duration::from_secs(20), watch.changed()).await;
        let heard = heard.expect("a watcher was woken");
        let lane = batch[0].lane();
        let is_told = matches!(&heard, StoreChange::Lanes(lanes) if lanes.contains(&lane));
        assert!(is_told || heard == StoreChange::AnyLane, "{heard:?}");
        if round == 0 {
            // After a restart the nodes listen again. The lane has a job already, so an earlier one is needed to wake the others.
            server.kill();
            server.restart().await;
            let _: () = server.command(&["FLUSHALL"]);
            drop(server.open().await.unwrap());
        }
    }
}

#[tokio::test]
async fn stores_with_different_prefixes_do_not_meet() {
    let server = Server::start("").await;
    let store = server.open().await.unwrap();
    store.insert(&Insert::new(&jobs(&Random::thread(), 2, 10))).await.unwrap();
    let other = RedisStore::open(&format!("{}?prefix=other", server.url())).await.unwrap();
    assert_eq!(other.books().await.unwrap().submitted, 0);
    let keys: Vec<Vec<u8>> = server.command(&["KEYS", "*"]);
    assert!(keys.iter().all(|key| key.starts_with(b"{rewheel}:")), "{keys:?}");
}
