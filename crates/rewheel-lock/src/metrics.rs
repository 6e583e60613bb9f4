//! OpenTelemetry metrics of locks.

use crate::error::LockError;
use crate::observer::{LockEvent, LockObserver};
use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Histogram, Meter};
use std::sync::Arc;

/// Buckets in seconds, from a millisecond to an hour.
const SECONDS: [f64; 16] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 600.0,
    3_600.0,
];

/// Counts what happens to locks. The names of locks are not labels: there may be one for each invoice.
///
/// ```
/// use rewheel_lock::{LockMetrics, Locks};
///
/// let metrics = LockMetrics::new(&opentelemetry::global::meter("billing"));
/// let locks = Locks::memory().observer(metrics);
/// # drop(locks);
/// ```
#[derive(Debug)]
pub struct LockMetrics {
    wait: Histogram<f64>,
    held: Histogram<f64>,
    renewal_failures: Counter<u64>,
    release_failures: Counter<u64>,
}

impl LockMetrics {
    /// Creates the instruments.
    pub fn new(meter: &Meter) -> Arc<LockMetrics> {
        let seconds = |name: &'static str, help: &'static str| {
            let builder = meter.f64_histogram(name).with_boundaries(SECONDS.to_vec());
            builder.with_unit("s").with_description(help).build()
        };
        let count = |name: &'static str, unit: &'static str, help: &'static str| {
            meter.u64_counter(name).with_unit(unit).with_description(help).build()
        };
        Arc::new(LockMetrics {
            wait: seconds("lock.wait_time", "Time that requests waited for a lock, by outcome."),
            held: seconds(
                "lock.held_time",
                "Time that locks were held, by how it ended: released or lost.",
            ),
            renewal_failures: count(
                "lock.renewal_failures",
                "{renewal}",
                "Renewals that failed and were repeated.",
            ),
            release_failures: count(
                "lock.release_failures",
                "{release}",
                "Releases that failed and were repeated.",
            ),
        })
    }
}

impl LockObserver for LockMetrics {
    fn observe(&self, event: &LockEvent<'_>) {
        let ended = |how: &'static str| [KeyValue::new("end", how)];
        match *event {
            LockEvent::Acquired { waited, .. } => {
                self.wait.record(waited.as_secs_f64(), &[KeyValue::new("outcome", "acquired")]);
            }
            LockEvent::NotAcquired { error, waited, .. } => {
                self.wait.record(waited.as_secs_f64(), &[KeyValue::new("outcome", outcome(error))]);
            }
            LockEvent::RenewalFailed { .. } => self.renewal_failures.add(1, &[]),
            LockEvent::ReleaseFailed { .. } => self.release_failures.add(1, &[]),
            LockEvent::Lost { held, .. } => self.held.record(held.as_secs_f64(), &ended("lost")),
            LockEvent::Released { held, .. } => {
                self.held.record(held.as_secs_f64(), &ended("released"));
            }
        }
    }
}

fn outcome(error: &LockError) -> &'static str {
    match error {
        LockError::Busy { .. } => "busy",
        LockError::LineFull { .. } => "line_full",
        LockError::Unavailable(_) => "unavailable",
        LockError::Broken { .. } => "broken",
        LockError::Invalid { .. } | LockError::Reentrant { .. } => "refused",
        LockError::Lost { .. } => "lost",
    }
}
