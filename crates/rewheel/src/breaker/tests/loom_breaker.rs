//! Checks every interleaving of threads that share a breaker.

use super::Changes;
use crate::breaker::{BreakerState, CircuitBreaker, CircuitBreakerBuilder, OwnedPermit};
use crate::clock::ManualClock;
use crate::duration::seconds;
use loom::thread::{self, JoinHandle};
use std::sync::Arc;

fn fails(permit: OwnedPermit) -> JoinHandle<()> {
    thread::spawn(move || permit.failure())
}

fn permit(breaker: &CircuitBreaker) -> OwnedPermit {
    breaker.acquire_owned().unwrap()
}

fn half_open(builder: CircuitBreakerBuilder) -> CircuitBreaker {
    let clock = ManualClock::new();
    let breaker = builder.clock(&clock).build();
    breaker.force_open();
    clock.advance(seconds(30));
    breaker
}

#[test]
fn loom_no_failure_in_a_row_is_lost() {
    loom::model(|| {
        let breaker = CircuitBreaker::consecutive(4).clock(ManualClock::new()).build();
        let threads = [(); 2].map(|()| fails(permit(&breaker)));
        permit(&breaker).failure();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(breaker.snapshot().failures, 3);
        permit(&breaker).failure();
        assert_eq!(breaker.state(), BreakerState::Open);
    });
}

/// A concurrent success either comes between the two failures or not: a failure after it is never
/// lost.
#[test]
fn loom_a_success_ends_the_row_once() {
    loom::model(|| {
        let breaker = CircuitBreaker::consecutive(9).clock(ManualClock::new()).build();
        let late = permit(&breaker);
        permit(&breaker).failure();
        let failing = fails(permit(&breaker));
        let succeeding = thread::spawn(move || late.success());
        failing.join().unwrap();
        succeeding.join().unwrap();
        let failures = breaker.snapshot().failures;
        assert!(failures <= 2, "{failures}");
        permit(&breaker).failure();
        assert_eq!(breaker.snapshot().failures, failures + 1);
    });
}

#[test]
fn loom_it_opens_once_however_many_failures_are_too_many() {
    let builders = [
        CircuitBreaker::consecutive(1),
        CircuitBreaker::count_window(4).failures(1),
        CircuitBreaker::time_window(seconds(10)).failures(1),
    ];
    for builder in builders {
        loom::model(move || {
            let changes = Arc::new(Changes::default());
            let builder = builder.clone().clock(ManualClock::new());
            let breaker = builder.observer(changes.clone()).build();
            let threads = [(); 2].map(|()| permit(&breaker)).map(fails);
            for thread in threads {
                thread.join().unwrap();
            }
            assert_eq!(changes.list(), [(BreakerState::Closed, BreakerState::Open)]);
        });
    }
}

/// The call began before the breaker was opened and closed again; its result arrives at any time.
#[test]
fn loom_a_result_of_before_is_not_counted_after() {
    let builders = [
        CircuitBreaker::consecutive(9),
        CircuitBreaker::count_window(9),
        CircuitBreaker::time_window(seconds(10)),
    ];
    for builder in builders {
        loom::model(move || {
            let breaker = builder.clone().clock(ManualClock::new()).build();
            let failing = fails(permit(&breaker));
            breaker.force_open();
            breaker.reset();
            failing.join().unwrap();
            let snapshot = breaker.snapshot();
            assert_eq!(
                (snapshot.state, snapshot.calls, snapshot.failures),
                (BreakerState::Closed, 0, 0)
            );
            permit(&breaker).failure();
            assert_eq!(breaker.snapshot().failures, 1);
        });
    }
}

#[test]
fn loom_half_open_admits_no_more_probes_than_allowed() {
    loom::model(|| {
        let breaker = half_open(CircuitBreaker::consecutive(1));
        let threads = [(); 2].map(|()| {
            let breaker = breaker.clone();
            thread::spawn(move || breaker.acquire_owned().ok())
        });
        let here = breaker.acquire_owned().ok();
        let [first, second] = threads.map(|thread| thread.join().unwrap());
        let probes = [here, first, second];
        assert_eq!(probes.iter().flatten().count(), 1);
        assert_eq!(breaker.snapshot().probes, 1);
    });
}

/// Two probes disagree: the first report decides, the other one is too late.
#[test]
fn loom_the_first_probe_to_report_decides() {
    loom::model(|| {
        let changes = Arc::new(Changes::default());
        let builder = CircuitBreaker::consecutive(1).probes_max(2);
        let breaker = half_open(builder.observer(changes.clone()));
        let (good, bad) = (permit(&breaker), permit(&breaker));
        let failing = fails(bad);
        good.success();
        failing.join().unwrap();
        let state = breaker.state();
        assert!(state == BreakerState::Closed || state == BreakerState::Open);
        assert_eq!(changes.list()[2..], [(BreakerState::HalfOpen, state)]);
        assert_eq!(breaker.snapshot().failures, 0);
    });
}

/// A caller asks for a probe while another probe fails: it gets one before that, or not at all.
#[test]
fn loom_no_probe_is_handed_out_once_it_is_open() {
    loom::model(|| {
        let breaker = half_open(CircuitBreaker::consecutive(1).probes_max(2));
        let failing = fails(permit(&breaker));
        let late = breaker.acquire_owned();
        failing.join().unwrap();
        let snapshot = breaker.snapshot();
        assert_eq!((snapshot.state, snapshot.probes), (BreakerState::Open, 0));
        drop(late);
        assert!(breaker.acquire().is_err());
    });
}

/// Each of two threads counts its call, then its failure: the last one must see all four.
#[test]
fn loom_a_window_of_failures_opens_it() {
    let builders = [
        CircuitBreaker::count_window(2).failure_ratio(1.0),
        CircuitBreaker::time_window(seconds(10)).calls_min(2).failure_ratio(1.0),
    ];
    for builder in builders {
        loom::model(move || {
            let breaker = builder.clone().clock(ManualClock::new()).build();
            let threads = [(); 2].map(|()| permit(&breaker)).map(fails);
            for thread in threads {
                thread.join().unwrap();
            }
            assert_eq!(breaker.state(), BreakerState::Open);
        });
    }
}
