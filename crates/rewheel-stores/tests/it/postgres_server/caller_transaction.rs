//! Tests submitting and settling inside the user's own transaction.

use super::support::{Node, counted, soon};
use rewheel_core::store::{
    IfRefused, Insert, Inserted, Outcome, Refusal, Settled, Settlement, Store,
};
use rewheel_core::{Key, NewJob, State};
use rewheel_testkit::{Schema, seconds};

/// A node with a kind, and a table of the user.
async fn shop(schema: &Schema) -> Node {
    let node = Node::of(schema).await;
    node.kinds(&["charge"]).await;
    let table = format!("CREATE TABLE {}.orders (id integer)", schema.name());
    schema.connect().await.batch_execute(&table).await.expect("a table");
    node
}

fn keyed(node: &Node, key: &str) -> NewJob {
    NewJob { key: Some(Key::parse(key).expect("a key")), ..node.job("charge") }
}

fn order(schema: &Schema) -> String {
    format!("INSERT INTO {}.orders VALUES (17)", schema.name())
}

async fn orders(schema: &Schema) -> i64 {
    let sql = format!("SELECT count(*) FROM {}.orders", schema.name());
    counted(&*schema.connect().await, &sql).await
}

#[tokio::test]
async fn jobs_of_a_transaction_that_is_rolled_back_never_were() {
    let schema = Schema::fresh();
    let node = shop(&schema).await;
    let job = keyed(&node, "order-17");
    let jobs = [job.clone()];

    let mut user = schema.connect().await;
    let transaction = user.transaction().await.expect("a transaction");
    transaction.batch_execute(&order(&schema)).await.expect("an order");
    let answers = node.store.insert_in(&transaction, &Insert::new(&jobs)).await.expect("stored");
    assert!(matches!(answers[..], [Inserted::Created { leased: None, .. }]), "{answers:?}");
    transaction.rollback().await.expect("rolled back");

    assert!(node.subject.store.get(job.id).await.expect("an answer").is_none());
    assert_eq!(node.subject.store.books().await.expect("books").submitted, 0);
    // The key is free again, also for another payload.
    node.insert(&[NewJob { payload: b"{}".to_vec(), ..keyed(&node, "order-17") }]).await;
    node.balance().await;
}

#[tokio::test]
async fn jobs_of_a_transaction_that_commits_are_stored_with_it() {
    let schema = Schema::fresh();
    let node = shop(&schema).await;
    let holder = node.holder().await;
    let jobs = [keyed(&node, "order-17"), node.job("charge"), node.job("unknown")];

    let mut user = schema.connect().await;
    let transaction = user.transaction().await.expect("a transaction");
    transaction.batch_execute(&order(&schema)).await.expect("an order");
    let answers = node.store.insert_in(&transaction, &Insert::new(&jobs)).await.expect("stored");
    assert!(
        matches!(
            answers[..],
            [
                Inserted::Created { .. },
                Inserted::Created { .. },
                Inserted::Refused(Refusal::UnknownKind)
            ]
        ),
        "{answers:?}"
    );
    assert!(node.claim(holder, &["charge"], 9).await.is_empty(), "they are not visible yet");
    transaction.commit().await.expect("committed");

    assert_eq!((node.claim(holder, &["charge"], 9).await.len(), orders(&schema).await), (2, 1));
    node.balance().await;
}

#[tokio::test]
async fn all_or_nothing_leaves_the_rest_of_the_transaction_alone() {
    let schema = Schema::fresh();
    let node = shop(&schema).await;
    let jobs = [keyed(&node, "order-17"), node.job("unknown")];

    let mut user = schema.connect().await;
    let transaction = user.transaction().await.expect("a transaction");
    transaction.batch_execute(&order(&schema)).await.expect("an order");
    let insert = Insert { if_refused: IfRefused::StoreNothing, ..Insert::new(&jobs) };
    let answers = node.store.insert_in(&transaction, &insert).await.expect("an answer");
    assert_eq!(answers, [Inserted::LeftOut, Inserted::Refused(Refusal::UnknownKind)]);
    transaction.commit().await.expect("committed");

    let books = node.subject.store.books().await.expect("books");
    assert_eq!((books.submitted, books.live, orders(&schema).await), (0, 0, 1));
    node.insert(&[keyed(&node, "order-17")]).await;
}

#[tokio::test]
async fn a_settle_commits_with_what_the_attempt_wrote() {
    let schema = Schema::fresh();
    let node = shop(&schema).await;
    let (holder, lease) = node.leased("charge").await;

    let mut user = schema.connect().await;
    let transaction = user.transaction().await.expect("a transaction");
    transaction.batch_execute(&order(&schema)).await.expect("an order");
    let settlement = [Settlement::succeed(lease)];
    let settled = node.store.settle_in(&transaction, holder, &settlement).await.expect("settled");
    assert_eq!(settled, [Settled::Applied(Outcome::LetGo(State::Succeeded))]);
    assert_eq!((node.get(lease.job).await.state(), orders(&schema).await), (State::Leased, 0));
    transaction.commit().await.expect("committed");
    assert_eq!((node.get(lease.job).await.state(), orders(&schema).await), (State::Succeeded, 1));
    node.balance().await;
}

#[tokio::test]
async fn a_settle_that_is_rolled_back_leaves_the_lease() {
    let schema = Schema::fresh();
    let node = shop(&schema).await;
    let (holder, lease) = node.leased("charge").await;

    let mut user = schema.connect().await;
    let transaction = user.transaction().await.expect("a transaction");
    let settlements = [node.retry(lease, seconds(60), false)];
    let settled = node.store.settle_in(&transaction, holder, &settlements).await.expect("settled");
    assert_eq!(settled, [Settled::Applied(Outcome::LetGo(State::Scheduled))]);
    transaction.rollback().await.expect("rolled back");

    assert_eq!(node.get(lease.job).await.state(), State::Leased);
    assert!(node.subject.store.attempts(lease.job).await.expect("attempts").is_empty());
    let settled = node.succeed(holder, lease).await;
    assert_eq!(settled, Settled::Applied(Outcome::LetGo(State::Succeeded)));
}

/// Follow-ups exist if and when the caller's transaction commits, dead letters among them.
#[tokio::test]
async fn what_a_settle_submits_commits_with_it() {
    let schema = Schema::fresh();
    let node = shop(&schema).await;
    let (holder, lease) = node.leased("charge").await;
    // Of a lane that is new, and of a kind that does not exist.
    let priority = rewheel_core::Priority::new(8).expect("a priority");
    let jobs = [NewJob { priority, ..node.job("charge") }, node.job("unknown")];
    let settlement = [Settlement { follow_ups: jobs.to_vec(), ..Settlement::succeed(lease) }];
    let mut user = schema.connect().await;
    for commits in [false, true] {
        let transaction = user.transaction().await.expect("a transaction");
        let settled = node.store.settle_in(&transaction, holder, &settlement).await;
        let applied = Settled::Applied(Outcome::LetGo(State::Succeeded));
        assert_eq!(settled.expect("settled"), [applied]);
        if commits {
            transaction.commit().await.expect("committed");
        } else {
            transaction.rollback().await.expect("rolled back");
        }
        for (job, state) in jobs.iter().zip([State::Scheduled, State::Dead]) {
            let stored = node.subject.store.get(job.id).await.expect("an answer");
            assert_eq!(stored.map(|job| job.state()), commits.then_some(state));
        }
        node.balance().await;
    }
    // The cache of lanes knows nothing that was rolled back.
    node.insert(&[NewJob { priority, ..node.job("charge") }]).await;
}

#[tokio::test]
async fn a_wake_reaches_other_nodes_when_the_transaction_commits() {
    let schema = Schema::fresh();
    let node = shop(&schema).await;
    let other = Node::of(&schema).await;
    let mut user = schema.connect().await;
    let mut watch = super::fleet::listening(&schema, &other, &user, 2).await;

    let transaction = user.transaction().await.expect("a transaction");
    let jobs = [node.job("charge")];
    node.store.insert_in(&transaction, &Insert::new(&jobs)).await.expect("stored");
    node.store.wake_in(&transaction).await.expect("told");
    transaction.commit().await.expect("committed");
    soon("the other node hears of it", watch.changed()).await;
    node.store.close().await.expect("it closes");
}
