//! What happened to the jobs of each kind, minute by minute.

mod encoding;
mod timeline;

pub use self::timeline::{HistoryPoint, HistoryTimeline};

pub(crate) use self::timeline::coarse_until;

use crate::name::KindName;
use crate::timestamp::Timestamp;
use std::collections::BTreeMap;
use std::time::Duration;

/// Counts of one kind in one or several minutes.
///
/// ```
/// use rewheel_core::KindCounts;
/// use std::time::Duration;
///
/// let mut minute = KindCounts { attempts: 20, ..KindCounts::default() };
/// minute.durations[KindCounts::bucket(Duration::from_millis(7))] = 20;
/// assert_eq!(KindCounts::quantile(&minute.durations, 0.95), Some(Duration::from_millis(10)));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KindCounts {
    /// Jobs that were submitted. Duplicates and rejected jobs do not count.
    pub submitted: u64,
    /// Attempts that started.
    pub attempts: u64,
    /// Jobs that succeeded.
    pub succeeded: u64,
    /// Attempts after which the job is retried.
    pub retried: u64,
    /// Attempts that were postponed without using up an attempt.
    pub snoozed: u64,
    /// Jobs that ended in the state `failed`.
    pub failed: u64,
    /// Jobs that became dead letters.
    pub dead: u64,
    /// Jobs that were cancelled while an attempt ran.
    pub cancelled: u64,
    /// Maximum number of attempts that ran at the same time. For several nodes the sum of their maximums: an upper bound.
    pub concurrency_max: u64,
    /// Number of attempts by their duration; see [`KindCounts::bucket`].
    pub durations: [u64; KindCounts::BUCKETS],
    /// Number of attempts by the time from their due time to their start; see [`KindCounts::bucket`].
    pub lateness: [u64; KindCounts::BUCKETS],
}

impl KindCounts {
    /// Upper bounds of the buckets, in microseconds. The last bucket has no upper bound.
    pub const BOUNDS_MICROS: [u64; 16] = [
        1_000,
        2_500,
        5_000,
        10_000,
        25_000,
        50_000,
        100_000,
        250_000,
        500_000,
        1_000_000,
        2_500_000,
        5_000_000,
        10_000_000,
        30_000_000,
        60_000_000,
        300_000_000,
    ];

    /// Number of buckets.
    pub const BUCKETS: usize = KindCounts::BOUNDS_MICROS.len() + 1;

    /// Returns the bucket that counts a duration.
    pub fn bucket(duration: Duration) -> usize {
        KindCounts::BOUNDS_MICROS.partition_point(|bound| u128::from(*bound) < duration.as_micros())
    }

    /// Returns the upper bound of the bucket in which this part of the values ends. For the last bucket returns its lower bound.
    /// Returns `None` if there are no values.
    pub fn quantile(buckets: &[u64; KindCounts::BUCKETS], part: f64) -> Option<Duration> {
        let all: u64 = buckets.iter().sum();
        let wanted = ((all as f64) * part).ceil().max(1.0) as u64;
        let mut seen = 0;
        let at = buckets.iter().position(|count| {
            seen += count;
            seen >= wanted
        })?;
        let last = KindCounts::BOUNDS_MICROS.len() - 1;
        Some(Duration::from_micros(KindCounts::BOUNDS_MICROS[at.min(last)]))
    }

    /// Returns whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        *self == KindCounts::default()
    }

    /// Adds what another node counted in the same time.
    pub fn add_beside(&mut self, other: &KindCounts) {
        let concurrency_max = self.concurrency_max.saturating_add(other.concurrency_max);
        self.add_after(other);
        self.concurrency_max = concurrency_max;
    }

    /// Adds what was counted in another time.
    pub fn add_after(&mut self, other: &KindCounts) {
        let concurrency_max = self.concurrency_max.max(other.concurrency_max);
        for (sum, more) in self.sums_mut().into_iter().zip(other.sums()) {
            *sum = sum.saturating_add(more);
        }
        self.concurrency_max = concurrency_max;
        let pairs =
            [(&mut self.durations, &other.durations), (&mut self.lateness, &other.lateness)];
        for (sums, more) in pairs {
            sums.iter_mut().zip(more).for_each(|(sum, more)| *sum = sum.saturating_add(*more));
        }
    }

    /// Returns what was counted since `before`: both count since the same start.
    pub fn since(&self, before: &KindCounts) -> KindCounts {
        let mut left = self.clone();
        for (left, before) in left.sums_mut().into_iter().zip(before.sums()) {
            *left = left.saturating_sub(before);
        }
        left.concurrency_max = self.concurrency_max;
        let pairs =
            [(&mut left.durations, &before.durations), (&mut left.lateness, &before.lateness)];
        for (left, before) in pairs {
            left.iter_mut().zip(before).for_each(|(left, more)| *left = left.saturating_sub(*more));
        }
        left
    }

    fn sums(&self) -> [u64; 9] {
        [
            self.submitted,
            self.attempts,
            self.succeeded,
            self.retried,
            self.snoozed,
            self.failed,
            self.dead,
            self.cancelled,
            self.concurrency_max,
        ]
    }

    fn sums_mut(&mut self) -> [&mut u64; 9] {
        [
            &mut self.submitted,
            &mut self.attempts,
            &mut self.succeeded,
            &mut self.retried,
            &mut self.snoozed,
            &mut self.failed,
            &mut self.dead,
            &mut self.cancelled,
            &mut self.concurrency_max,
        ]
    }
}

/// What was counted in one or several minutes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistorySlot {
    /// How many minutes it covers.
    pub minutes: u32,
    /// In how many of these minutes a node reported. The others are unknown, not zero.
    pub reported: u32,
    /// The counts of each kind with activity. `None` stands for all kinds beyond the limit.
    pub kinds: BTreeMap<Option<KindName>, KindCounts>,
}

impl HistorySlot {
    /// A minute.
    pub const MINUTE: Duration = Duration::from_secs(60);

    /// Minutes of a slot after [`HistorySlot::MINUTES_KEPT`].
    pub const COARSE_MINUTES: u32 = 5;

    /// How long single minutes are kept. Older ones are merged five at a time.
    pub const MINUTES_KEPT: Duration = Duration::from_secs(3 * 3_600);

    /// How long history is kept.
    pub const KEPT: Duration = Duration::from_secs(24 * 3_600);

    /// Maximum number of kinds with counts of their own. The others are counted together: the size of a slot has a limit.
    pub const KINDS_MAX: usize = 1_000;

    /// Creates a minute in which a node reported.
    pub fn minute() -> HistorySlot {
        HistorySlot { minutes: 1, reported: 1, kinds: BTreeMap::new() }
    }

    /// Returns the beginning of the minute of a time.
    pub fn start_of(at: Timestamp) -> Timestamp {
        floor(at, 1)
    }

    /// Returns the counts of a kind, to add to them.
    pub fn of(&mut self, kind: Option<&KindName>) -> &mut KindCounts {
        let is_new = !self.kinds.contains_key(&kind.cloned());
        let is_full = self.kinds.len() >= HistorySlot::KINDS_MAX;
        let own = kind.filter(|_| !(is_new && is_full)).cloned();
        self.kinds.entry(own).or_default()
    }

    /// Adds what another node counted in the same minutes.
    pub fn add_beside(&mut self, other: &HistorySlot) {
        self.reported = self.reported.max(other.reported);
        for (kind, counts) in &other.kinds {
            self.of(kind.as_ref()).add_beside(counts);
        }
    }

    /// Adds what was counted in other minutes.
    pub fn add_after(&mut self, other: &HistorySlot) {
        self.reported = self.reported.saturating_add(other.reported);
        for (kind, counts) in &other.kinds {
            self.of(kind.as_ref()).add_after(counts);
        }
    }

    /// Keeps only these kinds; the sum of all under `None` if there are none.
    fn narrowed(mut self, kinds: &[KindName]) -> HistorySlot {
        if kinds.is_empty() {
            let total = self.total(&[]);
            let is_active = !total.is_empty();
            self.kinds = is_active.then_some((None, total)).into_iter().collect();
        } else {
            self.kinds.retain(|kind, _| kind.as_ref().is_some_and(|kind| kinds.contains(kind)));
        }
        self
    }

    /// Returns the sum of these kinds; of all kinds if there are none.
    pub fn total(&self, kinds: &[KindName]) -> KindCounts {
        let mut total = KindCounts::default();
        let is_wanted = |kind: &Option<KindName>| {
            kinds.is_empty() || kind.as_ref().is_some_and(|kind| kinds.contains(kind))
        };
        for (_, counts) in self.kinds.iter().filter(|(kind, _)| is_wanted(kind)) {
            // Kinds run at the same time.
            total.add_beside(counts);
        }
        total
    }
}

/// Returns the beginning of the slot of this many minutes that a time is in.
pub(crate) fn floor(at: Timestamp, minutes: u32) -> Timestamp {
    let width = i64::from(minutes) * 60_000;
    Timestamp::from_millis(at.as_millis() - at.as_millis().rem_euclid(width))
}

#[cfg(test)]
mod tests;
