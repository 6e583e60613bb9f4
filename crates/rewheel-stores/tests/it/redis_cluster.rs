//! Runs the conformance suite on a Redis Cluster.

mod moves;

use rewheel_core::store::ClockOffset;
use rewheel_stores::{RedisOptions, RedisStore};
use rewheel_testkit::{Prefix, Subject};
use std::sync::Arc;

async fn open() -> Subject {
    let prefix = Prefix::in_cluster();
    let clock = ClockOffset::default();
    let mut options = RedisOptions::parse(prefix.url()).expect("a URL");
    options.clock = clock.clone();
    let store = RedisStore::open_with(options).await.expect("a fresh prefix opens");
    Subject::new(Arc::new(store), clock).keeping(prefix)
}

rewheel_testkit::store_conformance!(open);
