//! Runs the limit against a simulated dependency with a known capacity, in the time of a manual clock.

use crate::adaptive::{AdaptiveLimit, AdaptivePermit};
use crate::clock::ManualClock;
use crate::duration::{millis, seconds};
use crate::random::Random;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::time::Duration;

/// How long the dependency works on a call.
#[derive(Clone, Copy, Debug)]
enum Service {
    /// Up to this share more or less than the mean.
    Around(f64),
    /// Many fast calls and a few slow ones.
    Exponential,
}

/// A dependency that works on `capacity` calls at once. Others wait in its queue.
struct Dependency {
    clock: ManualClock,
    random: Random,
    capacity: usize,
    mean: Duration,
    service: Service,
    busy: usize,
    queue: VecDeque<u64>,
    /// The calls by number, and when each of those that it works on ends.
    calls: BTreeMap<u64, AdaptivePermit>,
    ends: BinaryHeap<Reverse<(Duration, u64)>>,
    arrived: u64,
    served: u64,
    refused: u64,
    fails: bool,
}

impl Dependency {
    fn new(clock: &ManualClock, capacity: usize, mean: Duration, service: Service) -> Dependency {
        Dependency {
            clock: clock.clone(),
            random: Random::seeded(42),
            capacity,
            mean,
            service,
            busy: 0,
            queue: VecDeque::new(),
            calls: BTreeMap::new(),
            ends: BinaryHeap::new(),
            arrived: 0,
            served: 0,
            refused: 0,
            fails: false,
        }
    }

    /// Returns a number from 0 to 1.
    fn draw(&self) -> f64 {
        self.random.between(1, 1_000_000) as f64 / 1e6
    }

    fn starts(&mut self) {
        while self.busy < self.capacity {
            let Some(call) = self.queue.pop_front() else { return };
            self.busy += 1;
            let share = match self.service {
                Service::Around(spread) => 1.0 + spread * (2.0 * self.draw() - 1.0),
                Service::Exponential => -self.draw().ln(),
            };
            self.ends.push(Reverse((self.clock.elapsed() + self.mean.mul_f64(share), call)));
        }
    }

    fn arrives(&mut self, limit: &AdaptiveLimit) {
        match limit.try_acquire() {
            Ok(permit) => {
                self.arrived += 1;
                self.calls.insert(self.arrived, permit);
                self.queue.push_back(self.arrived);
                self.starts();
            }
            Err(_) => self.refused += 1,
        }
    }

    fn ends(&mut self, call: u64) {
        self.busy -= 1;
        self.served += 1;
        let permit = self.calls.remove(&call).unwrap();
        if self.fails {
            permit.failure()
        } else {
            permit.success()
        }
        self.starts();
    }
}

/// Calls arrive at random times, `load` times as many as the dependency can serve.
struct Load {
    limit: AdaptiveLimit,
    dependency: Dependency,
    per_second: f64,
    next: Duration,
}

impl Load {
    fn new(limit: AdaptiveLimit, dependency: Dependency, load: f64) -> Load {
        let per_second = load * dependency.capacity as f64 / dependency.mean.as_secs_f64();
        Load { limit, dependency, per_second, next: Duration::ZERO }
    }

    /// Runs for some time, and returns the limit at each tenth of a second.
    fn run(&mut self, time: Duration) -> Vec<usize> {
        let clock = self.dependency.clock.clone();
        let (mut seen, mut look_at) = (Vec::new(), clock.elapsed() + millis(100));
        let until = clock.elapsed() + time;
        loop {
            let end = self.dependency.ends.peek().map_or(Duration::MAX, |Reverse((at, _))| *at);
            let at = end.min(self.next).min(look_at);
            if at > until {
                return seen;
            }
            clock.advance(at.saturating_sub(clock.elapsed()));
            if at == look_at {
                seen.push(self.limit.limit());
                look_at += millis(100);
            } else if at == end {
                let Reverse((_, call)) = self.dependency.ends.pop().unwrap();
                self.dependency.ends(call);
            } else {
                self.dependency.arrives(&self.limit);
                let gap = -self.dependency.draw().ln() / self.per_second;
                self.next = at + Duration::from_secs_f64(gap);
            }
        }
    }
}

fn load(capacity: usize, mean: Duration, service: Service, seed: u64) -> Load {
    let clock = ManualClock::new();
    let limit = AdaptiveLimit::between(2, 2_000).clock(&clock).random(&Random::seeded(seed));
    let mut dependency = Dependency::new(&clock, capacity, mean, service);
    dependency.random = Random::seeded(seed + 1_000);
    Load::new(limit.build(), dependency, 1.5)
}

/// Capacity, mean latency in milliseconds, and its distribution.
const CASES: [(usize, u64, Service); 4] = [
    (20, 20, Service::Around(0.2)),
    (40, 50, Service::Around(0.5)),
    (100, 20, Service::Exponential),
    (100, 100, Service::Around(0.0)),
];

/// Checks that a limit is within 20 % of the capacity, on average over each second.
#[track_caller]
fn check(seen: &[usize], capacity: usize, case: &str) {
    for (second, limits) in seen.chunks_exact(10).enumerate() {
        check_mean(limits, capacity, &format!("{case}, second {second}"));
    }
}

#[track_caller]
fn check_mean(limits: &[usize], capacity: usize, case: &str) {
    let mean = limits.iter().sum::<usize>() as f64 / limits.len() as f64 / capacity as f64;
    assert!((0.8..=1.2).contains(&mean), "{case}: {mean}: {limits:?}");
}

#[test]
fn the_limit_converges_to_the_capacity_of_the_dependency() {
    for (capacity, mean, service) in CASES {
        for seed in 0..2 {
            let mut load = load(capacity, millis(mean), service, seed);
            load.run(seconds(20));
            let before = load.dependency.served;
            let case = format!("capacity {capacity}, {mean} ms, {service:?}, seed {seed}");
            check(&load.run(seconds(15)), capacity, &case);
            let possible = (capacity * 15_000) as u64 / mean;
            let served = load.dependency.served - before;
            assert!(served * 10 >= possible * 9, "{case}: {served} of {possible} were served");
            assert!(load.dependency.refused > 0);
        }
    }
}

#[test]
fn the_limit_gives_way_within_two_seconds_when_the_capacity_halves() {
    for (capacity, mean, service) in CASES {
        let mut load = load(capacity, millis(mean), service, 1);
        load.run(seconds(20));
        load.dependency.capacity = capacity / 2;
        let seen = load.run(seconds(2));
        let case = format!("capacity {capacity}, {mean} ms, {service:?}");
        let limit = *seen.last().unwrap() as f64 / (capacity / 2) as f64;
        assert!(limit <= 1.2, "{case}: {limit}: {seen:?}");
        load.run(seconds(5));
        check_mean(&load.run(seconds(5)), capacity / 2, &case);
        load.dependency.capacity = capacity;
        load.run(seconds(10));
        check_mean(&load.run(seconds(5)), capacity, &format!("{case}, recovered"));
    }
}

#[test]
fn calls_that_time_out_lower_the_limit() {
    let mut load = load(40, millis(50), Service::Around(0.2), 1);
    load.run(seconds(10));
    load.dependency.fails = true;
    load.run(seconds(5));
    assert_eq!(load.limit.limit(), 2);
}
