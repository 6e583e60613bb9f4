//! Tests of the capacity of a wheel.

use super::{boundaries, ms};
use crate::wheel::{Tick, Wheel};

#[test]
fn a_full_wheel_gives_the_value_back_until_a_timer_leaves() {
    let mut wheel = Wheel::new(2);
    let first = wheel.insert(ms(1), "first".to_owned()).unwrap();
    wheel.insert(ms(2), "second".to_owned()).unwrap();

    let full = wheel.insert(ms(3), "third".to_owned()).unwrap_err();
    assert_eq!(full.to_string(), "wheel is full: 2 timers wait");
    let third = full.into_value();
    assert_eq!(third, "third");

    wheel.cancel(first).unwrap();
    wheel.insert(ms(3), third).unwrap();
    wheel.insert(ms(4), "fourth".to_owned()).unwrap_err();
    assert_eq!(wheel.expire(ms(2)).count(), 1);
    wheel.insert(ms(4), "fourth".to_owned()).unwrap();
}

#[test]
fn a_wheel_for_no_timers_holds_none() {
    let mut wheel = Wheel::new(0);
    wheel.insert(ms(1), ()).unwrap_err();
    assert_eq!((wheel.len(), wheel.next_expiry()), (0, None));
    assert_eq!(wheel.expire(Tick::MAX).count(), 0);
}

#[test]
#[should_panic(expected = "at most 2^28 timers")]
fn a_wheel_for_more_timers_than_indexes_is_refused() {
    let _ = Wheel::<()>::new(Wheel::<()>::TIMERS_MAX + 1);
}

/// Asserts that a wheel does not allocate, however often it is filled with timers at these ticks.
#[track_caller]
fn check(timers_max: u32, ticks: &[u64]) {
    let mut wheel = Wheel::new(timers_max);
    let allocated = wheel.allocated();
    for _ in 0..3 {
        let ticks = ticks.iter().cycle().take(timers_max as usize);
        let timers: Vec<_> = ticks.map(|&at| wheel.insert(ms(at), ()).unwrap()).collect();
        // A third is cancelled, the rest expires. An empty wheel may be turned back.
        for &timer in timers.iter().step_by(3) {
            wheel.cancel(timer).unwrap();
        }
        assert_eq!(wheel.expire(Tick::MAX).count(), timers.len() - timers.len().div_ceil(3));
        wheel.now = Tick::ZERO;
    }
    assert_eq!(wheel.allocated(), allocated);
}

#[test]
fn a_wheel_never_allocates_after_it_was_made() {
    let one_per_slot: Vec<u64> =
        (0..8).flat_map(|level| (1..256).map(move |byte| byte << (level * 8))).collect();
    let slots = one_per_slot.len() as u32;
    for timers_max in [1, 15, 16, 17, 100, slots - 1, slots, slots + 1, 17 * slots] {
        check(timers_max, &[77]);
        check(timers_max, &boundaries().collect::<Vec<_>>());
        check(timers_max, &one_per_slot);
    }
}

#[test]
fn a_million_timers_fire_in_order_but_for_the_cancelled_half() {
    let mut wheel = Wheel::new(1_000_000);
    // Visits each tick of a minute in steps that share no divisor with it.
    let at = |n: u64| n * 7_919 % 60_000;
    let timers: Vec<_> = (0..1_000_000).map(|n| wheel.insert(ms(at(n)), n).unwrap()).collect();
    for (n, &timer) in timers.iter().enumerate().skip(1).step_by(2) {
        assert_eq!(wheel.cancel(timer), Some(n as u64));
    }

    let (mut fired, mut sum) = (0, 0);
    for now in 0..60_000 {
        for n in wheel.expire(ms(now)) {
            assert_eq!(at(n), now);
            fired += 1;
            sum += n;
        }
    }

    assert_eq!((fired, sum), (500_000, (0..1_000_000).step_by(2).sum::<u64>()));
    assert!(wheel.is_empty());
}
