//! Tests of delays that the callee asks for.

use super::*;
use crate::{Jitter, Random, Series, Step, Verdict};

const EXACT: Retry = Retry::exponential(seconds(1)).jitter(Jitter::NONE).attempts_max(10);

#[test]
fn the_wait_that_was_asked_for_is_kept() {
    let seen = run_both(EXACT, &[busy_for(seconds(7)), DONE]);
    assert_eq!(seen.starts, [0, 7].map(seconds));
}

#[test]
fn a_call_is_given_up_if_the_callee_asks_for_too_long_a_wait() {
    let refuse = |policy: Retry, asked| {
        let seen = run_both(policy, &[busy_for(asked), DONE]);
        assert_eq!(seen.gave_up().0, GiveUpReason::RetryAfterTooLong, "{policy} {asked:?}");
        assert_eq!(seen.gave_up().2, Duration::ZERO, "it waited before it gave up");
    };
    refuse(EXACT, seconds(999_999_999));
    refuse(EXACT, Duration::MAX);
    refuse(EXACT, Retry::RETRY_AFTER_MAX + millis(1));
    refuse(EXACT.retry_after_max(Duration::ZERO), millis(1));
    let longest = run_both(EXACT, &[busy_for(Retry::RETRY_AFTER_MAX), DONE]);
    assert_eq!(longest.starts[1], Retry::RETRY_AFTER_MAX);
}

/// A service that always answers `Retry-After: 0`, or a date in the past.
#[test]
fn a_wait_that_is_shorter_than_the_own_one_does_not_stop_the_growth() {
    for asked in [Duration::ZERO, millis(1), millis(999)] {
        let script = [busy_for(asked), busy_for(asked), busy_for(asked), busy_for(asked), DONE];
        assert_eq!(run_both(EXACT, &script).starts, [0, 1, 3, 7, 15].map(seconds), "{asked:?}");
    }
    let policy = Retry::exponential(millis(100)).delay_max(seconds(60)).attempts_max(11);
    let mut total = Duration::ZERO;
    for seed in 0..100 {
        let (random, mut series) = (Random::seeded(seed), Series::new(policy));
        for _ in 0..10 {
            let step = series.after(Verdict::RetryAfter(Duration::ZERO), Duration::ZERO, &random);
            assert!(matches!(step, Step::Wait(_)));
        }
        total += series.waited();
    }
    // Half of 0.1 + 0.2 + … + 51.2 s on average; without growth it is half a second.
    assert!(total / 100 > seconds(30), "{:?} on average", total / 100);
}

#[test]
fn a_callee_may_ask_for_patience_but_not_for_impatience() {
    for asked in [Duration::ZERO, millis(1), seconds(3)] {
        let seen = run_both(EXACT, &[BUSY, BUSY, busy_for(asked), DONE]);
        assert_eq!(seen.starts, [0, 1, 3, 7].map(seconds), "asked for {asked:?}");
    }
}

#[test]
fn jitter_comes_on_top_of_what_was_asked_for() {
    let policy = Retry::exponential(seconds(4)).attempts_max(9);
    let mut waits: Vec<_> = (0..1_000)
        .map(|seed| {
            let random = Random::seeded(seed);
            let mut series = Series::new(policy);
            let step = series.after(Verdict::RetryAfter(seconds(10)), Duration::ZERO, &random);
            let Step::Wait(wait) = step else { panic!("it gave up: {step:?}") };
            wait
        })
        .collect();
    waits.sort();
    assert!(waits[0] >= seconds(10), "{:?} is too early", waits[0]);
    assert!(waits[999] <= seconds(14), "{:?} is too late", waits[999]);
    assert!(waits[50] < millis(10_400) && waits[950] > millis(13_600), "they come back together");
}

#[test]
fn the_schedule_restarts_after_it() {
    let script = [BUSY, BUSY, busy_for(seconds(10)), BUSY, BUSY, DONE];
    assert_eq!(run_both(EXACT, &script).starts, [0, 1, 3, 13, 14, 16].map(seconds));

    let policy = Retry::new(crate::Backoff::decorrelated(seconds(1))).attempts_max(9);
    for seed in 0..100 {
        let random = Random::seeded(seed);
        let mut series = Series::new(policy);
        for _ in 0..4 {
            series.after(Verdict::Retry, Duration::ZERO, &random);
        }
        series.after(Verdict::RetryAfter(seconds(40)), Duration::ZERO, &random);
        let step = series.after(Verdict::Retry, Duration::ZERO, &random);
        let Step::Wait(wait) = step else { panic!("it gave up: {step:?}") };
        assert!((seconds(1)..=seconds(3)).contains(&wait), "{wait:?} goes on from the push-back");
    }
}

#[test]
fn a_wait_beyond_the_deadline_is_not_begun() {
    let seen = run_both(EXACT.deadline(seconds(5)), &[busy_for(seconds(5))]);
    assert_eq!(seen.gave_up().0, GiveUpReason::Deadline);
    assert_eq!(seen.gave_up().2, Duration::ZERO);
}
