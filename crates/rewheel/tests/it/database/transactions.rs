//! What is repeated around a transaction, with a database that fails on purpose.

use rewheel::database::{TransactionError, connect_with_retry, retry_transaction};
use rewheel::{Class, Classify, GiveUpReason, Retry, millis};
use std::cell::Cell;

const POLICY: Retry = Retry::fixed(millis(1)).attempts_max(3);

/// An error with this SQLSTATE.
#[derive(Clone, Copy, Debug)]
struct State(&'static str);

impl Classify for State {
    fn classify(&self) -> Class {
        Class::of_sqlstate(self.0)
    }
}

/// Runs a transaction that ends in this way; returns the reason, and how often it ran.
async fn run(end: fn() -> TransactionError<State>) -> (GiveUpReason, u32) {
    let runs = Cell::new(0);
    let transaction = || {
        runs.set(runs.get() + 1);
        async { Err::<(), _>(end()) }
    };
    let error = retry_transaction(POLICY, transaction).await.unwrap_err();
    assert_eq!(error.attempts(), runs.get());
    (error.reason(), runs.get())
}

#[tokio::test]
async fn conflicts_are_repeated_and_other_failures_are_not() {
    let exhausted = (GiveUpReason::AttemptsExhausted, 3);
    let stopped = (GiveUpReason::Stopped, 1);
    assert_eq!(run(|| TransactionError::RolledBack(State("40001"))).await, exhausted);
    assert_eq!(run(|| TransactionError::of_commit(State("40001"))).await, exhausted);
    assert_eq!(run(|| TransactionError::RolledBack(State("08006"))).await, exhausted);
    assert_eq!(run(|| TransactionError::RolledBack(State("23505"))).await, stopped);
    assert_eq!(run(|| TransactionError::ConnectionLost(State("08006"))).await, stopped);
}

#[tokio::test]
async fn a_commit_without_an_answer_is_not_repeated() {
    for state in ["08006", "57P01", "57P02", "XX000", "40003"] {
        let error = TransactionError::of_commit(State(state));
        assert!(matches!(error, TransactionError::CommitUnknown(State(same)) if same == state));
    }
    let stopped = (GiveUpReason::Stopped, 1);
    assert_eq!(run(|| TransactionError::of_commit(State("08006"))).await, stopped);
    // A constraint that is checked at the commit: the server has answered.
    let error = TransactionError::of_commit(State("23503"));
    assert!(matches!(error, TransactionError::RolledBack(_)));
}

#[tokio::test]
async fn connecting_is_repeated_while_the_server_starts_but_not_with_a_wrong_password() {
    let states = Cell::new(["57P03", "53300", "08001", "00000"].iter());
    let calls = Cell::new(0);
    let connect = || {
        let mut left = states.take();
        let state = *left.next().unwrap();
        states.set(left);
        calls.set(calls.get() + 1);
        async move { if state == "00000" { Ok(()) } else { Err(State(state)) } }
    };
    let policy = POLICY.attempts_max(9);
    connect_with_retry(policy, connect).await.unwrap();
    assert_eq!(calls.get(), 4);

    let error = connect_with_retry(policy, || async { Err::<(), _>(State("28P01")) }).await;
    assert_eq!(error.unwrap_err().attempts(), 1);
}
