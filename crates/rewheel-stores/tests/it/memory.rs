//! Runs the conformance suite on the memory store.

use rewheel_core::store::ClockOffset;
use rewheel_stores::MemoryStore;
use rewheel_testkit::Subject;
use std::sync::Arc;

async fn open() -> Subject {
    let clock = ClockOffset::default();
    Subject::new(Arc::new(MemoryStore::with_clock(clock.clone())), clock)
}

rewheel_testkit::store_conformance!(open);

/// The memory store of idempotency keys belongs to the library.
mod idempotency {
    use rewheel::{ManualClock, MemoryIdempotency};
    use rewheel_testkit::IdempotencySubject;
    use std::sync::Arc;

    async fn open() -> IdempotencySubject {
        let clock = ManualClock::new();
        let store = MemoryIdempotency::new(1_000, 1 << 20).clock(&clock);
        let advance = move |by| clock.advance(by);
        IdempotencySubject::new([Arc::new(store.clone()), Arc::new(store)], advance)
    }

    rewheel_testkit::idempotency_conformance!(open);
}
