//! Cases: a lock that is lost, and a lock that is kept.

use crate::subject::{LEASE, Subject, eventually, in_time};
use rewheel::seconds;
use rewheel_lock::{LockError, RunError};
use std::convert::Infallible;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use tokio::sync::Notify;

/// Notes when work is dropped.
struct DropFlag(Arc<AtomicBool>);

impl Drop for DropFlag {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

pub(crate) async fn a_lost_lock_cancels_the_work(subject: &Subject) {
    let (dropped, started) = (Arc::new(AtomicBool::new(false)), Notify::new());
    let flag = DropFlag(Arc::clone(&dropped));
    let run = subject.pausable.lock("a").lease(LEASE).run(async |lock| {
        let (_flag, token) = (flag, lock.cancel_token().clone());
        assert!(!token.is_cancelled());
        started.notify_one();
        std::future::pending::<Result<(), Infallible>>().await
    });
    let others = async {
        started.notified().await;
        subject.advance(LEASE + seconds(1));
        let new = subject.other.lock("a").lease(LEASE).acquire().await.unwrap();
        // The paused holder continues: its next renewal tells.
        subject.pause.advance(LEASE / 3);
        new
    };
    let (outcome, new) = in_time(async { tokio::join!(run, others) }).await;
    assert!(matches!(outcome, Err(RunError::Lock(LockError::Lost { .. }))), "{outcome:?}");
    assert!(dropped.load(Ordering::SeqCst), "the work was not dropped");
    new.release().await.expect("the lost holder did not release the lock of the new one");
}

pub(crate) async fn a_paused_holder_does_not_continue_its_work(subject: &Subject) {
    let (started, resumed) = (Notify::new(), Notify::new());
    let continued = AtomicBool::new(false);
    let run = subject.pausable.lock("a").lease(LEASE).run(async |_| {
        started.notify_one();
        resumed.notified().await;
        continued.store(true, Ordering::SeqCst);
        Ok::<_, Infallible>(())
    });
    let mut run = std::pin::pin!(run);
    tokio::select! {
        biased;
        outcome = &mut run => panic!("{outcome:?}"),
        () = started.notified() => {}
    }
    // Both happen while the process does not run: what the work waits for, and the end of its lease. The work is polled first, before
    // the task that would notice the loss.
    resumed.notify_one();
    subject.pause.advance(LEASE);
    let _ended = poll_fn(|context| Poll::Ready(run.as_mut().poll(context).is_ready())).await;
    assert!(!continued.load(Ordering::SeqCst), "the work continued after its lease");
    let outcome = in_time(run).await;
    assert!(matches!(outcome, Err(RunError::Lock(LockError::Lost { .. }))), "{outcome:?}");
}

pub(crate) async fn a_late_release_does_not_release_the_new_holder(subject: &Subject) {
    let late = subject.pausable.lock("a").lease(LEASE).acquire().await.unwrap();
    subject.advance(LEASE + seconds(1));
    let new = subject.other.lock("a").lease(LEASE).acquire().await.unwrap();
    let error = in_time(late.release()).await.unwrap_err();
    assert!(matches!(error, LockError::Lost { .. }), "{error}");
    let state = subject.one.inspect("a").await.unwrap();
    assert_eq!(state.holder.map(|holder| holder.token), Some(new.token()));
}

pub(crate) async fn renewals_keep_a_lock(subject: &Subject) {
    let guard = subject.pausable.lock("a").lease(LEASE).acquire().await.unwrap();
    for _ in 0..6 {
        // Without renewals, the lease would end after the third round.
        let before = guard.lease_left();
        subject.clock.advance(LEASE / 3);
        subject.pause.advance(LEASE / 3);
        eventually(async || guard.lease_left() > before - LEASE / 3).await;
        let state = subject.other.inspect("a").await.unwrap();
        assert_eq!(state.holder.map(|holder| holder.token), Some(guard.token()));
        assert!(!guard.is_lost());
    }
    guard.release().await.unwrap();
}

pub(crate) async fn a_released_lock_counts_as_lost_for_its_users(subject: &Subject) {
    let guard = subject.one.try_lock("a").await.unwrap();
    let user = (*guard).clone();
    assert!(!user.is_lost());
    guard.release().await.unwrap();
    in_time(user.lost()).await;
    assert!(user.is_lost() && user.lease_left().is_zero());
}
