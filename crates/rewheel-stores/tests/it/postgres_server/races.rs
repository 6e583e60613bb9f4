//! Tests several clients that do the same thing at once.

use super::support::{Node, soon};
use rewheel_core::store::{
    Change, ChangeVerb, Edit, Extension, Insert, Inserted, KindStore, OperateStore, Outcome,
    Refusal, Settled, Settlement, SubmitStore, WorkStore,
};
use rewheel_core::{
    Actor, Key, KindEdit, KindEditVerb, KindEdited, KindName, Lane, NewJob, Priority, Retain,
};
use rewheel_stores::PostgresOptions;
use rewheel_testkit::{Schema, lane, seconds};
use std::time::Duration;
use tokio::task::JoinSet;

fn edit(priority: Option<u8>, attempts_max: Option<u32>) -> ChangeVerb {
    let priority = priority.map(|priority| Priority::new(priority).expect("a priority"));
    ChangeVerb::Edit(Box::new(Edit { priority, attempts_max, ..Edit::default() }))
}

/// A lane that was created in a transaction that was rolled back does not exist.
#[tokio::test]
async fn a_lane_of_a_change_that_was_undone_is_numbered_again() {
    let schema = Schema::fresh();
    let node = Node::open(&format!("{}&statement_timeout=300ms", schema.url())).await;
    let (one, two) = (node.submit("a").await, node.submit("a").await);
    let (first, locked) = (one.min(two), one.max(two));
    let mut user = schema.connect().await;
    let transaction = user.transaction().await.expect("a transaction");
    let lock = format!("SELECT FROM {}.jobs WHERE id = '{locked}' FOR UPDATE", schema.name());
    transaction.batch_execute(&lock).await.expect("a lock");

    let changes = [
        Change::new(first, edit(Some(9), None)),
        Change::new(first, edit(None, Some(7))),
        Change::new(locked, ChangeVerb::Pause),
    ];
    let undone = node.store.change(&changes, &Actor::new("test"), Retain::default()).await;
    assert!(undone.expect_err("one is locked").is_transient());
    transaction.rollback().await.expect("rolled back");

    let priority = Priority::new(9).expect("a priority");
    let job = node.put(NewJob { priority, ..node.job("a") }).await;
    let other = Node::of(&schema).await;
    assert_eq!(other.lanes(&["a"]).await.len(), 2, "no node finds the job");
    assert_eq!(other.get(job).await.lane, Lane { priority, ..lane("a") });
}

/// A duplicate of a job that ends at that moment without retention is still reported as a duplicate.
#[tokio::test]
async fn a_duplicate_of_a_job_that_ends_just_now_is_told_how_it_ended() {
    let schema = Schema::fresh();
    let (node, other) = (Node::of(&schema).await, Node::of(&schema).await);
    node.kinds(&["a"]).await;
    let holder = node.holder().await;
    for round in 0..100 {
        let key = Key::parse(&format!("key-{round}")).ok();
        node.insert(&[NewJob { key: key.clone(), ..node.job("a") }]).await;
        let lease = node.claim_only(holder, "a").await.lease();
        let mut again = JoinSet::new();
        for _ in 0..3 {
            let job = NewJob { key: key.clone(), ..other.job("a") };
            let store = other.store.clone();
            again.spawn(async move {
                for _ in 0..3 {
                    let jobs = [NewJob { ..job.clone() }];
                    let answers = store.insert(&Insert::new(&jobs)).await.expect("an answer");
                    assert!(matches!(answers[..], [Inserted::Duplicate { .. }]), "{answers:?}");
                }
            });
        }
        let keep = Retain { job: Duration::ZERO, key: seconds(60) };
        let settled = node.settle(holder, &Settlement { keep, ..Settlement::succeed(lease) }).await;
        assert!(matches!(settled, Settled::Applied(Outcome::LetGo(_))), "{settled:?}");
        soon("the duplicates", again.join_all()).await;
    }
    node.balance().await;
}

/// Two nodes submit the same keys: each job is stored once, and both nodes get the same result.
#[tokio::test]
async fn a_key_that_two_nodes_bring_at_once_is_taken_once() {
    let schema = Schema::fresh();
    let (one, other) = (Node::of(&schema).await, Node::of(&schema).await);
    one.kinds(&["a"]).await;
    for round in 0..20 {
        let batch = |node: &Node| -> Vec<NewJob> {
            let keyed =
                |n| NewJob { key: Key::parse(&format!("{round}-{n}")).ok(), ..node.job("a") };
            (0..20).map(keyed).collect()
        };
        let (mine, mut theirs) = (batch(&one), batch(&other));
        theirs.reverse();
        let (one_insert, other_insert) = (Insert::new(&mine), Insert::new(&theirs));
        let (first, second) = soon("both", async {
            tokio::join!(one.store.insert(&one_insert), other.store.insert(&other_insert))
        })
        .await;
        let (first, mut second) = (first.expect("stored"), second.expect("stored"));
        second.reverse();
        for (one, other) in first.iter().zip(&second) {
            let created = |answer: &Inserted| matches!(answer, Inserted::Created { .. });
            assert!(created(one) != created(other), "both or neither: {one:?} {other:?}");
        }
    }
    assert_eq!(one.subject.store.books().await.expect("books").live, 400);
    one.balance().await;
}

/// Nodes share the work, and each job runs once.
#[tokio::test]
async fn nodes_that_claim_at_once_share_the_jobs() {
    let schema = Schema::fresh();
    let nodes = [Node::of(&schema).await, Node::of(&schema).await, Node::of(&schema).await];
    nodes[0].kinds(&["a"]).await;
    nodes[0].insert(&nodes[0].jobs("a", 300)).await;
    let mut work = JoinSet::new();
    for node in &nodes {
        for _ in 0..2 {
            let holder = node.holder().await;
            let (store, visits) = (node.store.clone(), [node.visit(lane("a"), 7)]);
            work.spawn(async move {
                let claim = rewheel_core::store::Claim {
                    holder,
                    visits: &visits,
                    horizon: Duration::ZERO,
                    limit: 7,
                };
                let mut done = 0;
                // A lock of another node may hide a job for a moment: stop only after several empty claims.
                let mut empty = 0;
                while empty < 20 {
                    let leased = store.claim(&claim).await.expect("a claim");
                    empty = if leased.is_empty() { empty + 1 } else { 0 };
                    let settlements: Vec<Settlement> =
                        leased.iter().map(|leased| Settlement::succeed(leased.lease())).collect();
                    let settled = store.settle(holder, &settlements).await.expect("settled");
                    let applied = |settled: &&Settled| matches!(settled, Settled::Applied(_));
                    assert_eq!(settled.iter().filter(applied).count(), leased.len());
                    done += leased.len();
                }
                done
            });
        }
    }
    let done: usize = soon("the work", work.join_all()).await.into_iter().sum();
    assert_eq!(done, 300);
    nodes[0].balance().await;
}

async fn delete(node: &Node, kind: &str) -> KindEdited {
    let name = KindName::parse(kind).expect("a name");
    let edit = KindEdit { name, what: KindEditVerb::Delete, if_version: None };
    node.store.edit_kind(&edit, &Actor::new("test")).await.expect("it answers")
}

/// A node that caches the lane of a kind does not store jobs of it after another node deleted the kind: no node would run them.
#[tokio::test]
async fn a_job_of_a_kind_that_was_deleted_elsewhere_is_refused() {
    let schema = Schema::fresh();
    let (node, other) = (Node::of(&schema).await, Node::of(&schema).await);
    let holder = other.holder().await;
    other.submit("a").await;
    other.kinds(&["b"]).await;
    other.submit("b").await;
    let lease = other.claim_only(holder, "a").await.lease();
    other.store.settle(holder, &[Settlement::succeed(lease)]).await.expect("settled");
    assert!(matches!(delete(&node, "a").await, KindEdited::Done(_)));

    let unknown = Inserted::Refused(Refusal::UnknownKind);
    let plain = [other.job("a"), other.job("b")];
    let answers = other.store.insert(&Insert::new(&plain)).await.expect("it answers");
    assert_eq!(answers[0], unknown);
    assert!(matches!(answers[1], Inserted::Created { .. }));
    node.kinds(&["a"]).await;
    other.insert(&[other.job("a")]).await;
    assert!(matches!(delete(&node, "a").await, KindEdited::HasJobs(_)));
}

/// The same for a job with a key: the key does not stay behind.
#[tokio::test]
async fn the_key_of_a_job_whose_kind_was_deleted_stays_free() {
    let schema = Schema::fresh();
    let (node, other) = (Node::of(&schema).await, Node::of(&schema).await);
    let holder = other.holder().await;
    other.submit("a").await;
    let lease = other.claim_only(holder, "a").await.lease();
    other.store.settle(holder, &[Settlement::succeed(lease)]).await.expect("settled");
    assert!(matches!(delete(&node, "a").await, KindEdited::Done(_)));
    let keyed = NewJob { key: Key::parse("order-17").ok(), ..other.job("a") };
    let again = other.store.insert(&Insert::new(std::slice::from_ref(&keyed))).await;
    assert_eq!(again.expect("it answers"), [Inserted::Refused(Refusal::UnknownKind)]);
    node.kinds(&["a"]).await;
    other.insert(&[NewJob { key: Key::parse("order-17").ok(), ..other.job("a") }]).await;
}

/// A job that another client changes while its time is extended stays with its holder.
#[tokio::test]
async fn an_extension_beside_another_change_counts() {
    let schema = Schema::fresh();
    let node = Node::of(&schema).await;
    let holder = node.holder().await;
    node.submit("a").await;
    let lease = node.claim_only(holder, "a").await.lease();
    let mut user = schema.connect().await;
    let transaction = user.transaction().await.expect("a transaction");
    let change =
        format!("UPDATE {}.jobs SET wanted = 'cancel' WHERE id = '{}'", schema.name(), lease.job);
    transaction.batch_execute(&change).await.expect("a change");
    let store = node.store.clone();
    let mut extending = JoinSet::new();
    extending.spawn(async move {
        let extension = Extension {
            lease,
            timeout: seconds(600),
            total_max: seconds(6_000),
            grace: seconds(1),
        };
        store.extend(holder, &extension).await
    });
    let visitor = schema.connect().await;
    let waits = "SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid) \
                 WHERE NOT granted AND query LIKE '%-- extend: %' AND query LIKE $1";
    let of_schema = format!("%{}.jobs%", schema.name());
    let is_waiting = async {
        while visitor.query_one(waits, &[&of_schema]).await.expect("locks").get::<_, i64>(0) == 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    soon("the extension waits", is_waiting).await;
    transaction.commit().await.expect("the change counts");
    let extended = soon("it answers", extending.join_next()).await;
    let extended = extended.expect("it was started").expect("no panic").expect("it answers");
    assert!(extended.is_some(), "the lease is the same");
}

/// A list of claims is deleted only when all of its jobs are on their shelf: a job that is neither listed nor there is never found.
#[tokio::test]
async fn a_list_stays_while_one_of_its_jobs_is_not_on_its_shelf() {
    let schema = Schema::fresh();
    let mut options = PostgresOptions::parse(schema.url()).expect("a URL");
    options.listed_min = 1;
    let node = Node::with(options).await;
    let job = node.submit("a").await;
    let (holder, by) = (node.holder().await, node.holder().await);
    node.claim_only(holder, "a").await;
    let visitor = schema.connect().await;
    let name = schema.name();
    // Locks a row without changing it. Rewheel never does that, but triggers of others may.
    let keep = format!(
        "CREATE FUNCTION {name}.keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
         CREATE TRIGGER keep BEFORE UPDATE ON {name}.jobs FOR EACH ROW EXECUTE FUNCTION {name}.keep()"
    );
    visitor.batch_execute(&keep).await.expect("a trigger");
    node.subject.clock.advance(seconds(3));
    assert!(node.sweep(by).await.is_empty());
    visitor.batch_execute(&format!("DROP TRIGGER keep ON {name}.jobs")).await.expect("dropped");
    let events = node.take_over(by, holder).await;
    assert_eq!(events.iter().map(|event| event.job).collect::<Vec<_>>(), [job]);
}
