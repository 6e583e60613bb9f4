//! Tests a node that keeps running while its database is replaced by an older copy: a restore, or a lagging standby.

use super::support::{Node, counted};
use rewheel_core::store::{
    Change, ChangeVerb, Claim, Edit, Insert, Inserted, OperateStore, Settled, Settlement,
};
use rewheel_core::{Actor, Key, KindName, Lane, NewJob, Priority, Retain};
use rewheel_stores::PostgresOptions;
use rewheel_testkit::{Schema, lane, seconds};
use std::time::Duration;
use tokio_postgres::Client;

/// Swaps the numbers of two lanes.
async fn swap_lanes(client: &Client, schema: &Schema) {
    let sql = "UPDATE s.lanes SET lane = -lane;
               UPDATE s.lanes SET lane = CASE kind WHEN 'a' THEN (SELECT -lane FROM s.lanes WHERE kind = 'b')
                                                   ELSE (SELECT -lane FROM s.lanes WHERE kind = 'a') END";
    change(client, schema, sql).await;
}

async fn change(client: &Client, schema: &Schema, sql: &str) {
    let sql = sql.replace("s.", &format!("{}.", schema.name()));
    client.batch_execute(&sql).await.expect("a change");
}

/// Returns a node that has stored and run a job of `a` and of `b`, and caches their lanes.
async fn node_with_lanes(schema: &Schema) -> Node {
    let node = Node::of(schema).await;
    node.kinds(&["a", "b"]).await;
    let holder = node.holder().await;
    for kind in ["a", "b"] {
        node.submit(kind).await;
        let lease = node.claim_only(holder, kind).await.lease();
        node.settle(holder, &Settlement::succeed(lease)).await;
    }
    node
}

/// Checks with another node, which has no cache, that each job has its own kind.
async fn assert_kinds(schema: &Schema, jobs: &[NewJob]) {
    let other = Node::of(schema).await;
    let holder = other.holder().await;
    let mut got: Vec<_> = other.claim(holder, &["a", "b"], 10).await;
    got.sort_by_key(|leased| leased.job.id);
    let got: Vec<_> = got.iter().map(|leased| (leased.job.id, leased.job.lane.clone())).collect();
    let mut wanted: Vec<_> = jobs.iter().map(|job| (job.id, job.lane())).collect();
    wanted.sort_by_key(|(id, _)| *id);
    assert_eq!(got, wanted);
    other.balance().await;
}

#[tokio::test]
async fn jobs_go_to_their_own_lane_after_lanes_were_renumbered() {
    let schema = Schema::fresh();
    let node = node_with_lanes(&schema).await;
    swap_lanes(&*schema.connect().await, &schema).await;
    let jobs = [node.job("a"), node.job("b")];
    node.insert(&jobs[..1]).await;
    node.insert(&jobs[1..]).await;
    assert_kinds(&schema, &jobs).await;
}

#[tokio::test]
async fn jobs_with_keys_go_to_their_own_lane_after_lanes_were_renumbered() {
    let schema = Schema::fresh();
    let node = node_with_lanes(&schema).await;
    swap_lanes(&*schema.connect().await, &schema).await;
    let jobs = ["a", "b"].map(|kind| NewJob { key: Key::parse("key").ok(), ..node.job(kind) });
    node.insert(&jobs).await;
    assert_kinds(&schema, &jobs).await;
}

#[tokio::test]
async fn jobs_of_a_users_transaction_go_to_their_own_lane_after_lanes_were_renumbered() {
    let schema = Schema::fresh();
    let node = node_with_lanes(&schema).await;
    let mut user = schema.connect().await;
    swap_lanes(&user, &schema).await;
    let jobs = ["a", "b"].map(|kind| NewJob { key: Key::parse("key").ok(), ..node.job(kind) });
    let transaction = user.transaction().await.expect("a transaction");
    let answers = node.store.insert_in(&transaction, &Insert::new(&jobs)).await.expect("stored");
    assert!(answers.iter().all(|answer| matches!(answer, Inserted::Created { .. })), "{answers:?}");
    transaction.commit().await.expect("a commit");
    assert_kinds(&schema, &jobs).await;
}

#[tokio::test]
async fn jobs_are_found_after_lanes_were_lost() {
    let schema = Schema::fresh();
    let node = node_with_lanes(&schema).await;
    change(&*schema.connect().await, &schema, "DELETE FROM s.lanes").await;
    let jobs = [node.job("a"), node.job("b")];
    node.insert(&jobs).await;
    assert_kinds(&schema, &jobs).await;
}

/// One lane was cached before the restore and one after it, with the same number.
#[tokio::test]
async fn two_lanes_that_are_remembered_under_one_number_are_told_apart() {
    let schema = Schema::fresh();
    let node = Node::of(&schema).await;
    node.kinds(&["a", "b"]).await;
    let first = node.job("a");
    node.insert(std::slice::from_ref(&first)).await;
    let visitor = schema.connect().await;
    change(
        &visitor,
        &schema,
        "UPDATE s.lanes SET lane = 7000; UPDATE s.jobs SET lane = 7000;
         INSERT INTO s.lanes (lane, kind, tenant, priority) VALUES (1, 'b', '', 5)",
    )
    .await;
    let jobs = [node.job("b"), node.job("a"), node.job("b")];
    node.insert(&jobs[..1]).await;
    node.insert(&jobs[1..]).await;
    let all = [&[first], &jobs[..]].concat();
    assert_kinds(&schema, &all).await;
}

/// A node that only claims does not run the jobs of one kind as jobs of another.
#[tokio::test]
async fn a_claim_gets_only_jobs_of_the_lane_that_it_names() {
    let schema = Schema::fresh();
    let node = node_with_lanes(&schema).await;
    swap_lanes(&*schema.connect().await, &schema).await;
    let other = Node::of(&schema).await;
    let job = other.submit("b").await;
    let holder = node.holder().await;
    let visits = [node.visit(lane("a"), 10)];
    let claim = Claim { holder, visits: &visits, horizon: Duration::ZERO, limit: 10 };
    let leased = node.subject.store.claim(&claim).await.expect("a claim");
    assert_eq!(leased.len(), 0, "{leased:?}");
    // A node reads the lanes before it claims, and caches their numbers from that.
    assert_eq!(node.lanes(&["a", "b"]).await.len(), 1);
    let leased = node.claim_only(holder, "b").await;
    assert_eq!((leased.job.id, leased.job.lane.clone()), (job, lane("b")));
}

#[tokio::test]
async fn an_edit_moves_a_job_to_its_own_lane_after_lanes_were_renumbered() {
    let schema = Schema::fresh();
    let node = node_with_lanes(&schema).await;
    let visitor = schema.connect().await;
    swap_lanes(&visitor, &schema).await;
    let other = Node::of(&schema).await;
    let job = other.submit("a").await;
    let edit = ChangeVerb::Edit(Box::new(Edit { attempts_max: Some(7), ..Edit::default() }));
    let (changes, by) = ([Change::new(job, edit)], Actor::new("test"));
    node.store.change(&changes, &by, Retain::default()).await.expect("a change");
    assert_eq!(other.get(job).await.lane, lane("a"));
    assert_eq!(node.get(job).await.lane, lane("a"));
}

/// The key of a job ends under the job's own kind, on a node that cached another lane number.
#[tokio::test]
async fn a_key_ends_after_lanes_were_renumbered() {
    let schema = Schema::fresh();
    let node = node_with_lanes(&schema).await;
    let visitor = schema.connect().await;
    swap_lanes(&visitor, &schema).await;
    let other = Node::of(&schema).await;
    let key = Key::parse("key").ok();
    other.insert(&[NewJob { key, ..other.job("a") }]).await;
    node.lanes(&["a"]).await;
    let holder = node.holder().await;
    let lease = node.claim_only(holder, "a").await.lease();
    let settlement =
        Settlement { decision: rewheel_core::Decision::Cancel, ..Settlement::succeed(lease) };
    assert!(matches!(node.settle(holder, &settlement).await, Settled::Applied(_)));
    let ended = format!("SELECT count(*) FROM {}.keys WHERE state = 'cancelled'", schema.name());
    assert_eq!(counted(&visitor, &ended).await, 1);
}

/// A list of claims that got an old list's number after a restore is not deleted: its jobs could not be found any more.
#[tokio::test]
async fn a_list_of_claims_that_another_made_stays() {
    let schema = Schema::fresh();
    let mut options = PostgresOptions::parse(schema.url()).expect("a URL");
    options.listed_min = 1;
    let (node, other) = (Node::with(options.clone()).await, Node::with(options).await);
    node.kinds(&["a"]).await;
    let (mine, theirs) = (node.holder().await, other.holder().await);
    node.submit("a").await;
    let lease = node.claim_only(mine, "a").await.lease();
    // All jobs are settled: the next claim deletes the list.
    node.settle(mine, &Settlement::succeed(lease)).await;
    let visitor = schema.connect().await;
    change(&visitor, &schema, "DELETE FROM s.claims; ALTER TABLE s.claims ALTER seq RESTART").await;
    // Make it a different millisecond.
    other.subject.clock.advance(seconds(1));
    other.submit("a").await;
    other.claim_only(theirs, "a").await;
    assert!(node.claim(mine, &["a"], 1).await.is_empty());
    let lists = format!("SELECT count(*) FROM {}.claims", schema.name());
    assert_eq!(counted(&visitor, &lists).await, 1);
}

#[tokio::test]
async fn a_batch_with_a_deleted_kind_stores_the_others() {
    let schema = Schema::fresh();
    let node = node_with_lanes(&schema).await;
    change(&*schema.connect().await, &schema, "DELETE FROM s.kinds WHERE name = 'b'").await;
    let priority = Priority::new(3).expect("a priority");
    let jobs = [node.job("a"), node.job("b"), NewJob { priority, ..node.job("a") }];
    let answers = node.answers(&Insert::new(&jobs)).await;
    let created: Vec<bool> =
        answers.iter().map(|answer| matches!(answer, Inserted::Created { .. })).collect();
    assert_eq!(created, [true, false, true], "{answers:?}");
    let kind = KindName::parse("a").expect("a kind");
    let named = Lane { kind, priority, ..lane("a") };
    assert_eq!(node.get(jobs[2].id).await.lane, named);
    node.balance().await;
}
