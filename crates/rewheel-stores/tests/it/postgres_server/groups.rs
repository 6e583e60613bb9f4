//! Tests groups where transactions do not see each other: one ends the head of a line while another one stores a job.

use super::support::{Node, Stranger, soon, until};
use rewheel_core::store::{
    Change, ChangeVerb, Insert, OperateStore, ReadStore, Settlement, WorkStore,
};
use rewheel_core::{Actor, GroupKey, HolderId, JobId, Lease, NewJob, Retain};
use rewheel_testkit::Schema;
use tokio::task::JoinSet;

/// The number of a lock that only these tests use, different for each schema.
const LOCK: i32 = 1917;

fn grouped(node: &Node) -> NewJob {
    NewJob { group_key: GroupKey::parse("customer-17").ok(), ..node.job("mail") }
}

/// A line with one leased job.
async fn leased(node: &Node) -> (HolderId, Lease) {
    node.kinds(&["mail"]).await;
    let first = node.put(grouped(node)).await;
    let holder = node.holder().await;
    (holder, claimed(node, holder, first).await)
}

async fn claimed(node: &Node, holder: HolderId, job: JobId) -> Lease {
    let claimed = node.claim(holder, &["mail"], 10).await;
    assert_eq!(claimed.iter().map(|leased| leased.job.id).collect::<Vec<_>>(), [job]);
    claimed[0].lease()
}

async fn stuck(node: &Node) -> usize {
    node.store.stuck_groups(10).await.expect("a list").len()
}

/// Makes every transaction that removes a head wait at its commit for a lock, which the returned connection has.
async fn hold_commits(schema: &Schema) -> Stranger {
    let (name, barrier) = (schema.name(), Stranger::at(schema.server()).await);
    let sql = format!(
        "CREATE FUNCTION {name}.wait() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN PERFORM pg_advisory_xact_lock({LOCK}, hashtext('{name}')); RETURN NULL; END $$;
         CREATE CONSTRAINT TRIGGER wait AFTER DELETE ON {name}.group_heads DEFERRABLE INITIALLY DEFERRED
             FOR EACH ROW EXECUTE FUNCTION {name}.wait();
         SELECT pg_advisory_lock({LOCK}, hashtext('{name}'))"
    );
    barrier.batch_execute(&sql).await.expect("a trigger");
    barrier
}

/// Waits until a commit waits for the lock.
async fn one_waits(schema: &Schema, barrier: &Stranger) {
    let sql = format!(
        "SELECT count(*) FROM pg_locks
          WHERE locktype = 'advisory' AND NOT granted AND classid = {LOCK}::oid
            AND objid::bigint = hashtext('{}')::bigint & 4294967295",
        schema.name()
    );
    until(barrier, &sql, 1).await;
}

async fn release(schema: &Schema, barrier: &Stranger) {
    let sql = format!("SELECT pg_advisory_unlock({LOCK}, hashtext('{}'))", schema.name());
    barrier.batch_execute(&sql).await.expect("the lock is free");
}

/// The head ends, and before that commits, a job is stored: neither transaction sees the other. The look after the later commit does.
#[tokio::test]
async fn an_insert_during_the_end_of_the_head_leaves_no_line_without_a_head() {
    let schema = Schema::fresh();
    let node = Node::of(&schema).await;
    let (holder, lease) = leased(&node).await;
    let barrier = hold_commits(&schema).await;
    let (store, mut ending) = (node.store.clone(), JoinSet::new());
    ending.spawn(async move { store.settle(holder, &[Settlement::succeed(lease)]).await });
    one_waits(&schema, &barrier).await;
    let second = node.put(grouped(&node)).await;
    assert!(node.get(second).await.is_blocked(), "the first one has not ended yet");
    release(&schema, &barrier).await;
    soon("the settle", ending.join_all()).await;

    assert_eq!(stuck(&node).await, 0);
    claimed(&node, holder, second).await;
}

/// The same with a cancellation by an operator.
#[tokio::test]
async fn an_insert_during_the_cancellation_of_the_head_leaves_no_line_without_a_head() {
    let schema = Schema::fresh();
    let node = Node::of(&schema).await;
    node.kinds(&["mail"]).await;
    let first = node.put(grouped(&node)).await;
    let barrier = hold_commits(&schema).await;
    let (store, mut ending) = (node.store.clone(), JoinSet::new());
    ending.spawn(async move {
        let cancel = [Change::new(first, ChangeVerb::Cancel)];
        store.change(&cancel, &Actor::new("test"), Retain::default()).await
    });
    one_waits(&schema, &barrier).await;
    let second = node.put(grouped(&node)).await;
    release(&schema, &barrier).await;
    soon("the change", ending.join_all()).await;

    assert_eq!(stuck(&node).await, 0);
    let holder = node.holder().await;
    claimed(&node, holder, second).await;
}

/// A process that dies after its commit and before its look leaves a line without a head. Housekeeping finds it with its next check.
/// A user's transaction does the same: the store does not know when it commits.
#[tokio::test]
async fn housekeeping_heals_a_line_that_a_process_left_without_a_head() {
    let schema = Schema::fresh();
    let node = Node::of(&schema).await;
    let (holder, lease) = leased(&node).await;
    let mut user = schema.connect().await;
    let transaction = user.transaction().await.expect("a transaction");
    let settlements = [Settlement::succeed(lease)];
    node.store.settle_in(&transaction, holder, &settlements).await.expect("settled");
    let second = node.put(grouped(&node)).await;
    transaction.commit().await.expect("committed");

    assert_eq!(stuck(&node).await, 1);
    assert_eq!(node.claim(holder, &["mail"], 10).await, []);
    let found = node.store.release_groups(10).await.expect("released");
    assert_eq!((found.checked, found.released, stuck(&node).await), (1, 1, 0));
    claimed(&node, holder, second).await;
}

/// A user's transaction stores a job of a group, and holds up no other one while it is open.
#[tokio::test]
async fn a_users_transaction_holds_up_no_other_job_of_the_group() {
    let schema = Schema::fresh();
    let node = Node::of(&schema).await;
    node.kinds(&["mail"]).await;
    let theirs = [grouped(&node)];
    let mut user = schema.connect().await;
    let transaction = user.transaction().await.expect("a transaction");
    node.store.insert_in(&transaction, &Insert::new(&theirs)).await.expect("stored");
    let by_sql = format!(
        "SELECT {}.rewheel_submit('mail', '{{}}', group_key => 'customer-17')",
        schema.name()
    );
    transaction.batch_execute(&by_sql).await.expect("stored");

    let (holder, lease) = leased(&node).await;
    node.succeed(holder, lease).await;
    let (_, lease) = leased(&node).await;
    transaction.commit().await.expect("committed");
    assert_eq!(stuck(&node).await, 0, "the line has a head");
    node.succeed(lease_holder(&node, lease).await, lease).await;
    let holder = node.holder().await;
    let lease = claimed(&node, holder, theirs[0].id).await;
    node.succeed(holder, lease).await;
    assert_eq!(node.claim(holder, &["mail"], 10).await.len(), 1, "the one stored by SQL");
}

async fn lease_holder(node: &Node, lease: Lease) -> HolderId {
    let status = node.get(lease.job).await.status;
    let rewheel_core::Status::Leased { holder, .. } = status else { panic!("{status:?}") };
    holder
}

/// While an operator changes the next job, the end of the head does not wait for that, and does not pass over the job.
#[tokio::test]
async fn the_end_of_the_head_waits_for_no_lock_and_skips_no_job() {
    let schema = Schema::fresh();
    let node = Node::of(&schema).await;
    let (holder, lease) = leased(&node).await;
    let (second, third) = (node.put(grouped(&node)).await, node.put(grouped(&node)).await);
    let mut user = schema.connect().await;
    let transaction = user.transaction().await.expect("a transaction");
    let lock = format!("SELECT FROM {}.jobs WHERE id = '{second}' FOR UPDATE", schema.name());
    transaction.batch_execute(&lock).await.expect("a lock");
    soon("the settle", node.succeed(holder, lease)).await;
    assert!(node.get(third).await.is_blocked());
    assert_eq!(node.claim(holder, &["mail"], 10).await, []);
    transaction.rollback().await.expect("rolled back");
    node.store.release_groups(10).await.expect("released");
    claimed(&node, holder, second).await;
}

/// What SQL submits is checked, and nothing is stored.
#[tokio::test]
async fn a_wrong_group_key_by_sql_is_refused() {
    let schema = Schema::fresh();
    let node = Node::of(&schema).await;
    node.kinds(&["mail"]).await;
    let user = schema.connect().await;
    for key in [String::new(), "x".repeat(300), "a\nb".to_owned()] {
        let sql = format!(
            "SELECT {}.rewheel_submit('mail', '{{}}', group_key => E'{key}')",
            schema.name()
        );
        let error = user.batch_execute(&sql).await.expect_err("refused");
        let message = error.as_db_error().expect("an error of the server").message().to_owned();
        assert!(message.contains("group_key must be 1 to 255 bytes"), "{message}");
    }
    assert_eq!(node.subject.store.books().await.expect("books").submitted, 0);
}
