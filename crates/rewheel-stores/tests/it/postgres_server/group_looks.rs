//! Tests that each transaction that locks or stores a job of a group leaves its line with a head, and that users' transactions hold up no line.

use super::support::{Node, Stranger, counted, soon, until};
use rewheel_core::store::{
    Change, ChangeVerb, Edit, Insert, OperateStore, ReadStore, Settlement, SubmitStore,
};
use rewheel_core::{
    Actor, Duplicates, GroupKey, HolderId, JobId, Key, Lease, NewJob, OnDuplicate, Retain, When,
};
use rewheel_stores::PostgresStore;
use rewheel_testkit::{Schema, seconds};
use std::future::Future;
use std::time::Duration;
use tokio::task::JoinSet;

/// The number of a lock that only these tests use, different for each schema.
const LOCK: i32 = 1918;

fn grouped(node: &Node) -> NewJob {
    NewJob { group_key: GroupKey::parse("customer-17").ok(), ..node.job("mail") }
}

async fn claimed(node: &Node, holder: HolderId, job: JobId) -> Lease {
    let claimed = node.claim(holder, &["mail"], 10).await;
    assert_eq!(claimed.iter().map(|leased| leased.job.id).collect::<Vec<_>>(), [job]);
    claimed[0].lease()
}

async fn stuck(node: &Node) -> usize {
    node.store.stuck_groups(10).await.expect("a list").len()
}

/// A line whose first job is leased.
struct Line {
    schema: Schema,
    node: Node,
    holder: HolderId,
    head: Lease,
    second: JobId,
    third: JobId,
}

impl Line {
    async fn new(second: impl FnOnce(NewJob) -> NewJob) -> Line {
        let schema = Schema::fresh();
        let node = Node::of(&schema).await;
        node.kinds(&["mail"]).await;
        let first = node.put(grouped(&node)).await;
        let second = node.put(second(grouped(&node))).await;
        let third = node.put(grouped(&node)).await;
        let holder = node.holder().await;
        let head = claimed(&node, holder, first).await;
        Line { schema, node, holder, head, second, third }
    }

    /// Changes the second job in a transaction that commits only after the first job has ended, which has to pass over the second one.
    async fn end_head_during<F>(&self, change: impl FnOnce(PostgresStore) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let name = self.schema.name();
        let barrier = Stranger::at(self.schema.server()).await;
        let sql = format!(
            "CREATE FUNCTION {name}.wait() RETURNS trigger LANGUAGE plpgsql AS
                 $$ BEGIN PERFORM pg_advisory_xact_lock({LOCK}, hashtext('{name}')); RETURN NULL; END $$;
             CREATE CONSTRAINT TRIGGER wait AFTER UPDATE OR DELETE ON {name}.jobs DEFERRABLE INITIALLY DEFERRED
                 FOR EACH ROW WHEN (OLD.id = '{}') EXECUTE FUNCTION {name}.wait();
             SELECT pg_advisory_lock({LOCK}, hashtext('{name}'))",
            self.second
        );
        barrier.batch_execute(&sql).await.expect("a trigger");
        let mut changing = JoinSet::new();
        changing.spawn(change(self.node.store.clone()));
        let waits = format!(
            "SELECT count(*) FROM pg_locks
              WHERE locktype = 'advisory' AND NOT granted AND classid = {LOCK}::oid
                AND objid::bigint = hashtext('{name}')::bigint & 4294967295"
        );
        until(&barrier, &waits, 1).await;
        soon("the settle", self.node.succeed(self.holder, self.head)).await;
        assert_eq!(self.node.claim(self.holder, &["mail"], 10).await, []);
        let free = format!("SELECT pg_advisory_unlock({LOCK}, hashtext('{name}'))");
        barrier.batch_execute(&free).await.expect("the lock is free");
        soon("the change", changing.join_all()).await;
        assert_eq!(stuck(&self.node).await, 0);
    }
}

async fn change(store: PostgresStore, job: JobId, what: ChangeVerb) {
    let change = [Change::new(job, what)];
    store.change(&change, &Actor::new("test"), Retain::default()).await.expect("changed");
}

#[tokio::test]
async fn the_next_job_is_cancelled_during_the_end_of_the_head() {
    let line = Line::new(|job| job).await;
    let second = line.second;
    line.end_head_during(|store| change(store, second, ChangeVerb::Cancel)).await;
    claimed(&line.node, line.holder, line.third).await;
}

#[tokio::test]
async fn the_next_job_is_edited_during_the_end_of_the_head() {
    let line = Line::new(|job| job).await;
    let second = line.second;
    let edit = Edit { attempts_max: Some(7), ..Edit::default() };
    line.end_head_during(|store| change(store, second, ChangeVerb::Edit(Box::new(edit)))).await;
    claimed(&line.node, line.holder, line.second).await;
}

#[tokio::test]
async fn the_deadline_of_the_next_job_passes_during_the_end_of_the_head() {
    let line = Line::new(|job| NewJob { deadline: Some(When::In(seconds(10))), ..job }).await;
    line.node.clock.advance(seconds(11));
    line.end_head_during(|store| async move {
        assert_eq!(store.deadlines(Duration::ZERO, 10).await.expect("deadlines").len(), 1);
    })
    .await;
    claimed(&line.node, line.holder, line.third).await;
}

#[tokio::test]
async fn the_next_job_is_replaced_during_the_end_of_the_head() {
    let key = Key::parse("invoice-2").ok();
    let line = Line::new(|job| NewJob { key: key.clone(), ..job }).await;
    let duplicates = Duplicates::default().with_on_duplicate(OnDuplicate::Replace).expect("valid");
    let new = NewJob { key, duplicates, ..line.node.job("mail") };
    line.end_head_during(|store| async move {
        store.insert(&Insert::new(&[new])).await.expect("replaced");
    })
    .await;
    claimed(&line.node, line.holder, line.second).await;
}

/// A job that a user's transaction submits starts with the next poll, by whatever function it was submitted.
#[tokio::test]
async fn a_poll_releases_jobs_that_users_transactions_submitted() {
    let schema = Schema::fresh();
    let node = Node::of(&schema).await;
    node.kinds(&["mail"]).await;
    let holder = node.holder().await;
    let mut user = schema.connect().await;
    let sql = format!(
        "SELECT {}.rewheel_submit('mail', '{{}}', group_key => 'customer-18')",
        schema.name()
    );
    for round in 0..2 {
        // The transaction that began first commits last.
        let mut late = schema.connect().await;
        let late = late.transaction().await.expect("a transaction");
        let theirs = [grouped(&node)];
        node.store.insert_in(&late, &Insert::new(&theirs)).await.expect("stored");
        let transaction = user.transaction().await.expect("a transaction");
        transaction.batch_execute(&sql).await.expect("stored");
        transaction.commit().await.expect("committed");
        assert_eq!(node.claim(holder, &["mail"], 10).await, [], "round {round}");
        assert_eq!(node.lanes(&["mail"]).await.len(), 1);
        let one = node.claim(holder, &["mail"], 10).await;
        assert_eq!(one.len(), 1);
        late.commit().await.expect("committed");
        assert_eq!(node.lanes(&["mail"]).await.len(), 1);
        let lease = claimed(&node, holder, theirs[0].id).await;
        node.succeed(holder, lease).await;
        node.succeed(holder, one[0].lease()).await;
    }
    let left = format!("SELECT count(*) FROM {}.group_checks", schema.name());
    assert_eq!(counted(&user, &left).await, 0);
}

/// A submit by SQL that replaces the next job of a group holds up the group only while its transaction is open.
#[tokio::test]
async fn a_poll_releases_a_job_that_a_users_transaction_replaced() {
    let key = Key::parse("invoice-2").ok();
    let line = Line::new(|job| NewJob { key, ..job }).await;
    let mut user = line.schema.connect().await;
    let transaction = user.transaction().await.expect("a transaction");
    let sql = format!(
        "SELECT {}.rewheel_submit('mail', '2', key => 'invoice-2', on_duplicate => 'replace')",
        line.schema.name()
    );
    transaction.batch_execute(&sql).await.expect("replaced");
    line.node.succeed(line.holder, line.head).await;
    transaction.commit().await.expect("committed");
    assert_eq!(line.node.lanes(&["mail"]).await.len(), 1);
    claimed(&line.node, line.holder, line.second).await;
}

/// A settle in a user's transaction does not lock the next job, and the next poll after the commit releases it.
#[tokio::test]
async fn a_settle_in_a_users_transaction_locks_no_other_job() {
    let line = Line::new(|job| job).await;
    let mut user = line.schema.connect().await;
    let transaction = user.transaction().await.expect("a transaction");
    let settlements = [Settlement::succeed(line.head)];
    line.node.store.settle_in(&transaction, line.holder, &settlements).await.expect("settled");
    let visitor = line.schema.connect().await;
    let free = format!(
        "SELECT count(*) FROM (SELECT FROM {}.jobs WHERE id = '{}' FOR UPDATE SKIP LOCKED) AS free",
        line.schema.name(),
        line.second
    );
    assert_eq!(counted(&visitor, &free).await, 1);
    transaction.commit().await.expect("committed");
    assert_eq!(line.node.lanes(&["mail"]).await.len(), 1);
    claimed(&line.node, line.holder, line.second).await;
}

/// The insert of a job may find that another one of its line has to be released: that one has waited.
#[tokio::test]
async fn a_job_that_waited_is_due_now_if_an_insert_releases_it() {
    let line = Line::new(|job| job).await;
    let mut user = line.schema.connect().await;
    let transaction = user.transaction().await.expect("a transaction");
    let settlements = [Settlement::succeed(line.head)];
    line.node.store.settle_in(&transaction, line.holder, &settlements).await.expect("settled");
    transaction.commit().await.expect("committed");
    let before = line.node.get(line.second).await.due;
    line.node.clock.advance(seconds(10));
    let last = line.node.put(grouped(&line.node)).await;
    let second = line.node.get(line.second).await;
    assert!(!second.is_blocked() && line.node.get(last).await.is_blocked());
    assert!(second.due.since(before) >= seconds(10), "{second:?}");
}
