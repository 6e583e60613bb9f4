//! Counts how many callers a half-open breaker lets through at once.

use std::io;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use super::Check;
use crate::harness::now;

const CALLERS: usize = 50;

/// How long the peers' breakers stay open. They only use the real time.
const OPEN: Duration = Duration::from_millis(1);

pub fn of_rewheel(probes_max: u32) -> Check {
    let clock = rewheel::ManualClock::new();
    let breaker = rewheel::CircuitBreaker::consecutive(1)
        .open_for(OPEN)
        .probes_max(probes_max)
        .successes_to_close(probes_max)
        .clock(&clock)
        .build();
    let _ = breaker.call_blocking(failing);
    clock.advance(OPEN);
    count(u64::from(probes_max), |probe| breaker.call_blocking(|| probed(probe)).is_ok())
}

pub fn of_failsafe() -> Check {
    use failsafe::{CircuitBreaker, Config, backoff, failure_policy};
    let policy = failure_policy::consecutive_failures(1, backoff::constant(OPEN));
    let breaker = Config::new().failure_policy(policy).build();
    let _ = breaker.call(failing);
    pass(OPEN * 5);
    count(1, |probe| breaker.call(|| probed(probe)).is_ok())
}

pub fn of_recloser() -> Check {
    let breaker = recloser::Recloser::custom().closed_len(1).half_open_len(1).open_wait(OPEN);
    let breaker = breaker.build();
    while !matches!(breaker.call(failing), Err(recloser::Error::Rejected)) {}
    pass(OPEN * 5);
    count(1, |probe| breaker.call(|| probed(probe)).is_ok())
}

fn failing() -> io::Result<()> {
    Err(io::ErrorKind::ConnectionRefused.into())
}

fn probed(probe: &dyn Fn()) -> io::Result<()> {
    probe();
    Ok(())
}

fn pass(time: Duration) {
    let started = now();
    while started.elapsed() < time {
        thread::yield_now();
    }
}

/// Starts all callers at once. A probe stays in progress until every caller was admitted or
/// refused, so all admitted callers were admitted at the same time.
fn count(probes_max: u64, call: impl Fn(&dyn Fn()) -> bool + Sync) -> Check {
    let (start, entered, settled) = (Barrier::new(CALLERS), AtomicU64::new(0), AtomicU64::new(0));
    let probe = || {
        entered.fetch_add(1, Ordering::AcqRel);
        settled.fetch_add(1, Ordering::AcqRel);
        while settled.load(Ordering::Acquire) < CALLERS as u64 {
            thread::yield_now();
        }
    };
    thread::scope(|scope| {
        for _ in 0..CALLERS {
            scope.spawn(|| {
                start.wait();
                if !call(&probe) {
                    settled.fetch_add(1, Ordering::AcqRel);
                }
            });
        }
    });
    let probes = entered.into_inner();
    let text = format!("{probes} of {CALLERS} callers probe at once");
    Check { text, errors: probes.abs_diff(probes_max) }
}
