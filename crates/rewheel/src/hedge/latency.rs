//! A percentile of the latest latencies.

use crate::duration::{nanos, text};
use crate::ratio::Ratio;
use crate::sync::{AtomicU64, Mutex, Ordering, lock_soon};
use std::fmt;
use std::time::Duration;

/// The latencies of the latest calls, up to a fixed number, and one percentile of them.
///
/// A latency is stored as the number of its bucket. Buckets are a sixteenth of their value wide, which is the error of the
/// percentile; so a window needs two bytes for each call.
#[derive(Debug)]
pub(super) struct Latencies {
    percentile: Ratio,
    samples_min: usize,
    delay_min: Duration,
    /// In nanoseconds; zero while too few calls are known.
    delay: AtomicU64,
    samples: Mutex<Samples>,
}

#[derive(Debug)]
struct Samples {
    /// The buckets of the latest calls, at most `window`.
    ring: Vec<u16>,
    window: usize,
    /// Where the next call goes when the ring is full.
    next: usize,
    /// How many calls of the ring are in each bucket.
    counts: Box<[u32]>,
    /// How many more calls until the percentile is computed again.
    until_update: usize,
}

/// Four bits of precision for each power of two.
const PARTS: u64 = 16;

/// The unit of a bucket, as a power of two of nanoseconds: about a microsecond.
const UNIT_BITS: u32 = 10;

/// The last bucket holds the longest time that fits 64 bits of nanoseconds.
const BUCKETS: usize = bucket(u64::MAX) as usize + 1;

/// Returns the bucket of a time in nanoseconds.
const fn bucket(nanos: u64) -> u16 {
    let units = nanos >> UNIT_BITS;
    if units < PARTS {
        return units as u16;
    }
    let exponent = 63 - units.leading_zeros() as u64;
    let part = (units >> (exponent - 4)) & (PARTS - 1);
    ((exponent - 3) * PARTS + part) as u16
}

/// Returns the time in nanoseconds that is longer than all times of a bucket.
const fn end_of(bucket: u16) -> u64 {
    let (octave, part) = (bucket as u64 / PARTS, bucket as u64 % PARTS);
    let units = if octave == 0 { part + 1 } else { (PARTS + part + 1) << (octave - 1) };
    if units.leading_zeros() < UNIT_BITS { u64::MAX } else { units << UNIT_BITS }
}

impl Latencies {
    pub(super) fn new(
        percentile: Ratio,
        window: u32,
        samples_min: u32,
        delay_min: Duration,
    ) -> Latencies {
        let samples = Samples {
            ring: Vec::new(),
            window: window as usize,
            next: 0,
            counts: vec![0; BUCKETS].into(),
            until_update: samples_min as usize,
        };
        Latencies {
            percentile,
            samples_min: samples_min as usize,
            delay_min,
            delay: AtomicU64::new(0),
            samples: Mutex::new(samples),
        }
    }

    /// Returns the percentile; `None` while too few calls are known.
    #[inline]
    pub(super) fn delay(&self) -> Option<Duration> {
        match self.delay.load(Ordering::Relaxed) {
            0 => None,
            delay => Some(Duration::from_nanos(delay)),
        }
    }

    pub(super) fn note(&self, latency: Duration) {
        let mut samples = lock_soon(&self.samples);
        samples.add(bucket(nanos(latency)));
        samples.until_update -= 1;
        if samples.until_update > 0 {
            return;
        }
        // Computing costs as much as adding a few dozen calls.
        samples.until_update = (self.samples_min / 4).max(samples.ring.len() / 16).max(1);
        let delay = samples.percentile(self.percentile).max(nanos(self.delay_min));
        self.delay.store(delay, Ordering::Relaxed);
    }
}

impl Samples {
    fn add(&mut self, bucket: u16) {
        self.counts[usize::from(bucket)] += 1;
        if self.ring.len() < self.window {
            self.ring.push(bucket);
            return;
        }
        let oldest = std::mem::replace(&mut self.ring[self.next], bucket);
        self.counts[usize::from(oldest)] -= 1;
        self.next = (self.next + 1) % self.window;
    }

    /// Returns the smallest time, as exact as the buckets, that this share of the calls is shorter than.
    fn percentile(&self, percentile: Ratio) -> u64 {
        let calls = self.ring.len() as u64;
        let mut shorter = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            shorter += u64::from(*count);
            if *count > 0 && percentile.is_reached_by(shorter, calls) {
                return end_of(u16::try_from(bucket).unwrap_or(u16::MAX));
            }
        }
        u64::MAX
    }
}

impl fmt::Display for Latencies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let window = lock_soon(&self.samples).window;
        let (percentile, delay_min) = (self.percentile, text(self.delay_min));
        write!(f, "when slower than {percentile} of the last {window} calls, at least {delay_min}")
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{BUCKETS, Latencies, bucket, end_of};
    use crate::duration::nanos;
    use crate::ratio::Ratio;
    use crate::{millis, seconds};
    use proptest::prelude::*;
    use std::time::Duration;

    fn latencies(percentile: f64, window: u32) -> Latencies {
        let percentile = Ratio::new(percentile).expect("a share");
        Latencies::new(percentile, window, 20, Duration::from_nanos(1))
    }

    #[test]
    fn buckets_are_in_order_and_without_gaps() {
        for number in 0..u16::try_from(BUCKETS).unwrap() - 1 {
            assert_eq!(bucket(end_of(number) - 1), number);
            assert_eq!(bucket(end_of(number)), number + 1);
        }
        assert_eq!(usize::from(bucket(u64::MAX)) + 1, BUCKETS);
        assert_eq!(end_of(bucket(u64::MAX)), u64::MAX);
    }

    #[test]
    fn nothing_is_known_before_there_are_enough_calls() {
        let latencies = latencies(0.95, 100);
        for _ in 0..19 {
            latencies.note(millis(10));
            assert_eq!(latencies.delay(), None);
        }
        latencies.note(millis(10));
        assert!(latencies.delay().is_some());
    }

    #[test]
    fn calls_that_left_the_window_no_longer_count() {
        let latencies = latencies(0.9, 100);
        for _ in 0..100 {
            latencies.note(seconds(5));
        }
        assert!(latencies.delay() >= Some(seconds(5)));
        for _ in 0..100 {
            latencies.note(millis(10));
        }
        assert!(latencies.delay() < Some(millis(11)), "{:?}", latencies.delay());
    }

    proptest! {
        #[test]
        fn the_percentile_is_that_of_the_latest_calls(
            times in proptest::collection::vec(1_000_u64..10_000_000_000, 32..400),
            percentile in 0.05_f64..0.95,
        ) {
            let window = 32;
            let latencies = latencies(percentile, window);
            // The percentile is computed again with every fifth call: 20, 25, 30 ...
            let count = times.len() / 5 * 5;
            for time in &times[..count] {
                latencies.note(Duration::from_nanos(*time));
            }
            let mut latest = times[count.saturating_sub(window as usize)..count].to_vec();
            latest.sort_unstable();
            let share = Ratio::new(percentile).unwrap();
            let exact = (1..).find(|n| share.is_reached_by(*n, latest.len() as u64)).unwrap();
            let exact = latest[usize::try_from(exact).unwrap() - 1];
            let known = nanos(latencies.delay().unwrap());
            prop_assert!(exact < known && known <= exact + exact / 16 + 1_024, "{exact} {known}");
        }
    }
}
