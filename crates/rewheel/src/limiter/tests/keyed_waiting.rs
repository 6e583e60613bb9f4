//! Checks that callers wait for the limit of their key, in order, and leave nothing behind.

use crate::clock::ManualClock;
use crate::duration::{millis, seconds};
use crate::error::GiveUpReason;
use crate::limiter::{KeyedRateLimiter, RateLimiter};
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

fn limits(clock: &ManualClock, keys_max: usize) -> KeyedRateLimiter<u32> {
    let limiter = RateLimiter::per_second(10).burst(2).queue_max(3).wait_max(seconds(1));
    limiter.clock(clock).keyed(keys_max)
}

type Call<'a> = Pin<Box<dyn Future<Output = Result<(), crate::Refused>> + 'a>>;

fn acquire<'a>(limits: &'a KeyedRateLimiter<u32>, key: &'a u32) -> Call<'a> {
    Box::pin(limits.acquire(key))
}

#[tokio::test]
async fn callers_wait_for_their_own_key_only() {
    let clock = ManualClock::new();
    let limits = limits(&clock, 10);
    for _ in 0..2 {
        limits.acquire(&1).await.unwrap();
    }
    let mut waits = acquire(&limits, &1);
    assert!(futures_util::poll!(&mut waits).is_pending());
    limits.acquire(&2).await.unwrap();
    assert!(limits.check(&1).is_err(), "who does not wait overtakes one who does");
    clock.drive(waits).await.unwrap();
    assert_eq!(clock.elapsed(), millis(100));
}

#[tokio::test]
async fn callers_of_a_key_are_admitted_in_order_at_the_rate() {
    let clock = ManualClock::new();
    let limits = limits(&clock, 10);
    limits.check_n(&1, 2).unwrap();
    let mut waiting: Vec<_> = (0..3).map(|_| acquire(&limits, &1)).collect();
    for call in &mut waiting {
        assert!(futures_util::poll!(call).is_pending());
    }
    let refused = limits.acquire(&1).await.unwrap_err();
    assert_eq!(refused.why, GiveUpReason::RateLimited, "the queue has three places");
    for rest in (0..3).rev() {
        clock.advance(millis(100));
        let first = waiting.remove(0);
        first.await.unwrap();
        for call in &mut waiting {
            assert!(futures_util::poll!(call).is_pending());
        }
        assert_eq!(waiting.len(), rest);
    }
}

#[tokio::test]
async fn a_dropped_caller_uses_no_tokens_and_leaves_its_position() {
    let clock = ManualClock::new();
    let limits = limits(&clock, 10);
    limits.check_n(&1, 2).unwrap();
    let (mut first, mut second) = (acquire(&limits, &1), acquire(&limits, &1));
    assert!(futures_util::poll!(&mut first).is_pending());
    assert!(futures_util::poll!(&mut second).is_pending());
    drop(first);
    clock.advance(millis(100));
    second.await.unwrap();
    assert!(limits.check(&1).is_err());
    clock.advance(millis(100));
    assert!(limits.check(&1).is_ok());
}

#[tokio::test]
async fn the_state_of_a_key_survives_its_queue() {
    for window in [false, true] {
        let clock = ManualClock::new();
        let limiter = if window {
            RateLimiter::sliding_window(3, seconds(3))
        } else {
            RateLimiter::per(1, seconds(1)).burst(3)
        };
        let limits: KeyedRateLimiter<u32> = limiter.clock(&clock).keyed(10);
        let mut admitted = Vec::new();
        for call in 0..12 {
            // With and without a queue, in turn.
            if call % 2 == 0 {
                clock.drive(limits.acquire(&7)).await.unwrap();
            } else {
                while limits.check(&7).is_err() {
                    clock.advance(millis(1));
                }
            }
            admitted.push(clock.elapsed());
        }
        let within = |from: Duration| {
            admitted.iter().filter(|at| **at >= from && **at < from + seconds(3)).count()
        };
        let most = if window { 3 } else { 6 };
        assert!(admitted.iter().all(|from| within(*from) <= most), "{admitted:?}");
        assert!(clock.elapsed() >= seconds(9), "{admitted:?}");
        assert!(clock.elapsed() <= seconds(10), "{admitted:?}");
    }
}

#[tokio::test]
async fn keys_that_waited_leave_their_place_when_their_limit_is_full_again() {
    let clock = ManualClock::new();
    let limits = limits(&clock, 4);
    for key in 0..100 {
        for _ in 0..4 {
            clock.drive(limits.acquire(&key)).await.unwrap();
        }
        assert!(limits.len() <= 4);
        clock.advance(seconds(1));
    }
}

#[tokio::test]
async fn a_wait_that_is_too_long_is_refused_at_once() {
    let clock = ManualClock::new();
    let limits: KeyedRateLimiter<u32> =
        RateLimiter::per(1, seconds(10)).wait_max(seconds(1)).clock(&clock).keyed(10);
    limits.acquire(&1).await.unwrap();
    let refused = limits.acquire(&1).await.unwrap_err();
    assert_eq!((refused.why, refused.retry_in), (GiveUpReason::RateLimited, Some(seconds(10))));
    let above = limits.acquire_n(&1, 2).await.unwrap_err();
    assert_eq!((above.why, clock.elapsed()), (GiveUpReason::AboveBurst, Duration::ZERO));
}
