//! Counts the calls that a limiter admits beyond its limit under load from two threads.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use super::Check;
use crate::harness::now;

/// The rate of the limiters under load: one token per microsecond.
pub const PER_SECOND: u32 = 1_000_000;
/// Large enough to trigger effects that only appear with large bursts.
pub const BURST: u32 = 20_000;

const THREADS: usize = 2;
const LONG_ENOUGH: Duration = Duration::from_millis(100);

/// Calls a limiter as fast as possible for some real time.
pub fn in_real_time(admit: impl Fn() -> bool + Sync) -> Check {
    in_real_time_with(BURST, admit)
}

/// The same for a limiter with another burst.
pub fn in_real_time_with(burst: u32, admit: impl Fn() -> bool + Sync) -> Check {
    let started = now();
    let siege = || {
        let mut admitted = 0;
        let mut last = Duration::ZERO;
        while started.elapsed() < LONG_ENOUGH {
            if admit() {
                admitted += 1;
                // Read after the admission, so that the allowed time is never too short.
                last = started.elapsed();
            }
        }
        (admitted, last)
    };
    let sieges = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(siege)).collect();
        threads.into_iter().map(|t| t.join().expect("the siege panicked")).collect::<Vec<_>>()
    });
    let admitted = sieges.iter().map(|(admitted, _)| admitted).sum();
    let lasted = sieges.iter().map(|(_, last)| *last).max().unwrap_or_default();
    check(admitted, lasted, burst)
}

/// Calls a limiter whose clock `advance` moves.
pub fn in_virtual_time(admit: impl Fn() -> bool + Sync, advance: impl Fn(Duration)) -> Check {
    const STEPS: u32 = 200;
    const STEP: Duration = Duration::from_micros(500);
    const { assert!(STEP.as_micros() * STEPS as u128 == LONG_ENOUGH.as_micros()) };
    let (admitted, refused, is_over) =
        (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while !is_over.load(Ordering::Acquire) {
                    let count = if admit() { &admitted } else { &refused };
                    count.fetch_add(1, Ordering::AcqRel);
                }
            });
        }
        for _ in 0..STEPS {
            let before = refused.load(Ordering::Acquire);
            advance(STEP);
            // Once a call is refused, all available tokens are used up.
            let mut patience = 10_000;
            while refused.load(Ordering::Acquire) == before && patience > 0 {
                thread::yield_now();
                patience -= 1;
            }
        }
        is_over.store(true, Ordering::Release);
    });
    // The remaining tokens belong to the same time.
    while admit() {
        admitted.fetch_add(1, Ordering::Relaxed);
    }
    check(admitted.into_inner(), STEP * STEPS, BURST)
}

fn check(admitted: u64, time: Duration, burst: u32) -> Check {
    let refilled = time.as_nanos() * u128::from(PER_SECOND) / 1_000_000_000;
    let allowed = u64::from(burst) + u64::try_from(refilled).unwrap_or(u64::MAX);
    let over = admitted.saturating_sub(allowed);
    // A limiter that admits nothing would keep every limit.
    let is_starved = admitted < u64::from(burst) / 2;
    let text = if is_starved {
        format!("admits only {admitted} in {LONG_ENOUGH:?}")
    } else {
        let used = admitted as f64 * 100.0 / allowed as f64;
        format!("{over} over the limit, {used:.1}% of it used")
    };
    Check { text, errors: over + u64::from(is_starved) }
}
