//! Tests that settings and states of the server are refused, named or told apart.

use super::server::{SAFE, Server, holder, jobs, visit};
use rewheel::Random;
use rewheel_core::store::{
    Claim, IfRefused, Insert, LeaseStore, ReadStore, Settlement, Store, StoreError, SubmitStore,
    WorkStore,
};
use std::time::Duration;

#[tokio::test]
async fn a_server_that_may_evict_jobs_is_refused() {
    let server = Server::start("--maxmemory 100mb --maxmemory-policy allkeys-lru").await;
    let error = server.open().await.unwrap_err().to_string();
    assert!(error.contains("has maxmemory-policy allkeys-lru"), "{error}");
    assert!(error.contains("CONFIG SET maxmemory-policy noeviction"), "{error}");
    let _: () = server.command(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    let store = server.open().await.unwrap();
    // An operator may change it later.
    let _: () = server.command(&["CONFIG", "SET", "maxmemory-policy", "volatile-ttl"]);
    let names: Vec<&str> = store.risks().await.unwrap().iter().map(|risk| risk.name).collect();
    assert_eq!(names, ["maxmemory-policy", "appendonly"]);
}

#[tokio::test]
async fn settings_that_lose_jobs_are_risks() {
    let server = Server::start(SAFE).await;
    let store = server.open().await.unwrap();
    assert_eq!(store.risks().await.unwrap(), []);
    let _: () = server.command(&["CONFIG", "SET", "appendfsync", "everysec"]);
    let risks = store.risks().await.unwrap();
    assert_eq!(risks.len(), 1);
    assert!(risks[0].message.contains("up to 2 seconds"), "{risks:?}");
}

/// A full server refuses new jobs before anything is written. Nodes still start, claim, settle and renew: so it recovers by itself.
#[tokio::test]
async fn a_full_server_still_works_on() {
    let server = Server::start("--maxmemory-policy noeviction").await;
    let store = server.open().await.unwrap();
    let random = Random::thread();
    let holder = holder(&store, &random).await;
    store.insert(&Insert::new(&jobs(&random, 400, 200))).await.unwrap();
    let visits = [visit(100)];
    let claim = Claim { holder, visits: &visits, horizon: Duration::ZERO, limit: 100 };
    let claimed = store.claim(&claim).await.unwrap();
    assert_eq!(claimed.len(), 100);
    let _: () = server.command(&["CONFIG", "SET", "maxmemory", "1mb"]);

    let before = store.books().await.unwrap();
    let error = store.insert(&Insert::new(&jobs(&random, 10, 200))).await.unwrap_err();
    assert!(matches!(error, StoreError::Full(_)), "{error:?}");
    assert!(error.to_string().contains("raise `maxmemory`"), "{error}");
    assert_eq!(store.books().await.unwrap(), before, "nothing was written");

    store.renew(holder).await.unwrap();
    // A node that starts now.
    let (new, random) = (server.open().await.unwrap(), Random::thread());
    let starts = self::holder(&new, &random).await;
    let claim = Claim { holder: starts, visits: &visits, horizon: Duration::ZERO, limit: 100 };
    let more = new.claim(&claim).await.unwrap();
    assert_eq!(more.len(), 100);
    let done: Vec<_> = more.iter().map(|leased| Settlement::succeed(leased.lease())).collect();
    new.settle(starts, &done).await.unwrap();
    let (kept, retried) = claimed.split_at(50);
    let done: Vec<_> = kept.iter().map(|leased| Settlement::succeed(leased.lease())).collect();
    store.settle(holder, &done).await.unwrap();
    let leases: Vec<_> = retried.iter().map(|leased| leased.lease()).collect();
    store.give_back(holder, &leases, Default::default()).await.unwrap();
    assert_eq!(store.books().await.unwrap().finished, 150);
    assert_eq!(store.books().await.unwrap().missing(), 0);
}

/// The numbers of the connections, without the one that asks.
fn clients(server: &Server) -> Vec<String> {
    let list: String = server.command(&["CLIENT", "LIST", "TYPE", "normal"]);
    let others = list.lines().filter(|line| !line.contains("cmd=client"));
    others.filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

#[tokio::test]
async fn a_replica_is_unavailable_for_writes() {
    let server = Server::start("").await;
    let store = server.open().await.unwrap();
    let primary = Server::start("").await;
    let _: () = server.command(&["REPLICAOF", "127.0.0.1", &primary.port().to_string()]);
    let random = Random::thread();
    let mut last = None;
    // Until it has copied the primary it may say that the primary is down.
    for _ in 0..500 {
        let error = store.insert(&Insert::new(&jobs(&random, 1, 10))).await.unwrap_err();
        assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
        let text = error.to_string();
        if text.contains("this server is a replica and accepts no writes") {
            // Behind a name or a balancer, another connection may lead to the new primary.
            let before = clients(&server);
            store.insert(&Insert::new(&jobs(&random, 1, 10))).await.unwrap_err();
            assert_ne!(clients(&server), before, "the same connection was used again");
            return;
        }
        last = Some(text);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{last:?}");
}

#[tokio::test]
async fn a_wrong_password_needs_a_person() {
    let server = Server::start("").await;
    let _: () = server.command(&["CONFIG", "SET", "requirepass", "hunter2"]);
    let error = server.open().await.unwrap_err();
    assert!(matches!(error, StoreError::Broken { .. }), "{error:?}");
    assert!(!error.with_causes().contains("hunter2"));
}

/// Lua cannot pass 8,000 values to one command: the largest batch is written in slices.
#[tokio::test]
async fn the_largest_batch_is_stored_together() {
    let server = Server::start("").await;
    let store = server.open().await.unwrap();
    let random = Random::thread();
    let batch = jobs(&random, 10_000, 10);
    let together = Insert { if_refused: IfRefused::StoreNothing, ..Insert::new(&batch) };
    assert_eq!(store.insert(&together).await.unwrap().len(), 10_000);
    let holder = holder(&store, &random).await;
    let visits = [visit(usize::MAX)];
    let claim = Claim { holder, visits: &visits, horizon: Duration::ZERO, limit: usize::MAX };
    let claimed = store.claim(&claim).await.unwrap();
    assert_eq!(claimed.len(), 10_000);
    let order: Vec<_> = claimed.iter().map(|leased| leased.job.id).collect();
    assert!(order.iter().eq(batch.iter().map(|job| &job.id)), "in the order of the batch");
    assert_eq!(store.held(holder, Duration::ZERO, None, usize::MAX).await.unwrap().len(), 10_000);
}

/// A batch that is rejected changes nothing, also if it is stored in parts.
#[tokio::test]
async fn a_known_id_in_a_large_batch_stores_nothing() {
    let server = Server::start("").await;
    let store = server.open().await.unwrap();
    let random = Random::thread();
    let mut batch = jobs(&random, 1_500, 10);
    store.insert(&Insert::new(&batch[1_499..])).await.unwrap();
    let error = store.insert(&Insert::new(&batch)).await.unwrap_err();
    assert!(matches!(error, StoreError::Rejected(_)), "{error:?}");
    assert_eq!(store.books().await.unwrap().live, 1);
    batch.pop();
    store.insert(&Insert::new(&batch)).await.unwrap();
    assert_eq!(store.books().await.unwrap().live, 1_500);
}
