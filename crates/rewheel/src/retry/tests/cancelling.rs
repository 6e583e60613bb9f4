//! Checks that a cancelled call ends.

use super::*;
use crate::CancelToken;
use std::sync::mpsc;

#[test]
fn a_token_that_is_cancelled_already_prevents_the_first_attempt() {
    let (script, token) = (Script::new(&[DONE]), CancelToken::new());
    token.cancel();
    for first_attempt in [1, 4] {
        let call = (|attempt| script.patient(attempt)).retry(EVERY_SECOND).cancel(&token);
        let patient = finish(call.starting_at(first_attempt).into_future()).unwrap_err();
        let call = (|attempt| script.blocking(attempt)).retry(EVERY_SECOND).cancel(&token);
        let blocking = call.starting_at(first_attempt).call().unwrap_err();
        for error in [patient, blocking] {
            assert_eq!((error.reason(), error.last()), (GiveUpReason::Cancelled, None));
            assert_eq!(error.attempts(), first_attempt - 1, "those of the earlier process");
        }
    }
    assert_eq!(script.calls(), 0);
}

#[test]
fn a_running_attempt_ends_when_the_token_is_cancelled() {
    let (script, token) = (Script::new(&[DONE.taking(seconds(9))]), CancelToken::new());
    let call = (|attempt| script.patient(attempt)).retry(EVERY_SECOND).clock(&script.clock);
    let mut call = pin!(call.cancel(&token).into_future());
    assert!(poll(call.as_mut()).is_pending());
    script.clock.advance(seconds(2));
    assert!(poll(call.as_mut()).is_pending());
    token.cancel();
    let Poll::Ready(Err(error)) = poll(call.as_mut()) else { panic!("it goes on") };
    assert_eq!((error.reason(), error.attempts()), (GiveUpReason::Cancelled, 1));
    assert_eq!(error.elapsed(), seconds(2));
}

#[test]
fn a_wait_ends_when_the_token_is_cancelled() {
    let (script, token) = (Script::new(&[BUSY]), CancelToken::new());
    let call = (|attempt| script.patient(attempt)).retry(EVERY_SECOND).clock(&script.clock);
    let mut call = Box::pin(call.cancel(&token).into_future());
    assert!(poll(call.as_mut()).is_pending());
    token.cancel();
    let Poll::Ready(Err(error)) = poll(call.as_mut()) else { panic!("it goes on") };
    assert_eq!((error.reason(), error.attempts()), (GiveUpReason::Cancelled, 1));
    assert_eq!(error.into_last(), Some(Failure::Busy));
    drop(call);
    assert!(!script.clock.advance_to_next(), "the wait was not forgotten");
}

#[test]
fn the_task_is_woken_by_the_token() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    struct Woken(AtomicU32);
    impl std::task::Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    for turn in [BUSY, DONE.taking(seconds(9))] {
        let (script, token) = (Script::new(&[turn]), CancelToken::new());
        let woken = Arc::new(Woken(AtomicU32::new(0)));
        let call = (|attempt| script.patient(attempt)).retry(EVERY_SECOND).clock(&script.clock);
        let mut call = pin!(call.cancel(&token).into_future());
        let waker = Waker::from(Arc::clone(&woken));
        assert!(call.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        token.cancel();
        assert_eq!(woken.0.load(Ordering::Relaxed), 1);
    }
}

#[test]
fn a_blocking_wait_is_cancelled_from_a_hook() {
    for by_the_system_clock in [true, false] {
        let (token, clock) = (CancelToken::new(), ManualClock::new());
        let mut call =
            (|| Err::<(), _>(Failure::Busy)).retry(Retry::fixed(seconds(3_600))).cancel(&token);
        if !by_the_system_clock {
            call = call.clock(&clock);
        }
        let error = call.on_retry(|_| token.cancel()).call().unwrap_err();
        assert_eq!((error.reason(), error.attempts()), (GiveUpReason::Cancelled, 1));
        assert_eq!(error.last(), Some(&Failure::Busy));
        assert_eq!(clock.elapsed(), Duration::ZERO, "the wait was not even begun");
    }
}

#[test]
fn a_blocking_wait_is_cancelled_from_another_thread() {
    let token = CancelToken::new();
    let (waiting, wait_begins) = mpsc::channel();
    let canceller = std::thread::spawn({
        let token = token.clone();
        move || {
            wait_begins.recv().unwrap();
            token.cancel();
        }
    });
    let error = (|| Err::<(), _>(Failure::Busy))
        .retry(Retry::fixed(seconds(3_600)))
        .cancel(&token)
        .on_retry(|_| waiting.send(()).unwrap())
        .call()
        .unwrap_err();
    assert_eq!((error.reason(), error.attempts()), (GiveUpReason::Cancelled, 1));
    canceller.join().unwrap();
}

#[test]
fn a_manual_wait_during_which_the_token_is_cancelled_is_not_followed_by_an_attempt() {
    struct Canceller(CancelToken);
    impl std::task::Wake for Canceller {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.cancel();
        }
    }
    let (script, token) = (Script::new(&[BUSY]), CancelToken::new());
    // Wakes up in the middle of the delay, and cancels.
    let mut sleep = pin!(Clock::from(&script.clock).sleep(millis(500)));
    let waker = Waker::from(std::sync::Arc::new(Canceller(token.clone())));
    assert!(sleep.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    let call = (|attempt| script.blocking(attempt)).retry(EVERY_SECOND).clock(&script.clock);
    let error = call.cancel(&token).call().unwrap_err();
    assert_eq!((error.reason(), script.calls()), (GiveUpReason::Cancelled, 1));
}

#[test]
fn a_success_counts_though_the_token_was_cancelled_meanwhile() {
    let token = CancelToken::new();
    let operation = || {
        token.cancel();
        Ok::<_, Failure>(1)
    };
    assert_eq!(operation.retry(EVERY_SECOND).cancel(&token).call(), Ok(1));
}
