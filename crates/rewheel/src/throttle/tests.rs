//! Tests of the client throttle: its formula, its window, and what counts.

use super::ClientThrottle;
use super::window::Window;
use crate::classify::{Category, Class, Classify};
use crate::clock::{Clock, ManualClock};
use crate::duration::{millis, seconds};
use crate::error::GiveUpReason;
use crate::random::Random;

#[derive(Clone, Copy, Debug)]
struct Failed(Category);

impl Classify for Failed {
    fn classify(&self) -> Class {
        Class::retry(self.0)
    }
}

fn throttle(factor: f64, floor: u32) -> (ClientThrottle, ManualClock) {
    let clock = ManualClock::new();
    let throttle = ClientThrottle::accepts_times(factor).floor_per_second(floor).clock(&clock);
    (throttle.random(&Random::seeded(7)).build(), clock)
}

/// Makes calls of which the dependency accepts one of `one_of`; returns how many reached it, and how many it accepted.
fn calls(throttle: &ClientThrottle, count: u32, one_of: u32) -> (u32, u32) {
    let (mut reached, mut accepted) = (0, 0);
    for _ in 0..count {
        let Ok(permit) = throttle.acquire() else { continue };
        reached += 1;
        if reached % one_of == 0 {
            accepted += 1;
            permit.accepted();
        } else {
            permit.rejected();
        }
    }
    (reached, accepted)
}

#[test]
fn a_healthy_dependency_gets_every_call() {
    let (throttle, _) = throttle(2.0, 0);
    assert_eq!(calls(&throttle, 10_000, 1), (10_000, 10_000));
    // Half of the calls fail, which is far from a third.
    let (throttle, _) = self::throttle(3.0, 0);
    assert!(calls(&throttle, 10_000, 2).0 >= 9_990);
}

#[test]
fn rejects_with_the_probability_of_the_formula() {
    for (factor, requests, accepts) in [(2.0, 1_000, 100), (1.1, 1_000, 500), (3.0, 400, 20)] {
        let (throttle, _) = throttle(factor, 0);
        {
            let mut window = crate::sync::lock(&throttle.shared.window);
            let now = throttle.shared.config.clock.now();
            (0..requests).for_each(|_| window.request(now));
            (0..accepts).for_each(|_| window.accept(now));
        }
        let (requests, accepts) = (f64::from(requests), f64::from(accepts));
        let expected = (requests - factor * accepts) / (requests + 1.0);
        assert!((throttle.rejects() - expected).abs() < 1e-9, "{}", throttle.rejects());
        let draws = 20_000_u32;
        // Each is forgotten again, so the counts stay; a rejected one is not, so it is taken back here.
        let rejected = (0..draws).filter(|_| match throttle.acquire() {
            Ok(permit) => {
                drop(permit);
                false
            }
            Err(_) => {
                let now = throttle.shared.config.clock.now();
                crate::sync::lock(&throttle.shared.window).forget(now);
                true
            }
        });
        let share = rejected.count() as f64 / f64::from(draws);
        assert!((share - expected).abs() < 0.02, "{share} of the calls, expected {expected}");
    }
}

#[test]
fn requests_that_reach_the_dependency_are_the_factor_times_what_it_accepts() {
    const ACCEPTS: u32 = 10;
    for factor in [1.5, 2.0, 4.0] {
        let (throttle, clock) = throttle(factor, 0);
        let mut reached = 0;
        for second in 0..600 {
            clock.advance(seconds(1));
            let permits: Vec<_> = (0..100).filter_map(|_| throttle.acquire().ok()).collect();
            if second >= 200 {
                reached += permits.len();
            }
            for (place, permit) in permits.into_iter().enumerate() {
                if place < ACCEPTS as usize { permit.accepted() } else { permit.rejected() }
            }
        }
        let per_second = reached as f64 / 400.0;
        let expected = factor * f64::from(ACCEPTS);
        assert!((per_second / expected - 1.0).abs() < 0.15, "{factor}: {per_second} per second");
    }
}

#[test]
fn the_floor_finds_out_that_the_dependency_works_again() {
    let (throttle, clock) = throttle(2.0, 1);
    for _ in 0..120 {
        clock.advance(seconds(1));
        calls(&throttle, 1_000, u32::MAX);
    }
    assert!(throttle.rejects() > 0.99);
    let mut reached = 0;
    for _ in 0..20 {
        clock.advance(seconds(1));
        reached += calls(&throttle, 1_000, u32::MAX).0;
    }
    assert!((20..120).contains(&reached), "{reached} calls in 20 seconds");
    for _ in 0..300 {
        clock.advance(seconds(1));
        calls(&throttle, 1_000, 1);
    }
    assert!(throttle.rejects() < 0.01, "it does not recover");
}

#[test]
fn only_the_answers_of_the_dependency_count() {
    let (throttle, _) = throttle(1.0, 0);
    let failing = |category| throttle.call_blocking(|| Err::<(), _>(Failed(category)));
    for _ in 0..100 {
        assert_eq!(failing(Category::Cancelled).unwrap_err().reason(), GiveUpReason::Stopped);
        assert_eq!(failing(Category::Rejected).unwrap_err().reason(), GiveUpReason::Stopped);
        drop(throttle.acquire());
    }
    assert_eq!(throttle.rejects(), 0.0);
    assert!(failing(Category::Timeout).is_err());
    assert!(throttle.rejects() > 0.0);
}

#[test]
fn what_is_older_than_the_window_is_forgotten() {
    let (throttle, clock) = throttle(2.0, 0);
    calls(&throttle, 100, u32::MAX);
    assert!(throttle.rejects() > 0.9);
    clock.advance(seconds(31));
    assert_eq!(throttle.rejects(), 0.0);
}

/// A list of all events, which cannot be wrong.
#[test]
fn the_window_counts_as_a_list_of_events_does() {
    let random = Random::seeded(3);
    let clock = ManualClock::new();
    let mut window = Window::new(millis(1_000));
    let mut events: Vec<(u64, bool)> = Vec::new();
    for _ in 0..20_000 {
        if random.between(0, 3) == 0 {
            clock.advance(millis(random.between(0, 400)));
        }
        let now = Clock::from(&clock).now();
        let period = clock.elapsed().as_millis() as u64 / 100;
        match random.between(0, 2) {
            0 => {
                window.request(now);
                events.push((period, true));
            }
            1 => {
                window.accept(now);
                events.push((period, false));
            }
            _ => {
                window.forget(now);
                if let Some(at) = events.iter().position(|event| *event == (period, true)) {
                    events.remove(at);
                }
            }
        }
        events.retain(|(counted, _)| counted + 10 > period);
        let requests = events.iter().filter(|(_, is_request)| *is_request).count();
        let expected = (requests as u64, (events.len() - requests) as u64);
        assert_eq!(window.counts(now), expected);
    }
}

#[test]
fn keys_are_throttled_apart_and_their_number_is_limited() {
    let per_host = ClientThrottle::accepts_times(2.0).floor_per_second(0).keyed::<String>(2);
    for _ in 0..50 {
        let _ = per_host.get("down").call_blocking(|| Err::<(), _>(Failed(Category::Io)));
    }
    assert!(per_host.get("down").rejects() > 0.5);
    assert_eq!(per_host.get("up").rejects(), 0.0);
    assert!(per_host.get("third").acquire().is_ok());
    assert_eq!(per_host.len(), 2);
    assert!(per_host.get("down").rejects() > 0.5, "a key that rejects calls was removed first");
}
