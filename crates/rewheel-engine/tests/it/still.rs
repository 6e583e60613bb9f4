//! A test store whose clock does not advance.

use rewheel_core::Timestamp;
use rewheel_core::store::ClockOffset;
use rewheel_stores::MemoryStore;
use tokio::time::Instant;

/// A store with the clock of the runtime, which is paused.
pub(crate) fn store() -> MemoryStore {
    store_with(ClockOffset::default())
}

/// The same, with a clock that a test moves.
#[expect(clippy::disallowed_methods, reason = "the time of these tests is not real")]
pub(crate) fn store_with(clock: ClockOffset) -> MemoryStore {
    let started = Instant::now();
    let time = move || {
        let millis = i64::try_from(started.elapsed().as_millis()).unwrap_or(i64::MAX);
        Timestamp::from_millis(1_700_000_000_000 + millis)
    };
    MemoryStore::with_time(time, clock)
}
