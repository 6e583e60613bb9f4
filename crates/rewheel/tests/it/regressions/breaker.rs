//! Breakers that open too late, close too early, or never recover.

use super::race;
use rewheel::{
    BreakerState, CircuitBreaker, Event, GiveUpReason, ManualClock, Observer, millis, seconds,
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, OnceLock};

/// A breaker whose next call is a probe.
fn half_open(clock: &ManualClock, probes: u32) -> CircuitBreaker {
    let breaker = CircuitBreaker::consecutive(1)
        .open_for(seconds(10))
        .probes_max(probes)
        .probe_timeout(seconds(60))
        .clock(clock)
        .build();
    breaker.acquire().unwrap().failure();
    clock.advance(seconds(10));
    breaker
}

/// tower-resilience 0.13: after 10,000 successes it took 10,000 failures to open, not 50.
#[test]
fn count_window_slides_after_ten_thousand_successes() {
    let breaker = CircuitBreaker::count_window(100).failure_ratio(0.5).build();
    for _ in 0..10_000 {
        breaker.acquire().unwrap().success();
    }
    let mut failures = 0;
    while breaker.state() == BreakerState::Closed {
        breaker.acquire().unwrap().failure();
        failures += 1;
    }
    assert_eq!(failures, 50);
}

/// tower-resilience 0.13: a time window that keeps and scans every call under one lock.
#[test]
fn time_window_forgets_what_is_old() {
    let clock = ManualClock::new();
    let breaker = CircuitBreaker::time_window(seconds(10)).failure_ratio(0.5).clock(&clock).build();
    for _ in 0..100_000 {
        breaker.acquire().unwrap().success();
    }
    clock.advance(seconds(20));
    for _ in 0..10 {
        assert_eq!(breaker.state(), BreakerState::Closed);
        breaker.acquire().unwrap().failure();
        clock.advance(millis(1));
    }
    assert_eq!(breaker.state(), BreakerState::Open);
}

/// resilience4j: a window of a single call failed with a null pointer.
#[test]
fn a_window_of_one_call_works() {
    let breaker = CircuitBreaker::count_window(1).build();
    breaker.acquire().unwrap().success();
    assert_eq!(breaker.state(), BreakerState::Closed);
    breaker.acquire().unwrap().failure();
    assert_eq!(breaker.state(), BreakerState::Open);
}

/// recloser 1.4 and failsafe 1.3: half open, all of 50 callers were let through.
#[test]
fn half_open_admits_only_its_probes_of_fifty() {
    for probes in [1, 3] {
        let clock = ManualClock::new();
        let breaker = half_open(&clock, probes);
        let permits = race(50, || breaker.acquire_owned());
        let admitted = permits.iter().filter(|permit| permit.is_ok()).count();
        assert_eq!(admitted, probes as usize);
        let refused = permits.iter().find_map(|permit| permit.as_ref().err()).unwrap();
        assert_eq!(refused.why, GiveUpReason::CircuitOpen);
    }
}

/// Polly: a cancelled probe counted as a success and closed the circuit.
#[test]
fn cancelled_probe_neither_closes_nor_opens() {
    let clock = ManualClock::new();
    let breaker = half_open(&clock, 1);
    let mut call = Box::pin(breaker.call(std::future::pending::<std::io::Result<()>>));
    assert!(super::poll(call.as_mut()).is_pending());
    assert!(breaker.acquire().is_err(), "the probe is out");
    drop(call);
    assert_eq!(breaker.state(), BreakerState::HalfOpen);
    breaker.acquire().expect("its place is free again").success();
    assert_eq!(breaker.state(), BreakerState::Closed);
}

/// Polly: a call that began before the outage closed the circuit when it returned after it.
#[test]
fn late_result_of_an_earlier_state_is_ignored() {
    let clock = ManualClock::new();
    let breaker = CircuitBreaker::consecutive(1).open_for(seconds(10)).clock(&clock).build();
    let (early, late, later) =
        (breaker.acquire().unwrap(), breaker.acquire().unwrap(), breaker.acquire().unwrap());
    early.failure();
    late.success();
    assert_eq!(breaker.state(), BreakerState::Open);
    clock.advance(seconds(10));
    let probe = breaker.acquire().unwrap();
    later.success();
    assert_eq!(breaker.state(), BreakerState::HalfOpen, "only a probe may close it");
    probe.success();
    assert_eq!(breaker.state(), BreakerState::Closed);
}

/// Polly and OmniRoute: a probe that never returned kept the circuit half open for days.
#[test]
fn hung_probe_gives_up_its_place() {
    let clock = ManualClock::new();
    let breaker = half_open(&clock, 1);
    let hung = breaker.acquire().unwrap();
    clock.advance(seconds(59));
    assert!(breaker.acquire().is_err());
    clock.advance(seconds(1));
    let other = breaker.acquire().expect("its place is given to another");
    hung.failure();
    assert_eq!(breaker.state(), BreakerState::HalfOpen, "it has lost its say");
    other.success();
    assert_eq!(breaker.state(), BreakerState::Closed);
}

/// failsafe-go: a probe that panicked never released its permit.
#[test]
fn panicking_probe_frees_its_place() {
    let clock = ManualClock::new();
    let breaker = half_open(&clock, 1);
    let call =
        AssertUnwindSafe(|| breaker.call_blocking(|| -> std::io::Result<()> { panic!("a probe") }));
    assert!(catch_unwind(call).is_err());
    assert_eq!((breaker.state(), breaker.snapshot().probes), (BreakerState::HalfOpen, 0));
    assert!(breaker.acquire().is_ok());
}

/// resilience4j: an ignored result left the circuit half open without a free probe.
#[test]
fn probe_whose_result_says_nothing_frees_its_place() {
    let clock = ManualClock::new();
    let breaker = half_open(&clock, 1);
    struct Unwanted;
    impl rewheel::Classify for Unwanted {
        fn classify(&self) -> rewheel::Class {
            rewheel::Class::stop(rewheel::Category::Cancelled)
        }
    }
    for _ in 0..3 {
        breaker.acquire().unwrap().record(&Err::<(), _>(Unwanted));
        assert_eq!(breaker.state(), BreakerState::HalfOpen);
    }
}

/// recloser 1.4: a guard is held for the whole of the user's call.
#[test]
fn a_call_under_way_delays_no_other() {
    let breaker = CircuitBreaker::count_window(10).build();
    let result = breaker.call_blocking(|| {
        breaker.acquire().unwrap().failure();
        breaker.force_open();
        breaker.reset();
        breaker.call_blocking(|| Ok::<_, std::io::Error>(breaker.snapshot().calls))
    });
    assert_eq!(result.unwrap(), 0);
}

/// Polly before 8.6.6 and failsafe-go: callbacks ran under the lock, and deadlocked.
#[test]
fn an_observer_may_use_the_breaker_that_calls_it() {
    #[derive(Debug, Default)]
    struct Curious {
        breaker: OnceLock<CircuitBreaker>,
        seen: Mutex<Vec<BreakerState>>,
    }
    impl Observer for Curious {
        fn observe(&self, event: &Event<'_>) {
            // Not for the refusal that it causes itself.
            let Event::BreakerChanged { .. } = event else { return };
            let breaker = self.breaker.get().unwrap();
            self.seen.lock().unwrap().push(breaker.snapshot().state);
            let _ = breaker.acquire();
        }
    }
    let curious = Arc::new(Curious::default());
    let breaker = CircuitBreaker::consecutive(1).observer(curious.clone()).build();
    curious.breaker.set(breaker.clone()).unwrap();
    breaker.acquire().unwrap().failure();
    breaker.reset();
    assert_eq!(*curious.seen.lock().unwrap(), [BreakerState::Open, BreakerState::Closed]);
}
