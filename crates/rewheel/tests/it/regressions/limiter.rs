//! Limiters that admit too many calls, forget waiters, or wait forever.

use super::{poll, race};
use rewheel::{GiveUpReason, ManualClock, RateLimiter, Refused, millis, seconds};
use std::future::Future;
use std::panic::catch_unwind;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

type Waiter<'a> = Pin<Box<dyn Future<Output = Result<(), Refused>> + 'a>>;

/// Callers that wait in the queue.
fn line(limiter: &RateLimiter, length: usize) -> Vec<Waiter<'_>> {
    let join = |_| {
        let mut waiter: Waiter<'_> = Box::pin(limiter.acquire());
        assert!(poll(waiter.as_mut()).is_pending());
        waiter
    };
    (0..length).map(join).collect()
}

/// throttle-net: the time was read once before a compare-and-swap loop, which admitted more than 25
/// times the rate.
#[test]
fn stale_clock_inside_contention_never_over_admits() {
    const STEPS: u64 = 20_000;
    let clock = ManualClock::new();
    for limiter in [
        RateLimiter::per_second(1_000).burst(5).clock(&clock).build(),
        RateLimiter::sliding_window(1_000, seconds(1)).clock(&clock).build(),
    ] {
        let (began, is_over) = (clock.elapsed(), AtomicBool::new(false));
        let admitted: usize = std::thread::scope(|scope| {
            let hammer = || {
                let mut admitted = 0;
                while !is_over.load(Ordering::Relaxed) {
                    admitted += usize::from(limiter.check().is_ok());
                }
                admitted
            };
            let threads: Vec<_> = (0..3).map(|_| scope.spawn(hammer)).collect();
            (0..STEPS).for_each(|_| clock.advance(Duration::from_micros(100)));
            is_over.store(true, Ordering::Relaxed);
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        let passed = (clock.elapsed() - began).as_secs();
        // One token per millisecond plus the burst, or one full window more.
        let most = usize::try_from(passed * 1_000 + 1_000).unwrap();
        assert!(admitted <= most, "{admitted} of {most}");
    }
}

/// governor: more than 1,000 million per second became a period of zero, which is no limit.
#[test]
fn limiter_above_one_per_nanosecond_does_not_compile_or_panics_clearly() {
    for build in
        [(|| RateLimiter::per_second(1_000_000_001)) as fn() -> rewheel::RateLimiterBuilder, || {
            RateLimiter::per(2, Duration::from_nanos(1))
        }]
    {
        let panic = catch_unwind(build).unwrap_err();
        let message = panic.downcast_ref::<String>().unwrap();
        assert!(message.contains("at most one call per nanosecond"), "{message}");
    }
    let clock = ManualClock::new();
    let fastest = RateLimiter::per_second(1_000_000_000).burst(1).clock(&clock).build();
    assert!(fastest.check().is_ok() && fastest.check().is_err());
    clock.advance(Duration::from_nanos(1));
    assert!(fastest.check().is_ok() && fastest.check().is_err());
}

/// governor: a request that can never be admitted looked like one that has to wait.
#[test]
fn n_above_burst_is_an_error_not_a_wait() {
    let clock = ManualClock::new();
    for limiter in [
        RateLimiter::per_second(10).burst(3).clock(&clock).build(),
        RateLimiter::sliding_window(3, seconds(1)).clock(&clock).build(),
    ] {
        assert_eq!(limiter.check_n(4).unwrap_err().why, GiveUpReason::AboveBurst);
        let mut waiting = Box::pin(limiter.acquire_n(u32::MAX));
        let Poll::Ready(Err(refused)) = poll(waiting.as_mut()) else { panic!("it waits") };
        assert_eq!((refused.why, refused.retry_in), (GiveUpReason::AboveBurst, None));
        assert!(limiter.check_n(3).is_ok(), "a refusal costs nothing");
    }
    let keyed = RateLimiter::per_second(10).burst(3).clock(&clock).keyed::<u32>(10);
    assert_eq!(keyed.check_n(&1, 4).unwrap_err().why, GiveUpReason::AboveBurst);
}

/// governor: all waiters are woken at once, and the fastest goes first.
#[test]
fn waiters_are_served_in_order() {
    let clock = ManualClock::new();
    let limiter = RateLimiter::per_second(1).clock(&clock).build();
    limiter.check().unwrap();
    let mut waiters = line(&limiter, 20);
    for next in 0..20 {
        clock.advance(seconds(1));
        assert!(limiter.check().is_err(), "a caller that does not wait gets ahead");
        // The last is polled first.
        let served: Vec<_> =
            (next..20).rev().filter(|place| poll(waiters[*place].as_mut()).is_ready()).collect();
        assert_eq!(served, [next]);
    }
}

/// throttle-net: a waiter that gave up kept its reservation, and the next one paid for it.
#[test]
fn cancelled_waiter_returns_its_turn() {
    let clock = ManualClock::new();
    let limiter = RateLimiter::per_second(10).burst(1).clock(&clock).build();
    limiter.check().unwrap();
    let mut waiters = line(&limiter, 1_000);
    // From the middle, from the front, then all of the others.
    drop(waiters.split_off(500));
    drop(waiters.remove(0));
    drop(waiters);
    clock.advance(millis(100));
    limiter.check().expect("ghosts are in the line");

    let mut next = line(&limiter, 2);
    clock.advance(millis(100));
    assert!(poll(next[0].as_mut()).is_ready(), "it waits for ghosts");
    clock.advance(millis(100));
    assert!(poll(next[1].as_mut()).is_ready(), "it waits for ghosts");
}

/// throttle-net: a thousand waits that timed out left the queue blocked.
#[test]
fn waiters_that_time_out_leave_no_ghosts() {
    let clock = ManualClock::new();
    let limiter = RateLimiter::per(1, seconds(60)).wait_max(seconds(60)).clock(&clock).build();
    limiter.check().unwrap();
    let mut waiters = line(&limiter, 1_000);
    clock.advance(seconds(60));
    let answers: Vec<_> = waiters.iter_mut().map(|waiter| poll(waiter.as_mut())).collect();
    assert_eq!(answers[0], Poll::Ready(Ok(())), "the first was served in the last moment");
    for answer in &answers[1..] {
        let Poll::Ready(Err(refused)) = answer else { panic!("it still waits") };
        assert_eq!(refused.why, GiveUpReason::RateLimited);
    }
    clock.advance(seconds(60));
    limiter.check().expect("ghosts are in the line");
}

/// throttle-net: a flood of random keys filled the memory, or gave a known key a fresh allowance.
#[test]
fn key_flood_is_bounded_and_gets_no_fresh_allowance() {
    let clock = ManualClock::new();
    let limiter = RateLimiter::per(1, seconds(3_600)).clock(&clock).keyed::<u64>(1_000);
    assert!(limiter.check(&0).is_ok());
    let admitted = (1..100_000_u64).filter(|key| limiter.check(key).is_ok()).count();
    assert!(limiter.len() <= 1_000, "{} keys", limiter.len());
    assert!(admitted <= 1_100, "{admitted} of the flood were admitted");
    assert!(limiter.check(&0).is_err(), "it got a fresh allowance");
}

/// Fixed windows: twice the limit passes at the boundary of two windows.
#[test]
fn no_stretch_of_time_gets_twice_the_limit() {
    let clock = ManualClock::new();
    let limiter = RateLimiter::sliding_window(10, seconds(1)).clock(&clock).build();
    let mut admissions = Vec::new();
    for _ in 0..3_000 {
        if limiter.check().is_ok() {
            admissions.push(clock.elapsed());
        }
        clock.advance(Duration::from_micros(3_700));
    }
    for eleven in admissions.windows(11) {
        assert!(eleven[10] - eleven[0] > seconds(1), "eleven within a second: {eleven:?}");
    }
    assert!(admissions.len() > 100, "only {} in 11 seconds", admissions.len());
}

/// tower under axum: each connection had a clone with its own limit.
#[test]
fn clones_share_the_limit() {
    let clock = ManualClock::new();
    let limiter = RateLimiter::per_second(100).clock(&clock).build();
    let admitted = race(8, || {
        let own = limiter.clone();
        (0..100).filter(|_| own.check().is_ok()).count()
    });
    assert_eq!(admitted.into_iter().sum::<usize>(), 100);
}
