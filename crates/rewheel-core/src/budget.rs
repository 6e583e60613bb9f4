//! Retry budget shared by all nodes.

use crate::name::KindName;
use crate::timestamp::Timestamp;
use std::time::Duration;

/// The retries that the first attempts of a kind have earned, in the whole fleet.
///
/// A first attempt may run at one holder and its retries at another: what is earned is pooled in the
/// store, and handed out in grants. Retries are at most what was earned, and a floor.
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
    /// What is left, in parts of a retry: see [`RetryPool::RETRY`].
    pub balance: u64,
    /// Up to when the floor is counted in.
    pub counted: Timestamp,
}

/// What a holder says with its heartbeat about the retries of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryAsk {
    /// Which kind.
    pub kind: KindName,
    /// What its attempts have earned since it last said so, with what it does not need any more, in
    /// parts of a retry: see [`RetryPool::RETRY`].
    pub earned: u64,
    /// How many retries it would like to make until its next heartbeat.
    pub wanted: u32,
    /// What the kind has however little is earned.
    pub floor: Floor,
}

/// So many retries in such a time, whatever the traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Floor {
    /// How many, at most [`Floor::RETRIES_MAX`].
    pub retries: u32,
    /// In which time, at least a millisecond.
    pub period: Duration,
}

impl Floor {
    /// More than any dependency is retried, and few enough to compute with.
    pub const RETRIES_MAX: u32 = 1_000_000;

    /// Returns the retries that count, and the milliseconds of the period.
    pub fn parts(&self) -> (u64, u64) {
        let period = u64::try_from(self.period.as_millis()).unwrap_or(u64::MAX);
        // As long as a store can keep.
        (u64::from(self.retries.min(Floor::RETRIES_MAX)), period.clamp(1, i64::MAX as u64))
    }
}

impl RetryPool {
    /// One retry, in the parts that an attempt earns: fine enough for a ratio of a millionth.
    pub const RETRY: u64 = 1_000_000;

    /// So much can be saved up however long that takes: single failures are retried at once even
    /// where there is little traffic.
    pub const SAVED: u64 = 10 * RetryPool::RETRY;

    /// In about this time what else was saved up melts away. What a quiet day earned must not become
    /// the storm of a bad minute.
    pub const MELTS_IN: Duration = Duration::from_secs(10);

    /// No fleet retries more between two heartbeats, and a store can still compute with it.
    pub const BALANCE_MAX: u64 = 1_000_000 * RetryPool::RETRY;

    /// Returns the pool of a kind that nobody has asked for so far.
    pub fn fresh(now: Timestamp) -> RetryPool {
        let melts_in = i64::try_from(RetryPool::MELTS_IN.as_millis()).unwrap_or(i64::MAX);
        let counted = Timestamp::from_millis(now.as_millis().saturating_sub(melts_in));
        RetryPool { balance: RetryPool::SAVED, counted }
    }

    /// Takes in what a holder has earned, and hands out what it wants as far as there is so much.
    /// Returns what is left in the pool, and how many retries are granted.
    ///
    /// Over any stretch of time no more is granted than was earned, the floor for that time and
    /// [`RetryPool::MELTS_IN`] more, and [`RetryPool::SAVED`].
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
        // Two who ask at once may be heard in the other order. Only a clock that was set back by more
        // begins to count anew.
        let is_ahead = self.counted > now && self.counted.since(now) <= RetryPool::MELTS_IN;
        let counted = if is_ahead { self.counted } else { now };
        let balance = total - granted * RetryPool::RETRY;
        (RetryPool { balance, counted }, u32::try_from(granted).unwrap_or(ask.wanted))
    }
}

#[cfg(test)]
mod tests;
