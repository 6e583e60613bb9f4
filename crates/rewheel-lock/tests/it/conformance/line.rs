//! Cases: requests wait in line.

use crate::subject::{LEASE, LONG, Subject, in_time};
use rewheel::{minutes, seconds};
use rewheel_lock::{EarlierCalls, IfHeld, LINE_MAX, LockError, PLACE_TTL, Turn};
use std::sync::{Arc, Mutex};
use tokio::task::JoinSet;

pub(crate) async fn serves_requests_in_order(subject: &Subject) {
    let guard = subject.one.lock("a").lease(LEASE).acquire().await.unwrap();
    let (served, mut tasks) = (Arc::new(Mutex::new(Vec::new())), JoinSet::new());
    for number in 0..6 {
        let locks = if number % 2 == 0 { subject.other.clone() } else { subject.one.clone() };
        let (served, clock) = (Arc::clone(&served), subject.clock.clone());
        tasks.spawn(async move {
            let guard = locks.lock("a").wait(LONG).lease(LEASE).acquire().await.unwrap();
            clock.turn_back(minutes(1));
            served.lock().unwrap().push(number);
            guard.release().await.unwrap();
        });
        subject.wait_for_line("a", number + 1).await;
    }
    guard.release().await.unwrap();
    in_time(tasks.join_all()).await;
    assert_eq!(*served.lock().unwrap(), [0, 1, 2, 3, 4, 5]);
}

pub(crate) async fn a_dead_request_does_not_block_the_line(subject: &Subject) {
    let guard = subject.one.lock("a").lease(LEASE).acquire().await.unwrap();
    let (_, first) = subject.ask_and_die("a", IfHeld::Wait).await;
    assert!(matches!(first, Turn::Waiting { ahead: 0, .. }), "{first:?}");
    let waiting = subject.other.lock("a").wait(LONG).lease(LEASE).acquire();
    let others = async {
        subject.wait_for_line("a", 2).await;
        guard.release().await.unwrap();
        subject.keep_places();
        // The lock is free, and the first in line does not take it until its place has expired.
        assert!(subject.one.try_lock("a").await.is_err());
        subject.advance(PLACE_TTL + seconds(1));
    };
    let (next, ()) = in_time(async { tokio::join!(waiting, others) }).await;
    next.unwrap().release().await.unwrap();
}

pub(crate) async fn a_dropped_request_leaves_the_line(subject: &Subject) {
    let _guard = subject.one.lock("a").lease(LEASE).acquire().await.unwrap();
    let waiting = subject.other.lock("a").wait(LONG).acquire();
    tokio::select! {
        outcome = waiting => panic!("{outcome:?}"),
        () = subject.wait_for_line("a", 1) => {}
    }
    subject.wait_for_line("a", 0).await;
}

pub(crate) async fn a_request_that_does_not_wait_does_not_overtake(subject: &Subject) {
    let guard = subject.one.lock("a").lease(LEASE).acquire().await.unwrap();
    let (id, _) = subject.ask_and_die("a", IfHeld::Wait).await;
    subject.keep_places();
    guard.release().await.unwrap();
    subject.keep_places();
    let error = subject.other.try_lock("a").await.unwrap_err();
    assert!(matches!(error, LockError::Busy { holder: None, .. }), "{error}");
    assert!(error.to_string().ends_with("other requests are first in line"), "{error}");
    // It leaves, and the lock is free for all.
    let left = subject
        .backend
        .release(&crate::subject::name("a"), id, EarlierCalls::Answered)
        .await
        .unwrap();
    assert!(!left.was_held);
    subject.other.try_lock("a").await.unwrap().release().await.unwrap();
}

pub(crate) async fn has_a_limit(subject: &Subject) {
    let _guard = subject.one.lock("a").lease(LEASE).acquire().await.unwrap();
    let mut turns = 0;
    loop {
        match subject.ask_and_die("a", IfHeld::Wait).await {
            (_, Turn::LineFull) => break,
            (_, Turn::Waiting { .. }) => turns += 1,
            (_, turn) => panic!("{turn:?}"),
        }
        subject.keep_places();
        assert!(turns <= LINE_MAX, "the line has no limit");
    }
    assert_eq!(turns, LINE_MAX);
    subject.keep_places();
    let error = subject.other.lock("a").wait(LONG).acquire().await.unwrap_err();
    assert!(matches!(error, LockError::LineFull { .. }), "{error}");
    assert!(error.to_string().contains("256 waiting requests"), "{error}");
}
