//! The clock of stores without a database server.

use rewheel_core::Timestamp;
use rewheel_core::store::ClockOffset;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Returns the store's time: this machine's clock, moved by `offset`.
pub(crate) fn now(offset: &ClockOffset) -> Timestamp {
    let millis = i64::try_from(machine_time().as_millis()).unwrap_or(i64::MAX);
    offset.apply(Timestamp::from_millis(millis))
}

/// Returns what is left until an instant, to the nanosecond: the task that waits adds its own
/// roundings.
#[cfg(feature = "sqlite")]
pub(crate) fn left(offset: &ClockOffset, until: Timestamp) -> Duration {
    let now = machine_time();
    let millis = i64::try_from(now.as_millis()).unwrap_or(i64::MAX);
    let begun = Duration::from_nanos(u64::from(now.subsec_nanos() % 1_000_000));
    until.since(offset.apply(Timestamp::from_millis(millis))).saturating_sub(begun)
}

/// Reads the clock of this machine. A clock before 1970 counts as 1970: it is wrong either way.
#[expect(
    clippy::disallowed_methods,
    reason = "the clock of a local store is the clock of this machine"
)]
fn machine_time() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
