//! The conformance suite, on PostgreSQL, where every claim is written as a list.

use rewheel_core::store::ClockOffset;
use rewheel_stores::{PostgresOptions, PostgresStore};
use rewheel_testkit::{Schema, Subject};
use std::sync::Arc;

async fn open() -> Subject {
    let schema = Schema::fresh();
    let clock = ClockOffset::default();
    let mut options = PostgresOptions::parse(schema.url()).expect("a URL");
    options.clock = clock.clone();
    options.pool_max = 3;
    options.listed_min = 1;
    let store = PostgresStore::open_with(options).await.expect("a fresh schema opens");
    Subject::new(Arc::new(store), clock).keeping(schema)
}

rewheel_testkit::store_conformance!(open);
