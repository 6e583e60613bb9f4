//! Tests broken networks: the store recovers when the path to the server fails.

use super::proxy::Proxy;
use super::support::{Node, address, soon, url_by};
use rewheel_core::store::{Claim, HolderExpiry, Insert, ReadStore, StoreError, SubmitStore};
use rewheel_testkit::{Schema, lane, millis, seconds};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// The error that pgbouncer sends when it loses the server.
const LOST_SERVER: &[u8] =
    b"E\x00\x00\x00\x2fSFATAL\x00VFATAL\x00C08P01\x00Mserver conn crashed\x00\x00";

async fn proxy() -> Proxy {
    let (host, port) = address();
    Proxy::start(&host, port).await
}

#[tokio::test]
async fn a_connection_that_never_answers_is_not_asked_again() {
    let schema = Schema::fresh();
    let proxy = proxy().await;
    let node = Node::open(&url_by(&schema, "127.0.0.1", proxy.port, "pool_max=2")).await;
    let holder = node.holder().await;
    let store = &node.subject.store;
    store.renew(holder).await.expect("a heartbeat");

    proxy.silence();
    let lost = timeout(millis(200), store.renew(holder)).await;
    assert!(lost.is_err(), "it was answered: {lost:?}");
    let renewed = timeout(seconds(60), store.renew(holder)).await.expect("by another connection");
    assert!(renewed.expect("it lives").renewals >= 2);
    for _ in 0..3 {
        let _ = timeout(millis(100), store.books()).await;
    }
    timeout(seconds(60), store.books()).await.expect("by another connection").expect("books");
}

/// Without a limit the server would wait for a process that was paused in the middle of a large response, and keep the locks of that
/// statement: no other node could take over its jobs.
#[tokio::test]
async fn a_node_that_takes_no_answer_can_be_expired() {
    let schema = Schema::fresh();
    let proxy = proxy().await;
    let url = url_by(&schema, "127.0.0.1", proxy.port, "statement_timeout=1s");
    let stopped = Node::open(&url).await;
    let node = Node::open(&format!("{}&statement_timeout=1s", schema.url())).await;
    let (victim, by) = (stopped.holder().await, node.holder().await);
    // Prepare its statements first, while it still receives responses.
    node.submit("a").await;
    stopped.claim_only(victim, "a").await;
    let mut jobs = node.jobs("a", 40);
    jobs.iter_mut().for_each(|job| job.payload = vec![b'x'; 1024 * 1024]);
    Node::of(&schema).await.insert(&jobs).await;

    proxy.go_deaf();
    let mut claims = JoinSet::new();
    let store = stopped.store.clone();
    let visits = [node.visit(lane("a"), 1_000)];
    claims.spawn(async move {
        use rewheel_core::store::WorkStore;
        let claim =
            Claim { holder: victim, visits: &visits, horizon: Duration::ZERO, limit: 1_000 };
        store.claim(&claim).await.map(|leased| leased.len())
    });
    let visitor = schema.connect().await;
    let stuck = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'ClientWrite'";
    soon("it is stuck", async {
        while super::support::counted(&visitor, stuck).await == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    node.clock.advance(seconds(60));
    let burial = soon("the burial", async {
        loop {
            match node.subject.store.expire_holder(by, victim, 0).await {
                // Until the server has closed its connection.
                Ok(HolderExpiry::Alive) => tokio::task::yield_now().await,
                Ok(burial) => return burial,
                Err(error) => assert!(error.is_transient(), "{error:?}"),
            }
        }
    });
    assert_eq!(burial.await, HolderExpiry::Expired);
}

/// A lane that was numbered in a transaction that did not commit does not exist: its jobs would never be found.
#[tokio::test]
async fn a_lane_whose_commit_was_lost_is_numbered_again() {
    let schema = Schema::fresh();
    let proxy = proxy().await;
    let node = Node::open(&url_by(&schema, "127.0.0.1", proxy.port, "pooler=transaction")).await;
    node.kinds(&["a"]).await;
    let jobs = [node.job("a")];
    proxy.cut_at("COMMIT", LOST_SERVER);
    let error = node.store.insert(&Insert::new(&jobs)).await.expect_err("it was cut off");
    assert!(proxy.has_cut());
    assert!(matches!(error, StoreError::Ambiguous(_)), "{error:?}");

    node.insert(&jobs).await;
    let other = Node::of(&schema).await;
    assert_eq!(other.lanes(&["a"]).await.len(), 1, "no node finds the job");
    let holder = other.holder().await;
    assert_eq!(other.claim_only(holder, "a").await.job.id, jobs[0].id);
}

#[tokio::test]
async fn a_commit_whose_answer_is_lost_may_be_repeated() {
    let schema = Schema::fresh();
    let proxy = proxy().await;
    let node = Node::open(&url_by(&schema, "127.0.0.1", proxy.port, "pooler=transaction")).await;
    let job = node.submit("a").await;
    let pause = [rewheel_core::store::Change::new(job, rewheel_core::store::ChangeVerb::Pause)];
    for answer in [LOST_SERVER, b""] {
        proxy.cut_at("COMMIT", answer);
        let (actor, keep) = (rewheel_core::Actor::new("test"), rewheel_core::Retain::default());
        let error = node.subject.store.change(&pause, &actor, keep).await.expect_err("cut off");
        assert!(proxy.has_cut());
        assert!(matches!(error, StoreError::Ambiguous(_)), "{error:?}");
    }
    assert_eq!(node.store.books().await.expect("books").missing(), 0);
    node.apply(job, rewheel_core::store::ChangeVerb::Pause).await;
}
