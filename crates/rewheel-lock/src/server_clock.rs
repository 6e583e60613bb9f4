//! The clock of backends without a server.

use rewheel_core::store::ClockOffset;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A time of the server that keeps a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ServerTime {
    micros: i64,
}

impl ServerTime {
    pub(crate) const fn from_micros(micros: i64) -> ServerTime {
        ServerTime { micros }
    }

    pub(crate) const fn as_micros(self) -> i64 {
        self.micros
    }

    /// Leases and places are stored in milliseconds.
    pub(crate) const fn as_millis(self) -> i64 {
        self.micros / 1_000
    }

    /// Returns the time on a clock that tests move.
    pub(crate) fn moved(self, offset: &ClockOffset) -> ServerTime {
        ServerTime { micros: self.micros.saturating_add(offset.as_millis().saturating_mul(1_000)) }
    }
}

/// Reads the clock of this machine, moved by `offset`. A clock before 1970 counts as 1970: it is wrong either way.
#[expect(
    clippy::disallowed_methods,
    reason = "the clock of a local backend is the clock of this machine"
)]
pub(crate) fn machine_time(offset: &ClockOffset) -> ServerTime {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let micros = i64::try_from(since.as_micros()).unwrap_or(i64::MAX);
    ServerTime::from_micros(micros).moved(offset)
}

/// Returns a duration in milliseconds, as leases are stored.
pub(crate) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// Returns a number of milliseconds as a duration; a negative one is zero.
pub(crate) fn duration(millis: i64) -> Duration {
    Duration::from_millis(u64::try_from(millis).unwrap_or(0))
}
