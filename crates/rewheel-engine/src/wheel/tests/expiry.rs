//! Tests of when timers fire.

use super::{boundaries, ms, wheel_at};
use crate::wheel::{Tick, Wheel};

/// Asserts that a timer fires at its tick, not before, however far the wheel turns at once.
#[track_caller]
fn check(now: u64, at: u64) {
    let mut wheel = wheel_at(now);
    wheel.insert(ms(at), at).unwrap();
    if at > now {
        assert_eq!(wheel.expire(ms(at - 1)).next(), None, "from {now}, {at} is early");
    }
    assert_eq!(wheel.expire(ms(at)).next(), Some(at), "from {now}, {at} is late");

    let mut wheel = wheel_at(now);
    wheel.insert(ms(at), at).unwrap();
    assert_eq!(wheel.expire(Tick::MAX).collect::<Vec<_>>(), [at]);
}

#[test]
fn a_timer_fires_at_its_tick_on_either_side_of_every_boundary() {
    for now in boundaries() {
        for delay in boundaries() {
            check(now, now.saturating_add(delay));
        }
        for at in boundaries().filter(|at| *at >= now) {
            check(now, at);
        }
    }
}

#[test]
fn what_is_due_comes_in_the_order_of_its_tick() {
    let mut wheel = Wheel::new(100);
    let mut ticks: Vec<u64> = boundaries().collect();
    for &at in ticks.iter().rev() {
        wheel.insert(ms(at), at).unwrap();
    }

    let fired: Vec<u64> = wheel.expire(Tick::MAX).collect();

    ticks.sort_unstable();
    assert_eq!(fired, ticks);
}

#[test]
fn who_sleeps_until_the_next_expiry_wakes_at_most_seven_times_for_nothing() {
    for now in boundaries() {
        for at in boundaries().filter(|at| *at >= now) {
            let mut wheel = wheel_at(now);
            wheel.insert(ms(at), ()).unwrap();
            let mut wakes = 0;
            while let Some(next) = wheel.next_expiry() {
                assert!(next <= ms(at), "from {now}, {at} would be overslept");
                wakes += 1;
                let _ = wheel.expire(next).count();
            }
            assert!(wakes <= 8, "{wakes} wakes from {now} to {at}");
        }
    }
}

#[test]
fn a_timer_for_now_or_for_the_past_fires_at_the_next_call() {
    let mut wheel = wheel_at(1_000);
    wheel.insert(ms(1_000), "now").unwrap();
    assert_eq!(wheel.next_expiry(), Some(ms(1_000)));
    assert_eq!(wheel.expire(ms(1_000)).collect::<Vec<_>>(), ["now"]);

    wheel.insert(ms(3), "long ago").unwrap();
    assert_eq!(wheel.next_expiry(), Some(ms(1_000)));
    assert_eq!(wheel.expire(ms(1_000)).collect::<Vec<_>>(), ["long ago"]);
}

#[test]
fn time_that_goes_back_is_ignored() {
    let mut wheel = wheel_at(1_000);
    wheel.insert(ms(1_000), "now").unwrap();
    wheel.insert(ms(1_001), "later").unwrap();

    assert_eq!(wheel.expire(ms(20)).collect::<Vec<_>>(), ["now"]);
    assert_eq!(wheel.next_expiry(), Some(ms(1_001)));
    assert_eq!(wheel.expire(ms(1_001)).collect::<Vec<_>>(), ["later"]);
}

#[test]
fn a_value_that_is_always_inserted_again_fires_once_per_call() {
    let mut wheel = wheel_at(50);
    wheel.insert(ms(50), "again").unwrap();
    for _ in 0..100 {
        let due: Vec<_> = wheel.expire(ms(50)).collect();
        assert_eq!(due, ["again"]);
        wheel.insert(ms(50), due[0]).unwrap();
    }
}

#[test]
fn what_was_not_asked_for_is_there_the_next_time() {
    let mut wheel = Wheel::new(100);
    for number in 0..100 {
        wheel.insert(ms(number % 7 * 100), number % 7).unwrap();
    }

    let mut fired = Vec::new();
    while !wheel.is_empty() {
        fired.extend(wheel.expire(ms(10_000)).take(9));
    }

    let mut expected: Vec<u64> = (0..100).map(|number| number % 7).collect();
    expected.sort_unstable();
    assert_eq!(fired, expected);
}

#[test]
fn a_tick_is_rounded_so_that_nothing_happens_early() {
    use std::time::Duration;
    let nanos = Duration::from_nanos;
    assert_eq!((Tick::floor(nanos(0)), Tick::ceil(nanos(0))), (ms(0), ms(0)));
    assert_eq!((Tick::floor(nanos(1)), Tick::ceil(nanos(1))), (ms(0), ms(1)));
    assert_eq!((Tick::floor(nanos(5_000_000)), Tick::ceil(nanos(5_000_000))), (ms(5), ms(5)));
    assert_eq!((Tick::floor(nanos(5_999_999)), Tick::ceil(nanos(5_000_001))), (ms(5), ms(6)));
    assert_eq!((Tick::floor(Duration::MAX), Tick::ceil(Duration::MAX)), (Tick::MAX, Tick::MAX));
}
