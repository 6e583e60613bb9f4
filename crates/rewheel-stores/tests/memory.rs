//! The memory store does what every store must do.

use rewheel_core::store::ClockOffset;
use rewheel_stores::MemoryStore;
use rewheel_testkit::Subject;
use std::sync::Arc;

async fn open() -> Subject {
    let clock = ClockOffset::default();
    Subject::new(Arc::new(MemoryStore::with_clock(clock.clone())), clock)
}

rewheel_testkit::store_conformance!(open);
