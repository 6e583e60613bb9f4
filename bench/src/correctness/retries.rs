//! Counts the retries that a budget allows when every call fails.

use std::time::Duration;

use rewheel::RetryBudget;
use tower::retry::budget::{Budget, TpsBudget};

use super::Check;

const CALLS: u32 = 10_000;
const RATIOS: [f64; 3] = [0.3, 0.6, 0.9];

pub fn of_rewheel() -> Check {
    check(|ratio| {
        const SAVED: u32 = 100;
        let budget = RetryBudget::ratio(ratio).floor_per_second(0).burst(SAVED).build();
        allowed(|| budget.deposit(), || budget.withdraw().is_ok()) - f64::from(SAVED)
    })
}

pub fn of_tower() -> Check {
    check(|ratio| {
        let budget = TpsBudget::new(Duration::from_secs(60), 0, ratio as f32);
        allowed(|| budget.deposit(), || budget.withdraw())
    })
}

fn allowed(deposit: impl Fn(), withdraw: impl Fn() -> bool) -> f64 {
    let mut allowed = 0_u32;
    for _ in 0..CALLS {
        deposit();
        allowed += u32::from(withdraw());
        // A failing retry is itself retried, as far as the budget allows.
        allowed += u32::from(withdraw());
    }
    f64::from(allowed)
}

fn check(retries: impl Fn(f64) -> f64) -> Check {
    let mut text = "retries allowed:".to_owned();
    let mut errors = 0;
    for ratio in RATIOS {
        let share = retries(ratio) / f64::from(CALLS);
        // One retry more or less at the end depends on the time of the check.
        errors += u64::from((share - ratio).abs() > 0.001);
        text += &format!(" {:.1}% for {:.0}%", share * 100.0, ratio * 100.0);
    }
    Check { text, errors }
}
