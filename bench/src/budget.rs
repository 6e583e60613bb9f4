//! Compares retry budgets.

use std::time::Duration;

use rewheel::RetryBudget;
use tower::retry::budget::{Budget, TpsBudget};

use crate::correctness::retries;
use crate::harness::{Comparison, Group, Pace, Subject};

pub fn compare(pace: &Pace) -> Vec<Group> {
    vec![healthy().measure(pace), spending().measure(pace)]
}

fn ours() -> RetryBudget {
    RetryBudget::ratio(0.2).build()
}

fn tower() -> TpsBudget {
    TpsBudget::new(Duration::from_secs(10), 10, 0.2)
}

fn healthy() -> Comparison {
    Comparison {
        name: "budget, call without a retry",
        threads: &[1, 2],
        subjects: vec![
            Subject::new("rewheel", ours(), |b, _| b.deposit()).versus(&["tower TpsBudget"], &[]),
            Subject::new("tower TpsBudget", tower(), |b, _| b.deposit()),
        ],
    }
}

fn spending() -> Comparison {
    Comparison {
        name: "budget, one retry in five calls",
        threads: &[1, 2],
        subjects: vec![
            Subject::new("rewheel", ours(), |b, i| {
                b.deposit();
                i % 5 == 0 && b.withdraw().is_ok()
            })
            .versus(&["tower TpsBudget"], &[])
            .checked(retries::of_rewheel()),
            Subject::new("tower TpsBudget", tower(), |b, i| {
                b.deposit();
                i % 5 == 0 && b.withdraw()
            })
            .checked(retries::of_tower()),
        ],
    }
}
