//! Checks floors, ceilings, permits and what does not count.

use crate::adaptive::AdaptiveLimit;
use crate::clock::ManualClock;
use crate::duration::{millis, seconds};
use crate::error::GiveUpReason;
use crate::random::Random;
use std::io;
use std::time::Duration;

fn limit(floor: usize, ceiling: usize) -> (AdaptiveLimit, ManualClock) {
    let clock = ManualClock::new();
    let limit = AdaptiveLimit::between(floor, ceiling).clock(&clock).random(&Random::seeded(1));
    (limit.build(), clock)
}

/// Makes as many calls as the limit allows, again and again, which all take this long.
fn rounds(limit: &AdaptiveLimit, clock: &ManualClock, count: u32, time: Duration, failed: bool) {
    for _ in 0..count {
        let permits: Vec<_> = std::iter::from_fn(|| limit.try_acquire().ok()).collect();
        clock.advance(time);
        for permit in permits {
            if failed { permit.failure() } else { permit.success() }
        }
    }
}

#[test]
fn grows_to_the_ceiling_while_calls_take_no_longer() {
    let (limit, clock) = limit(2, 50);
    rounds(&limit, &clock, 500, millis(20), false);
    assert_eq!((limit.limit(), limit.in_use()), (50, 0));
    assert_eq!(limit.baseline(), Some(millis(20)));
}

#[test]
fn falls_to_the_floor_and_no_further_when_calls_fail() {
    let (limit, clock) = limit(3, 50);
    rounds(&limit, &clock, 500, millis(20), false);
    rounds(&limit, &clock, 500, millis(20), true);
    assert_eq!(limit.limit(), 3);
    rounds(&limit, &clock, 500, millis(20), false);
    assert_eq!(limit.limit(), 50, "it does not recover");
}

#[test]
fn a_dependency_that_has_become_slower_keeps_its_calls() {
    let (limit, clock) = limit(2, 50);
    rounds(&limit, &clock, 500, millis(20), false);
    // As slow with few calls as with many.
    rounds(&limit, &clock, 500, millis(100), false);
    assert_eq!(limit.limit(), 50);
}

#[test]
fn calls_that_do_not_use_the_limit_do_not_raise_it() {
    let (limit, clock) = limit(10, 50);
    for _ in 0..2_000 {
        let permits: Vec<_> = (0..4).map(|_| limit.try_acquire().unwrap()).collect();
        clock.advance(millis(10));
        permits.into_iter().for_each(crate::AdaptivePermit::success);
    }
    assert_eq!(limit.limit(), 10);
}

#[test]
fn a_dropped_permit_frees_its_slot_and_does_not_count() {
    let (limit, clock) = limit(4, 50);
    for _ in 0..200 {
        let permits: Vec<_> = std::iter::from_fn(|| limit.try_acquire().ok()).collect();
        assert_eq!(permits.len(), 4);
        clock.advance(seconds(1));
    }
    assert_eq!((limit.limit(), limit.in_use(), limit.baseline()), (4, 0, None));
}

#[test]
fn a_call_is_refused_above_the_limit_and_returns_its_own_error_below() {
    let (limit, _) = limit(1, 1);
    let permit = limit.try_acquire().unwrap();
    let refused = limit.call_blocking(|| Ok::<_, io::Error>(7)).unwrap_err();
    assert_eq!(refused.reason(), GiveUpReason::ConcurrencyLimited);
    drop(permit);
    let failed = limit.call_blocking(|| Err::<u32, _>(io::Error::from(io::ErrorKind::TimedOut)));
    assert_eq!(failed.unwrap_err().reason(), GiveUpReason::Stopped);
    assert_eq!(limit.call_blocking(|| Ok::<_, io::Error>(7)).unwrap(), 7);
}

#[tokio::test]
async fn a_caller_waits_for_a_slot_and_a_dropped_one_leaves_the_queue() {
    let clock = ManualClock::new();
    let limit = AdaptiveLimit::between(1, 1).queue_max(2).wait_max(seconds(1)).clock(&clock);
    let limit = limit.build();
    let permit = limit.acquire().await.unwrap();
    let (mut first, mut second) = (Box::pin(limit.acquire()), Box::pin(limit.acquire()));
    assert!(futures_util::poll!(&mut first).is_pending());
    assert!(futures_util::poll!(&mut second).is_pending());
    assert_eq!(limit.waiting(), 2);
    drop(first);
    permit.success();
    second.await.unwrap().success();
    let _permit = limit.try_acquire().unwrap();
    let refused = clock.drive(limit.acquire()).await.unwrap_err();
    assert_eq!(refused.why, GiveUpReason::ConcurrencyLimited);
    assert_eq!((limit.waiting(), clock.elapsed()), (0, seconds(1)));
}
