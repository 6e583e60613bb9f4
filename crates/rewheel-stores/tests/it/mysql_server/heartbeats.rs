//! Tests that a heartbeat waits neither for the work of its holder nor for a user's transaction.

use super::node::{Node, begin, user};
use futures_util::future::join;
use mysql_async::prelude::Queryable;
use rewheel_core::store::{HolderExpiry, LeaseStore, Settlement, StoreError};
use rewheel_testkit::{Database, seconds};

#[tokio::test]
async fn a_heartbeat_does_not_wait_for_a_users_open_settle() {
    let database = Database::fresh();
    let node = Node::start(&database).await;
    let (holder, lease) = node.leased("charge").await;
    let mut user = user(&database).await;
    let mut transaction = begin(&mut user).await;
    let settlements = [Settlement::succeed(lease)];
    node.mysql.settle_in(&mut transaction, holder, &settlements).await.expect("settled");
    let renewed = node.mysql.renew(holder).await.expect("a heartbeat");
    assert_eq!(renewed.renewals, 1);
    // Nor does the expiry of the holder: the fence of each job decides whether the settle counts.
    node.expire_holder(node.holder().await, holder).await;
    transaction.commit().await.expect("committed");
}

/// Trap 18 of the prototype: the claim's share lock and the renewal want the same row.
#[tokio::test]
async fn a_heartbeat_does_not_wait_for_a_claim() {
    let database = Database::fresh();
    let node = Node::start(&database).await;
    let (holder, other) = (node.holder().await, node.holder().await);
    let mut claim = database.connect().await;
    claim.query_drop("START TRANSACTION").await.expect("a transaction");
    let find = "SELECT seq FROM rewheel_holders LOCK IN SHARE MODE";
    let found: Vec<i64> = claim.query(find).await.expect("holders");
    assert_eq!(found.len(), 2);
    for renewals in 1..=3 {
        assert_eq!(node.mysql.renew(holder).await.expect("a heartbeat").renewals, renewals);
    }
    // An expiry does: the claim may be leasing jobs to the holder.
    node.clock.advance(seconds(3_600));
    let expired = node.mysql.expire_holder(other, holder, 3).await;
    assert!(matches!(expired, Err(StoreError::Unavailable(_))), "{expired:?}");
    claim.query_drop("COMMIT").await.expect("committed");
    let expired = node.mysql.expire_holder(other, holder, 3).await.expect("an answer");
    assert_eq!(expired, HolderExpiry::Expired);
    assert!(matches!(node.mysql.renew(holder).await, Err(StoreError::HolderDead(_))));
}

#[tokio::test]
async fn a_heartbeat_that_waits_does_not_stop_those_of_other_holders() {
    let database = Database::fresh();
    let node = Node::start(&database).await;
    let (worker, engine) = (node.holder().await, node.holder().await);
    let mut other = database.connect().await;
    other.query_drop("START TRANSACTION").await.expect("a transaction");
    let lock = "SELECT 1 FROM rewheel_renewals WHERE id = ? FOR UPDATE";
    let id = (worker.to_bytes().to_vec(),);
    assert!(other.exec_first::<u8, _, _>(lock, id).await.expect("a lock").is_some());
    let beside = async {
        node.mysql.renew(engine).await.expect("a heartbeat of another holder");
        other.query_drop("COMMIT").await.expect("committed");
    };
    let (waited, ()) = join(node.mysql.renew(worker), beside).await;
    waited.expect("a heartbeat after the lock");
}
