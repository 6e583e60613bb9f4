//! Runs the conformance suite on PostgreSQL.

use crate::postgres_server::pgbouncer::Bouncer;
use rewheel_core::store::{ClockOffset, Store};
use rewheel_stores::{PostgresOptions, PostgresStore};
use rewheel_testkit::{Schema, Subject};
use std::sync::Arc;

/// If this variable is set, the suite runs behind pgbouncer in transaction mode: `cargo xtask versions pgbouncer`.
const POOLER: &str = "REWHEEL_TEST_POOLER";

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
    let bouncer = match std::env::var_os(POOLER) {
        Some(_) => Some(Bouncer::start().await.expect("pgbouncer is installed")),
        None => None,
    };
    let behind = bouncer.as_ref().map(|bouncer| bouncer.store_url(&schema));
    let url = behind.as_deref().unwrap_or(schema.url());
    let mut options = PostgresOptions::parse(url).expect("a URL");
    options.clock = clock.clone();
    options.pool_max = 3;
    change(&mut options);
    let store = PostgresStore::open_with(options).await.expect("a fresh schema opens");
    Subject::new(Arc::new(store), clock).keeping((schema, bouncer))
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
