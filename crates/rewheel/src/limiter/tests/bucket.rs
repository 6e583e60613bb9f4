//! Compares the token bucket with a reference that counts tokens.

use super::assert_bounded_by_rate;
use crate::clock::{Clock, ManualClock, Moment};
use crate::error::GiveUpReason;
use crate::limiter::RateLimiter;
use crate::limiter::gcra::{Bucket, Gcra};
use crate::{millis, seconds};
use proptest::prelude::*;
use std::time::Duration;

/// Tokens as integers in units of which one interval adds one, so that nothing is rounded.
struct Reference {
    bucket: Bucket,
    parts: u128,
    now: u64,
}

impl Reference {
    fn new(bucket: Bucket) -> Reference {
        let parts = u128::from(bucket.burst()) * u128::from(bucket.interval());
        Reference { bucket, parts, now: 0 }
    }

    fn take(&mut self, n: u64, now: u64) -> bool {
        let full = u128::from(self.bucket.burst()) * u128::from(self.bucket.interval());
        self.parts = (self.parts + u128::from(now - self.now)).min(full);
        self.now = now;
        let price = u128::from(n) * u128::from(self.bucket.interval());
        let admits = self.parts >= price;
        if admits {
            self.parts -= price;
        }
        admits
    }
}

fn bucket() -> impl Strategy<Value = Bucket> {
    let interval = prop_oneof![Just(1), 1_u64..20, 1_u64..1_000_000_000, Just(86_400_000_000_000)];
    let burst = prop_oneof![Just(1), 1_u64..10, 1_u64..10_000];
    let fills_within_a_year =
        |bucket: &Bucket| bucket.interval() * bucket.burst() < 365 * 86_400 * 1_000_000_000;
    (interval, burst)
        .prop_map(|(interval, burst)| Bucket::new(interval, burst))
        .prop_filter("hundreds of fills must fit a clock", fills_within_a_year)
}

/// Calls as (clock step, weight), both relative to the bucket: in thousandths of its fill time and
/// of its burst.
fn calls() -> impl Strategy<Value = Vec<(u64, u64)>> {
    let step = prop_oneof![3 => Just(0), 5 => 0_u64..200, 1 => 0_u64..2_000];
    let weight = prop_oneof![4 => Just(0), 2 => 0_u64..1_000, 1 => 1_000_u64..1_100];
    proptest::collection::vec((step, weight), 1..120)
}

fn scaled(bucket: Bucket, step: u64, weight: u64) -> (u64, u64) {
    let fill = bucket.interval() * bucket.burst();
    let jitter = step.wrapping_mul(7) % 3;
    let step = (u128::from(fill) * u128::from(step) / 1_000) as u64;
    (step + jitter, (bucket.burst() * weight / 1_000).max(1))
}

proptest! {
    #[test]
    fn admits_exactly_what_a_counted_bucket_admits(bucket in bucket(), calls in calls()) {
        let gcra = Gcra::new(bucket.interval(), bucket.burst());
        let mut reference = Reference::new(bucket);
        let (mut now, mut history) = (0, Vec::new());
        for (step, weight) in calls {
            let (step, n) = scaled(bucket, step, weight);
            now += step;
            let admitted = gcra.take(n, Moment::from_nanos(now)).is_ok();
            prop_assert_eq!(admitted, reference.take(n, now), "{} at {}", n, now);
            if admitted {
                history.push((now, n));
            }
        }
        assert_bounded_by_rate(&history, bucket);
    }

    /// Checked by the readings of the callers, and by the latest reading of any caller.
    #[test]
    fn late_readings_never_admit_too_much(
        bucket in bucket(),
        calls in calls(),
        lateness in proptest::collection::vec(0_u64..3_000, 120),
    ) {
        let gcra = Gcra::new(bucket.interval(), bucket.burst());
        let (mut latest, mut seen) = (0_u64, 0);
        let (mut by_reading, mut by_latest) = (Vec::new(), Vec::new());
        for ((step, weight), late) in calls.into_iter().zip(lateness) {
            let (step, n) = scaled(bucket, step, weight);
            let late = (u128::from(bucket.interval() * bucket.burst()) * u128::from(late) / 1_000) as u64;
            latest += step;
            let now = latest.saturating_sub(late);
            if gcra.take(n, Moment::from_nanos(now)).is_ok() {
                seen = now.max(seen);
                by_reading.push((now, n));
                by_latest.push((seen, n));
            }
        }
        assert_bounded_by_rate(&by_reading, bucket);
        assert_bounded_by_rate(&by_latest, bucket);
    }

    /// The history uses the true time; the limiter sees only a coarse reading.
    #[test]
    fn a_coarse_clock_never_admits_too_much_and_never_starves(
        bucket in bucket(),
        calls in calls(),
        resolution in 1_u64..10_000_000,
    ) {
        let gcra = Gcra::new(bucket.interval(), bucket.burst()).with_resolution(resolution);
        let coarse = |now: u64| Moment::from_nanos(now - now % resolution);
        let (mut now, mut history) = (resolution / 2, Vec::new());
        for (step, weight) in calls {
            let (step, n) = scaled(bucket, step, weight);
            now += step;
            if gcra.take(n, coarse(now)).is_ok() {
                history.push((now, n));
            }
        }
        assert_bounded_by_rate(&history, bucket);
        let refilled = now + bucket.interval() * bucket.burst() + 2 * resolution;
        prop_assert_eq!(gcra.take(bucket.burst(), coarse(refilled)), Ok(()), "it never fills again");
    }

    #[test]
    fn a_refusal_names_the_first_moment_at_which_it_would_admit(
        bucket in bucket(),
        calls in calls(),
        start in 0_u64..1_000_000_000_000_000,
    ) {
        let (mut now, mut full_at) = (start, 0);
        for (step, weight) in calls {
            let (step, n) = scaled(bucket, step, weight);
            now += step;
            let take = |now| bucket.take(full_at, n, Moment::from_nanos(now), now);
            match take(now) {
                Ok(next) => full_at = next,
                Err(_) if n > bucket.burst() => {
                    prop_assert!(take(now + 10 * bucket.interval() * n).is_err(), "above the burst");
                }
                Err(wait) => {
                    prop_assert!(take(now + wait).is_ok(), "{} after {}", n, wait);
                    prop_assert!(take(now + wait - 1).is_err(), "{} before {}", n, wait);
                }
            }
        }
    }
}

/// The limiter guarantees the requested rate, not the rounded interval.
#[test]
fn rates_that_divide_no_second_are_not_exceeded() {
    for (calls, period) in [(3, 10), (7, 1_000), (999, 1_000), (300_000_007, 1_000_000_000)] {
        let clock = ManualClock::new();
        let limiter = RateLimiter::per(calls, Duration::from_nanos(period)).burst(1);
        let limiter = limiter.clock(&clock).build();
        let mut admitted = 0_u64;
        for _ in 0..5_000 {
            admitted += u64::from(limiter.check().is_ok());
            let most = 1 + clock.elapsed().as_nanos() as u64 * u64::from(calls) / period;
            assert!(admitted <= most, "{admitted} of {most} at {calls} per {period} ns");
            clock.advance(Duration::from_nanos(1));
        }
        let least = 4_999 / period.div_ceil(u64::from(calls));
        assert!(admitted >= least, "only {admitted} of {least} at {calls} per {period} ns");
    }
}

#[test]
fn the_slowest_and_the_fastest_rates_are_exact() {
    let month = Duration::from_secs(30 * 86_400);
    let clock = ManualClock::new();
    let slow = RateLimiter::per(1, month).clock(&clock).build();
    assert!(slow.check().is_ok());
    assert_eq!(slow.check().unwrap_err().retry_in, Some(month));
    clock.advance(month - Duration::from_nanos(1));
    assert_eq!(slow.check().unwrap_err().retry_in, Some(Duration::from_nanos(1)));
    clock.advance(Duration::from_nanos(1));
    assert!(slow.check().is_ok());

    let fast = RateLimiter::per_second(1_000_000_000).burst(5).clock(&clock).build();
    assert!(fast.check_n(5).is_ok());
    assert_eq!(fast.check_n(3).unwrap_err().retry_in, Some(Duration::from_nanos(3)));
    clock.advance(Duration::from_nanos(3));
    assert!(fast.check_n(3).is_ok());
    assert!(fast.check().is_err());
}

#[test]
fn asks_for_all_of_a_weight_or_none_of_it() {
    let clock = ManualClock::new();
    let limiter = RateLimiter::per_second(10).burst(10).clock(&clock).build();
    assert!(limiter.check_n(7).is_ok());
    assert_eq!(limiter.check_n(4).unwrap_err().retry_in, Some(Duration::from_millis(100)));
    assert!(limiter.check_n(3).is_ok(), "a refused weight took tokens");
    for n in [11, 1_000, u32::MAX] {
        let refused = limiter.check_n(n).unwrap_err();
        assert_eq!((refused.why, refused.retry_in), (GiveUpReason::AboveBurst, None));
    }
    clock.advance(Duration::from_secs(1));
    assert!(limiter.check_n(10).is_ok(), "what is above the burst took tokens");
}

#[test]
fn a_full_bucket_has_its_whole_burst_by_the_coarse_clock() {
    for burst in [1, 2, 1_000] {
        let limiter = RateLimiter::per_second(1_000).burst(burst).clock(Clock::coarse());
        assert_eq!(limiter.clone().build().check_n(burst), Ok(()), "burst {burst}");
        assert_eq!(limiter.keyed::<u8>(1).check_n(&1, burst), Ok(()), "burst {burst} of a key");
    }
}

#[test]
fn available_is_what_a_check_would_admit() {
    let clock = ManualClock::new();
    for builder in
        [RateLimiter::per_second(10).burst(4), RateLimiter::sliding_window(4, seconds(1))]
    {
        let limiter = builder.clock(&clock).build();
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..1_000 {
            clock.advance(millis(random.u64(0..400)));
            let available = limiter.available();
            assert!(available <= 4);
            assert!(limiter.check_n(available + 1).is_err(), "more than {available}");
            let taken = random.u32(0..=available);
            assert!(taken == 0 || limiter.check_n(taken).is_ok(), "less than {available}");
            assert_eq!(limiter.available(), available - taken);
        }
    }
}

#[test]
fn nothing_is_available_to_those_who_do_not_wait_while_others_do() {
    let clock = ManualClock::new();
    let limiter = RateLimiter::per_second(1).burst(3).clock(&clock).build();
    limiter.check_n(2).unwrap();
    let mut waiting = Box::pin(limiter.acquire_n(3));
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(waiting.as_mut().poll(&mut cx).is_pending());
    assert_eq!(limiter.available(), 0);
    drop(waiting);
    assert_eq!(limiter.available(), 1);
}
