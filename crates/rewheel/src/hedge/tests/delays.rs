//! When an extra attempt starts, and who pays for it.

use super::{BUSY, Plan, Reply, call, hedge};
use crate::{Hedge, ManualClock, RetryBudget, SafeToRepeat, millis};

/// A hedge for the slowest tenth of the calls.
fn tracked(clock: &ManualClock) -> Hedge {
    let unlimited = RetryBudget::ratio(1.0).burst(1_000).build();
    Hedge::percentile(0.9).window(20).clock(clock).retry_budget(&unlimited).build()
}

async fn make(hedge: &Hedge, clock: &ManualClock, count: u32, attempts: &[(u64, Reply)]) {
    for _ in 0..count {
        let _ = call(hedge, clock, attempts).await;
    }
}

#[tokio::test]
async fn nothing_is_hedged_before_the_percentile_is_known() {
    let clock = ManualClock::new();
    let hedge = tracked(&clock);
    for _ in 0..20 {
        assert_eq!(hedge.delay(), None);
        assert_eq!(call(&hedge, &clock, &[(8, Ok(1))]).await, (Ok(1), 8, 1));
    }
    let delay = hedge.delay().unwrap();
    assert!(millis(8) < delay && delay <= millis(9), "{delay:?}");
    let (reply, took, attempts) = call(&hedge, &clock, &[(90, Ok(1)), (1, Ok(2))]).await;
    assert_eq!((reply, attempts), (Ok(2), 2));
    assert!(took <= 10, "{took}");
}

#[tokio::test]
async fn failures_do_not_count_as_fast_calls() {
    let clock = ManualClock::new();
    let hedge = tracked(&clock);
    make(&hedge, &clock, 20, &[(80, Ok(1))]).await;
    make(&hedge, &clock, 40, &[(1, BUSY)]).await;
    assert!(hedge.delay().unwrap() >= millis(80), "{:?}", hedge.delay());
}

/// If only the fast attempt that won were counted, the percentile would fall, and more and more calls be made twice.
#[tokio::test]
async fn a_call_that_was_cut_short_counts_with_the_time_it_had() {
    let clock = ManualClock::new();
    let hedge = tracked(&clock);
    make(&hedge, &clock, 20, &[(8, Ok(1))]).await;
    let before = hedge.delay().unwrap();
    // Each attempt that loses was running for the delay and one millisecond more.
    make(&hedge, &clock, 20, &[(90, Ok(1)), (1, Ok(2))]).await;
    assert!(hedge.delay().unwrap() > before, "{:?} after {before:?}", hedge.delay());
}

#[tokio::test]
async fn calls_that_their_callers_dropped_raise_the_percentile() {
    let clock = ManualClock::new();
    let hedge = tracked(&clock);
    make(&hedge, &clock, 20, &[(8, Ok(1))]).await;
    for _ in 0..20 {
        let plan = Plan::new(&clock, &[(9_000, Ok(1)), (9_000, Ok(2))]);
        let mut call = Box::pin(hedge.call(SafeToRepeat, || plan.attempt()));
        assert!(futures_util::poll!(call.as_mut()).is_pending());
        clock.advance(hedge.delay().unwrap());
        assert!(futures_util::poll!(call.as_mut()).is_pending());
        clock.advance(millis(500));
    }
    assert!(hedge.delay().unwrap() >= millis(500), "{:?}", hedge.delay());
}

#[tokio::test]
async fn calls_that_are_ready_at_once_leave_the_shortest_delay() {
    let clock = ManualClock::new();
    let hedge = tracked(&clock);
    make(&hedge, &clock, 20, &[(0, Ok(1))]).await;
    assert_eq!(hedge.delay(), Some(millis(1)));
}

#[tokio::test]
async fn without_budget_the_call_goes_on_alone() {
    let clock = ManualClock::new();
    let budget = RetryBudget::ratio(0.5).floor_per_second(0).burst(1).clock(&clock).build();
    let hedge = hedge(&clock).retry_budget(&budget).extra_max(3).build();
    let slow = [(90, Ok(1)), (70, Ok(2)), (1, Ok(3)), (1, Ok(4))];
    let (alone, hedged) = ((Ok(1), 90, 1), (Ok(2), 80, 2));
    assert_eq!(call(&hedge, &clock, &slow).await, hedged, "the budget has one and a half");
    assert_eq!(call(&hedge, &clock, &slow).await, hedged, "two calls have earned one");
    assert_eq!(call(&hedge, &clock, &slow).await, alone);
    assert_eq!(call(&hedge, &clock, &slow).await, hedged);
}

#[tokio::test]
async fn by_default_a_tenth_of_the_calls_may_be_made_twice() {
    let clock = ManualClock::new();
    let hedge = Hedge::after(millis(10)).clock(&clock).build();
    let mut attempts = 0;
    for _ in 0..2_000 {
        attempts += call(&hedge, &clock, &[(11, Ok(1)), (50, Ok(2))]).await.2;
    }
    // The initial balance, a tenth of the calls, and one for each of the 22 seconds.
    let extra = attempts - 2_000;
    assert!((300..=323).contains(&extra), "{extra}");
}
