//! Checks that each key keeps to its limit, with any number of keys.

use crate::clock::ManualClock;
use crate::limiter::{KeyedRateLimiter, RateLimiter};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

fn limiter(clock: &ManualClock, keys_max: usize) -> KeyedRateLimiter<u32> {
    RateLimiter::per_second(1).burst(2).clock(clock).keyed(keys_max)
}

/// Calls until it is refused.
fn drain(limiter: &KeyedRateLimiter<u32>, key: u32) -> usize {
    (0..100).take_while(|_| limiter.check(&key).is_ok()).count()
}

#[test]
fn each_key_has_a_limit_of_its_own() {
    let clock = ManualClock::new();
    let limiter = limiter(&clock, 100);
    assert_eq!([1, 2, 1].map(|key| drain(&limiter, key)), [2, 2, 0]);
    clock.advance(Duration::from_secs(1));
    assert_eq!([2, 1].map(|key| drain(&limiter, key)), [1, 1]);
}

#[test]
fn a_flood_of_keys_shares_one_limit_and_evicts_no_key() {
    let clock = ManualClock::new();
    let limiter = limiter(&clock, 10);
    for key in 0..10 {
        assert_eq!(drain(&limiter, key), 2);
    }
    let admitted: usize = (100..1_100).map(|key| drain(&limiter, key)).sum();
    assert_eq!((admitted, limiter.len()), (2, 10));
    assert!((0..10).all(|key| drain(&limiter, key) == 0), "a key lost its debt");
}

#[test]
fn only_keys_without_a_debt_make_room() {
    let clock = ManualClock::new();
    let limiter = limiter(&clock, 3);
    assert_eq!([1, 2, 3].map(|key| drain(&limiter, key)), [2, 2, 2]);
    clock.advance(Duration::from_secs(2));
    assert!(limiter.check(&2).is_ok(), "a key that is in debt again");
    assert_eq!(drain(&limiter, 4), 2);
    assert_eq!((drain(&limiter, 2), limiter.len()), (1, 2));
}

#[test]
fn what_a_key_took_from_the_shared_limit_it_does_not_get_again() {
    let windowed = |clock: &ManualClock| {
        RateLimiter::sliding_window(2, Duration::from_secs(2)).clock(clock).keyed(1)
    };
    let makers: [fn(&ManualClock) -> KeyedRateLimiter<u32>; 2] =
        [|clock| limiter(clock, 1), windowed];
    for make in makers {
        let clock = ManualClock::new();
        let limiter = make(&clock);
        assert!(limiter.check(&1).is_ok());
        clock.advance(Duration::from_millis(500));
        assert_eq!(drain(&limiter, 2), 2, "the limit that is shared by those without room");
        // The first key's debt is gone, the other's is not.
        clock.advance(Duration::from_millis(600));
        assert_eq!(drain(&limiter, 2), 0, "room for it was a second allowance: {limiter:?}");
        clock.advance(Duration::from_secs(60));
        assert_eq!(drain(&limiter, 3), 2, "a debt that was paid is still remembered");
    }
}

#[test]
fn two_threads_with_one_hot_key_get_one_limit() {
    let clock = ManualClock::new();
    let limiter = RateLimiter::per_second(1_000).burst(50).clock(&clock).keyed::<u32>(1_000);
    let admitted = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for call in 0..20_000 {
                    if limiter.check(&7).is_ok() {
                        admitted.fetch_add(1, Ordering::Relaxed);
                    }
                    // Other keys come and go meanwhile.
                    let _ = limiter.check(&(100 + call % 500));
                    if call % 100 == 0 {
                        clock.advance(Duration::from_micros(500));
                    }
                }
            });
        }
    });
    let most = 50 + clock.elapsed().as_millis() as u64;
    let admitted = admitted.into_inner();
    assert!(admitted <= most, "{admitted} of {most}");
    assert!(admitted >= 50, "{admitted} is less than the burst");
}
