//! Compares an adaptive limit with a bulkhead of a constant size.

use rewheel::{AdaptiveLimit, Bulkhead};

use crate::goal::Limit::Times;
use crate::harness::{Comparison, Group, Pace, Subject};

const BULKHEAD: &str = "rewheel bulkhead";

pub fn compare(pace: &Pace) -> Vec<Group> {
    vec![adaptive().measure(pace)]
}

/// Below half of the limit, one of sixteen calls is measured; above, every call is, for two readings of the clock.
fn adaptive() -> Comparison {
    let bulkhead = Bulkhead::concurrency(100).build();
    let unused = AdaptiveLimit::between(100, 200).build();
    let used = AdaptiveLimit::between(2, 2).build();
    Comparison {
        name: "adaptive limit versus bulkhead",
        threads: &[1, 2],
        subjects: vec![
            Subject::new("rewheel adaptive", unused, |limit, _| {
                limit.try_acquire().map(rewheel::AdaptivePermit::success)
            })
            .versus(&[BULKHEAD], &[(1, Times(1.2))]),
            Subject::new("rewheel adaptive, limit in use", used, |limit, _| {
                limit.try_acquire().map(rewheel::AdaptivePermit::success)
            })
            .versus(&[BULKHEAD], &[]),
            Subject::new(BULKHEAD, bulkhead, |bulkhead, _| bulkhead.try_acquire().map(drop)),
        ],
    }
}
