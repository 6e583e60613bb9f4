//! Tests of probes in the half-open state.

use crate::breaker::{BreakerState, CircuitBreaker, CircuitBreakerBuilder};
use crate::clock::ManualClock;
use crate::duration::seconds;
use crate::error::{GiveUpReason, Refused};
use std::sync::atomic::{AtomicUsize, Ordering};

const FULL: Refused = Refused::new(GiveUpReason::CircuitOpen, None);

/// Returns a breaker that lets probes pass from now on.
fn half_open(builder: CircuitBreakerBuilder, clock: &ManualClock) -> CircuitBreaker {
    let breaker = builder.clock(clock).build();
    breaker.force_open();
    clock.advance(seconds(30));
    breaker
}

fn one_failure() -> CircuitBreakerBuilder {
    CircuitBreaker::consecutive(1)
}

#[test]
fn only_so_many_probes_pass_at_the_same_time() {
    let clock = ManualClock::new();
    let breaker = half_open(one_failure().probes_max(3).successes_to_close(9), &clock);
    let probes = [(); 3].map(|()| breaker.acquire().unwrap());
    assert_eq!(breaker.acquire().unwrap_err(), FULL);
    let snapshot = breaker.snapshot();
    assert_eq!(
        (snapshot.state, snapshot.probes, snapshot.retry_in),
        (BreakerState::HalfOpen, 3, None)
    );

    let [first, second, third] = probes;
    first.success();
    let _fourth = breaker.acquire().unwrap();
    assert_eq!(breaker.acquire().unwrap_err(), FULL);
    drop(second);
    let _fifth = breaker.acquire().unwrap();
    assert_eq!(breaker.acquire().unwrap_err(), FULL);
    drop(third);
}

#[test]
fn closes_once_enough_probes_succeeded() {
    let clock = ManualClock::new();
    let breaker = half_open(one_failure().successes_to_close(3), &clock);
    for successes in 0..3 {
        let probe = breaker.acquire().unwrap();
        assert_eq!(breaker.state(), BreakerState::HalfOpen, "after {successes}");
        probe.success();
    }
    assert_eq!(breaker.state(), BreakerState::Closed);
}

#[test]
fn one_probe_that_fails_opens_it_again_whatever_the_others_said() {
    let clock = ManualClock::new();
    let breaker = half_open(one_failure().probes_max(4).successes_to_close(3), &clock);
    let [a, b, c, d] = [(); 4].map(|()| breaker.acquire().unwrap());
    a.success();
    b.success();
    c.failure();
    assert_eq!(breaker.state(), BreakerState::Open);
    d.success();
    assert_eq!(breaker.state(), BreakerState::Open, "a probe of before had a say");
    clock.advance(seconds(30));
    breaker.acquire().unwrap().success();
    assert_eq!(breaker.state(), BreakerState::HalfOpen, "successes of before were counted");
}

#[test]
fn a_slow_probe_has_failed() {
    let clock = ManualClock::new();
    let slow = CircuitBreaker::count_window(10).slow_calls(seconds(1), 1.0);
    let breaker = half_open(slow, &clock);
    let probe = breaker.acquire().unwrap();
    clock.advance(seconds(2));
    probe.success();
    assert_eq!(breaker.state(), BreakerState::Open);
}

#[test]
fn a_probe_that_hangs_gives_its_place_to_another() {
    let clock = ManualClock::new();
    let breaker = half_open(one_failure().probe_timeout(seconds(5)), &clock);
    let hung = breaker.acquire().unwrap();
    clock.advance(seconds(4));
    assert_eq!(breaker.acquire().unwrap_err(), FULL);
    clock.advance(seconds(1));
    let probe = breaker.acquire().unwrap();
    hung.failure();
    assert_eq!(breaker.state(), BreakerState::HalfOpen, "what an expired probe says counts");
    assert_eq!(breaker.snapshot().probes, 1, "an expired probe took another's place with it");
    probe.success();
    assert_eq!(breaker.state(), BreakerState::Closed);
}

/// Whether the result counts must not depend on other calls in the meantime.
#[test]
fn the_result_of_an_expired_probe_is_ignored_even_without_another_probe() {
    for says_success in [true, false] {
        let clock = ManualClock::new();
        let breaker = half_open(one_failure().probe_timeout(seconds(5)), &clock);
        let hung = breaker.acquire().unwrap();
        clock.advance(seconds(5));
        assert_eq!(breaker.snapshot().probes, 0, "it is no longer under way");
        if says_success {
            hung.success()
        } else {
            hung.failure()
        }
        assert_eq!(breaker.state(), BreakerState::HalfOpen);
        assert!(breaker.acquire().is_ok());
    }
}

#[test]
fn a_probe_that_is_dropped_decides_nothing() {
    let clock = ManualClock::new();
    let breaker = half_open(one_failure(), &clock);
    for _ in 0..100 {
        drop(breaker.acquire().unwrap());
        assert_eq!((breaker.state(), breaker.snapshot().probes), (BreakerState::HalfOpen, 0));
    }
}

#[test]
fn a_probe_that_panics_frees_its_place() {
    let clock = ManualClock::new();
    let breaker = half_open(one_failure(), &clock);
    let panicking = std::panic::AssertUnwindSafe(|| {
        breaker.call_blocking(|| -> std::io::Result<()> { panic!("on purpose") })
    });
    assert!(std::panic::catch_unwind(panicking).is_err());
    assert_eq!((breaker.state(), breaker.snapshot().probes), (BreakerState::HalfOpen, 0));
    assert!(breaker.acquire().is_ok());
}

#[test]
fn threads_never_have_more_probes_than_allowed() {
    const PROBES_MAX: usize = 2;
    let clock = ManualClock::new();
    let breaker = half_open(one_failure().probes_max(2), &clock);
    let (under_way, passed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..20_000 {
                    let Ok(probe) = breaker.acquire() else { continue };
                    let others = under_way.fetch_add(1, Ordering::SeqCst);
                    assert!(others < PROBES_MAX, "{others} others are under way");
                    passed.fetch_add(1, Ordering::Relaxed);
                    under_way.fetch_sub(1, Ordering::SeqCst);
                    drop(probe);
                }
            });
        }
    });
    assert!(passed.into_inner() > 0);
    assert_eq!((breaker.state(), breaker.snapshot().probes), (BreakerState::HalfOpen, 0));
}
