//! Budgets that allow too many retries, or cost more than they save.

use super::{race, refused};
use rewheel::{GiveUpReason, ManualClock, Retry, RetryBudget, Retryable, seconds};
use std::time::Duration;

/// Counts the retries that a number of calls are allowed if every call asks for one.
fn allowed(budget: &RetryBudget, calls: u32) -> u32 {
    (0..calls)
        .map(|_| {
            budget.deposit();
            u32::from(budget.withdraw().is_ok())
        })
        .sum()
}

/// tower's budget: 0.3 allowed 33 %, 0.4 allowed 50 %, and 0.6 to 0.9 allowed 100 %.
#[test]
fn budget_of_0_3_is_30_percent() {
    for tenths in [1, 2, 3, 4, 5, 6, 7, 8, 9, 10] {
        let ratio = f64::from(tenths) / 10.0;
        let budget = RetryBudget::ratio(ratio).floor_per_second(0).burst(1).build();
        let allowed = allowed(&budget, 100_000);
        assert!(allowed.abs_diff(tenths * 10_000) <= 2, "{ratio} allowed {allowed} of 100000");
    }
}

/// tower's budget: the first call after a month looped over every second of it, for 92 ms.
///
/// The test makes a hundred thousand such calls. It would take more than a day if their time grew
/// with the idle time.
#[test]
fn budget_costs_the_same_after_a_month_of_idleness() {
    const MONTH: Duration = Duration::from_secs(30 * 86_400);
    let clock = ManualClock::new();
    let budget = RetryBudget::ratio(0.2).floor_per_second(10).burst(5).clock(&clock).build();
    for _ in 0..1_000 {
        clock.advance(MONTH / 1_000);
        for _ in 0..100 {
            budget.deposit();
            let _ = budget.withdraw();
        }
    }
    clock.advance(MONTH);
    while budget.balance() < 5 {
        budget.deposit();
    }
    assert_eq!((0..).take_while(|_| budget.withdraw().is_ok()).count(), 5 + 10, "nor hoards");
}

/// tower's budget: reads the sum, then adds, so that concurrent threads overdraw it.
#[test]
fn budget_is_not_overdrawn_by_racing_threads() {
    for _ in 0..20 {
        let budget = RetryBudget::ratio(0.0).floor_per_second(0).burst(1_000).build();
        let taken = race(8, || (0..1_000).filter(|_| budget.withdraw().is_ok()).count());
        assert_eq!(taken.into_iter().sum::<usize>(), 1_000);

        let clock = ManualClock::new();
        let budget = RetryBudget::per_second(1_000).clock(&clock).build();
        let taken = race(8, || (0..1_000).filter(|_| budget.withdraw().is_ok()).count());
        assert_eq!(taken.into_iter().sum::<usize>(), 1_000);
    }
}

/// smithy's token bucket: fractions were loaded and stored, so concurrent deposits were lost.
#[test]
fn fractional_tokens_are_not_lost_by_racing_deposits() {
    let budget = RetryBudget::ratio(0.1).floor_per_second(0).burst(100_000).build();
    while budget.withdraw().is_ok() {}
    race(8, || (0..10_000).for_each(|_| budget.deposit()));
    assert_eq!(budget.balance(), 8_000);
}

/// aws-sdk-go-v2: once empty, the bucket was never refilled.
#[test]
fn an_exhausted_budget_recovers() {
    let clock = ManualClock::new();
    let by_time = RetryBudget::per_second(5).clock(&clock).build();
    while by_time.withdraw().is_ok() {}
    clock.advance(seconds(1));
    assert_eq!((0..).take_while(|_| by_time.withdraw().is_ok()).count(), 5);

    let by_traffic = RetryBudget::ratio(0.5).floor_per_second(0).burst(3).build();
    while by_traffic.withdraw().is_ok() {}
    (0..100).for_each(|_| by_traffic.deposit());
    assert_eq!((0..).take_while(|_| by_traffic.withdraw().is_ok()).count(), 3);
}

/// Finagle: a ratio of very little traffic is zero, so single failures were not retried.
#[test]
fn a_floor_lets_rare_calls_be_retried() {
    let clock = ManualClock::new();
    let budget = RetryBudget::ratio(0.0).burst(1).clock(&clock).build();
    for _ in 0..100 {
        clock.advance(seconds(1));
        let call = (|| Err::<(), _>(refused())).retry(Retry::fixed(seconds(0)));
        let error = call.retry_budget(&budget).clock(&clock).call().unwrap_err();
        assert_eq!(error.reason(), GiveUpReason::AttemptsExhausted);
    }
}
