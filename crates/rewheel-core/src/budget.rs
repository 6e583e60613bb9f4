//! Retry budget shared by all nodes.

use crate::name::KindName;
use crate::timestamp::Timestamp;
use std::time::Duration;

/// The retry budget of a kind: the retries that the first attempts of all nodes have added, and that are not used yet.
///
/// A first attempt may run on one holder and its retries on another. So the store keeps one pool for all holders, and grants
/// retries from it. The total number of retries is at most the number that first attempts added, plus the floor.
///
/// ```
/// use rewheel_core::{Floor, KindName, RetryAsk, RetryPool, Timestamp};
/// use std::time::Duration;
///
/// let ask = RetryAsk {
///     kind: KindName::parse("charge-card")?,
///     earned: 3 * RetryPool::RETRY,
///     wanted: 100,
///     floor: Floor { retries: 1, period: Duration::from_secs(60) },
/// };
/// let pool = RetryPool { balance: 0, counted: Timestamp::from_millis(0) };
/// let (pool, granted) = pool.grant(&ask, Timestamp::from_millis(0));
/// assert_eq!((pool.balance, granted), (0, 3));
/// # Ok::<(), rewheel_core::NameError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPool {
    /// The remaining balance, in units of [`RetryPool::RETRY`].
    pub balance: u64,
    /// The time up to which the floor has been added.
    pub counted: Timestamp,
}

/// What a holder reports and requests with its heartbeat for the retries of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryAsk {
    /// The kind.
    pub kind: KindName,
    /// What the attempts of the holder have added since its last report, plus unused grants that it returns, in units of [`RetryPool::RETRY`].
    pub earned: u64,
    /// Number of retries that the holder wants to make until its next heartbeat.
    pub wanted: u32,
    /// The minimum number of retries of the kind, independent of traffic.
    pub floor: Floor,
}

/// A number of retries per period that is always allowed, independent of traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Floor {
    /// Number of retries, at most [`Floor::RETRIES_MAX`].
    pub retries: u32,
    /// The period, at least one millisecond.
    pub period: Duration,
}

impl Floor {
    /// Higher than any useful floor, and small enough to compute without overflow.
    pub const RETRIES_MAX: u32 = 1_000_000;

    /// Returns the effective number of retries, and the period in milliseconds.
    pub fn parts(&self) -> (u64, u64) {
        let period = u64::try_from(self.period.as_millis()).unwrap_or(u64::MAX);
        // The longest period that a store can hold.
        (u64::from(self.retries.min(Floor::RETRIES_MAX)), period.clamp(1, i64::MAX as u64))
    }
}

impl RetryPool {
    /// The value of one retry, in the units of the balance; large enough for a ratio of one millionth.
    pub const RETRY: u64 = 1_000_000;

    /// The part of the balance that never expires. This part allows the retry of single failures even at low traffic.
    pub const SAVED: u64 = 10 * RetryPool::RETRY;

    /// The time in which the balance above [`RetryPool::SAVED`] expires. So the budget of a day without failures is not used up
    /// in one outage.
    pub const MELTS_IN: Duration = Duration::from_secs(10);

    /// Upper limit of the balance: more than any fleet retries between two heartbeats, and small enough for a store to compute
    /// with.
    pub const BALANCE_MAX: u64 = 1_000_000 * RetryPool::RETRY;

    /// Returns the initial pool of a kind.
    pub fn fresh(now: Timestamp) -> RetryPool {
        let melts_in = i64::try_from(RetryPool::MELTS_IN.as_millis()).unwrap_or(i64::MAX);
        let counted = Timestamp::from_millis(now.as_millis().saturating_sub(melts_in));
        RetryPool { balance: RetryPool::SAVED, counted }
    }

    /// Adds what a holder reports as earned, and grants the retries that it wants, limited by the balance. Returns the
    /// remaining pool and the number of granted retries.
    ///
    /// In any period, the pool grants at most what was earned, plus the floor for that period and [`RetryPool::MELTS_IN`] more,
    /// plus [`RetryPool::SAVED`].
    #[must_use]
    pub fn grant(self, ask: &RetryAsk, now: Timestamp) -> (RetryPool, u32) {
        let melts_in = RetryPool::MELTS_IN.as_millis() as u64;
        let elapsed = (now.since(self.counted).as_millis() as u64).min(melts_in);
        let balance = self.balance.min(RetryPool::BALANCE_MAX);
        let melting = balance.saturating_sub(RetryPool::SAVED);
        let left = balance - melting * elapsed / melts_in;
        let (retries, period) = ask.floor.parts();
        let floor = elapsed * retries * RetryPool::RETRY / period;
        let earned = ask.earned.min(RetryPool::BALANCE_MAX);
        let total = (left + earned + floor).min(RetryPool::BALANCE_MAX);
        let granted = u64::from(ask.wanted).min(total / RetryPool::RETRY);
        // Two concurrent requests may arrive in the other order. Only a clock that was set back by more than that starts over.
        let is_ahead = self.counted > now && self.counted.since(now) <= RetryPool::MELTS_IN;
        let counted = if is_ahead { self.counted } else { now };
        let balance = total - granted * RetryPool::RETRY;
        (RetryPool { balance, counted }, u32::try_from(granted).unwrap_or(ask.wanted))
    }
}

#[cfg(test)]
mod tests;
