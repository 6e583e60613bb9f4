//! Tests of which timers a handle cancels.

use super::{ms, wheel_at};
use crate::wheel::{Tick, Wheel};

#[test]
fn a_cancelled_timer_does_not_fire() {
    let mut wheel = wheel_at(7);
    let timers: Vec<_> = (0..100).map(|n| wheel.insert(ms(n * n), n).unwrap()).collect();

    for (n, &timer) in timers.iter().enumerate().filter(|(n, _)| n % 3 != 0) {
        assert_eq!(wheel.cancel(timer), Some(n as u64));
    }

    let mut fired: Vec<u64> = wheel.expire(Tick::MAX).collect();
    fired.sort_unstable();
    assert_eq!(fired, (0..100).filter(|n| n % 3 == 0).collect::<Vec<_>>());
}

#[test]
fn a_handle_whose_timer_has_left_cancels_nothing() {
    let mut wheel = Wheel::new(1);
    let cancelled = wheel.insert(ms(5), "cancelled").unwrap();
    assert_eq!(wheel.cancel(cancelled), Some("cancelled"));
    assert_eq!(wheel.cancel(cancelled), None);

    // This wheel has one entry: the next timers reuse the entry of the first one.
    let fired = wheel.insert(ms(5), "fired").unwrap();
    assert_eq!(wheel.cancel(cancelled), None);
    assert_eq!(wheel.expire(ms(5)).count(), 1);
    assert_eq!(wheel.cancel(fired), None);

    let waiting = wheel.insert(ms(9), "waiting").unwrap();
    assert_eq!((wheel.cancel(cancelled), wheel.cancel(fired)), (None, None));
    assert_eq!(wheel.cancel(waiting), Some("waiting"));
}

#[test]
fn a_handle_that_a_smaller_wheel_never_gave_cancels_nothing() {
    let mut large = Wheel::new(2);
    large.insert(ms(1), ()).unwrap();
    let second = large.insert(ms(1), ()).unwrap();
    let mut small = Wheel::new(1);
    small.insert(ms(1), ()).unwrap();

    assert_eq!(small.cancel(second), None);
}
