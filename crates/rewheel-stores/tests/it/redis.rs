//! Runs the conformance suite on Redis.

use rewheel_core::store::ClockOffset;
use rewheel_stores::{RedisOptions, RedisStore};
use rewheel_testkit::{Prefix, Subject};
use std::sync::Arc;

async fn open() -> Subject {
    let prefix = Prefix::fresh();
    let clock = ClockOffset::default();
    let mut options = RedisOptions::parse(prefix.url()).expect("a URL");
    options.clock = clock.clone();
    let store = RedisStore::open_with(options).await.expect("a fresh prefix opens");
    Subject::new(Arc::new(store), clock).keeping(prefix)
}

rewheel_testkit::store_conformance!(open);

mod idempotency {
    use rewheel_core::store::ClockOffset;
    use rewheel_stores::{RedisOptions, RedisStore};
    use rewheel_testkit::{IdempotencySubject, Prefix};
    use std::sync::Arc;

    async fn open() -> IdempotencySubject {
        let prefix = Prefix::fresh();
        let clock = ClockOffset::default();
        let mut options = RedisOptions::parse(prefix.url()).expect("a URL");
        options.clock = clock.clone();
        let one = RedisStore::open_with(options.clone()).await.expect("a fresh prefix opens");
        let other = RedisStore::open_with(options).await.expect("a prefix opens twice");
        let advance = move |by| clock.advance(by);
        IdempotencySubject::new([Arc::new(one), Arc::new(other)], advance).keeping(prefix)
    }

    rewheel_testkit::idempotency_conformance!(open);
}
