//! Cases: at most one holder at a time.

use crate::subject::{LEASE, LONG, Subject, in_time};
use rewheel::millis;
use rewheel_lock::LockError;
use std::sync::{Arc, Mutex};
use tokio::task::{JoinSet, yield_now};

/// A counter that loses increments if two tasks use it at once.
#[derive(Debug, Default)]
struct Counter {
    value: Mutex<u64>,
    tokens: Mutex<Vec<u64>>,
}

impl Counter {
    async fn increment(&self, token: u64) {
        let seen = *self.value.lock().unwrap();
        for _ in 0..5 {
            yield_now().await;
        }
        *self.value.lock().unwrap() = seen + 1;
        self.tokens.lock().unwrap().push(token);
    }
}

pub(crate) async fn one_of_many_tasks_holds_a_lock(subject: &Subject) {
    let (counter, mut tasks) = (Arc::new(Counter::default()), JoinSet::new());
    for task in 0..32 {
        let locks = if task % 2 == 0 { subject.one.clone() } else { subject.other.clone() };
        let counter = Arc::clone(&counter);
        tasks.spawn(async move {
            for _ in 0..3 {
                let work = async |lock: rewheel_lock::HeldLock| {
                    counter.increment(lock.token().get()).await;
                    Ok::<_, std::convert::Infallible>(())
                };
                locks.lock("counter").wait(LONG).lease(LEASE).run(work).await.unwrap();
            }
        });
    }
    in_time(tasks.join_all()).await;
    assert_eq!(*counter.value.lock().unwrap(), 96, "two tasks had the lock at once");
    let tokens = counter.tokens.lock().unwrap();
    assert!(tokens.is_sorted_by(|one, next| one < next), "tokens must grow: {tokens:?}");
}

pub(crate) async fn names_are_independent(subject: &Subject) {
    let long = "ä".repeat(127);
    let names = ["a", "A", "a ", "a%", "ä", "a'b", "{a}:*", "a:b", "lock", &long];
    let mut guards = Vec::new();
    for name in names {
        guards.push(subject.one.try_lock(name).await.expect(name));
    }
    for name in names {
        assert!(subject.other.try_lock(name).await.is_err(), "{name}");
    }
    assert!(matches!(
        subject.one.try_lock("a\nb").await,
        Err(LockError::Invalid { argument: "name", .. })
    ));
    assert!(matches!(
        subject.one.inspect("").await,
        Err(LockError::Invalid { argument: "name", .. })
    ));
}

pub(crate) async fn busy_says_who_holds_the_lock(subject: &Subject) {
    let guard = subject.one.lock("a").lease(LEASE).acquire().await.unwrap();
    let error = subject.other.try_lock("a").await.unwrap_err();
    let text = error.to_string();
    let LockError::Busy { holder: Some(holder), .. } = error else { panic!("{error}") };
    assert_eq!((holder.owner.as_str(), holder.token), ("one", guard.token()));
    assert!(holder.lease_left <= LEASE && holder.lease_left > LEASE / 2, "{holder:?}");
    assert!(text.starts_with("lock `a` is busy: waited 0s, held by `one` with token "), "{text}");
    assert!(guard.lease_left() <= holder.lease_left, "the server ends the lease before the guard");
    let state = subject.other.inspect("a").await.unwrap();
    assert_eq!(state.holder.map(|holder| holder.token), Some(guard.token()));
}

pub(crate) async fn a_wait_that_is_over_leaves_the_line(subject: &Subject) {
    let _guard = subject.one.lock("a").lease(LEASE).acquire().await.unwrap();
    let error = in_time(subject.other.lock("a").wait(millis(30)).acquire()).await.unwrap_err();
    let LockError::Busy { waited, holder, .. } = error else { panic!("{error}") };
    assert!(waited >= millis(30) && holder.is_some(), "{waited:?}");
    assert_eq!(subject.one.inspect("a").await.unwrap().waiting, 0);
}
