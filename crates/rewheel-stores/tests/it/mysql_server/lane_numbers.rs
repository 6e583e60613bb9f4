//! Tests that no job is stored under a lane number that means another lane, or none.

use super::node::{Node, begin, user};
use mysql_async::prelude::Queryable;
use rewheel_core::NewJob;
use rewheel_core::Priority;
use rewheel_core::store::Insert;
use rewheel_testkit::Database;

/// Restores data from before the lanes were numbered. Meanwhile another lane may have got the number.
async fn restore(database: &Database, other_kind: Option<&str>) {
    let mut connection = database.connect().await;
    let lanes: Vec<i64> =
        connection.query("SELECT lane FROM rewheel_lanes").await.expect("the lanes");
    connection.query_drop("DELETE FROM rewheel_jobs").await.expect("no jobs");
    connection.query_drop("DELETE FROM rewheel_lanes").await.expect("no lanes");
    for (lane, kind) in lanes.into_iter().zip(other_kind) {
        let insert = "INSERT INTO rewheel_lanes (lane, kind, tenant, priority, shard) VALUES (?, ?, '', 5, 0)";
        connection.exec_drop(insert, (lane, kind)).await.expect("another lane");
    }
}

#[tokio::test]
async fn a_job_gets_a_new_number_if_its_lane_has_lost_the_old_one() {
    for other_kind in [None, Some("refund")] {
        let database = Database::fresh();
        let node = Node::start(&database).await;
        node.kinds(&["charge", "refund"]).await;
        node.put(node.job("charge")).await;
        restore(&database, other_kind).await;

        let job = node.put(node.job("charge")).await;
        // Another node has cached nothing.
        let other = Node::start(&database).await;
        assert_eq!(other.get(job).await.lane.kind.as_str(), "charge");
        let holder = other.holder().await;
        let claimed = other.claim(holder, &["charge"], 10).await;
        assert_eq!(claimed.iter().map(|leased| leased.job.id).collect::<Vec<_>>(), [job]);
        assert_eq!(claimed[0].job.lane.kind.as_str(), "charge");
    }
}

#[tokio::test]
async fn a_users_transaction_gets_a_new_number_too() {
    let database = Database::fresh();
    let node = Node::start(&database).await;
    node.kinds(&["charge", "refund"]).await;
    node.put(node.job("charge")).await;
    restore(&database, Some("refund")).await;

    let mut user = user(&database).await;
    let mut transaction = begin(&mut user).await;
    let jobs = [node.job("charge")];
    node.mysql.insert_in(&mut transaction, &Insert::new(&jobs)).await.expect("stored");
    transaction.commit().await.expect("committed");
    let other = Node::start(&database).await;
    assert_eq!(other.get(jobs[0].id).await.lane.kind.as_str(), "charge");
}

#[tokio::test]
async fn a_batch_checks_each_of_its_lanes() {
    let database = Database::fresh();
    let node = Node::start(&database).await;
    node.kinds(&["charge", "refund"]).await;
    let priorities = [1, 5, 9].map(|number| Priority::new(number).expect("a priority"));
    let batch = |kind: &str| priorities.map(|priority| NewJob { priority, ..node.job(kind) });
    node.insert(&batch("charge")).await;
    restore(&database, Some("refund")).await;

    let jobs = batch("charge");
    node.insert(&jobs).await;
    let other = Node::start(&database).await;
    for job in &jobs {
        assert_eq!(other.get(job.id).await.lane, job.lane());
    }
}

/// A job of another kind must not run as this one.
#[tokio::test]
async fn a_claim_does_not_take_jobs_of_a_lane_that_got_the_number() {
    let database = Database::fresh();
    let node = Node::start(&database).await;
    node.kinds(&["charge", "refund"]).await;
    node.put(node.job("charge")).await;
    restore(&database, Some("refund")).await;
    let other = Node::start(&database).await;
    let refund = other.put(other.job("refund")).await;

    let holder = node.holder().await;
    assert!(node.claim(holder, &["charge"], 10).await.is_empty());
    let claimed = node.claim(holder, &["refund"], 10).await;
    assert_eq!(claimed.iter().map(|leased| leased.job.id).collect::<Vec<_>>(), [refund]);
}
