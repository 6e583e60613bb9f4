//! Cases: a lock is released whatever happens.

use crate::subject::{LEASE, LONG, Subject, in_time};
use rewheel_lock::RunError;
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use tokio::sync::Notify;

pub(crate) async fn after_success_and_error(subject: &Subject) {
    let value = subject.one.with_lock("a", async |_| Ok::<_, std::io::Error>(7)).await.unwrap();
    assert_eq!(value, 7);
    assert_eq!(subject.other.inspect("a").await.unwrap().holder, None);

    let failed: Result<(), _> =
        subject.one.with_lock("a", async |_| Err(std::io::Error::other("refused"))).await;
    let Err(RunError::Work(error)) = failed else { panic!("{failed:?}") };
    assert_eq!(error.to_string(), "refused");
    assert_eq!(subject.other.inspect("a").await.unwrap().holder, None);
}

pub(crate) async fn after_a_panic(subject: &Subject) {
    let work = subject.one.lock("a").lease(LEASE).run(async |lock| {
        assert!(lock.is_lost(), "this panics, because the lock is held");
        Ok::<_, std::io::Error>(())
    });
    assert!(AssertUnwindSafe(work).catch_unwind().await.is_err(), "the panic must continue");
    assert_eq!(subject.other.inspect("a").await.unwrap().holder, None);
}

pub(crate) async fn after_a_guard_or_a_run_is_dropped(subject: &Subject) {
    drop(subject.one.lock("a").lease(LEASE).acquire().await.unwrap());
    subject.wait_until_free("a").await;

    let started = Notify::new();
    let run = subject.one.lock("a").lease(LEASE).run(async |_| {
        started.notify_one();
        std::future::pending::<Result<(), std::io::Error>>().await
    });
    tokio::select! {
        outcome = run => panic!("{outcome:?}"),
        () = started.notified() => {}
    }
    subject.wait_until_free("a").await;
}

pub(crate) async fn wakes_a_request_of_another_process(subject: &Subject) {
    let guard = subject.one.lock("a").lease(LEASE).acquire().await.unwrap();
    let waiting = subject.other.lock("a").wait(LONG).lease(LEASE).acquire();
    let release = async {
        subject.wait_for_line("a", 1).await;
        let token = guard.token();
        guard.release().await.unwrap();
        token
    };
    let (next, token) = in_time(async { tokio::join!(waiting, release) }).await;
    assert!(next.unwrap().token() > token);
}
