//! Tests of breakers per key.

use crate::breaker::{BreakerState, CircuitBreaker, KeyedCircuitBreaker};

fn open(breakers: &KeyedCircuitBreaker<u32>, key: u32) {
    breakers.get(&key).acquire().unwrap().failure();
}

fn count_open(breakers: &KeyedCircuitBreaker<u32>, keys: std::ops::Range<u32>) -> usize {
    keys.filter(|key| breakers.get(key).state() == BreakerState::Open).count()
}

#[test]
fn one_key_that_is_down_does_not_stop_the_others() {
    let breakers = CircuitBreaker::consecutive(1).keyed(10);
    assert!(breakers.is_empty());
    open(&breakers, 1);
    assert_eq!([1, 2, 1].map(|key| breakers.get(&key).acquire().is_ok()), [false, true, false]);
    assert_eq!(breakers.len(), 2);
}

#[test]
fn a_flood_of_healthy_keys_makes_no_open_breaker_forgotten() {
    let breakers = CircuitBreaker::consecutive(1).keyed(64);
    for key in 0..60 {
        open(&breakers, key);
    }
    for key in 1_000..3_000 {
        breakers.get(&key).acquire().unwrap().success();
        assert!(breakers.len() <= 64);
    }
    assert_eq!(count_open(&breakers, 0..60), 60);
}

/// The first healthy key replaces the oldest open one; from then on that key, which has nothing to
/// remember, is replaced by the next.
#[test]
fn a_full_house_of_open_breakers_loses_only_the_oldest() {
    let breakers = CircuitBreaker::consecutive(1).keyed(64);
    for key in 0..64 {
        open(&breakers, key);
    }
    for key in 1_000..1_020 {
        breakers.get(&key).acquire().unwrap().success();
    }
    assert_eq!(count_open(&breakers, 1..64), 63);
    assert_eq!(breakers.get(&0).state(), BreakerState::Closed);
}

#[test]
fn among_those_with_something_to_remember_the_oldest_goes() {
    let breakers = CircuitBreaker::consecutive(2).keyed(2);
    for key in [1, 2, 3] {
        open(&breakers, key);
    }
    let failures = [2, 3].map(|key| breakers.get(&key).snapshot().failures);
    assert_eq!((failures, breakers.len()), ([1, 1], 2));
    assert_eq!(breakers.get(&1).snapshot().failures, 0);
}
