//! Tests beside a transaction whose old snapshot keeps dead rows from being removed.

use super::support::{Database, Node, counted, until};
use rewheel::{Clock, ManualClock};
use rewheel_core::store::{Direct, Insert, Inserted, OperateStore, Settlement, Store, WorkStore};
use rewheel_core::{HolderId, KindChange, Lease, NewJob, Retain, Timestamp, When};
use rewheel_stores::PostgresOptions;
use rewheel_testkit::{Schema, seconds};
use std::collections::BTreeMap;
use std::time::Duration;

/// The connections of the store that is measured.
const MEASURED: &str = "measured";

/// The indexes that the hot statements scan.
const INDEXES: [&str; 4] = ["jobs_due", "jobs_held", "jobs_deadline", "claims_pkey"];

const GONE: Retain = Retain { job: Duration::ZERO, key: Duration::ZERO };

async fn settle(node: &Node, holder: HolderId, leases: impl Iterator<Item = Lease>) {
    let settlements: Vec<Settlement> =
        leases.map(|lease| Settlement { keep: GONE, ..Settlement::succeed(lease) }).collect();
    node.store.settle(holder, &settlements).await.expect("settled");
}

/// What an engine that keeps up does every few seconds.
async fn round(node: &Node, holder: HolderId, jobs: usize) {
    let due = |job| NewJob { deadline: Some(When::In(seconds(20))), ..job };
    let new: Vec<NewJob> = node.jobs("a", jobs).into_iter().map(due).collect();
    node.insert(&new).await;
    assert_eq!(node.lanes(&["a"]).await.len(), 1);
    let leased = node.claim(holder, &["a"], 1_000).await;
    assert_eq!(leased.len(), jobs);
    let leases: Vec<Lease> = leased.iter().map(|leased| leased.lease()).collect();
    node.clock.advance(seconds(4));
    // An old list of a claim is shelved.
    assert_eq!(node.sweep(holder).await, []);
    assert_eq!(node.store.held(holder, seconds(1), None, 1_000).await.expect("held").len(), jobs);
    settle(node, holder, leases.into_iter()).await;

    let direct = Direct { holder, attempt_timeout: seconds(10), grace: seconds(5) };
    let new = [node.job("a")];
    let insert = Insert { direct: Some(direct), ..Insert::new(&new) };
    let [Inserted::Created { leased: Some(fence), .. }] = node.answers(&insert).await[..] else {
        panic!("no job is due: it is leased at once");
    };
    settle(node, holder, [Lease { job: new[0].id, fence }].into_iter()).await;
    assert_eq!(node.lanes(&["a"]).await.len(), 0);
    assert_eq!(node.sweep(holder).await, []);
    assert_eq!(node.store.deadlines(Duration::ZERO, 10).await.expect("deadlines"), []);
    node.clock.advance(seconds(1));
}

/// Returns how many index entries a store reads per round, dead ones included.
async fn cost(rounds: usize, jobs: usize, listed_min: usize) -> BTreeMap<&'static str, f64> {
    // A database of its own, so that the old snapshot does not affect other tests.
    let database = Database::fresh("").await;
    let visitor = database.connect().await;
    let old = database.connect().await;
    let faster = "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET synchronous_commit = off', current_database()); END $$";
    visitor.batch_execute(faster).await.expect("a setting");
    let mut options =
        PostgresOptions::parse(&format!("{}application_name={MEASURED}", database.url()))
            .expect("a URL");
    options.listed_min = listed_min;
    // It stands still: how often whole lanes are read is tested elsewhere.
    options.timer = Clock::from(ManualClock::new());
    let node = Node::with(options).await;
    node.kinds(&["a"]).await;
    let holder = node.holder().await;
    old.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class")
        .await
        .expect("a snapshot");
    for _ in 0..rounds {
        round(&node, holder, jobs).await;
    }
    node.store.close().await.expect("it closes");
    drop(node);
    // A connection reports its statistics when it ends.
    let open = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = '{MEASURED}' AND datname = current_database()"
    );
    until(&visitor, &open, 0).await;
    let mut read = BTreeMap::new();
    for index in INDEXES {
        let sql = format!(
            "SELECT idx_tup_read FROM pg_stat_user_indexes WHERE schemaname = 'rewheel' AND indexrelname = '{index}'"
        );
        read.insert(index, counted(&visitor, &sql).await as f64 / rounds as f64);
    }
    let dead = "SELECT n_dead_tup FROM pg_stat_user_tables WHERE schemaname = 'rewheel' AND relname = 'jobs'";
    assert!(counted(&visitor, dead).await as usize >= rounds * jobs, "they are kept");
    drop((visitor, old));
    database.drop().await;
    read
}

async fn costs_the_same(jobs: usize, listed_min: usize) {
    let first = cost(15, jobs, listed_min).await;
    let more = cost(60, jobs, listed_min).await;
    for index in INDEXES {
        let (first, more) = (first[index], more[index]);
        assert!(more <= 2.0 * first + 5.0, "{index}: {first} entries per round, then {more}");
    }
}

#[tokio::test]
async fn a_trickle_of_jobs_costs_the_same_however_old_the_snapshot_is() {
    costs_the_same(5, PostgresOptions::LISTED_MIN_DEFAULT).await;
}

#[tokio::test]
async fn large_claims_cost_the_same_however_old_the_snapshot_is() {
    costs_the_same(40, PostgresOptions::LISTED_MIN_DEFAULT).await;
}

/// A node whose floor is just behind the time, and the timer that decides when it looks below.
async fn with_floor(schema: &Schema) -> (Node, ManualClock, HolderId) {
    let timer = ManualClock::new();
    let mut options = PostgresOptions::parse(schema.url()).expect("a URL");
    options.timer = Clock::from(&timer);
    let node = Node::with(options).await;
    node.kinds(&["a"]).await;
    let holder = node.holder().await;
    lay(&node, holder).await;
    (node, timer, holder)
}

async fn lay(node: &Node, holder: HolderId) {
    node.insert(&node.jobs("a", 2)).await;
    node.clock.advance(seconds(5));
    assert_eq!(node.claim(holder, &["a"], 10).await.len(), 2);
}

/// A job that is due long ago.
fn old(node: &Node, now: Timestamp) -> NewJob {
    let due = Timestamp::from_millis(now.as_millis() - 3_600_000);
    NewJob { due: When::At(due), ..node.job("a") }
}

#[tokio::test]
async fn a_job_that_another_node_puts_below_the_floor_is_found_within_a_second() {
    let schema = Schema::fresh();
    let (node, timer, holder) = with_floor(&schema).await;
    let other = Node::of(&schema).await;
    other.insert(&[old(&other, node.now().await)]).await;
    assert_eq!(node.lanes(&["a"]).await, []);
    timer.advance(seconds(1));
    assert_eq!(node.lanes(&["a"]).await.len(), 1);
    assert_eq!(node.claim(holder, &["a"], 10).await.len(), 1);
}

#[tokio::test]
async fn a_node_that_only_claims_finds_it_too() {
    let schema = Schema::fresh();
    let (node, timer, holder) = with_floor(&schema).await;
    let other = Node::of(&schema).await;
    other.insert(&[old(&other, node.now().await)]).await;
    assert_eq!(node.claim(holder, &["a"], 10).await.len(), 0);
    timer.advance(seconds(2));
    assert_eq!(node.claim(holder, &["a"], 10).await.len(), 1);
}

#[tokio::test]
async fn a_job_that_this_node_puts_below_the_floor_is_found_at_once() {
    let schema = Schema::fresh();
    let (node, _timer, holder) = with_floor(&schema).await;
    node.insert(&[old(&node, node.now().await)]).await;
    let leased = node.claim(holder, &["a"], 10).await;
    assert_eq!(leased.len(), 1);
    lay(&node, holder).await;
    let lease = leased[0].lease();
    node.store.give_back(holder, &[lease], Retain::default()).await.expect("given back");
    assert_eq!(node.claim(holder, &["a"], 10).await.len(), 1);
}

#[tokio::test]
async fn a_job_whose_transaction_commits_late_is_found_within_a_second() {
    let schema = Schema::fresh();
    let (node, timer, holder) = with_floor(&schema).await;
    let mut user = schema.connect().await;
    let transaction = user.transaction().await.expect("a transaction");
    let jobs = [node.job("a")];
    node.store.insert_in(&transaction, &Insert::new(&jobs)).await.expect("stored");
    lay(&node, holder).await;
    transaction.commit().await.expect("committed");
    assert_eq!(node.lanes(&["a"]).await, []);
    timer.advance(seconds(1));
    assert_eq!(node.lanes(&["a"]).await.len(), 1);
    assert_eq!(node.claim(holder, &["a"], 10).await[0].job.id, jobs[0].id);
}

/// A claim of a paused kind gets nothing, which does not mean that there is nothing.
#[tokio::test]
async fn jobs_of_a_paused_kind_are_found_when_it_runs_again() {
    let schema = Schema::fresh();
    let (node, _timer, holder) = with_floor(&schema).await;
    node.insert(&node.jobs("a", 2)).await;
    node.apply_kind("a", KindChange::Pause).await;
    node.clock.advance(seconds(5));
    assert_eq!(node.claim(holder, &["a"], 10).await.len(), 0);
    node.apply_kind("a", KindChange::Resume).await;
    assert_eq!(node.claim(holder, &["a"], 10).await.len(), 2);
}
