//! Counts the retries that a budget allows.

use crate::budget::{RetryBudget, RetryBudgetBuilder};
use crate::clock::ManualClock;
use crate::duration::{millis, seconds};
use crate::error::GiveUpReason;
use proptest::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};

/// Makes calls that all fail and are retried; returns the number of allowed retries.
fn allowed(budget: &RetryBudget, calls: u64) -> u64 {
    (0..calls)
        .map(|_| {
            budget.deposit();
            let retries = (0..1_000).take_while(|_| budget.withdraw().is_ok()).count();
            retries as u64
        })
        .sum()
}

fn without_floor(ratio: f64) -> RetryBudgetBuilder {
    RetryBudget::ratio(ratio).floor_per_second(0)
}

proptest! {
    #[test]
    fn allows_the_burst_and_the_ratio_of_the_calls(
        thousandths in 1_u32..=1_000,
        calls in 1_u64..5_000,
        burst in 1_u32..200,
    ) {
        let budget = without_floor(f64::from(thousandths) / 1_000.0).burst(burst).build();
        let allowed = 1_000 * allowed(&budget, calls);
        let expected = 1_000 * u64::from(burst) + u64::from(thousandths) * calls;
        // A full balance loses at most a millionth of the first deposit, and with it at most one
        // retry.
        prop_assert!(allowed <= expected && allowed + 1_000 >= expected, "{allowed} of {expected}");
    }

    /// For any mix of calls and retries, no sequence of them allows more than its share.
    #[test]
    fn no_stretch_of_calls_allows_more_than_its_share(
        thousandths in 1_u32..=1_000,
        burst in 1_u32..20,
        wants_retry in proptest::collection::vec(any::<bool>(), 1..400),
    ) {
        let budget = without_floor(f64::from(thousandths) / 1_000.0).burst(burst).build();
        // The most that can be spent in a sequence that ends here, in thousandths of a retry.
        let mut left = i64::from(burst) * 1_000;
        // The fraction of a retry is kept above a full balance; the rest below a thousandth cannot
        // be distinguished here.
        let full = left + 999;
        for wants_retry in wants_retry {
            if wants_retry {
                let allowed = budget.withdraw().is_ok();
                prop_assert_eq!(allowed, left >= 1_000);
                left -= if allowed { 1_000 } else { 0 };
            } else {
                budget.deposit();
                left = full.min(left + i64::from(thousandths));
            }
            prop_assert_eq!(budget.balance(), (left / 1_000) as u64);
        }
    }
}

#[test]
fn a_ratio_of_none_leaves_only_the_savings() {
    assert_eq!(allowed(&without_floor(0.0).burst(3).build(), 1_000), 3);
}

#[test]
fn a_ratio_below_a_thousandth_still_counts() {
    assert_eq!(allowed(&without_floor(0.000_001).burst(1).build(), 1_000_001), 2);
}

#[test]
fn successes_save_up_to_the_burst_and_no_further() {
    let budget = without_floor(0.5).burst(4).build();
    assert_eq!(allowed(&budget, 1), 4);
    for _ in 0..1_000 {
        budget.deposit();
    }
    assert_eq!(budget.balance(), 4);
}

#[test]
fn the_floor_is_allowed_each_second_however_little_traffic_there_is() {
    let clock = ManualClock::new();
    let budget = RetryBudget::ratio(0.2).floor_per_second(10).burst(1).clock(&clock).build();
    assert_eq!(allowed(&budget, 1), 1 + 10, "the savings and a second's worth of the floor");
    let refused = budget.withdraw().unwrap_err();
    assert_eq!((refused.why, refused.retry_in), (GiveUpReason::BudgetExhausted, Some(millis(100))));
    for _ in 0..30 {
        clock.advance(millis(100));
        assert!(budget.withdraw().is_ok() && budget.withdraw().is_err());
    }
    clock.advance(seconds(3_600));
    let idle = (0..100).take_while(|_| budget.withdraw().is_ok()).count();
    assert_eq!(idle, 10, "an hour without calls saved up more than a second's worth");
}

#[test]
fn without_a_floor_the_time_of_the_next_retry_is_unknown() {
    let budget = without_floor(0.2).burst(1).build();
    budget.withdraw().unwrap();
    assert_eq!(budget.withdraw().unwrap_err().retry_in, None);
}

#[test]
fn so_many_a_second_are_allowed_whatever_the_traffic() {
    let clock = ManualClock::new();
    let budget = RetryBudget::per_second(5).clock(&clock).build();
    assert_eq!(allowed(&budget, 10_000), 5);
    clock.advance(seconds(1));
    assert_eq!(allowed(&budget, 10_000), 5);
    clock.advance(millis(200));
    assert_eq!(allowed(&budget, 10_000), 1);
}

#[test]
fn clones_share_one_allowance() {
    let budget = without_floor(1.0).burst(2).build();
    let clone = budget.clone();
    budget.withdraw().unwrap();
    clone.withdraw().unwrap();
    assert!(budget.withdraw().is_err() && clone.withdraw().is_err());
    clone.deposit();
    assert_eq!(budget.balance(), 1);
}

#[test]
fn threads_never_overdraw_it() {
    const CALLS: u64 = 50_000;
    let budget = without_floor(0.3).burst(10).build();
    let allowed = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..CALLS {
                    budget.deposit();
                    allowed.fetch_add(u64::from(budget.withdraw().is_ok()), Ordering::Relaxed);
                }
            });
        }
    });
    let (allowed, most) = (allowed.into_inner() + budget.balance(), 10 + 2 * CALLS * 3 / 10);
    assert!(allowed <= most, "{allowed} of {most}");
    // Deposits are lost only while the balance is full.
    assert!(allowed >= most - 10, "only {allowed} of {most}");
}
