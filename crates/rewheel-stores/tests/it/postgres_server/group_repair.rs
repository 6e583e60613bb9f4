//! Tests that lines recover from jobs that a release without groups has ended, and that such a release is kept out.

use super::support::{Node, counted};
use rewheel_core::store::{LeaseStore, OperateStore, ReadStore, Settlement, StoreError};
use rewheel_core::{Format, GroupKey, HolderId, JobId, NewHolder, NewJob, Role, Timestamp};
use rewheel_testkit::{Schema, seconds};

fn grouped(node: &Node) -> NewJob {
    NewJob { group_key: GroupKey::parse("customer-17").ok(), ..node.job("mail") }
}

async fn line(node: &Node, count: usize) -> Vec<JobId> {
    node.kinds(&["mail"]).await;
    let mut jobs = Vec::with_capacity(count);
    for _ in 0..count {
        jobs.push(node.put(grouped(node)).await);
    }
    jobs
}

/// Ends a job as a release does that knows no groups.
async fn end(schema: &Schema, job: JobId) {
    let name = schema.name();
    let sql = format!(
        "DELETE FROM {name}.jobs WHERE id = '{job}'; INSERT INTO {name}.ledger (at_ms, submitted, pruned) VALUES (1, 0, 1)"
    );
    schema.connect().await.batch_execute(&sql).await.expect("gone");
}

async fn check_repaired(node: &Node, next: JobId) {
    assert_eq!(node.store.stuck_groups(10).await.expect("a list").len(), 1);
    let found = node.store.release_groups(10).await.expect("released");
    assert_eq!((found.checked, found.released), (1, 1));
    assert_eq!(node.store.stuck_groups(10).await.expect("a list").len(), 0);
    let holder = node.holder().await;
    assert_eq!(node.claim(holder, &["mail"], 10).await[0].job.id, next);
    node.balance().await;
}

#[tokio::test]
async fn a_head_that_is_no_job_any_more_is_replaced() {
    let schema = Schema::fresh();
    let node = Node::of(&schema).await;
    let jobs = line(&node, 2).await;
    end(&schema, jobs[0]).await;
    check_repaired(&node, jobs[1]).await;
}

#[tokio::test]
async fn members_that_are_no_jobs_any_more_are_passed_over() {
    let schema = Schema::fresh();
    let node = Node::of(&schema).await;
    let jobs = line(&node, 4).await;
    end(&schema, jobs[1]).await;
    end(&schema, jobs[2]).await;
    let holder = node.holder().await;
    let lease = node.claim_only(holder, "mail").await.lease();
    node.succeed(holder, lease).await;
    check_repaired(&node, jobs[3]).await;
    let members = format!("SELECT count(*) FROM {}.group_members", schema.name());
    let visitor = schema.connect().await;
    assert_eq!(counted(&visitor, &members).await, 1);
}

#[tokio::test]
async fn a_dead_letter_that_was_not_marked_is_passed_over() {
    let schema = Schema::fresh();
    let node = Node::of(&schema).await;
    let jobs = line(&node, 3).await;
    let holder = node.holder().await;
    let lease = node.claim_only(holder, "mail").await.lease();
    node.settle(holder, &node.dead(lease)).await;
    let unmark = format!("UPDATE {}.group_members SET dead = false WHERE dead", schema.name());
    schema.connect().await.batch_execute(&unmark).await.expect("as an older release left it");
    let lease = node.claim_only(holder, "mail").await.lease();
    assert_eq!(lease.job, jobs[1]);
    node.settle(holder, &Settlement::succeed(lease)).await;
    check_repaired(&node, jobs[2]).await;
}

fn holder(node: &Node, format: Format) -> NewHolder {
    let id = HolderId::new(Timestamp::from_millis(1_700_000_000_000), &node.random);
    NewHolder { id, name: "old-1".to_owned(), role: Role::Engine, lease_ttl: seconds(15), format }
}

/// A user's transaction stores the first job of a group: no older holder can register until it has ended, and none after its commit.
#[tokio::test]
async fn no_old_holder_registers_while_the_first_job_of_a_group_is_stored() {
    let schema = Schema::fresh();
    let node = Node::of(&schema).await;
    node.kinds(&["mail"]).await;
    let sql = format!(
        "SELECT {}.rewheel_submit('mail', '{{}}', group_key => 'customer-17')",
        schema.name()
    );
    let mut user = schema.connect().await;
    for commits in [false, true] {
        let transaction = user.transaction().await.expect("a transaction");
        transaction.batch_execute(&sql).await.expect("stored");
        let joined = node.store.join(&holder(&node, Format::SCHEDULES)).await;
        assert!(joined.expect_err("not now").is_transient());
        node.store.join(&holder(&node, Format::CURRENT)).await.expect("it waits for nothing");
        if commits {
            transaction.commit().await.expect("committed");
            break;
        }
        transaction.rollback().await.expect("rolled back");
        let old = holder(&node, Format::SCHEDULES);
        node.store.join(&old).await.expect("it is not too old");
        let error = user.batch_execute(&sql).await.expect_err("refused");
        let message = error.as_db_error().expect("an error of the server").message().to_owned();
        assert!(message.contains("old-1 runs an older release"), "{message}");
        node.store.leave(old.id).await.expect("it leaves");
    }
    let joined = node.store.join(&holder(&node, Format::SCHEDULES)).await;
    assert!(matches!(joined, Err(StoreError::Rejected(_))), "{joined:?}");
}
