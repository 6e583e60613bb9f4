//! Checks that a breaker opens exactly when its window says so.

use crate::breaker::{BreakerState, CircuitBreaker, CircuitBreakerBuilder};
use crate::clock::ManualClock;
use crate::duration::{millis, seconds};

/// Makes calls, `.` for a success, `x` for a failure, `s` for a slow call; asserts that the last
/// one opens the breaker, and none before.
#[track_caller]
fn check_opens_at_the_end(builder: CircuitBreakerBuilder, calls: &str) {
    let clock = ManualClock::new();
    let breaker = builder.clock(&clock).build();
    for (index, call) in calls.char_indices() {
        assert_eq!(breaker.state(), BreakerState::Closed, "before call {index} of {calls}");
        let permit = breaker.acquire().unwrap();
        match call {
            '.' => permit.success(),
            'x' => permit.failure(),
            's' => {
                clock.advance(millis(1_001));
                permit.success();
            }
            other => panic!("what is {other}?"),
        }
    }
    assert_eq!(breaker.state(), BreakerState::Open, "after {calls}");
}

#[test]
fn opens_when_the_window_says_so() {
    let count = CircuitBreaker::count_window;
    let time = || CircuitBreaker::time_window(seconds(60));
    check_opens_at_the_end(CircuitBreaker::consecutive(1), "..x");
    check_opens_at_the_end(CircuitBreaker::consecutive(3), "xx.xx.xxx");
    check_opens_at_the_end(count(1), "...x");
    check_opens_at_the_end(count(4), "....xx");
    check_opens_at_the_end(count(4).calls_min(1), "x");
    check_opens_at_the_end(count(4).failure_ratio(1.0), "x..xxxx");
    check_opens_at_the_end(count(100).failures(3), "x.........x........x");
    check_opens_at_the_end(time(), "xxxx.....x");
    check_opens_at_the_end(time().calls_min(3), "..x..xxx");
    check_opens_at_the_end(time().failures(2), "x..................x");
}

/// Half of the calls had failed when the window filled, but the last call was a success.
#[test]
fn only_a_failure_or_a_slow_call_opens_it() {
    check_opens_at_the_end(CircuitBreaker::count_window(4), "xx..x");
    let time = CircuitBreaker::time_window(seconds(60)).calls_min(4);
    check_opens_at_the_end(time, "xx..x");
}

#[test]
fn opens_when_too_much_is_slow() {
    let slow = |builder: CircuitBreakerBuilder| builder.calls_min(4).slow_calls(seconds(1), 0.5);
    check_opens_at_the_end(slow(CircuitBreaker::count_window(8)), "..s.s..s..s.ss");
    check_opens_at_the_end(slow(CircuitBreaker::time_window(seconds(60))), "..s.ss");
    // Fewer than half of the calls failed, and fewer than half were slow.
    check_opens_at_the_end(slow(CircuitBreaker::count_window(4)), "xs..xx");
}

#[test]
fn a_call_that_takes_exactly_the_limit_is_not_slow() {
    let clock = ManualClock::new();
    let breaker = CircuitBreaker::count_window(1).slow_calls(seconds(1), 1.0);
    let breaker = breaker.clock(&clock).build();
    let permit = breaker.acquire().unwrap();
    clock.advance(seconds(1));
    permit.success();
    assert_eq!((breaker.state(), breaker.snapshot().slow), (BreakerState::Closed, 0));
}

#[test]
fn a_time_window_forgets() {
    let clock = ManualClock::new();
    let breaker = CircuitBreaker::time_window(seconds(10)).failures(2).clock(&clock).build();
    for _ in 0..5 {
        breaker.acquire().unwrap().failure();
        assert_eq!(breaker.snapshot().failures, 1);
        clock.advance(seconds(10));
        assert_eq!(breaker.snapshot().failures, 0);
    }
    breaker.acquire().unwrap().failure();
    breaker.acquire().unwrap().failure();
    assert_eq!(breaker.state(), BreakerState::Open);
}

#[test]
fn ten_thousand_successes_do_not_hold_the_window_closed() {
    let calls = ".".repeat(10_000) + &"x".repeat(50);
    check_opens_at_the_end(CircuitBreaker::count_window(100), &calls);
}

#[test]
fn a_window_of_a_million_calls_is_exact() {
    let breaker = CircuitBreaker::count_window(1_000_000).failure_ratio(0.000_002).build();
    for _ in 0..1_500_000 {
        breaker.acquire().unwrap().success();
    }
    breaker.acquire().unwrap().failure();
    for _ in 0..999_999 {
        breaker.acquire().unwrap().success();
    }
    assert_eq!(breaker.snapshot().failures, 1);
    breaker.acquire().unwrap().failure();
    assert_eq!(breaker.snapshot().failures, 1, "the first has just left the window");
    breaker.acquire().unwrap().failure();
    assert_eq!(breaker.state(), BreakerState::Open);
}

#[test]
fn a_ratio_that_is_next_to_nothing_opens_at_the_first_failure() {
    let builder = CircuitBreaker::count_window(10).calls_min(5).failure_ratio(5e-324);
    check_opens_at_the_end(builder, ".....x");
}
