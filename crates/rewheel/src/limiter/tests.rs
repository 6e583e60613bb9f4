//! Tests of the rate limiters.

#[cfg(not(loom))]
mod bucket;
#[cfg(not(loom))]
mod sliding;
#[cfg(not(loom))]
mod line;
#[cfg(not(loom))]
mod keyed;
#[cfg(not(loom))]
mod keyed_waiting;
#[cfg(not(loom))]
mod threads;
#[cfg(loom)]
mod loom_limiter;

/// One admission: time and weight.
#[cfg(not(loom))]
type Admitted = (u64, u64);

/// Asserts that in every interval from one admission to another, both included, no more was
/// admitted than the burst and the tokens of that time.
#[cfg(not(loom))]
#[track_caller]
fn assert_bounded_by_rate(history: &[Admitted], bucket: crate::limiter::gcra::Bucket) {
    for &(start, _) in history {
        for &(end, _) in history.iter().filter(|(end, _)| *end >= start) {
            let inside = history.iter().filter(|(at, _)| (start..=end).contains(at));
            let weight: u64 = inside.map(|(_, weight)| weight).sum();
            let allowed = u128::from(bucket.burst()) * u128::from(bucket.interval())
                + u128::from(end - start);
            let taken = u128::from(weight) * u128::from(bucket.interval());
            assert!(taken <= allowed, "{weight} from {start} to {end} by {bucket:?}");
        }
    }
}
