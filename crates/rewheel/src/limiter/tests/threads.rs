//! Checks a limiter that real threads share.

use crate::clock::{Clock, ManualClock, Moment};
use crate::limiter::RateLimiter;
use crate::limiter::gcra::Gcra;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

const CHECKS: usize = 100_000;

/// Two threads call the limiter while this one advances the clock; returns how much was admitted.
fn hammer(clock: &ManualClock, step: Duration, check: impl Fn() -> bool + Sync) -> u64 {
    let (admitted, running) = (AtomicU64::new(0), AtomicU64::new(2));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..CHECKS {
                    admitted.fetch_add(u64::from(check()), Ordering::Relaxed);
                }
                running.fetch_sub(1, Ordering::Relaxed);
            });
        }
        while running.load(Ordering::Relaxed) > 0 {
            clock.advance(step);
        }
    });
    admitted.into_inner()
}

#[test]
fn threads_are_never_admitted_above_the_rate() {
    let clock = ManualClock::new();
    let limiter = RateLimiter::per_second(1_000_000).burst(100).clock(&clock).build();
    let admitted = hammer(&clock, Duration::from_nanos(100), || limiter.check().is_ok());
    let most = 100 + clock.elapsed().as_micros() as u64;
    assert!(admitted <= most, "{admitted} of {most}");
    assert!(admitted >= 100, "{admitted} is less than the burst");
}

#[test]
fn threads_are_never_admitted_above_the_window() {
    let clock = ManualClock::new();
    let limiter = RateLimiter::sliding_window(100, Duration::from_micros(32)).clock(&clock).build();
    let admitted = hammer(&clock, Duration::from_nanos(100), || limiter.check().is_ok());
    let windows = clock.elapsed().as_nanos() as u64 / 32_000 + 1;
    assert!((100..=100 * windows).contains(&admitted), "{admitted} in {windows} windows");
}

/// Threads whose clock readings are late by different times.
#[test]
fn threads_with_different_readings_are_never_admitted_above_the_rate() {
    let clock = ManualClock::new();
    let gcra = Gcra::new(1_000, 10);
    let odd = AtomicBool::new(false);
    let admitted = hammer(&clock, Duration::from_nanos(100), || {
        let late = if odd.fetch_xor(true, Ordering::Relaxed) { 0 } else { 5_000 };
        let now = Clock::from(&clock).now().as_nanos().saturating_sub(late);
        gcra.take(1, Moment::from_nanos(now)).is_ok()
    });
    let most = 10 + clock.elapsed().as_micros() as u64;
    assert!(admitted <= most, "{admitted} of {most}");
}
