//! The time of stores that have no server to ask.

use rewheel_core::Timestamp;
use rewheel_core::store::ClockOffset;
use std::time::{SystemTime, UNIX_EPOCH};

/// Returns the store's time: that of this machine, moved by `offset`.
#[expect(clippy::disallowed_methods, reason = "here a store's clock has its source")]
pub(crate) fn now(offset: &ClockOffset) -> Timestamp {
    // A machine whose clock is before 1970 is at 1970: its time is wrong either way.
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let millis = i64::try_from(since_1970.as_millis()).unwrap_or(i64::MAX);
    offset.apply(Timestamp::from_millis(millis))
}
