//! Tests of growing open times, manual control and observers.

use super::Changes;
use crate::backoff::{Backoff, Jitter};
use crate::breaker::{BreakerSnapshot, BreakerState, BreakerTotals, CircuitBreaker};
use crate::clock::ManualClock;
use crate::duration::seconds;
use crate::error::GiveUpReason;
use std::sync::Arc;
use std::time::Duration;

fn breaker(clock: &ManualClock) -> CircuitBreaker {
    CircuitBreaker::consecutive(2).clock(clock).build()
}

/// Lets the due probe pass and fail.
fn fail_a_probe(breaker: &CircuitBreaker, clock: &ManualClock) -> Duration {
    clock.advance(breaker.snapshot().retry_in.unwrap());
    breaker.acquire().unwrap().failure();
    breaker.snapshot().retry_in.unwrap()
}

#[test]
fn stays_open_for_exactly_as_long_as_told() {
    let clock = ManualClock::new();
    let breaker = CircuitBreaker::consecutive(1).open_for(seconds(7)).clock(&clock).build();
    breaker.acquire().unwrap().failure();
    for rest in (1..=7).rev() {
        let refused = breaker.acquire().unwrap_err();
        assert_eq!(
            (refused.why, refused.retry_in),
            (GiveUpReason::CircuitOpen, Some(seconds(rest)))
        );
        assert_eq!(breaker.snapshot().retry_in, Some(seconds(rest)));
        clock.advance(seconds(1));
    }
    assert!(breaker.acquire().is_ok());
}

#[test]
fn stays_open_longer_each_time_a_probe_fails_and_starts_over_once_closed() {
    let clock = ManualClock::new();
    let open = Backoff::exponential(seconds(1)).max(seconds(6)).jitter(Jitter::NONE);
    let breaker = CircuitBreaker::consecutive(1).open_backoff(open).clock(&clock).build();
    for _ in 0..2 {
        breaker.acquire().unwrap().failure();
        assert_eq!(breaker.snapshot().retry_in, Some(seconds(1)));
        let grown = [(); 4].map(|()| fail_a_probe(&breaker, &clock));
        assert_eq!(grown, [2, 4, 6, 6].map(seconds));
        clock.advance(seconds(6));
        breaker.acquire().unwrap().success();
        assert_eq!(breaker.state(), BreakerState::Closed);
    }
}

#[test]
fn forced_open_it_recovers_by_itself() {
    let clock = ManualClock::new();
    let breaker = breaker(&clock);
    breaker.force_open();
    assert_eq!(breaker.acquire().unwrap_err().retry_in, Some(seconds(30)));
    assert!(!breaker.snapshot().forced);
    clock.advance(seconds(10));
    breaker.force_open();
    assert_eq!(breaker.snapshot().retry_in, Some(seconds(20)), "it was open already");
    clock.advance(seconds(20));
    breaker.acquire().unwrap().success();
    assert_eq!(breaker.state(), BreakerState::Closed);
}

#[test]
fn isolated_it_lets_nothing_pass_until_reset() {
    let clock = ManualClock::new();
    let breaker = breaker(&clock);
    let under_way = breaker.acquire().unwrap();
    breaker.isolate();
    clock.advance(seconds(1_000_000));
    let refused = breaker.acquire().unwrap_err();
    assert_eq!((refused.why, refused.retry_in), (GiveUpReason::CircuitOpen, None));
    under_way.success();
    let snapshot = breaker.snapshot();
    assert_eq!(
        (snapshot.state, snapshot.forced, snapshot.retry_in),
        (BreakerState::Open, true, None)
    );
    breaker.reset();
    assert!(breaker.acquire().is_ok());
    assert!(!breaker.snapshot().forced);
}

#[test]
fn forced_closed_it_ignores_failures_until_reset() {
    let clock = ManualClock::new();
    let breaker = breaker(&clock);
    breaker.force_close();
    for _ in 0..10 {
        breaker.acquire().unwrap().failure();
    }
    let forced = breaker.acquire().unwrap();
    let snapshot = breaker.snapshot();
    assert_eq!(
        (snapshot.state, snapshot.forced, snapshot.failures),
        (BreakerState::Closed, true, 0)
    );
    breaker.reset();
    forced.failure();
    breaker.acquire().unwrap().failure();
    assert_eq!(breaker.state(), BreakerState::Closed, "a failure of before the reset was counted");
    breaker.acquire().unwrap().failure();
    assert_eq!(breaker.state(), BreakerState::Open);
}

#[test]
fn a_reset_forgets_what_was_counted() {
    let clock = ManualClock::new();
    let windows = [
        CircuitBreaker::consecutive(5),
        CircuitBreaker::count_window(20),
        CircuitBreaker::time_window(seconds(20)),
    ];
    for breaker in windows.map(|builder| builder.clock(&clock).build()) {
        // Several times, because two windows are used in turn.
        for _ in 0..4 {
            for _ in 0..4 {
                breaker.acquire().unwrap().failure();
            }
            assert_eq!(breaker.snapshot().failures, 4);
            breaker.reset();
            let snapshot = breaker.snapshot();
            assert_eq!((snapshot.calls, snapshot.failures), (0, 0));
        }
    }
}

/// Counts of an earlier closed period do not apply to the open state, nor to a later closed period.
#[test]
fn an_open_breaker_goes_by_no_calls() {
    let clock = ManualClock::new();
    let empty = |state, retry_in| BreakerSnapshot {
        state,
        forced: false,
        calls: 0,
        failures: 0,
        slow: 0,
        probes: 0,
        retry_in,
        totals: BreakerTotals::default(),
    };
    // They grow from one state to the next.
    let snapshot = |breaker: &CircuitBreaker| BreakerSnapshot {
        totals: BreakerTotals::default(),
        ..breaker.snapshot()
    };
    let windows = [
        CircuitBreaker::consecutive(3),
        CircuitBreaker::count_window(3),
        CircuitBreaker::time_window(seconds(1_000)).failures(3),
    ];
    for breaker in windows.map(|builder| builder.clock(&clock).build()) {
        for _ in 0..3 {
            for _ in 0..3 {
                breaker.acquire().unwrap().failure();
            }
            assert_eq!(snapshot(&breaker), empty(BreakerState::Open, Some(seconds(30))));
            clock.advance(seconds(30));
            drop(breaker.acquire().unwrap());
            assert_eq!(snapshot(&breaker), empty(BreakerState::HalfOpen, None));
            breaker.acquire().unwrap().success();
            assert_eq!(snapshot(&breaker), empty(BreakerState::Closed, None));
        }
    }
}

#[test]
fn changes_are_told_in_order_with_the_name() {
    let (clock, changes) = (ManualClock::new(), Arc::new(Changes::default()));
    let breaker = CircuitBreaker::consecutive(1).named("payments");
    let breaker = breaker.clock(&clock).observer(changes.clone()).build();
    breaker.acquire().unwrap().failure();
    fail_a_probe(&breaker, &clock);
    clock.advance(seconds(30));
    breaker.acquire().unwrap().success();
    breaker.reset();
    breaker.force_close();
    breaker.isolate();
    breaker.force_open();
    breaker.reset();

    use BreakerState::{Closed, HalfOpen, Open};
    let expected = [
        (Closed, Open),
        (Open, HalfOpen),
        (HalfOpen, Open),
        (Open, HalfOpen),
        (HalfOpen, Closed),
        (Closed, Open),
        (Open, Closed),
    ];
    assert_eq!(changes.list(), expected);
    assert!(changes.0.lock().unwrap().iter().all(|(name, _, _)| name == "payments"));
    assert_eq!(breaker.name(), "payments");
}

#[test]
fn totals_without_counting_calls_have_all_but_the_calls() {
    let breaker = CircuitBreaker::consecutive(2).build();
    breaker.acquire().unwrap().success();
    let late = breaker.acquire().unwrap();
    breaker.acquire().unwrap().failure();
    breaker.acquire().unwrap().failure();
    late.failure();
    assert!(breaker.acquire().is_err() && breaker.acquire_owned().is_err());
    breaker.isolate(); // still open: no change of the state
    breaker.reset();
    let expected = BreakerTotals { calls: None, failures: 3, refusals: 2, transitions: 2 };
    assert_eq!(breaker.snapshot().totals, expected, "a reset does not clear them");
}
