//! The time unit of a wheel.

use std::time::Duration;

/// A point in time, in milliseconds since a start that the owner of a wheel chooses.
///
/// A tick is one millisecond; a clock is finer. Use [`Tick::floor`] for the current time of a
/// clock, and [`Tick::ceil`] for the time of an event: with both, nothing happens too early.
///
/// ```
/// use rewheel_engine::wheel::Tick;
/// use std::time::Duration;
///
/// let now = Duration::from_micros(10_700);
/// assert_eq!(Tick::floor(now), Tick::from_millis(10));
/// assert_eq!(Tick::ceil(now + Duration::from_millis(5)), Tick::from_millis(16));
/// assert_eq!(Tick::from_millis(16).since_start(), Duration::from_millis(16));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tick(u64);

impl Tick {
    /// The start.
    pub const ZERO: Tick = Tick(0);

    /// The last tick, half a billion years later.
    pub const MAX: Tick = Tick(u64::MAX);

    /// Creates a tick from milliseconds since the start.
    pub const fn from_millis(millis: u64) -> Tick {
        Tick(millis)
    }

    /// Returns the milliseconds since the start.
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// Returns the tick in progress at this time after the start: the time is rounded down to a whole millisecond.
    pub fn floor(since_start: Duration) -> Tick {
        Tick(u64::try_from(since_start.as_millis()).unwrap_or(u64::MAX))
    }

    /// Returns the first tick that begins at this time after the start or later: the time is rounded up to a whole millisecond.
    pub fn ceil(since_start: Duration) -> Tick {
        Tick(u64::try_from(since_start.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX))
    }

    /// Returns how long after the start this tick begins.
    pub const fn since_start(self) -> Duration {
        Duration::from_millis(self.0)
    }
}
