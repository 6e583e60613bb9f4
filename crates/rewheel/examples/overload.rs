//! Shows how an adaptive limit and a client throttle protect an overloaded service.
//!
//! A service serves 40 calls at once, each takes 50 ms. It gets twice the calls that it can serve, and after ten seconds half of
//! it fails. Time is virtual, so this takes no real time; random numbers are seeded, so it always prints the same.

use rewheel::{
    AdaptiveLimit, AdaptivePermit, ClientThrottle, ManualClock, Random, millis, seconds,
};
use std::collections::VecDeque;
use std::time::Duration;

const STEP: Duration = millis(1);
const CALLS_PER_STEP: usize = 2;
const WORK: u32 = 50;

/// A service that works on `capacity` calls at once. Others wait in its queue.
struct Service {
    capacity: usize,
    /// The calls that it works on, with the steps that are left.
    working: Vec<(u32, AdaptivePermit)>,
    queue: VecDeque<AdaptivePermit>,
}

impl Service {
    fn step(&mut self) {
        for (left, _) in &mut self.working {
            *left = left.saturating_sub(1);
        }
        for (_, permit) in self.working.extract_if(.., |(left, _)| *left == 0) {
            permit.success();
        }
        while self.working.len() < self.capacity {
            let Some(permit) = self.queue.pop_front() else { return };
            self.working.push((WORK, permit));
        }
    }
}

fn adaptive_limit() -> Vec<usize> {
    let clock = ManualClock::new();
    let limit = AdaptiveLimit::between(2, 500).clock(&clock).random(&Random::seeded(1)).build();
    let mut service = Service { capacity: 40, working: Vec::new(), queue: VecDeque::new() };
    let mut limits = Vec::new();
    for step in 0..20_000 {
        if step == 10_000 {
            service.capacity = 20;
        }
        for _ in 0..CALLS_PER_STEP {
            // A refused call fails at once, and does not make the others slower.
            if let Ok(permit) = limit.try_acquire() {
                service.queue.push_back(permit);
            }
        }
        service.step();
        clock.advance(STEP);
        if step % 1_000 == 999 {
            limits.push(limit.limit());
        }
    }
    limits
}

/// Returns how many of 100 calls in each second reached a service that accepts ten per second.
fn client_throttle() -> Vec<usize> {
    let clock = ManualClock::new();
    let throttle =
        ClientThrottle::accepts_times(2.0).clock(&clock).random(&Random::seeded(1)).build();
    let mut reached = Vec::new();
    for _ in 0..60 {
        let permits: Vec<_> = (0..100).filter_map(|_| throttle.acquire().ok()).collect();
        reached.push(permits.len());
        for (place, permit) in permits.into_iter().enumerate() {
            if place < 10 { permit.accepted() } else { permit.rejected() }
        }
        clock.advance(seconds(1));
    }
    reached
}

#[expect(clippy::print_stdout, reason = "an example prints")]
fn main() {
    let limits = adaptive_limit();
    println!("adaptive limit after each second (40 calls at once, then 20): {limits:?}");
    let reached = client_throttle();
    println!("calls per second that reach a service that accepts 10 of 100: {reached:?}");
    assert!(limits[9].abs_diff(40) <= 8 && limits[19].abs_diff(20) <= 4, "{limits:?}");
    assert!(reached[59] <= 30, "{reached:?}");
}
