//! Runs the conformance suite on PostgreSQL.

use rewheel_core::store::{ClockOffset, Store};
use rewheel_stores::{PostgresOptions, PostgresStore};
use rewheel_testkit::{Schema, Subject};
use std::sync::Arc;

async fn recycled() -> Schema {
    let create = async |url: &str| {
        let store = PostgresStore::open(url).await.expect("a fresh schema opens");
        store.close().await.expect("it closes");
    };
    Schema::recycled(create).await
}

async fn open(change: impl FnOnce(&mut PostgresOptions)) -> Subject {
    let schema = recycled().await;
    let clock = ClockOffset::default();
    let mut options = PostgresOptions::parse(schema.url()).expect("a URL");
    options.clock = clock.clone();
    options.pool_max = 3;
    change(&mut options);
    let store = PostgresStore::open_with(options).await.expect("a fresh schema opens");
    Subject::new(Arc::new(store), clock).keeping(schema)
}

mod as_it_comes {
    async fn open() -> rewheel_testkit::Subject {
        super::open(|_| {}).await
    }

    rewheel_testkit::store_conformance!(open);
}

/// Runs with every claim written as a list, as only large claims normally are.
mod listed {
    async fn open() -> rewheel_testkit::Subject {
        super::open(|options| options.listed_min = 1).await
    }

    rewheel_testkit::store_conformance!(open);
}

mod idempotency {
    use rewheel_core::store::ClockOffset;
    use rewheel_stores::{PostgresOptions, PostgresStore};
    use rewheel_testkit::IdempotencySubject;
    use std::sync::Arc;

    async fn open() -> IdempotencySubject {
        let schema = super::recycled().await;
        let clock = ClockOffset::default();
        let mut options = PostgresOptions::parse(schema.url()).expect("a URL");
        (options.clock, options.pool_max) = (clock.clone(), 3);
        let one = PostgresStore::open_with(options.clone()).await.expect("a fresh schema opens");
        let other = PostgresStore::open_with(options).await.expect("a schema opens twice");
        let advance = move |by| clock.advance(by);
        IdempotencySubject::new([Arc::new(one), Arc::new(other)], advance).keeping(schema)
    }

    rewheel_testkit::idempotency_conformance!(open);
}
