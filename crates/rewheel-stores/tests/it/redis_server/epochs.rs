//! Tests what a store does after its server has forgotten what it acknowledged.

use super::server::{SAFE, Server, holder, jobs, visit};
use rewheel::{Random, minutes};
use rewheel_core::store::{
    Claim, Insert, LeaseStore, Outcome, ReadStore, Settled, Settlement, Store, SubmitStore, Sweep,
    WorkStore,
};
use rewheel_core::{Decision, DueReason, Fence, Retain};
use std::path::PathBuf;
use std::time::Duration;

/// The part of the append-only file to which the server writes.
fn appended_file(server: &Server) -> PathBuf {
    let files = std::fs::read_dir(server.folder().join("appendonlydir")).expect("a folder");
    let files = files.map(|entry| entry.expect("a file").path());
    let is_appended = |path: &PathBuf| path.to_string_lossy().ends_with(".incr.aof");
    files.filter(is_appended).max().expect("the server appends to a file")
}

/// The server is killed, and what it wrote since a moment is gone, as after a power failure without fsync.
#[tokio::test]
async fn what_a_server_forgot_is_counted_and_no_fence_is_given_twice() {
    let mut server = Server::start(SAFE).await;
    let store = server.open().await.unwrap();
    let random = Random::thread();
    let holder = holder(&store, &random).await;
    store.insert(&Insert::new(&jobs(&random, 10, 10))).await.unwrap();
    let visits = [visit(10)];
    let claim = Claim { holder, visits: &visits, horizon: Duration::ZERO, limit: 10 };
    let length = std::fs::metadata(appended_file(&server)).unwrap().len();

    // This is forgotten: a claim, five results and three jobs.
    let before = store.claim(&claim).await.unwrap();
    let highest = before.iter().map(|leased| leased.lease().fence).max();
    let done: Vec<_> =
        before[..5].iter().map(|leased| Settlement::succeed(leased.lease())).collect();
    store.settle(holder, &done).await.unwrap();
    store.insert(&Insert::new(&jobs(&random, 3, 10))).await.unwrap();
    server.kill();
    let file = std::fs::File::options().write(true).open(appended_file(&server)).unwrap();
    file.set_len(length).unwrap();
    server.restart().await;

    let after = loop {
        // The first call may find the old connection.
        match store.claim(&claim).await {
            Ok(after) => break after,
            Err(error) => assert!(error.is_transient(), "{error:?}"),
        }
    };
    assert_eq!(after.len(), 10, "the claim was forgotten");
    assert!(after.iter().all(|leased| Some(leased.lease().fence) > highest));
    // A result of the forgotten attempt changes nothing.
    let late = [Settlement::succeed(before[9].lease())];
    assert_eq!(store.settle(holder, &late).await.unwrap(), [Settled::Lost]);

    store.sweep(&Sweep::new(holder, 10, Retain::default())).await.unwrap();
    let risks = store.risks().await.unwrap();
    let [risk] = risks.as_slice() else { panic!("{risks:?}") };
    assert_eq!(risk.name, "failover");
    let text = "forgot acknowledged work: 3 submitted jobs are missing, and 5 jobs that had ended run again";
    assert!(risk.message.contains(text), "{}", risk.message);
    assert_eq!(store.books().await.unwrap().missing(), 0);
}

/// A server without persistence comes back empty. That is noticed as well, and fences still grow.
#[tokio::test]
async fn a_server_that_forgot_everything_is_noticed() {
    let mut server = Server::start("").await;
    let store = server.open().await.unwrap();
    let random = Random::thread();
    let first = holder(&store, &random).await;
    store.insert(&Insert::new(&jobs(&random, 10, 10))).await.unwrap();
    let visits = [visit(10)];
    let claim = Claim { holder: first, visits: &visits, horizon: Duration::ZERO, limit: 1 };
    let before = store.claim(&claim).await.unwrap();
    server.kill();
    server.restart().await;

    // The first call may find the old connection.
    while let Err(error) = store.books().await {
        assert!(error.is_transient(), "{error:?}");
    }
    // As nodes do that start again.
    let new = server.open().await.unwrap();
    let again = holder(&store, &random).await;
    new.insert(&Insert::new(&jobs(&random, 1, 10))).await.unwrap();
    let claim = Claim { holder: again, ..claim };
    let after = store.claim(&claim).await.unwrap();
    assert!(after[0].lease().fence > before[0].lease().fence);
    store.sweep(&Sweep::new(again, 10, Retain::default())).await.unwrap();
    let risks = store.risks().await.unwrap();
    let lost = risks.iter().find(|risk| risk.name == "failover").expect("the loss is reported");
    assert!(lost.message.contains("10 submitted jobs are missing"), "{}", lost.message);
}

/// A restart that forgets nothing is no reason to worry.
#[tokio::test]
async fn a_restart_without_loss_is_not_reported() {
    let mut server = Server::start(SAFE).await;
    let store = server.open().await.unwrap();
    let random = Random::thread();
    let holder = holder(&store, &random).await;
    store.insert(&Insert::new(&jobs(&random, 10, 10))).await.unwrap();
    let visits = [visit(5)];
    let claim = Claim { holder, visits: &visits, horizon: Duration::ZERO, limit: 5 };
    let mut held = store.claim(&claim).await.unwrap();
    let kept = Settlement {
        decision: Decision::Retry { after: minutes(1), sticky: true, because: DueReason::Backoff },
        hold: minutes(1),
        ..Settlement::succeed(held.remove(0).lease())
    };
    let kept = [kept];
    let first = store.settle(holder, &kept).await.unwrap();
    server.kill();
    server.restart().await;
    let done: Vec<_> = held.iter().map(|leased| Settlement::succeed(leased.lease())).collect();
    let settled = loop {
        match store.settle(holder, &done).await {
            Ok(settled) => break settled,
            Err(error) => assert!(error.is_transient(), "{error:?}"),
        }
    };
    assert!(
        settled.iter().all(|answer| matches!(answer, Settled::Applied(_))),
        "leases stay valid"
    );
    // The answer was lost with the server: a repetition finds the fence that was given, although a new epoch has begun.
    let [Settled::Applied(Outcome::Kept { fence: given, .. })] = first[..] else {
        panic!("{first:?}")
    };
    let again = store.settle(holder, &kept).await.unwrap();
    let [Settled::AlreadyApplied(Outcome::Kept { fence, .. })] = again[..] else {
        panic!("{again:?}")
    };
    assert_eq!(fence, given);
    store.sweep(&Sweep::new(holder, 10, Retain::default())).await.unwrap();
    assert_eq!(store.risks().await.unwrap(), []);
}

/// A store of an older release does not know when it was created. Every connection must be told the same time: another one would mean that
/// the server has forgotten everything.
#[tokio::test]
async fn a_store_without_a_time_of_creation_gets_one_that_stays() {
    let server = Server::start("").await;
    drop(server.open().await.unwrap());
    assert_eq!(server.command::<i64>(&["HDEL", "{rewheel}:meta", "created"]), 1);
    let store = server.open().await.unwrap();
    let random = Random::thread();
    let holder = holder(&store, &random).await;
    let created: Option<i64> = server.command(&["HGET", "{rewheel}:meta", "created"]);
    assert!(created.is_some());
    store.insert(&Insert::new(&jobs(&random, 1, 10))).await.unwrap();
    let _: i64 = server.command(&["CLIENT", "KILL", "TYPE", "normal"]);
    // The first call may find the old connection.
    while let Err(error) = store.books().await {
        assert!(error.is_transient(), "{error:?}");
    }
    let visits = [visit(1)];
    let claim = Claim { holder, visits: &visits, horizon: Duration::ZERO, limit: 1 };
    let leased = loop {
        match store.claim(&claim).await {
            Ok(leased) => break leased,
            Err(error) => assert!(error.is_transient(), "{error:?}"),
        }
    };
    assert_eq!(leased[0].lease().fence, Fence::new(1), "no epoch has begun");
}
