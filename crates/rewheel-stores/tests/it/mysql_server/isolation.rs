//! Tests that a user's transaction cannot decide by rows that others have changed since.

use super::node::{Node, begin, user};
use mysql_async::prelude::Queryable;
use mysql_async::{IsolationLevel, TxOpts};
use rewheel::idempotency::{
    AfterCrash, Begin, Begun, Fingerprint, Finished, IdempotencyStore, RunId, Ticket,
};
use rewheel::{IdempotencyKey, Random};
use rewheel_core::store::{Insert, Settlement, StoreError, StoreResult};
use rewheel_testkit::{Database, seconds};
use std::fmt::Debug;

fn ask(run: RunId) -> Begin {
    Begin {
        key: IdempotencyKey::new("acme", "order-17").expect("a key"),
        fingerprint: Fingerprint::of(&[b"charge 4200"]),
        run,
        lease: seconds(60),
        keep: seconds(3_600),
        after_crash: AfterCrash::RunAgain,
    }
}

fn ticket(begin: &Begin) -> Ticket {
    Ticket { key: begin.key, run: begin.run, keep: begin.keep }
}

#[track_caller]
fn assert_refused<T: Debug>(answer: StoreResult<T>, how_to: &str) {
    let error = answer.expect_err("the session is not suitable");
    assert!(matches!(error, StoreError::Rejected(_)), "{error}");
    assert!(error.to_string().contains(how_to), "{error}");
}

#[tokio::test]
async fn a_session_that_is_not_read_committed_is_refused() {
    let (database, run) = (Database::fresh(), RunId::new(&Random::seeded(1)));
    let node = Node::start(&database).await;
    let (holder, lease) = node.leased("charge").await;
    let mut user = database.connect().await;
    for level in ["REPEATABLE READ", "SERIALIZABLE", "READ UNCOMMITTED"] {
        let set = format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}");
        user.query_drop(set).await.expect("a level");
        let mut transaction = begin(&mut user).await;
        let how_to = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED";
        let jobs = [node.job("charge")];
        assert_refused(node.mysql.insert_in(&mut transaction, &Insert::new(&jobs)).await, how_to);
        let settlements = [Settlement::succeed(lease)];
        assert_refused(node.mysql.settle_in(&mut transaction, holder, &settlements).await, how_to);
        let finished = node.mysql.finish_in(&mut transaction, &ticket(&ask(run)), b"").await;
        assert_refused(finished, how_to);
        // The transaction is still the user's, to end as the user likes.
        transaction.commit().await.expect("committed");
    }
}

#[tokio::test]
async fn a_session_that_truncates_values_is_refused() {
    let database = Database::fresh();
    let node = Node::start(&database).await;
    node.kinds(&["charge"]).await;
    let mut user = user(&database).await;
    user.query_drop("SET SESSION sql_mode = 'NO_ENGINE_SUBSTITUTION'").await.expect("a mode");
    let mut transaction = begin(&mut user).await;
    let jobs = [node.job("charge")];
    let answer = node.mysql.insert_in(&mut transaction, &Insert::new(&jobs)).await;
    assert_refused(answer, "STRICT_TRANS_TABLES");
    transaction.rollback().await.expect("rolled back");
}

/// The session says READ COMMITTED, but this one transaction has a snapshot. Nothing shows that, so the verb must not rely on it.
#[tokio::test]
async fn a_run_that_lost_its_key_learns_so_from_within_an_old_snapshot() {
    let database = Database::fresh();
    let node = Node::start(&database).await;
    let [late, other] = [1, 2].map(|seed| ask(RunId::new(&Random::seeded(seed))));
    assert_eq!(node.mysql.begin(&late).await.expect("an answer"), Begun::Run);
    let mut user = user(&database).await;
    let mut options = TxOpts::new();
    options.with_isolation_level(IsolationLevel::RepeatableRead).with_consistent_snapshot(true);
    let mut transaction = user.start_transaction(options).await.expect("a transaction");
    node.clock.advance(seconds(61));
    assert_eq!(node.mysql.begin(&other).await.expect("an answer"), Begun::Run);
    let finished = node.mysql.finish(&ticket(&other), b"charged").await.expect("an answer");
    assert_eq!(finished, Finished::Stored);
    let finished = node.mysql.finish_in(&mut transaction, &ticket(&late), b"again").await;
    assert_eq!(finished.expect("an answer"), Finished::Lost);
    transaction.rollback().await.expect("rolled back");
}
