//! Tests of the timing wheel.

mod model;
mod expiry;
mod handles;
mod room;

use super::{Tick, Wheel};

fn ms(millis: u64) -> Tick {
    Tick::from_millis(millis)
}

/// Values around each power of 256, where the slots of a level end, and around powers of 64 in
/// between.
fn boundaries() -> impl Iterator<Item = u64> {
    let powers = (0..64).step_by(8).chain((6..64).step_by(6)).map(|bits| 1_u64 << bits);
    powers.flat_map(|power| [power - 1, power, power + 1]).chain([u64::MAX - 1, u64::MAX])
}

/// Creates a wheel in which everything up to `now` has expired.
fn wheel_at<T>(now: u64) -> Wheel<T> {
    let mut wheel = Wheel::new(100);
    assert_eq!(wheel.expire(ms(now)).count(), 0);
    wheel
}
