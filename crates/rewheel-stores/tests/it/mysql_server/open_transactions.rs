//! Tests that a user's open transaction locks only its own jobs and keys: submits, settles and operators do not wait for it.

use super::node::{Node, begin, user};
use mysql_async::prelude::Queryable;
use rewheel_core::store::{
    ChangeVerb, Changed, Insert, KindStore, LeaseStore, OperateStore, Settled, Settlement, Sweep,
};
use rewheel_core::{
    Actor, GroupKey, JobId, KindChange, KindChanged, KindName, Lease, NewJob, Retain, Timestamp,
};
use rewheel_testkit::{Database, seconds};
use std::sync::atomic::{AtomicI64, Ordering};

/// Returns a job of the group whose id is larger than all before, as those of a node are.
///
/// The order matters. A write that moves a row to another place also locks the row with the next larger id, because `id` is a unique index.
/// A job whose next larger id an open transaction has locked cannot move until it ends: see "Your own transaction" in `docs/mysql.md`.
fn grouped(node: &Node) -> NewJob {
    static LATEST: AtomicI64 = AtomicI64::new(1_700_000_000_000);
    let at = Timestamp::from_millis(LATEST.fetch_add(1, Ordering::Relaxed) + 1);
    let group_key = Some(GroupKey::parse("customer-17").expect("a group"));
    NewJob { id: JobId::new(at, &node.random), group_key, ..node.job("mail") }
}

#[tokio::test]
async fn a_lane_that_a_transaction_uses_first_is_free_for_others() {
    let database = Database::fresh();
    let (node, other) = (Node::start(&database).await, Node::start(&database).await);
    node.kinds(&["mail"]).await;
    let mut user = user(&database).await;
    let mut transaction = begin(&mut user).await;
    let jobs = [node.job("mail")];
    node.mysql.insert_in(&mut transaction, &Insert::new(&jobs)).await.expect("stored");
    let beside = [node.put(node.job("mail")).await, other.put(other.job("mail")).await];
    transaction.rollback().await.expect("rolled back");
    // The lane outlives the transaction.
    let after = other.put(other.job("mail")).await;
    let claimed = node.claim(node.holder().await, &["mail"], 10).await;
    let claimed: Vec<_> = claimed.iter().map(|leased| leased.job.id).collect();
    assert_eq!(claimed, [beside[0], beside[1], after]);
}

#[tokio::test]
async fn a_kind_is_paused_beside_an_open_submit() {
    let database = Database::fresh();
    let node = Node::start(&database).await;
    node.kinds(&["mail"]).await;
    let mut user = user(&database).await;
    let mut transaction = begin(&mut user).await;
    let jobs = [node.job("mail")];
    node.mysql.insert_in(&mut transaction, &Insert::new(&jobs)).await.expect("stored");
    let (kind, by) = (KindName::parse("mail").expect("a name"), Actor::new("test"));
    for change in [KindChange::Pause, KindChange::Resume] {
        let changed = node.mysql.change_kind(&kind, &change, &by).await.expect("an answer");
        assert!(matches!(changed, KindChanged::Applied(_)), "{changed:?}");
    }
    transaction.commit().await.expect("committed");
    assert_eq!(node.claim(node.holder().await, &["mail"], 10).await.len(), 1);
}

/// Ends the head of a line in a user's transaction. Meanwhile others submit to the line, and change its jobs.
async fn end_a_head(settle: impl Fn(&Node, Lease) -> Settlement) {
    let database = Database::fresh();
    let node = Node::start(&database).await;
    node.kinds(&["mail"]).await;
    let (head, second) = (node.put(grouped(&node)).await, node.put(grouped(&node)).await);
    let holder = node.holder().await;
    let claimed = node.claim(holder, &["mail"], 10).await;
    assert_eq!(claimed.iter().map(|leased| leased.job.id).collect::<Vec<_>>(), [head]);

    let mut user = user(&database).await;
    let mut transaction = begin(&mut user).await;
    let settlements = [settle(&node, claimed[0].lease())];
    let settled = node.mysql.settle_in(&mut transaction, holder, &settlements).await;
    assert!(matches!(settled.expect("settled")[..], [Settled::Applied(_)]));
    let third = node.put(grouped(&node)).await;
    let changed = node.change(second, ChangeVerb::Pause).await;
    assert!(matches!(changed, Changed::Applied { .. }), "{changed:?}");
    let changed = node.change(second, ChangeVerb::Resume).await;
    assert!(matches!(changed, Changed::Applied { .. }), "{changed:?}");
    assert!(node.claim(holder, &["mail"], 10).await.is_empty(), "the head has not ended yet");
    transaction.commit().await.expect("committed");

    assert_eq!(node.mysql.release_groups(10).await.expect("an answer").released, 1);
    for job in [second, third] {
        let claimed = node.claim(holder, &["mail"], 10).await;
        assert_eq!(claimed.iter().map(|leased| leased.job.id).collect::<Vec<_>>(), [job]);
        node.succeed(holder, claimed[0].lease()).await;
    }
    node.balance().await;
}

#[tokio::test]
async fn a_line_is_free_while_its_head_succeeds() {
    end_a_head(|_, lease| Settlement::succeed(lease)).await;
}

#[tokio::test]
async fn a_line_is_free_while_its_head_becomes_a_dead_letter() {
    end_a_head(|node, lease| node.dead(lease)).await;
}

/// Without waiting for housekeeping: the submit itself sees that the head is gone.
#[tokio::test]
async fn the_next_submit_to_a_line_replaces_a_head_that_has_ended() {
    let database = Database::fresh();
    let node = Node::start(&database).await;
    node.kinds(&["mail"]).await;
    node.put(grouped(&node)).await;
    let holder = node.holder().await;
    let claimed = node.claim(holder, &["mail"], 10).await;
    let mut user = user(&database).await;
    let mut transaction = begin(&mut user).await;
    let settlements = [Settlement::succeed(claimed[0].lease())];
    node.mysql.settle_in(&mut transaction, holder, &settlements).await.expect("settled");
    transaction.commit().await.expect("committed");
    let next = node.put(grouped(&node)).await;
    let claimed = node.claim(holder, &["mail"], 10).await;
    assert_eq!(claimed.iter().map(|leased| leased.job.id).collect::<Vec<_>>(), [next]);
}

#[tokio::test]
async fn other_jobs_of_a_claim_are_settled_beside_an_open_settle() {
    let database = Database::fresh();
    let node = Node::start(&database).await;
    node.kinds(&["mail"]).await;
    node.insert(&node.jobs("mail", 3)).await;
    let holder = node.holder().await;
    let claimed = node.claim(holder, &["mail"], 10).await;
    let mut user = user(&database).await;
    let mut transaction = begin(&mut user).await;
    let settlements = [Settlement::succeed(claimed[0].lease())];
    node.mysql.settle_in(&mut transaction, holder, &settlements).await.expect("settled");
    for leased in &claimed[1..] {
        let settled = node.succeed(holder, leased.lease()).await;
        assert!(matches!(settled, Settled::Applied(_)), "{settled:?}");
    }
    transaction.commit().await.expect("committed");
    node.balance().await;
    // The claim has ended once its last job is counted.
    node.mysql.sweep(&Sweep::new(holder, 10, Retain::default())).await.expect("swept");
    let left =
        "SELECT (SELECT COUNT(*) FROM rewheel_claims) + (SELECT COUNT(*) FROM rewheel_claim_ends)";
    let left: Option<u64> = database.connect().await.query_first(left).await.expect("a number");
    assert_eq!(left, Some(0));
}

#[tokio::test]
async fn a_follow_up_of_a_group_locks_no_line() {
    let database = Database::fresh();
    let node = Node::start(&database).await;
    node.submit("mail").await;
    let holder = node.holder().await;
    let claimed = node.claim(holder, &["mail"], 10).await;
    let mut user = user(&database).await;
    let mut transaction = begin(&mut user).await;
    let follow_ups = vec![grouped(&node)];
    let settlement = Settlement { follow_ups, ..Settlement::succeed(claimed[0].lease()) };
    node.mysql.settle_in(&mut transaction, holder, &[settlement]).await.expect("settled");
    let beside = node.put(grouped(&node)).await;
    let claimed = node.claim(holder, &["mail"], 10).await;
    assert_eq!(claimed.iter().map(|leased| leased.job.id).collect::<Vec<_>>(), [beside]);
    transaction.commit().await.expect("committed");
}

/// A move also locks the row with the next larger id, which an open transaction has stored. Its claim and the other jobs must not wait for it.
#[tokio::test]
async fn long_leases_leave_the_range_of_claims_beside_an_open_submit() {
    let database = Database::fresh();
    let node = Node::start(&database).await;
    node.kinds(&["mail"]).await;
    let next = || NewJob { group_key: None, ..grouped(&node) };
    for _ in 0..3 {
        node.put(next()).await;
    }
    let holder = node.holder().await;
    let claimed = node.claim(holder, &["mail"], 10).await;
    let mut user = user(&database).await;
    let mut transaction = begin(&mut user).await;
    let jobs = [next()];
    node.mysql.insert_in(&mut transaction, &Insert::new(&jobs)).await.expect("stored");
    // Another transaction has the row of the claim: a sweep that waited for it would not come to the jobs.
    let mut settle = database.connect().await;
    for sql in ["START TRANSACTION", "SELECT 1 FROM rewheel_claims FOR UPDATE"] {
        settle.query_drop(sql).await.expect("a lock");
    }
    node.clock.advance(seconds(3));
    assert_eq!(node.sweep(holder).await, []);
    let in_range = "SELECT id FROM rewheel_jobs WHERE lane > 0";
    let mut connection = database.connect().await;
    let left: Vec<Vec<u8>> = connection.query(in_range).await.expect("rows");
    assert_eq!(left, [claimed[2].job.id.to_bytes().to_vec()], "the one beside the transaction");
    settle.query_drop("ROLLBACK").await.expect("the lock is released");
    transaction.rollback().await.expect("rolled back");
    assert_eq!(node.sweep(holder).await, []);
    let left: Vec<Vec<u8>> = connection.query(in_range).await.expect("rows");
    assert!(left.is_empty(), "{left:?}");
    let done: Option<u8> =
        connection.query_first("SELECT aside FROM rewheel_claims").await.unwrap();
    assert_eq!(done, Some(1));
}
