//! Histogram of values.

use rewheel_core::KindCounts;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Buckets in nanoseconds, from a millisecond to five minutes.
const DURATIONS: [u64; 16] = [
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    25_000_000,
    50_000_000,
    100_000_000,
    250_000_000,
    500_000_000,
    1_000_000_000,
    2_500_000_000,
    5_000_000_000,
    10_000_000_000,
    30_000_000_000,
    60_000_000_000,
    300_000_000_000,
];

/// Buckets of batch sizes, up to the largest batch.
const SIZES: [u64; 11] = [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

/// Buckets of attempts per job.
const ATTEMPTS: [u64; 9] = [1, 2, 3, 4, 5, 6, 8, 10, 20];

/// The content of a histogram: the number of values up to each bound, and in total.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    /// Each bound with the number of values up to it, cumulative.
    pub buckets: Vec<(f64, u64)>,
    /// Number of values.
    pub count: u64,
    /// Sum of the values.
    pub sum: f64,
}

/// A histogram that any number of tasks can update.
#[derive(Debug)]
pub(crate) struct Histogram {
    bounds: &'static [u64],
    /// Number of counted units per displayed unit.
    scale: f64,
    /// One more than bounds: the last is for larger values.
    counts: Box<[AtomicU64]>,
    sum: AtomicU64,
    #[cfg(feature = "otel")]
    mirror: std::sync::OnceLock<super::otel::Mirror>,
}

impl Histogram {
    pub(crate) fn of_durations() -> Histogram {
        Histogram::new(&DURATIONS, 1e9)
    }

    pub(crate) fn of_sizes() -> Histogram {
        Histogram::new(&SIZES, 1.0)
    }

    pub(crate) fn of_attempts() -> Histogram {
        Histogram::new(&ATTEMPTS, 1.0)
    }

    fn new(bounds: &'static [u64], scale: f64) -> Histogram {
        Histogram {
            bounds,
            scale,
            counts: (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect(),
            sum: AtomicU64::new(0),
            #[cfg(feature = "otel")]
            mirror: std::sync::OnceLock::new(),
        }
    }

    pub(crate) fn took(&self, duration: Duration) {
        self.note(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX));
    }

    pub(crate) fn note(&self, value: u64) {
        let place = self.bounds.partition_point(|bound| *bound < value);
        self.counts[place].fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(value, Ordering::Relaxed);
        #[cfg(feature = "otel")]
        if let Some(mirror) = self.mirror.get() {
            mirror.record(value as f64 / self.scale);
        }
    }

    /// Also records each value from now on in an OpenTelemetry instrument: OpenTelemetry has no histogram that can be read from a
    /// callback.
    #[cfg(feature = "otel")]
    pub(super) fn mirror(&self, mirror: super::otel::Mirror) {
        let _ = self.mirror.set(mirror);
    }

    pub(super) fn bounds(&self) -> Vec<f64> {
        self.bounds.iter().map(|bound| *bound as f64 / self.scale).collect()
    }

    /// Returns how many values are in each bucket. The history has the same buckets.
    pub(super) fn buckets(&self) -> [u64; KindCounts::BUCKETS] {
        let mut buckets = [0; KindCounts::BUCKETS];
        for (bucket, count) in buckets.iter_mut().zip(&self.counts) {
            *bucket = count.load(Ordering::Relaxed);
        }
        buckets
    }

    pub(crate) fn read(&self) -> Distribution {
        let mut count = 0;
        let mut buckets = Vec::with_capacity(self.bounds.len());
        let mut counts = self.counts.iter().map(|count| count.load(Ordering::Relaxed));
        for (bound, here) in self.bounds().into_iter().zip(&mut counts) {
            count += here;
            buckets.push((bound, count));
        }
        count += counts.sum::<u64>();
        let sum = self.sum.load(Ordering::Relaxed) as f64 / self.scale;
        Distribution { buckets, count, sum }
    }
}

#[cfg(test)]
mod tests {
    use super::{DURATIONS, Histogram, KindCounts};
    use rewheel::{millis, seconds};

    #[test]
    fn the_history_has_the_same_buckets() {
        assert_eq!(DURATIONS, KindCounts::BOUNDS_MICROS.map(|micros| micros * 1_000));
        let histogram = Histogram::of_durations();
        for value in [millis(1), millis(2), seconds(301)] {
            histogram.took(value);
            assert_eq!(histogram.buckets()[KindCounts::bucket(value)], 1);
        }
    }

    #[test]
    fn a_value_counts_in_its_bucket_and_in_every_larger_one() {
        let histogram = Histogram::of_durations();
        for value in [millis(1), millis(2), seconds(1), seconds(301)] {
            histogram.took(value);
        }
        let read = histogram.read();
        assert_eq!(read.buckets[..3], [(0.001, 1), (0.0025, 2), (0.005, 2)]);
        assert_eq!((read.buckets[9], read.buckets[15]), ((1.0, 3), (300.0, 3)));
        assert_eq!((read.count, read.sum), (4, 302.003));
    }

    #[test]
    fn an_empty_batch_is_a_batch() {
        let histogram = Histogram::of_sizes();
        histogram.note(0);
        histogram.note(1_000);
        let read = histogram.read();
        assert_eq!((read.buckets[0], read.buckets[10], read.count), ((0.0, 1), (512.0, 1), 2));
    }
}
