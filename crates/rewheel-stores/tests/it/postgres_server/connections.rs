//! Tests broken connections and cancelled calls.

use super::support::{Node, counted, named, soon, until};
use rewheel_core::store::{
    Change, ChangeVerb, HolderExpiry, OperateStore, Prune, ReadStore, Settled, Store,
};
use rewheel_core::{Actor, HolderId, Retain};
use rewheel_testkit::{Schema, seconds};
use std::future::Future;
use tokio_postgres::Client;

/// Calls a verb until it succeeds, which must happen before every connection was tried.
async fn before_long<T, F>(what: &str, tries: usize, verb: impl Fn() -> F) -> T
where
    F: Future<Output = rewheel_core::store::StoreResult<T>>,
{
    for _ in 0..tries {
        match soon(what, verb()).await {
            Ok(answer) => return answer,
            Err(error) => assert!(error.is_transient(), "{what}: {error:?}"),
        }
    }
    panic!("{what} does not work again");
}

#[tokio::test]
async fn a_store_whose_connections_were_ended_goes_on() {
    let schema = Schema::fresh();
    let node = Node::open(&named(&schema, "pool_max=3")).await;
    let holder = node.holder().await;
    let first = node.submit("a").await;
    let store = &node.subject.store;
    // Open several connections.
    let (one, two, three) = tokio::join!(store.books(), store.kinds(), store.holders());
    assert!(one.is_ok() && two.is_ok() && three.is_ok());

    let visitor = schema.connect().await;
    let end = format!(
        "SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity WHERE application_name = '{}'",
        schema.name()
    );
    for _ in 0..3 {
        assert!(counted(&visitor, &end).await >= 2, "there was nothing to end");
        before_long("renew", 3, || store.renew(holder)).await;
        before_long("books", 5, || store.books()).await;
        let prune = Prune { limit: 10, audit_older_than: seconds(1_000) };
        before_long("prune", 5, || store.prune(&prune)).await;
        let pause = [Change::new(first, ChangeVerb::Pause)];
        let resume = [Change::new(first, ChangeVerb::Resume)];
        let person = Actor::new("test");
        before_long("pause", 5, || store.change(&pause, &person, Retain::default())).await;
        before_long("resume", 5, || store.change(&resume, &person, Retain::default())).await;
        let leased = before_long("claim", 5, || node.try_claim(holder, &["a"], 5)).await;
        assert_eq!(leased.len(), 1);
        let leases = [leased[0].lease()];
        let back =
            before_long("give back", 5, || store.give_back(holder, &leases, Retain::default()));
        assert!(!matches!(back.await[..], [Settled::Lost]));
    }
    node.balance().await;
}

/// Returns how many of the store's connections are in a transaction.
async fn busy(client: &Client, schema: &Schema) -> i64 {
    let sql = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = '{}' AND xact_start IS NOT NULL",
        schema.name()
    );
    counted(client, &sql).await
}

#[tokio::test]
async fn a_verb_that_is_given_up_leaves_no_transaction_behind() {
    let schema = Schema::fresh();
    // The statement timeout is long, because the server would also end an idle transaction after it.
    let node = Node::open(&named(&schema, "pool_max=2&statement_timeout=600s")).await;
    let job = node.submit("a").await;
    let mut user = schema.connect().await;
    let visitor = schema.connect().await;

    for _ in 0..4 {
        let transaction = user.transaction().await.expect("a transaction");
        let lock = format!("SELECT FROM {}.jobs FOR UPDATE", schema.name());
        transaction.batch_execute(&lock).await.expect("a lock");
        let pause = [Change::new(job, ChangeVerb::Pause)];
        let actor = Actor::new("test");
        tokio::select! {
            answer = node.store.change(&pause, &actor, Retain::default()) => panic!("not locked: {answer:?}"),
            () = async { while busy(&visitor, &schema).await == 0 { tokio::task::yield_now().await } } => {}
        }
        transaction.rollback().await.expect("rolled back");
        let open = format!(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = '{}' AND xact_start IS NOT NULL",
            schema.name()
        );
        until(&visitor, &open, 0).await;
        let store = &node.subject.store;
        let (one, two) =
            soon("two at once", async { tokio::join!(store.books(), store.get(job)) }).await;
        assert_eq!(one.expect("books").missing(), 0);
        assert!(two.expect("an answer").is_some());
    }
    let held = node.get(job).await;
    assert_eq!(held.version.get(), 1, "what was given up was written after all");
}

/// A transaction that leases jobs to the dead holder finishes first. The node that expires it does not wait for long, because it must
/// renew its own lease.
#[tokio::test]
async fn a_expiry_does_not_wait_long_for_who_leases_to_the_dead() {
    let schema = Schema::fresh();
    let node = Node::of(&schema).await;
    let (by, other): (HolderId, HolderId) = (node.holder().await, node.holder().await);
    node.clock.advance(seconds(60));
    let mut user = schema.connect().await;
    let transaction = user.transaction().await.expect("a transaction");
    let lock = format!("SELECT FROM {}.holders FOR KEY SHARE", schema.name());
    transaction.batch_execute(&lock).await.expect("a lock");

    let store = &node.subject.store;
    let burial = soon("an answer", store.expire_holder(by, other, 0)).await;
    assert_eq!(burial.expect("an answer"), HolderExpiry::Alive);
    let renewed = soon("a renewal", store.renew(by)).await;
    assert_eq!(renewed.expect("it lives").renewals, 1);
    transaction.rollback().await.expect("rolled back");
    assert_eq!(store.expire_holder(by, other, 0).await.expect("an answer"), HolderExpiry::Expired);
}

#[tokio::test]
async fn a_closed_store_says_so() {
    let schema = Schema::fresh();
    let node = Node::of(&schema).await;
    node.store.close().await.expect("it closes");
    let error = node.store.books().await.expect_err("it is closed");
    assert!(matches!(error, rewheel_core::store::StoreError::Closed), "{error:?}");
}
