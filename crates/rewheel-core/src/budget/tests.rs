//! Tests of the shared retry budget: single cases, then random sequences.

use super::{Floor, RetryAsk, RetryPool};
use crate::name::KindName;
use crate::timestamp::Timestamp;
use proptest::prelude::*;
use std::time::Duration;

const RETRY: u64 = RetryPool::RETRY;

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(1_700_000_000_000 + millis)
}

fn floor(retries: u32, period_ms: u64) -> Floor {
    Floor { retries, period: Duration::from_millis(period_ms) }
}

fn ask(earned: u64, wanted: u32, floor: Floor) -> RetryAsk {
    RetryAsk { kind: KindName::parse("charge").unwrap(), earned, wanted, floor }
}

/// Checks what is granted and what remains, from a balance and some time later.
#[track_caller]
fn check(balance: u64, later_ms: i64, asked: &RetryAsk, expected: (u32, u64)) {
    let pool = RetryPool { balance, counted: at(0) };
    let (after, granted) = pool.grant(asked, at(later_ms));
    assert_eq!((granted, after.balance), expected);
}

#[test]
fn grants_what_is_wanted_and_there() {
    let none = floor(1, 86_400_000_000);
    check(0, 0, &ask(0, 5, none), (0, 0));
    check(0, 0, &ask(RETRY - 1, 5, none), (0, RETRY - 1));
    check(1, 0, &ask(RETRY - 1, 5, none), (1, 0));
    check(7 * RETRY, 0, &ask(RETRY / 2, 5, none), (5, 2 * RETRY + RETRY / 2));
    check(7 * RETRY, 0, &ask(0, 0, none), (0, 7 * RETRY));
    check(7 * RETRY, 0, &ask(0, u32::MAX, none), (7, 0));
}

#[test]
fn the_floor_is_earned_by_time_alone() {
    check(0, 1_000, &ask(0, 100, floor(10, 1_000)), (10, 0));
    check(0, 33, &ask(0, 100, floor(10, 1_000)), (0, RETRY / 100 * 33));
    check(0, 9_000, &ask(0, 100, floor(1, 60_000)), (0, 150_000));
    // After any pause, at most the floor of ten seconds is available at once.
    check(0, 86_400_000, &ask(0, 1_000, floor(10, 1_000)), (100, 0));
}

#[test]
fn savings_melt_down_to_what_is_always_kept() {
    let none = floor(1, 86_400_000_000);
    check(110 * RETRY, 1_000, &ask(0, 0, none), (0, 100 * RETRY));
    check(110 * RETRY, 10_000, &ask(0, 0, none), (0, 10 * RETRY));
    check(10 * RETRY, 86_400_000, &ask(0, 0, none), (0, 10 * RETRY));
    // New earnings do not decay yet.
    check(0, 10_000, &ask(500 * RETRY, 300, none), (300, 200 * RETRY));
}

#[test]
fn a_fresh_pool_has_the_savings_of_a_quiet_time() {
    let (pool, granted) = RetryPool::fresh(at(0)).grant(&ask(0, 1_000, floor(10, 1_000)), at(0));
    assert_eq!((granted, pool), (110, RetryPool { balance: 0, counted: at(0) }));
}

#[test]
fn extremes_are_bounded() {
    let most = ask(u64::MAX, u32::MAX, floor(u32::MAX, 0));
    let pool = RetryPool { balance: u64::MAX, counted: Timestamp::from_millis(i64::MIN) };
    let (after, granted) = pool.grant(&most, Timestamp::from_millis(i64::MAX));
    assert_eq!((granted, after.balance), (1_000_000, 0));
    let ages = Floor { retries: 1, period: Duration::MAX };
    check(0, 10_000, &ask(0, 1, ages), (0, 0));
}

/// A clock that goes back a little, or that another holder read earlier, pays no period twice.
#[test]
fn a_moment_is_paid_for_once() {
    let asked = ask(0, 1_000, floor(10, 1_000));
    let pool = RetryPool { balance: 0, counted: at(0) };
    let (pool, first) = pool.grant(&asked, at(2_000));
    let (pool, back) = pool.grant(&asked, at(1_000));
    let (pool, again) = pool.grant(&asked, at(2_000));
    assert_eq!((first, back, again), (20, 0, 0));
    // After a clock went back by an hour, the floor is paid from there on; it does not wait for the
    // clock to catch up.
    let (pool, hour) = pool.grant(&asked, at(-3_600_000));
    let (_, later) = pool.grant(&asked, at(-3_599_000));
    assert_eq!((hour, later), (0, 10));
}

proptest! {
    /// For any sequence of requests: everything granted was earned, is part of the floor, or was in
    /// the initial balance.
    #[test]
    fn no_more_is_granted_than_there_was(
        asks in prop::collection::vec((0_u64..40 * RETRY, 0_u32..100, -200_i64..4_000), 1..200),
        retries in 1_u32..50,
        period_ms in 100_u64..60_000,
    ) {
        let floor = floor(retries, period_ms);
        let mut pool = RetryPool::fresh(at(0));
        let (mut now, mut latest, mut earned_sum, mut granted_sum) = (0, 0, 0, 0);
        for (earned, wanted, step) in asks {
            now += step;
            latest = latest.max(now);
            let (after, granted) = pool.grant(&ask(earned, wanted, floor), at(now));
            prop_assert!(granted <= wanted);
            pool = after;
            earned_sum += earned;
            granted_sum += u64::from(granted) * RETRY;
            let time = u64::try_from(latest).unwrap() + 10_000;
            let of_floor = time * u64::from(retries) * RETRY / period_ms;
            prop_assert!(granted_sum + pool.balance <= RetryPool::SAVED + earned_sum + of_floor);
        }
    }
}
