//! Tests of call deadlines and attempt timeouts.

use super::*;
use std::cell::Cell;

#[test]
fn a_deadline_counts_attempts_as_well_as_waits() {
    let policy = EVERY_SECOND.deadline(seconds(8));
    let turn = BUSY.taking(seconds(2));
    let cut = run_async(policy, &[turn]);
    assert_eq!(cut.starts, [0, 3, 6].map(seconds));
    // The third attempt ends exactly at the deadline; no delay fits after it.
    assert_eq!(cut.gave_up(), (GiveUpReason::Deadline, 3, seconds(8), Some(Failure::Busy)));
    assert_eq!(run_blocking(policy, &[turn]), cut);
}

#[test]
fn a_deadline_cuts_a_running_attempt() {
    let policy = EVERY_SECOND.deadline(seconds(7));
    let turn = BUSY.taking(seconds(2));
    let cut = run_async(policy, &[turn]);
    assert_eq!(cut.gave_up(), (GiveUpReason::Deadline, 3, seconds(7), Some(Failure::Busy)));

    let only = run_async(policy, &[DONE.taking(seconds(60))]);
    assert_eq!(only.gave_up(), (GiveUpReason::Deadline, 1, seconds(7), None));

    // A thread cannot be interrupted: the attempt runs to its end, and is the last.
    let late = run_blocking(policy, &[turn]);
    assert_eq!(late.gave_up(), (GiveUpReason::Deadline, 3, seconds(8), Some(Failure::Busy)));
    assert_eq!(run_blocking(policy, &[DONE.taking(seconds(60))]).result, Ok(7));
}

#[test]
fn a_wait_that_does_not_fit_is_not_begun() {
    for delay in [10, 11, 100] {
        let policy = Retry::fixed(seconds(delay)).deadline(seconds(10));
        let seen = run_both(policy, &[BUSY]);
        assert_eq!(
            seen.gave_up(),
            (GiveUpReason::Deadline, 1, Duration::ZERO, Some(Failure::Busy))
        );
    }
    let fits = Retry::fixed(seconds(9)).deadline(seconds(10));
    assert_eq!(run_both(fits, &[BUSY, DONE]).result, Ok(7));
}

#[test]
fn a_wait_that_took_too_long_is_not_followed_by_an_attempt() {
    let policy = EVERY_SECOND.deadline(seconds(5));
    let script = Script::new(&[BUSY]);
    // As on a machine that was suspended between two attempts.
    let suspend = || script.clock.advance(seconds(60));
    let call = (|attempt| script.patient(attempt)).retry(policy).clock(&script.clock);
    let error = finish(script.clock.drive(call.on_retry(|_| suspend()))).unwrap_err();
    assert_eq!((error.reason(), error.attempts(), script.calls()), (GiveUpReason::Deadline, 1, 1));

    let script = Script::new(&[BUSY]);
    let suspend = || script.clock.advance(seconds(60));
    let call = (|attempt| script.blocking(attempt)).retry(policy).clock(&script.clock);
    let error = call.on_retry(|_| suspend()).call().unwrap_err();
    assert_eq!((error.reason(), error.attempts(), script.calls()), (GiveUpReason::Deadline, 1, 1));
}

#[test]
fn an_attempt_that_times_out_has_failed_and_is_retried() {
    let policy = Retry::fixed(seconds(1)).attempt_timeout(seconds(2));
    let slow = DONE.taking(seconds(60));

    let seen = run_async(policy, &[slow, DONE.taking(seconds(1))]);
    assert_eq!((seen.result, seen.starts), (Ok(7), vec![seconds(0), seconds(3)]));

    let seen = run_async(policy, &[slow]);
    assert_eq!(seen.starts, [0, 3, 6].map(seconds));
    assert_eq!(seen.gave_up(), (GiveUpReason::AttemptsExhausted, 3, seconds(8), None));

    let seen = run_async(policy, &[BUSY, slow]);
    assert_eq!(seen.gave_up().3, Some(Failure::Busy), "the last error that there was");
}

#[test]
fn an_attempt_that_ends_in_time_leaves_no_timer_behind() {
    let policy = Retry::fixed(seconds(5)).attempt_timeout(seconds(2));
    let seen = run_async(policy, &[BUSY.taking(seconds(1)), BUSY.taking(seconds(1)), DONE]);
    assert_eq!(seen.starts, [0, 6, 12].map(seconds), "an old timer cut a wait or an attempt");
}

#[test]
fn a_timeout_a_deadline_and_a_cancellation_are_told_apart() {
    let hang = [DONE.taking(seconds(60))];
    let timeout = run_async(Retry::fixed(seconds(1)).attempt_timeout(seconds(1)), &hang);
    let deadline = run_async(EVERY_SECOND.deadline(seconds(1)), &hang);
    let cancelled = {
        let token = crate::CancelToken::new();
        token.cancel();
        let call = (|| async { Ok::<u32, Failure>(1) }).retry(EVERY_SECOND).cancel(&token);
        Seen { result: finish(call.into_future()), starts: Vec::new() }
    };
    let told = [timeout, deadline, cancelled].map(|seen| {
        let error = seen.result.unwrap_err();
        (error.reason(), error.classify().category)
    });
    let expected = [
        (GiveUpReason::AttemptsExhausted, Category::Timeout),
        (GiveUpReason::Deadline, Category::Deadline),
        (GiveUpReason::Cancelled, Category::Cancelled),
    ];
    assert_eq!(told, expected);
}

#[test]
fn an_attempt_is_dropped_before_its_timeout_is_reported() {
    struct Alive<'a>(&'a Cell<bool>);
    impl Drop for Alive<'_> {
        fn drop(&mut self) {
            self.0.set(false);
        }
    }
    let (alive, clock) = (Cell::new(false), ManualClock::new());
    let operation = || async {
        alive.set(true);
        let _alive = Alive(&alive);
        std::future::pending::<Result<(), Failure>>().await
    };
    for policy in [
        Retry::fixed(seconds(1)).attempt_timeout(seconds(1)),
        Retry::fixed(seconds(1)).deadline(seconds(1)),
    ] {
        let call = operation
            .retry(policy)
            .clock(&clock)
            .on_retry(|_| assert!(!alive.get(), "it still ran when a retry was announced"))
            .on_give_up(|_| assert!(!alive.get(), "it still ran when it was given up"));
        let mut call = Box::pin(clock.drive(call));
        while poll(call.as_mut()).is_pending() {}
        assert!(!alive.get(), "it still ran after the call had ended");
    }
}

#[test]
fn work_that_does_not_yield_is_measured_all_the_same() {
    let clock = ManualClock::new();
    let policy = EVERY_SECOND.deadline(seconds(5));
    let stubborn = |result: Result<u32, Failure>| {
        let call = (|| async {
            clock.advance(seconds(10));
            result
        })
        .retry(policy)
        .clock(&clock);
        finish(clock.drive(call))
    };
    assert_eq!(stubborn(Ok(7)), Ok(7), "what has succeeded has succeeded");
    let error = stubborn(Err(Failure::Busy)).unwrap_err();
    assert_eq!((error.reason(), error.elapsed()), (GiveUpReason::Deadline, seconds(10)));

    let then_hangs = || async {
        clock.advance(seconds(10));
        std::future::pending::<Result<u32, Failure>>().await
    };
    let policy = Retry::fixed(seconds(1)).attempts_max(2).attempt_timeout(seconds(3));
    let error = finish(clock.drive(then_hangs.retry(policy).clock(&clock))).unwrap_err();
    assert_eq!((error.attempts(), error.elapsed()), (2, seconds(21)), "it is cut at once");
}

#[track_caller]
fn check_time_left(policy: Retry, expected_seconds: &[u64]) {
    for patient in [true, false] {
        let script = Script::new(&[BUSY.taking(seconds(1))]);
        if patient {
            let call = (|attempt| script.patient(attempt)).retry(policy).clock(&script.clock);
            finish(script.clock.drive(call)).unwrap_err();
        } else {
            let call = (|attempt| script.blocking(attempt)).retry(policy).clock(&script.clock);
            call.call().unwrap_err();
        }
        let starts = script.starts.borrow();
        let left: Vec<_> = starts.iter().map(|(_, a)| a.time_left().unwrap()).collect();
        let expected: Vec<_> = expected_seconds.iter().copied().map(seconds).collect();
        assert_eq!(left, expected, "{policy}");
    }
}

#[test]
fn tells_the_operation_how_much_time_is_left() {
    let policy = Retry::fixed(seconds(1));
    check_time_left(policy.deadline(seconds(10)), &[10, 8, 6]);
    check_time_left(policy.attempt_timeout(seconds(7)), &[7, 7, 7]);
    check_time_left(policy.deadline(seconds(10)).attempt_timeout(seconds(7)), &[7, 7, 6]);
}
