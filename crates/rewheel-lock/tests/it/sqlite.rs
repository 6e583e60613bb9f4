//! Runs the conformance suite on SQLite, and tests of its file.

use crate::subject::{LEASE, Subject, name};
use futures_util::FutureExt;
use rewheel::{Random, minutes};
use rewheel_core::store::ClockOffset;
use rewheel_lock::{Ask, IfHeld, LockBackend, LockState, Locks, RequestId, SqliteBackend};

async fn open() -> Subject {
    let (folder, clock) = (tempfile::tempdir().unwrap(), ClockOffset::default());
    let path = folder.path().join("locks.db");
    let one = SqliteBackend::open_with(&path, clock.clone()).await.unwrap();
    let other = SqliteBackend::open_with(&path, clock.clone()).await.unwrap();
    Subject::new(one, other, clock, folder)
}

lock_conformance!(open);

#[tokio::test]
async fn a_file_that_cannot_be_opened_is_named_with_the_cause() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("missing").join("locks.db");
    let url = format!("sqlite://{}", path.display());
    let text = Locks::connect(&url).await.unwrap_err().to_string();
    assert!(
        text.contains(&path.display().to_string()) && text.contains("check that its folder exists"),
        "{text}"
    );
}

#[tokio::test]
async fn locks_survive_a_restart_of_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("locks.db");
    let before = {
        let locks = Locks::sqlite(&path).await.unwrap();
        let guard = locks.try_lock("a").await.unwrap();
        let token = guard.token();
        guard.release().await.unwrap();
        token
    };
    let after = Locks::sqlite(&path).await.unwrap().try_lock("a").await.unwrap();
    assert!(after.token() > before);
}

#[tokio::test]
async fn unused_locks_are_deleted_and_their_tokens_are_not_forgotten() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), ClockOffset::default());
    let path = folder.path().join("locks.db");
    let backend = SqliteBackend::open_with(&path, clock.clone()).await.unwrap();
    let locks = Locks::new(backend.clone());
    let guard = locks.try_lock("old").await.unwrap();
    let token = guard.token();
    guard.release().await.unwrap();
    let rows = || -> i64 {
        let file = rusqlite::Connection::open(&path).unwrap();
        file.query_row("SELECT count(*) FROM rewheel_locks WHERE name = 'old'", [], |row| {
            row.get(0)
        })
        .unwrap()
    };
    assert_eq!(rows(), 1);
    clock.advance(minutes(25 * 60));
    for _ in 0..1_000 {
        backend.inspect(&name("other")).await.unwrap();
    }
    assert_eq!(rows(), 0);
    clock.turn_back(minutes(100 * 60));
    assert!(locks.try_lock("old").await.unwrap().token() > token);
}

#[test]
fn a_call_that_was_given_up_before_it_started_has_no_effect() {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_time().max_blocking_threads(1).build().unwrap();
    runtime.block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let backend = SqliteBackend::open(folder.path().join("locks.db")).await.unwrap();
        let (name, id) = (name("a"), RequestId::new(&Random::thread()));
        let ask = Ask { name: &name, id, owner: "late", lease: LEASE, if_held: IfHeld::Wait };
        // The only thread for calls is in use.
        let (free, is_free) = std::sync::mpsc::channel::<()>();
        let blocker = tokio::task::spawn_blocking(move || is_free.recv());
        assert!(backend.acquire(&ask).now_or_never().is_none());
        free.send(()).unwrap();
        blocker.await.unwrap().unwrap();
        assert_eq!(backend.inspect(&name).await.unwrap(), LockState::default());
    });
}
