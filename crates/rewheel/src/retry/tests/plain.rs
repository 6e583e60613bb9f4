//! Tests of calls without options, which take a faster code path.

use super::Failure;
use crate::{Attempt, GiveUpReason, Nested, Retry, Retryable, millis, seconds};
use std::cell::{Cell, RefCell};
use std::future::{Future, IntoFuture};
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

const POLICY: Retry = Retry::fixed(seconds(2)).attempts_max(3);
const AT_ONCE: Retry = Retry::fixed(millis(0)).attempts_max(3);

fn poll<R>(call: impl Future<Output = R>) -> Poll<R> {
    pin!(call).poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn a_policy_stays_the_same_while_a_first_attempt_runs() {
    let call = || std::future::pending::<Result<(), Failure>>();
    let mut call = pin!(call.retry(POLICY).into_future());
    let before = format!("{call:?}");
    assert!(before.contains(&format!("{POLICY:?}")), "{before}");
    assert!(call.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    assert_eq!(format!("{call:?}"), before);
}

/// Records when it is dropped.
struct Told<'a>(&'a RefCell<Vec<&'static str>>);

impl Drop for Told<'_> {
    fn drop(&mut self) {
        self.0.borrow_mut().push("dropped");
    }
}

#[cfg(feature = "tokio")]
#[tokio::test(start_paused = true)]
async fn time_counts_from_the_first_poll_of_a_first_attempt_that_was_not_ready() {
    let error = (|| async {
        tokio::time::sleep(seconds(5)).await;
        Err::<(), _>(Failure::Gone)
    })
    .retry(POLICY)
    .await
    .unwrap_err();
    assert_eq!(
        (error.reason(), error.attempts(), error.elapsed()),
        (GiveUpReason::Stopped, 1, seconds(5))
    );
}

#[cfg(feature = "tokio")]
#[tokio::test(start_paused = true)]
async fn no_deadline_comes_of_a_first_attempt_that_was_not_ready() {
    let error = (|attempt: Attempt| async move {
        assert_eq!(attempt.time_left(), None);
        tokio::time::sleep(seconds(1_000_000)).await;
        Err::<(), _>(Failure::Busy)
    })
    .retry(POLICY)
    .await
    .unwrap_err();
    assert_eq!((error.reason(), error.attempts()), (GiveUpReason::AttemptsExhausted, 3));
    assert_eq!(error.elapsed(), seconds(3_000_004));
}

#[tokio::test(start_paused = true)]
async fn a_first_attempt_that_fails_at_once_is_made_again() {
    let numbers = RefCell::new(Vec::new());
    let result = (|attempt: Attempt| {
        numbers.borrow_mut().push((attempt.number(), attempt.is_last()));
        async move { if attempt.is_last() { Ok(attempt.number()) } else { Err(Failure::Busy) } }
    })
    .retry(AT_ONCE)
    .await;
    assert_eq!(result.unwrap(), 3);
    assert_eq!(numbers.into_inner(), [(1, false), (2, false), (3, true)]);
}

#[tokio::test(start_paused = true)]
async fn a_first_success_that_is_not_good_enough_is_made_again() {
    let made = Cell::new(0);
    let result = (|| async {
        made.set(made.get() + 1);
        Ok::<_, Failure>(made.get())
    })
    .retry(AT_ONCE)
    .when_ok(|made| *made < 2)
    .await;
    assert_eq!(result.unwrap(), 2);
}

#[test]
fn the_attempt_is_dropped_before_its_success_is_reported() {
    let turns = RefCell::new(Vec::new());
    let call = || {
        let told = Told(&turns);
        // Held by the future even when it is ready.
        let mut told = Some(told);
        std::future::poll_fn(move |_| Poll::Ready(Ok::<_, Failure>(told.as_mut().is_some())))
    };
    let call = call.retry(POLICY).on_success(|_, attempts| {
        assert_eq!(attempts, 1);
        turns.borrow_mut().push("heard");
    });
    assert!(matches!(poll(call.into_future()), Poll::Ready(Ok(true))));
    assert_eq!(*turns.borrow(), ["dropped", "heard"]);
}

#[test]
fn a_plain_retry_inside_a_plain_retry_makes_one_attempt() {
    let made = Cell::new(0);
    let fail = || async {
        made.set(made.get() + 1);
        Err::<(), _>(Failure::Busy)
    };
    let outer = || async {
        let error = fail.retry(AT_ONCE).await.unwrap_err();
        Ok::<_, Failure>((error.reason(), error.attempts()))
    };
    for _ in 0..2 {
        let result = poll(outer.retry(AT_ONCE).into_future());
        assert!(matches!(result, Poll::Ready(Ok((GiveUpReason::Nested, 1)))), "{result:?}");
    }
    assert_eq!(made.get(), 2);
    // One after another is not nested.
    assert!(poll(fail.retry(AT_ONCE).into_future()).is_pending());
}

#[tokio::test(start_paused = true)]
async fn a_policy_may_insist_on_retrying_inside_another() {
    let inner = || async { Err::<(), _>(Failure::Busy) };
    let outer = || async {
        Ok::<_, Failure>(inner.retry(AT_ONCE.nested(Nested::Retry)).await.unwrap_err().attempts())
    };
    assert_eq!(outer.retry(AT_ONCE).await.unwrap(), 3);
}

#[test]
fn a_panic_leaves_no_mark() {
    let fail = || async { Err::<(), _>(Failure::Busy) };
    let panics = || async { if true { panic!("on purpose") } else { Ok::<(), Failure>(()) } };
    let call = AssertUnwindSafe(|| poll(panics.retry(AT_ONCE).into_future()));
    assert!(std::panic::catch_unwind(call).is_err());
    assert!(
        poll(fail.retry(AT_ONCE).into_future()).is_pending(),
        "it waits for its second attempt"
    );
}

#[test]
#[should_panic(expected = "a retry that is over was polled again")]
fn a_call_that_succeeded_at_once_is_not_begun_again() {
    let mut call = pin!((|| async { Ok::<_, Failure>(()) }).retry(POLICY).into_future());
    let cx = &mut Context::from_waker(Waker::noop());
    assert!(call.as_mut().poll(cx).is_ready());
    let _ = call.poll(cx);
}
