//! Cases: a request for a lock that the same task holds is refused.

use crate::subject::{LEASE, LONG, Subject, in_time};
use rewheel_lock::{LockError, RunError};
use std::convert::Infallible;
use tokio::task::yield_now;

pub(crate) async fn a_task_with_a_guard_is_refused(subject: &Subject) {
    let guard = subject.one.lock("a").lease(LEASE).acquire().await.unwrap();
    let error = in_time(subject.one.lock("a").wait(LONG).acquire()).await.unwrap_err();
    assert!(matches!(error, LockError::Reentrant { .. }), "{error}");
    assert!(
        error.to_string().starts_with("lock `a` is already held by this task: release it first")
    );
    let error = in_time(subject.one.lock("a").run(async |_| Ok::<_, Infallible>(()))).await;
    assert!(matches!(error, Err(RunError::Lock(LockError::Reentrant { .. }))), "{error:?}");
    // Another name is fine, and so is the same name once it is released.
    subject.one.lock("b").acquire().await.unwrap().release().await.unwrap();
    guard.release().await.unwrap();
    subject.one.lock("a").acquire().await.unwrap().release().await.unwrap();
}

pub(crate) async fn code_inside_of_run_is_refused(subject: &Subject) {
    let locks = subject.one.clone();
    let run = subject.one.lock("a").lease(LEASE).run(async |_| {
        locks
            .with_lock("b", async |_| {
                let inner = locks.lock("a").wait(LONG).acquire().await;
                assert!(matches!(inner, Err(LockError::Reentrant { .. })), "{inner:?}");
                let other = locks.lock("c").acquire().await.unwrap();
                other.release().await
            })
            .await
    });
    in_time(run).await.unwrap();
    subject.one.lock("a").acquire().await.unwrap().release().await.unwrap();
}

pub(crate) async fn other_tasks_and_branches_wait(subject: &Subject) {
    let work = async |_| {
        yield_now().await;
        Ok::<_, Infallible>(())
    };
    let branch = || subject.one.lock("a").wait(LONG).lease(LEASE).run(work);
    let (one, other) = in_time(async { tokio::join!(branch(), branch()) }).await;
    one.unwrap();
    other.unwrap();

    let guard = subject.one.lock("a").lease(LEASE).acquire().await.unwrap();
    let locks = subject.one.clone();
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(async move { locks.lock("a").wait(LONG).lease(LEASE).acquire().await.map(drop) });
    subject.wait_for_line("a", 1).await;
    guard.release().await.unwrap();
    in_time(tasks.join_next()).await.unwrap().unwrap().unwrap();
}
