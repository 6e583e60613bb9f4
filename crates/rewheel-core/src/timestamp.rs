//! A point in time of the store's clock.

use std::time::Duration;

/// Milliseconds since 1970 by the clock of the store, the only one that all holders agree on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// Takes the number that a store keeps.
    pub const fn from_millis(millis: i64) -> Timestamp {
        Timestamp(millis)
    }

    /// Returns the number that a store keeps.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// Returns the instant so much later. What is not a whole millisecond is rounded up: nothing
    /// runs early. Further than can be represented is the end of time.
    ///
    /// ```
    /// use rewheel_core::Timestamp;
    /// use std::time::Duration;
    ///
    /// let start = Timestamp::from_millis(1_000);
    /// assert_eq!(start.plus(Duration::from_micros(1)).as_millis(), 1_001);
    /// assert_eq!(start.plus(Duration::MAX).as_millis(), i64::MAX);
    /// ```
    #[must_use]
    pub fn plus(self, duration: Duration) -> Timestamp {
        let millis = duration.as_nanos().div_ceil(1_000_000);
        Timestamp(self.0.saturating_add(i64::try_from(millis).unwrap_or(i64::MAX)))
    }

    /// Returns the time from `earlier` to this instant, zero if it is not earlier.
    pub fn since(self, earlier: Timestamp) -> Duration {
        let millis = self.0.saturating_sub(earlier.0);
        Duration::from_millis(u64::try_from(millis).unwrap_or(0))
    }
}
