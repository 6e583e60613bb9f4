//! Checks that a guarded store behaves like the store itself.

use super::guarded;
use rewheel_core::store::ClockOffset;
use rewheel_stores::MemoryStore;
use rewheel_testkit::Subject;
use std::sync::Arc;

async fn open() -> Subject {
    let clock = ClockOffset::default();
    let store = guarded(Arc::new(MemoryStore::with_clock(clock.clone())));
    Subject::new(Arc::new(store), clock)
}

rewheel_testkit::store_conformance!(open);
