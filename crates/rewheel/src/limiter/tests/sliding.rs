//! Checks that the sliding window keeps to its limit in every period.

use crate::clock::{ManualClock, Moment};
use crate::error::GiveUpReason;
use crate::limiter::RateLimiter;
use crate::limiter::sliding::{Limit, Sliding};
use proptest::prelude::*;
use std::time::Duration;

/// Asserts that no window, both ends included, contains more than the limit.
fn assert_bounded_by_limit(history: &[(u64, u64)], limit: u64, window: u64) {
    for &(end, _) in history {
        let start = end.saturating_sub(window);
        let inside = history.iter().filter(|(at, _)| (start..=end).contains(at));
        let weight: u64 = inside.map(|(_, weight)| weight).sum();
        assert!(weight <= limit, "{weight} of {limit} from {start} to {end}");
    }
}

/// Calls as (clock step in thousandths of the window, weight in thousandths of the limit, lateness
/// of the reading in thousandths of the window).
fn calls() -> impl Strategy<Value = Vec<(u64, u64, u64)>> {
    let step = prop_oneof![3 => Just(0), 5 => 0_u64..100, 2 => 900_u64..1_100, 1 => 0_u64..9_000];
    let weight = prop_oneof![4 => Just(0), 2 => 0_u64..=1_000];
    let late = prop_oneof![4 => Just(0), 1 => 0_u64..3_000];
    proptest::collection::vec((step, weight, late), 1..200)
}

proptest! {
    #[test]
    fn no_window_holds_more_than_the_limit(
        calls in calls(),
        most in 1_u64..200,
        window in prop_oneof![1_000_u64..1_100, 1_000_u64..100_000_000_000],
        start in 0_u64..1_000_000_000_000_000,
    ) {
        let limit = Limit::new(most, window);
        let mut sliding = Sliding::new();
        let (mut latest, mut history) = (start, Vec::new());
        // The window uses the latest reading of any caller.
        let mut seen = 0;
        for (step, weight, late) in calls {
            latest += window * step / 1_000 + step % 2;
            let now = latest.saturating_sub(window * late / 1_000);
            seen = now.max(seen);
            let n = (most * weight / 1_000).max(1);
            if sliding.take(limit, n, Moment::from_nanos(now)).is_ok() {
                history.push((seen, n));
            }
        }
        assert_bounded_by_limit(&history, most, window);
        let idle = latest + 33 * window.div_ceil(32);
        prop_assert!(sliding.take(limit, most, Moment::from_nanos(idle)).is_ok(), "it never empties");
    }

    #[test]
    fn a_refusal_names_the_first_moment_at_which_it_would_admit(
        calls in calls(),
        most in 1_u64..50,
        window in 1_000_u64..100_000_000_000,
    ) {
        let limit = Limit::new(most, window);
        let mut sliding = Sliding::new();
        let mut now = 0;
        for (step, weight, _) in calls {
            now += window * step / 1_000;
            let n = (most * weight / 1_000).max(1);
            let take = |sliding: &mut Sliding, now| sliding.take(limit, n, Moment::from_nanos(now));
            if let Err(wait) = take(&mut sliding, now) {
                let wait = wait.as_nanos() as u64;
                prop_assert!(wait <= 33 * window.div_ceil(32), "longer than a window: {}", wait);
                prop_assert!(take(&mut sliding.clone(), now + wait).is_ok());
                prop_assert!(take(&mut sliding.clone(), now + wait - 1).is_err());
            }
        }
    }
}

/// A fixed window would admit twice its limit around the boundary of two windows.
#[test]
fn two_bursts_around_an_edge_are_one_too_many() {
    let clock = ManualClock::new();
    let limiter = RateLimiter::sliding_window(10, Duration::from_secs(1)).clock(&clock).build();
    clock.advance(Duration::from_millis(990));
    assert!(limiter.check_n(10).is_ok());
    clock.advance(Duration::from_millis(20));
    let refused = limiter.check().unwrap_err();
    assert_eq!(refused.why, GiveUpReason::RateLimited);
    clock.advance(refused.retry_in.unwrap());
    assert!(clock.elapsed() <= Duration::from_millis(990 + 1_000 + 1_000 / 32 + 1));
    assert!(limiter.check_n(10).is_ok());
}

#[test]
fn more_than_the_limit_at_once_is_refused_for_good() {
    let limiter = RateLimiter::sliding_window(3, Duration::from_secs(1)).build();
    assert_eq!(limiter.check_n(4).unwrap_err().why, GiveUpReason::AboveBurst);
    assert!(limiter.check_n(3).is_ok());
    let keyed = RateLimiter::sliding_window(3, Duration::from_secs(1)).keyed::<u8>(1);
    assert_eq!(keyed.check_n(&1, 4).unwrap_err().why, GiveUpReason::AboveBurst);
    assert!(keyed.check_n(&1, 3).is_ok());
}
