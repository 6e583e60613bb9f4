//! A point in time of the store's clock.

use std::time::Duration;

/// Milliseconds since 1970 by the store's clock, the only clock that all holders agree on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// Creates a timestamp from the number that a store holds.
    pub const fn from_millis(millis: i64) -> Timestamp {
        Timestamp(millis)
    }

    /// Returns the number that a store holds.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// Returns the time this much later. Rounds up to a whole millisecond, so that nothing runs
    /// early. Saturates at the latest time that can be represented.
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

    /// Returns the time this much earlier, rounded to a whole millisecond. Saturates at the earliest time that can be represented.
    ///
    /// ```
    /// use rewheel_core::Timestamp;
    /// use std::time::Duration;
    ///
    /// let start = Timestamp::from_millis(1_000);
    /// assert_eq!(start.minus(Duration::from_millis(1)).as_millis(), 999);
    /// assert_eq!(start.minus(Duration::MAX).as_millis(), i64::MIN);
    /// ```
    #[must_use]
    pub fn minus(self, duration: Duration) -> Timestamp {
        let millis = i64::try_from(duration.as_millis());
        Timestamp(millis.map_or(i64::MIN, |millis| self.0.saturating_sub(millis)))
    }

    /// Returns the time from `earlier` to this time, or zero if `earlier` is later.
    pub fn since(self, earlier: Timestamp) -> Duration {
        let millis = self.0.saturating_sub(earlier.0);
        Duration::from_millis(u64::try_from(millis).unwrap_or(0))
    }
}
