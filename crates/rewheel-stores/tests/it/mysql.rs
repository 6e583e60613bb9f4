//! Runs the conformance suite on MariaDB or MySQL.

use rewheel_core::store::ClockOffset;
use rewheel_stores::{MysqlOptions, MysqlStore};
use rewheel_testkit::{Database, Subject};
use std::sync::Arc;

async fn open() -> Subject {
    let database = Database::fresh();
    let clock = ClockOffset::default();
    let mut options = MysqlOptions::parse(database.url()).expect("a URL");
    (options.clock, options.pool_max) = (clock.clone(), 3);
    let store = MysqlStore::open_with(options).await.expect("a fresh database opens");
    Subject::new(Arc::new(store), clock).keeping(database)
}

rewheel_testkit::store_conformance!(open);

mod idempotency {
    use rewheel_core::store::ClockOffset;
    use rewheel_stores::{MysqlOptions, MysqlStore};
    use rewheel_testkit::{Database, IdempotencySubject};
    use std::sync::Arc;

    async fn open() -> IdempotencySubject {
        let database = Database::fresh();
        let clock = ClockOffset::default();
        let mut options = MysqlOptions::parse(database.url()).expect("a URL");
        (options.clock, options.pool_max) = (clock.clone(), 3);
        let one = MysqlStore::open_with(options.clone()).await.expect("a fresh database opens");
        let other = MysqlStore::open_with(options).await.expect("a database opens twice");
        let advance = move |by| clock.advance(by);
        IdempotencySubject::new([Arc::new(one), Arc::new(other)], advance).keeping(database)
    }

    rewheel_testkit::idempotency_conformance!(open);
}
