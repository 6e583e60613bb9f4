//! Tests beside a transaction whose old snapshot keeps dead rows from being removed.

use super::support::{Database, Node, counted, until};
use rewheel::{Clock, ManualClock};
use rewheel_core::store::{
    Direct, FleetLimit, Insert, Inserted, LimitOf, LimitWait, LimitedClaim, OperateStore,
    ReadStore, Reserve, Settlement, Store, SubmitStore, WorkStore,
};
use rewheel_core::{
    HolderId, KindChange, KindName, Lease, NewJob, Retain, Tenant, Timestamp, When,
};
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

fn acme() -> Tenant {
    Tenant::parse("acme").expect("a tenant")
}

/// Jobs of a tenant.
fn of_acme(node: &Node, jobs: usize) -> Vec<NewJob> {
    let jobs = node.jobs("limited", jobs).into_iter();
    jobs.map(|job| NewJob { tenant: Some(acme()), ..job }).collect()
}

fn limits() -> [FleetLimit; 2] {
    let limit = |of| FleetLimit { of, concurrency_max: Some(3), interval: None };
    [
        limit(LimitOf::Kind(KindName::parse("limited").expect("a kind"))),
        limit(LimitOf::Tenant(acme())),
    ]
}

/// Returns how many more jobs the tenant may have, of ten.
async fn room(node: &Node, holder: HolderId) -> u64 {
    let reserve =
        Reserve { holder, tenant: acme(), jobs_max: 10, on_the_way: 0, needed: 10, holders: 1 };
    node.store.reserve(&reserve).await.expect("room")
}

/// What an engine with limits does every few seconds: it counts leased jobs and those of a tenant.
async fn limited_round(node: &Node, holder: HolderId) {
    let new = of_acme(node, 5);
    node.insert(&new).await;
    assert_eq!(node.lanes(&["limited"]).await.len(), 1);
    let (visits, limits) = ([node.visit(new[0].lane(), 10)], limits());
    let claim = LimitedClaim { holder, visits: &visits, limit: 10, limits: &limits };
    for leased in [3, 2] {
        let claimed = node.store.claim_limited(&claim).await.expect("a claim");
        assert_eq!(claimed.leased.len(), leased);
        let is_full = (leased == 3).then_some(LimitWait::Concurrency);
        assert_eq!(node.store.limit_waits(&limits).await.expect("waits"), [is_full; 2]);
        assert_eq!(room(node, holder).await, if leased == 3 { 5 } else { 8 });
        settle(node, holder, claimed.leased.iter().map(|leased| leased.lease())).await;
    }
    assert_eq!(room(node, holder).await, 10);

    assert_eq!(node.sweep(holder).await, []);
    node.clock.advance(seconds(5));
}

/// What an engine does whose kind is parked: it probes with one job, and runs the others when the kind is back.
async fn probing_round(node: &Node, holder: HolderId) {
    node.insert(&node.jobs("parked", 20)).await;
    assert_eq!(node.lanes(&["parked"]).await.len(), 1);
    node.park("parked").await;
    node.probe("parked", holder).await;
    let probe = node.claim_only(holder, "parked").await;
    settle(node, holder, [probe.lease()].into_iter()).await;
    node.unpark("parked").await;
    let others = node.claim(holder, &["parked"], 100).await;
    assert_eq!(others.len(), 19);
    settle(node, holder, others.iter().map(|leased| leased.lease())).await;
    assert_eq!(node.lanes(&["parked"]).await, []);
    node.clock.advance(seconds(5));
}

/// Makes looks at everything take a second by the timer, as many dead rows do.
async fn slow_looks(node: &Node, holder: HolderId, timer: &ManualClock, database: &Database) {
    let (blocker, visitor) = (database.connect().await, database.connect().await);
    let waits =
        "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'rewheel.jobs'::regclass";
    for verb in ["lanes", "sweep"] {
        timer.advance(seconds(1));
        blocker.batch_execute("BEGIN; LOCK TABLE rewheel.jobs").await.expect("a lock");
        let look = async {
            match verb {
                "lanes" => drop(node.lanes(&["limited"]).await),
                _ => drop(node.sweep(holder).await),
            }
        };
        tokio::join!(look, async {
            until(&visitor, waits, 1).await;
            timer.advance(seconds(1));
            blocker.batch_execute("COMMIT").await.expect("no lock");
        });
    }
}

#[derive(Clone, Copy)]
enum Work {
    Plain { jobs: usize },
    Limited,
    Probing,
}

/// Returns how many index entries a store reads per round, dead ones included.
async fn cost(rounds: usize, work: Work) -> BTreeMap<&'static str, f64> {
    // A database of its own, so that the old snapshot does not affect other tests.
    let database = Database::fresh("").await;
    let visitor = database.connect().await;
    let old = database.connect().await;
    let faster = "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET synchronous_commit = off', current_database()); END $$";
    visitor.batch_execute(faster).await.expect("a setting");
    let mut options =
        PostgresOptions::parse(&format!("{}application_name={MEASURED}", database.url()))
            .expect("a URL");
    // The clock does not advance: other tests check how often whole lanes are read.
    let timer = ManualClock::new();
    options.timer = Clock::from(&timer);
    let node = Node::with(options).await;
    node.kinds(&["a", "limited", "parked"]).await;
    let holder = node.holder().await;
    old.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class")
        .await
        .expect("a snapshot");
    for nth in 0..rounds {
        match work {
            Work::Plain { jobs } => round(&node, holder, jobs).await,
            Work::Limited => limited_round(&node, holder).await,
            Work::Probing => probing_round(&node, holder).await,
        }
        if nth == 0 && matches!(work, Work::Limited) {
            slow_looks(&node, holder, &timer, &database).await;
        }
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
    assert!(counted(&visitor, dead).await as usize >= rounds * 5, "they are kept");
    drop((visitor, old));
    database.drop().await;
    read
}

async fn costs_the_same(work: Work) {
    let first = cost(15, work).await;
    let more = cost(60, work).await;
    for index in INDEXES {
        let (first, more) = (first[index], more[index]);
        assert!(more <= 2.0 * first + 5.0, "{index}: {first} entries per round, then {more}");
    }
}

#[tokio::test]
async fn a_trickle_of_jobs_costs_the_same_however_old_the_snapshot_is() {
    costs_the_same(Work::Plain { jobs: 5 }).await;
}

#[tokio::test]
async fn large_claims_cost_the_same_however_old_the_snapshot_is() {
    costs_the_same(Work::Plain { jobs: PostgresOptions::LISTED_MIN_DEFAULT + 8 }).await;
}

#[tokio::test]
async fn limits_cost_the_same_however_old_the_snapshot_is() {
    costs_the_same(Work::Limited).await;
}

#[tokio::test]
async fn probes_cost_the_same_however_old_the_snapshot_is() {
    costs_the_same(Work::Probing).await;
}

/// A count that does not read dead rows must find the jobs of listed claims, which are due long ago, and jobs that commit late.
#[tokio::test]
async fn counts_beside_an_old_snapshot_are_exact() {
    let database = Database::fresh("").await;
    let timer = ManualClock::new();
    let mut options = PostgresOptions::parse(&database.url()).expect("a URL");
    (options.timer, options.listed_min) = (Clock::from(&timer), 2);
    let node = Node::with(options).await;
    node.kinds(&["limited"]).await;
    let holder = node.holder().await;
    let lane = of_acme(&node, 1)[0].lane();
    node.insert(&of_acme(&node, 2)).await;
    let leased = node.claim_lane(holder, lane.clone()).await;
    settle(&node, holder, leased.iter().map(|leased| leased.lease())).await;
    node.clock.advance(seconds(60));
    assert_eq!(node.lanes(&["limited"]).await, []);
    slow_looks(&node, holder, &timer, &database).await;

    // Two on a list and one on the shelf of its holder, all below the floor.
    for jobs in [2, 1] {
        node.insert(&of_acme(&node, jobs)).await;
        assert_eq!(node.claim_lane(holder, lane.clone()).await.len(), jobs);
    }
    node.clock.advance(seconds(20));
    assert_eq!(node.lanes(&["limited"]).await, []);
    assert_eq!(room(&node, holder).await, 7);
    // One that commits late, and one that is scheduled.
    let mut user = database.connect().await;
    let transaction = user.client.transaction().await.expect("a transaction");
    let late = of_acme(&node, 1);
    node.store.insert_in(&transaction, &Insert::new(&late)).await.expect("stored");
    node.clock.advance(seconds(9));
    assert_eq!(node.lanes(&["limited"]).await, []);
    transaction.commit().await.expect("committed");
    assert_eq!(room(&node, holder).await, 6);
    node.insert(&of_acme(&node, 1)).await;
    assert_eq!(room(&node, holder).await, 5);
    let waits = node.store.limit_waits(&limits()).await.expect("waits");
    assert_eq!(waits, [Some(LimitWait::Concurrency); 2], "three are leased");
    drop((node, user));
    database.drop().await;
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
