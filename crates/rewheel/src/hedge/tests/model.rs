//! Compares hedged calls with a plain description of what they should do.

use super::{Failure, Plan, Reply, hedge};
use crate::{ManualClock, SafeToRepeat, millis};
use proptest::prelude::*;

const DELAY: u64 = 10;

/// What should happen: the result, when, and after how many attempts.
fn expected(attempts: &[(u64, Reply)], extra_max: usize) -> (Reply, u64, usize) {
    // Attempts in the order of their ends; of two that end together, the earlier one.
    let mut ends: Vec<_> = (0..=extra_max)
        .map(|number| (number as u64 * DELAY + attempts[number].0, number))
        .collect();
    ends.sort_unstable();
    let mut last = None;
    for (end, number) in ends {
        if !started_until(attempts, number + 1) {
            continue;
        }
        let started = (0..=extra_max)
            .filter(|n| (*n as u64 * DELAY) <= end && started_until(attempts, *n + 1))
            .count();
        match attempts[number].1 {
            Ok(value) => return (Ok(value), end, started),
            Err(failure) => last = Some((Err(failure), end)),
        }
    }
    let (reply, end) = last.unwrap();
    let started = (0..=extra_max).filter(|n| started_until(attempts, *n + 1)).count();
    (reply, end, started)
}

/// Whether all attempts before `number` were started: at each start, one before it was still running.
fn started_until(attempts: &[(u64, Reply)], number: usize) -> bool {
    (1..number).all(|n| (0..n).any(|m| m as u64 * DELAY + attempts[m].0 > n as u64 * DELAY))
}

fn reply() -> impl Strategy<Value = Reply> {
    prop_oneof![(0_u32..9).prop_map(Ok), (0_u32..9).prop_map(|n| Err(Failure::Busy(n)))]
}

proptest! {
    #[test]
    fn a_hedged_call_does_what_the_description_says(
        // Never a multiple of the delay: nothing else decides what happens first of two things at the same time.
        attempts in proptest::collection::vec(((0_u64..8, 1_u64..10).prop_map(|(a, b)| a * DELAY + b), reply()), 5),
        extra_max in 1_usize..=4,
    ) {
        let mut attempts = attempts;
        for (number, attempt) in attempts.iter_mut().enumerate() {
            // Two attempts that end together would depend on the order of polls.
            attempt.0 = attempt.0 / DELAY * DELAY + 2 * number as u64 + 1;
        }
        let clock = ManualClock::new();
        let hedge = hedge(&clock).extra_max(u32::try_from(extra_max).unwrap()).build();
        let plan = Plan::new(&clock, &attempts);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let call = hedge.call(SafeToRepeat, || plan.attempt());
        let reply = runtime.block_on(clock.drive(call));
        let (expected, end, started) = expected(&attempts, extra_max);
        prop_assert_eq!(reply, expected);
        prop_assert_eq!(clock.elapsed(), millis(end));
        prop_assert_eq!(plan.started.get() as usize, started);
        prop_assert_eq!(plan.running.get(), 0);
    }
}
