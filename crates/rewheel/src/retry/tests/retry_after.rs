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
fn what_is_asked_for_is_capped() {
    let forever = busy_for(seconds(999_999_999));
    assert_eq!(run_both(EXACT, &[forever, DONE]).starts[1], Retry::RETRY_AFTER_MAX);
    let patient = EXACT.retry_after_max(seconds(90));
    assert_eq!(run_both(patient, &[forever, DONE]).starts[1], seconds(90));
    let never = EXACT.retry_after_max(Duration::ZERO);
    assert_eq!(run_both(never, &[forever, DONE]).starts[1], seconds(1));
    assert_eq!(run_both(EXACT, &[busy_for(Duration::MAX), DONE]).starts[1], seconds(60));
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
        series.after(Verdict::RetryAfter(seconds(20)), Duration::ZERO, &random);
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
