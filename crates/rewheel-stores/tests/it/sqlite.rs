//! Runs the conformance suite on SQLite.

use rewheel_core::store::ClockOffset;
use rewheel_stores::{SqliteOptions, SqliteStore, Synchronous};
use rewheel_testkit::Subject;
use std::sync::Arc;

async fn open() -> Subject {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let clock = ClockOffset::default();
    let mut options = SqliteOptions::default();
    // The crash tests cover durability; here waiting for the disk would only cost time.
    options.synchronous = Synchronous::Normal;
    options.clock = clock.clone();
    let store = SqliteStore::open_with(folder.path().join("rewheel.db"), options)
        .await
        .expect("a fresh file opens");
    Subject::new(Arc::new(store), clock).keeping(folder)
}

rewheel_testkit::store_conformance!(open);

mod idempotency {
    use rewheel_core::store::ClockOffset;
    use rewheel_stores::{SqliteOptions, SqliteStore, Synchronous};
    use rewheel_testkit::IdempotencySubject;
    use std::sync::Arc;

    async fn open() -> IdempotencySubject {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut options = SqliteOptions::default();
        options.synchronous = Synchronous::Normal;
        options.clock = ClockOffset::default();
        let open = || SqliteStore::open_with(folder.path().join("keys.db"), options.clone());
        let one = open().await.expect("a fresh file opens");
        let other = open().await.expect("a file opens twice");
        let clock = options.clock.clone();
        let advance = move |by| clock.advance(by);
        IdempotencySubject::new([Arc::new(one), Arc::new(other)], advance).keeping(folder)
    }

    rewheel_testkit::idempotency_conformance!(open);
}
