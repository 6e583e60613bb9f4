//! Tests epochs: a store that was promoted or restored while nodes run gives no fence twice, and nodes count what it forgot.
//!
//! The server itself is not promoted here, because other tests use it. Changing what the tables say about the server has the same effect;
//! the chaos cells `failover-sync` and `failover-async` promote real standbys.

use super::support::{Node, counted, soon, told};
use rewheel_core::store::{
    Direct, Insert, Inserted, KindStore, Leased, Settled, Settlement, Store, Sweep,
};
use rewheel_core::{HolderId, JobId, Lease, Retain};
use rewheel_testkit::{Schema, seconds};
use tokio::task::JoinSet;
use tokio_postgres::Client;

/// The floor of the fences in the first epoch after the store was made.
const FLOOR: u64 = 1 << 32;

/// As if the server had been promoted since the epoch began.
const PROMOTED: &str = "UPDATE s.epochs SET timeline = timeline - 1";

/// As if the tables had been copied from another server.
const MOVED: &str = "UPDATE s.epochs SET system = system - 1";

/// As if the table had been dropped and restored in a running server.
const RESTORED: &str = "CREATE TABLE s.old AS SELECT * FROM s.epochs; DROP TABLE s.epochs; \
     CREATE TABLE s.epochs (LIKE s.old); ALTER TABLE s.epochs ADD PRIMARY KEY (epoch); \
     INSERT INTO s.epochs SELECT * FROM s.old; DROP TABLE s.old";

async fn change(client: &Client, schema: &Schema, sql: &str) {
    let sql = sql.replace("s.", &format!("{}.", schema.name()));
    client.batch_execute(&sql).await.expect("a change");
}

async fn reasons(client: &Client, schema: &Schema) -> String {
    let sql =
        format!("SELECT string_agg(reason, ' ' ORDER BY epoch) FROM {}.epochs", schema.name());
    client.query_one(&sql, &[]).await.expect("epochs").get(0)
}

/// Claims as an engine does, which repeats a call if the store asks it to.
async fn claim(node: &Node, holder: HolderId) -> Leased {
    for _ in 0..3 {
        match node.try_claim(holder, &["a"], 1).await {
            Ok(mut leased) => return leased.pop().expect("a job is due"),
            Err(error) => assert!(error.is_transient(), "{error:?}"),
        }
    }
    panic!("a claim does not work again");
}

#[tokio::test]
async fn an_epoch_begins_when_the_server_was_promoted_or_the_tables_are_others() {
    for (what, reason) in [(PROMOTED, "promoted"), (RESTORED, "restored")] {
        let schema = Schema::fresh();
        let node = Node::of(&schema).await;
        let (holder, visitor) = (node.holder().await, schema.connect().await);
        node.submit("a").await;
        change(&visitor, &schema, what).await;
        let error = node.try_claim(holder, &["a"], 1).await.expect_err("the epoch is over");
        assert!(told(&error).contains("promoted or restored"), "{error}");
        assert_eq!(claim(&node, holder).await.job.fence.get(), FLOOR + 1, "{reason}");
        assert_eq!(reasons(&visitor, &schema).await, format!("created {reason}"));
        node.balance().await;
    }
}

/// A new connection checks more than a claim: it also notices another server with the same timeline.
#[tokio::test]
async fn an_epoch_begins_when_a_node_starts_on_another_server() {
    let schema = Schema::fresh();
    Node::of(&schema).await.submit("a").await;
    let visitor = schema.connect().await;
    change(&visitor, &schema, MOVED).await;
    let mut opening = JoinSet::new();
    for _ in 0..4 {
        let url = schema.url().to_owned();
        opening.spawn(async move { Node::open(&url).await });
    }
    let nodes = soon("they open", opening.join_all()).await;
    assert_eq!(reasons(&visitor, &schema).await, "created restored", "all begin one epoch");
    let holder = nodes[0].holder().await;
    assert_eq!(claim(&nodes[0], holder).await.job.fence.get(), FLOOR + 1);
}

/// The store forgot a lease and gives the job again. The holder of the forgotten lease is the same or another one; its result does not
/// count.
#[tokio::test]
async fn a_result_under_a_forgotten_lease_does_not_end_a_newer_one() {
    for same_holder in [true, false] {
        let schema = Schema::fresh();
        let node = Node::of(&schema).await;
        let visitor = schema.connect().await;
        let (first, other) = (node.holder().await, node.holder().await);
        let second = if same_holder { first } else { other };
        let job = node.submit("a").await;
        change(&visitor, &schema, "CREATE TABLE s.copy AS SELECT * FROM s.jobs").await;
        let forgotten = claim(&node, first).await.lease();
        assert_eq!(forgotten.fence.get(), 1);
        // What the standby had.
        change(&visitor, &schema, "DELETE FROM s.jobs; INSERT INTO s.jobs SELECT * FROM s.copy")
            .await;
        change(&visitor, &schema, PROMOTED).await;

        let newer = claim(&node, second).await.lease();
        assert_eq!((newer.job, newer.fence.get()), (job, FLOOR + 1));
        let settled = node.settle(first, &Settlement::succeed(forgotten)).await;
        assert_eq!(settled, Settled::Lost, "the same holder: {same_holder}");
        let settled = node.settle(second, &Settlement::succeed(newer)).await;
        assert!(matches!(settled, Settled::Applied(_)), "{settled:?}");
        change(&visitor, &schema, "DROP TABLE s.copy").await;
        node.balance().await;
    }
}

/// A lease that the promoted server has stays valid: nothing runs twice without need.
#[tokio::test]
async fn a_result_under_a_lease_that_was_not_forgotten_counts() {
    let schema = Schema::fresh();
    let node = Node::of(&schema).await;
    let visitor = schema.connect().await;
    let holder = node.holder().await;
    node.submit("a").await;
    let lease = claim(&node, holder).await.lease();
    change(&visitor, &schema, PROMOTED).await;
    node.submit("a").await;
    claim(&node, holder).await;
    let settled = node.settle(holder, &Settlement::succeed(lease)).await;
    assert!(matches!(settled, Settled::Applied(_)), "{settled:?}");
}

#[tokio::test]
async fn an_epoch_begins_when_an_acknowledged_renewal_is_missing() {
    let schema = Schema::fresh();
    let node = Node::of(&schema).await;
    let visitor = schema.connect().await;
    let (holder, store) = (node.holder().await, &node.subject.store);
    for _ in 0..3 {
        store.renew(holder).await.expect("a renewal");
    }
    store.books().await.expect("books");
    assert_eq!(reasons(&visitor, &schema).await, "created");
    change(&visitor, &schema, "UPDATE s.holders SET renewals = renewals - 1").await;
    store.renew(holder).await.expect("a renewal");
    store.renew(holder).await.expect("a renewal");
    assert_eq!(reasons(&visitor, &schema).await, "created went_back");
    store.renew(holder).await.expect("a renewal");
    store.books().await.expect("books");
    assert_eq!(reasons(&visitor, &schema).await, "created went_back");
}

/// Kinds that changed before the failover may have changed back.
#[tokio::test]
async fn all_kinds_are_read_again_in_a_new_epoch() {
    let schema = Schema::fresh();
    let node = Node::of(&schema).await;
    let visitor = schema.connect().await;
    let holder = node.holder().await;
    node.kinds(&["a", "b"]).await;
    let first = node.store.kinds_since(0).await.expect("kinds");
    let second = node.store.kinds_since(first.at).await.expect("kinds");
    assert!(first.all && !second.all);
    node.submit("a").await;
    change(&visitor, &schema, PROMOTED).await;
    claim(&node, holder).await;
    let third = node.store.kinds_since(second.at).await.expect("kinds");
    assert!(third.all);
    let fourth = node.store.kinds_since(third.at).await.expect("kinds");
    assert!(!fourth.all);
}

async fn failover_risk(node: &Node) -> Option<String> {
    let risks = node.store.risks().await.expect("risks");
    risks.into_iter().find(|risk| risk.name == "failover").map(|risk| risk.message)
}

#[tokio::test]
async fn a_node_counts_what_the_store_forgot() {
    let schema = Schema::fresh();
    let node = Node::of(&schema).await;
    let visitor = schema.connect().await;
    let holder = node.holder().await;
    // Four jobs are stored, and the standby has two of them; one ends, and the standby does not know.
    let jobs: [JobId; 2] = [node.submit("a").await, node.submit("a").await];
    change(&visitor, &schema, "CREATE TABLE s.copy AS SELECT * FROM s.jobs").await;
    node.insert(&node.jobs("a", 2)).await;
    let lease = claim(&node, holder).await.lease();
    assert_eq!(lease.job, jobs[0]);
    node.settle(holder, &Settlement::succeed(lease)).await;
    let back = "DELETE FROM s.jobs; DELETE FROM s.finished_bins; INSERT INTO s.jobs SELECT * FROM s.copy; \
                DELETE FROM s.ledger; INSERT INTO s.ledger (at_ms, submitted, pruned) VALUES (0, 2, 0)";
    change(&visitor, &schema, back).await;
    change(&visitor, &schema, PROMOTED).await;
    assert_eq!(failover_risk(&node).await, None);

    claim(&node, holder).await;
    let sweep = Sweep::new(holder, 10, Retain::default());
    for _ in 0..2 {
        node.subject.store.sweep(&sweep).await.expect("a sweep");
        let message = failover_risk(&node).await.expect("jobs are missing");
        assert!(
            message.contains(" 2 submitted jobs are missing, and 1 jobs that had ended"),
            "{message}"
        );
    }
    let rows = format!("SELECT checked FROM {}.forgotten", schema.name());
    assert_eq!(counted(&visitor, &rows).await, 5);
    node.balance().await;
}

/// Without a failover, nothing is checked.
#[tokio::test]
async fn a_failover_that_forgot_nothing_is_no_risk() {
    let schema = Schema::fresh();
    let node = Node::of(&schema).await;
    let visitor = schema.connect().await;
    let holder = node.holder().await;
    node.submit("a").await;
    node.submit("a").await;
    let lease = claim(&node, holder).await.lease();
    let keep = Retain { job: std::time::Duration::ZERO, ..Retain::default() };
    node.settle(holder, &Settlement { keep, ..Settlement::succeed(lease) }).await;
    change(&visitor, &schema, PROMOTED).await;
    claim(&node, holder).await;
    let sweep = Sweep::new(holder, 10, Retain::default());
    node.subject.store.sweep(&sweep).await.expect("a sweep");
    assert_eq!(failover_risk(&node).await, None);
    let rows = format!("SELECT count(*) FROM {}.forgotten WHERE checked = 2", schema.name());
    assert_eq!(counted(&visitor, &rows).await, 1);
}

/// Jobs that were deleted because their retention ended are not missing, however short it is.
#[tokio::test]
async fn deleted_jobs_are_not_counted_as_forgotten() {
    for (keep, age) in [(seconds(3_600), seconds(7_300)), (seconds(300), seconds(480))] {
        let schema = Schema::fresh();
        let node = Node::of(&schema).await;
        let visitor = schema.connect().await;
        let holder = node.holder().await;
        node.submit("a").await;
        let lease = claim(&node, holder).await.lease();
        let keep = Retain { job: keep, key: keep };
        node.settle(holder, &Settlement { keep, ..Settlement::succeed(lease) }).await;
        node.clock.advance(age);
        assert_eq!(node.prune_all().await.finished, 1);
        node.submit("a").await;
        change(&visitor, &schema, PROMOTED).await;
        let holder = node.holder().await;
        claim(&node, holder).await;
        node.subject
            .store
            .sweep(&Sweep::new(holder, 10, Retain::default()))
            .await
            .expect("a sweep");
        assert_eq!(failover_risk(&node).await, None);
        let rows = format!("SELECT count(*) FROM {}.forgotten", schema.name());
        assert_eq!(counted(&visitor, &rows).await, 1);
    }
}

/// Each node ends jobs of the other one. A kind whose jobs are not kept leaves no trace of them.
#[tokio::test]
async fn jobs_that_another_node_ended_and_did_not_keep_are_not_counted_as_forgotten() {
    let schema = Schema::fresh();
    let (first, second) = (Node::of(&schema).await, Node::of(&schema).await);
    let visitor = schema.connect().await;
    let holders = [first.holder().await, second.holder().await];
    let keep = Retain { job: std::time::Duration::ZERO, key: std::time::Duration::ZERO };
    for _ in 0..3 {
        first.submit("a").await;
        second.submit("a").await;
        for (node, holder) in [(&first, holders[0]), (&second, holders[1])] {
            let lease = claim(node, holder).await.lease();
            node.settle(holder, &Settlement { keep, ..Settlement::succeed(lease) }).await;
        }
        // Now each ends a job of the other one.
        second.submit("a").await;
        first.submit("a").await;
        for (node, holder) in [(&first, holders[0]), (&second, holders[1])] {
            let lease = claim(node, holder).await.lease();
            node.settle(holder, &Settlement { keep, ..Settlement::succeed(lease) }).await;
        }
    }
    second.submit("a").await;
    change(&visitor, &schema, PROMOTED).await;
    claim(&first, holders[0]).await;
    for (node, holder) in [(&first, holders[0]), (&second, holders[1])] {
        node.subject.store.books().await.expect("books");
        let sweep = Sweep::new(holder, 10, Retain::default());
        node.subject.store.sweep(&sweep).await.expect("a sweep");
        assert_eq!(failover_risk(node).await, None);
    }
}

/// Jobs of dead holders do not wait for the count, which may take long on a new primary.
#[tokio::test]
async fn takeovers_come_before_the_count_of_what_was_forgotten() {
    let schema = Schema::fresh();
    let node = Node::of(&schema).await;
    let visitor = schema.connect().await;
    let (holder, dead) = (node.holder().await, node.holder().await);
    node.submit("a").await;
    claim(&node, dead).await;
    node.submit("a").await;
    change(&visitor, &schema, PROMOTED).await;
    claim(&node, holder).await;
    node.subject.store.leave(dead).await.expect("it left");
    let rows = format!("SELECT count(*) FROM {}.forgotten", schema.name());
    for (taken, counts) in [(1, 0), (0, 1)] {
        let sweep = Sweep::new(holder, 10, Retain::default());
        assert_eq!(node.subject.store.sweep(&sweep).await.expect("a sweep").len(), taken);
        assert_eq!(counted(&visitor, &rows).await, counts);
    }
}

/// The fences of the direct path are as large as those of claims, and it notices a promotion as they do.
#[tokio::test]
async fn a_job_that_is_leased_at_once_has_a_fence_of_its_epoch() {
    for more in ["", "&pooler=transaction"] {
        let schema = Schema::fresh();
        let node = Node::open(&format!("{}{more}", schema.url())).await;
        let visitor = schema.connect().await;
        node.kinds(&["a"]).await;
        let holder = node.holder().await;
        let direct = Some(Direct { holder, attempt_timeout: seconds(30), grace: seconds(10) });
        for (epoch, change_first) in [(0, None), (1, Some(PROMOTED))] {
            if let Some(what) = change_first {
                change(&visitor, &schema, what).await;
            }
            let jobs = node.jobs("a", 1);
            let insert = Insert { direct, ..Insert::new(&jobs) };
            let mut stored = node.subject.store.insert(&insert).await;
            for _ in 0..2 {
                let Err(error) = &stored else { break };
                assert!(error.is_transient() && told(error).contains("promoted"), "{error:?}");
                stored = node.subject.store.insert(&insert).await;
            }
            let stored = stored.expect("the new epoch has begun");
            let Inserted::Created { leased: Some(fence), .. } = stored[0] else {
                panic!("{stored:?}")
            };
            assert_eq!(fence.get(), epoch * FLOOR + 1);
            let lease = Lease { job: jobs[0].id, fence };
            let settled = node.settle(holder, &Settlement::succeed(lease)).await;
            assert!(matches!(settled, Settled::Applied(_)), "{settled:?}");
        }
        assert_eq!(reasons(&visitor, &schema).await, "created promoted");
        node.balance().await;
    }
}

/// The nodes go on while an epoch begins. A sequence that goes back would give out numbers twice.
#[tokio::test]
async fn a_sequence_in_use_does_not_go_back_when_an_epoch_begins() {
    let schema = Schema::fresh();
    let node = Node::of(&schema).await;
    node.submit("a").await;
    let (raiser, user) = (schema.connect().await, schema.connect().await);
    let name = schema.name();
    let raise = format!(
        "SELECT count({name}.raise_sequence('ledger', 'seq', 1)) FROM generate_series(1, 20000)"
    );
    let take = format!(
        "SELECT count(DISTINCT number) FROM (
             SELECT nextval(pg_get_serial_sequence('{name}.ledger', 'seq')) AS number
               FROM generate_series(1, 200000)) AS taken"
    );
    let (_, taken) = tokio::join!(counted(&raiser, &raise), counted(&user, &take));
    assert_eq!(taken, 200_000, "numbers were given out twice");

    // A copy made by logical replication has the rows, but its sequences are at the start.
    let raise = format!(
        "SELECT {name}.raise_sequence('ledger', 'seq', 1000000)
           + nextval(pg_get_serial_sequence('{name}.ledger', 'seq'))"
    );
    assert_eq!(counted(&user, &raise).await, 2_000_001);
}

/// Behind a pooler, the server changes without a new connection: the claim itself notices it.
#[tokio::test]
async fn an_epoch_begins_behind_a_pooler() {
    let schema = Schema::fresh();
    let node = Node::open(&format!("{}&pooler=transaction", schema.url())).await;
    let visitor = schema.connect().await;
    let holder = node.holder().await;
    node.submit("a").await;
    change(&visitor, &schema, PROMOTED).await;
    assert_eq!(claim(&node, holder).await.job.fence.get(), FLOOR + 1);
    assert_eq!(reasons(&visitor, &schema).await, "created promoted");
}
