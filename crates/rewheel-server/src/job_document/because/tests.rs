//! Tests the wording of each reason.

use super::super::tests::{NOW, holder, job};
use super::{
    AttemptEnd, AttemptRecord, Category, DueReason, Duration, Failure, Job, Wait, text, went,
};
use rewheel::{millis, minutes, seconds};
use rewheel_core::{Fence, Status};

fn failed(attempt: u32, category: Category, code: Option<&str>, decision: &str) -> AttemptRecord {
    AttemptRecord {
        attempt,
        fence: Fence::new(1),
        holder: holder(),
        started: NOW,
        duration: seconds(30),
        ended: AttemptEnd::Failed(Failure::new(category, code, "no answer")),
        decision: decision.to_owned(),
        delay: None,
        dropped: 0,
    }
}

fn after(record: AttemptRecord, delay: Duration) -> AttemptRecord {
    AttemptRecord { delay: Some(delay), ..record }
}

/// A job that is due for a reason, after the given attempts.
fn due(because: DueReason, records: &[AttemptRecord]) -> Job {
    let last = records.last();
    let due = last
        .map_or(NOW, |last| last.started.plus(last.duration).plus(last.delay.unwrap_or_default()));
    let failure = last.and_then(|last| last.failure().cloned());
    Job { because, due, attempt: last.map_or(0, |last| last.attempt), failure, ..job() }
}

#[track_caller]
fn check(because: DueReason, records: &[AttemptRecord], expected: &str) {
    assert_eq!(text(&due(because, records), Wait::Lasts, records), expected);
}

#[test]
fn a_job_whose_target_is_skipped_names_the_target() {
    let why = "acme.example is skipped: too many attempts failed there";
    let failure = Some(Failure::new(Category::CircuitOpen, None, why));
    let skipped = Job { failure, ..due(DueReason::Parked, &[]) };
    let expected = format!("{why}; no attempt is counted");
    assert_eq!(text(&skipped, Wait::Lasts, &[]), expected);
}

#[test]
fn a_job_that_continues_a_call_says_how_often_the_call_was_made() {
    let spilled = |attempts_before: u32, wait: Duration| {
        let because = DueReason::Submitted;
        let due = job().created.plus(wait);
        Job { because, due, attempt: attempts_before, attempts_before, ..job() }
    };
    let said = |job: &Job, wait| text(job, wait, &[]);
    let waits = "submitted after 3 attempts of the call in the process of the caller; waiting 3s";
    assert_eq!(said(&spilled(3, seconds(3)), Wait::Lasts), waits);
    assert_eq!(said(&spilled(3, seconds(3)), Wait::IsOver), waits.replace("waiting", "waited"));
    let at_once =
        "submitted after 1 attempt of the call in the process of the caller; to run immediately";
    assert_eq!(said(&spilled(1, Duration::ZERO), Wait::Lasts), at_once);
}

#[test]
fn every_reason_has_its_sentence() {
    let timeout = after(failed(1, Category::Timeout, Some("504"), "retry"), millis(83));
    let throttled = after(failed(2, Category::Throttled, Some("429"), "retry"), seconds(30));
    let conflict = after(failed(1, Category::Rejected, Some("409"), "snooze"), minutes(5));
    let stopped = after(failed(3, Category::Io, None, "snooze"), Duration::ZERO);
    for because in DueReason::ALL {
        match because {
            DueReason::Submitted => {
                check(because, &[], "submitted to run immediately");
                let later = Job { due: NOW.plus(minutes(5)), ..due(because, &[]) };
                assert_eq!(text(&later, Wait::Lasts, &[]), "submitted to run 5m later");
            }
            DueReason::Backoff => {
                check(because, std::slice::from_ref(&timeout), "attempt 1 timed out; waiting 83ms");
            }
            DueReason::UnknownBackoff => check(
                because,
                std::slice::from_ref(&timeout),
                "attempt 1 timed out; the node does not know the custom backoff of the job, and used the backoff of the kind",
            ),
            DueReason::RetryAfter => check(
                because,
                &[timeout.clone(), throttled.clone()],
                "attempt 2 was throttled with 429; waiting 30s as the called service requested",
            ),
            DueReason::Snooze => {
                check(
                    because,
                    std::slice::from_ref(&conflict),
                    "attempt 1 was rejected with 409; snoozed for 5m, and the attempt is not counted",
                );
                check(
                    because,
                    std::slice::from_ref(&stopped),
                    "attempt 3 was interrupted and is not counted; the job runs again immediately",
                );
                check(because, &[], "the runner snoozed the job; no attempt is counted");
            }
            DueReason::Parked => check(
                because,
                std::slice::from_ref(&timeout),
                "the kind is parked (its circuit breaker is open); the job waits until a probe attempt succeeds",
            ),
            DueReason::RateLimit => {
                check(
                    because,
                    &[],
                    "a rate limit was reached; the job waits until the limit allows an attempt",
                );
            }
            DueReason::RetryBudget => {
                let overloaded =
                    after(failed(2, Category::Transient, Some("503"), "retry"), millis(83));
                let records = [timeout.clone(), overloaded];
                let waits = "the retry budget of the kind is used up; the job waits until the budget allows a retry";
                check(because, &records, &format!("attempt 2 failed with 503; {waits}"));
                check(because, &[], waits);
                let runs = text(&due(because, &records), Wait::IsOver, &records);
                let waited = "the retry budget of the kind was used up; the job waited until the budget allowed a retry";
                assert_eq!(runs, format!("attempt 2 failed with 503; {waited}"));
            }
            DueReason::Person => {
                check(because, std::slice::from_ref(&timeout), "an operator set the due time")
            }
        }
    }
}

#[test]
fn a_list_says_what_it_knows() {
    let timeout = after(failed(1, Category::Timeout, None, "retry"), millis(83));
    let says = |because| text(&due(because, std::slice::from_ref(&timeout)), Wait::Lasts, &[]);
    assert_eq!(says(DueReason::Backoff), "attempt 1 timed out; waiting for the backoff delay");
    assert_eq!(
        says(DueReason::RetryAfter),
        "attempt 1 timed out; waiting as the called service requested"
    );
    let snoozed = "the runner snoozed the job; no attempt is counted";
    assert_eq!(says(DueReason::Snooze), snoozed);
}

#[test]
fn a_job_that_ended_waited_for_the_attempt_before_its_last() {
    let timeout = after(failed(1, Category::Timeout, None, "retry"), millis(83));
    let last = failed(2, Category::Rejected, Some("404"), "dead");
    let records = [timeout, last];
    let dead = Job { status: Status::Dead(NOW), ..due(DueReason::Backoff, &records) };
    let shown = text(&dead, Wait::IsOver, &records);
    assert_eq!(shown, "attempt 1 timed out; waited 83ms");
    let listed = text(&dead, Wait::IsOver, &[]);
    assert_eq!(listed, "an attempt failed; waited for the backoff delay");
    let asked = Job { because: DueReason::RetryAfter, ..dead };
    let listed = text(&asked, Wait::IsOver, &[]);
    assert_eq!(listed, "an attempt failed; waited as the called service requested");
}

#[test]
fn an_older_snooze_is_not_taken_for_the_latest() {
    let conflict = after(failed(1, Category::Rejected, Some("409"), "snooze"), minutes(5));
    let records = [conflict];
    let later = Job { due: NOW.plus(minutes(60)), ..due(DueReason::Snooze, &records) };
    let shown = text(&later, Wait::Lasts, &records);
    assert_eq!(shown, "the runner snoozed the job; no attempt is counted");
}

#[test]
fn every_category_is_said_as_people_do() {
    for &category in Category::ALL {
        let (plain, with_code) = match category {
            Category::Timeout => ("timed out", "timed out"),
            Category::Io => ("failed: io", "failed with E1"),
            Category::Throttled => ("was throttled", "was throttled with E1"),
            Category::CircuitOpen => (
                "was rejected by an open circuit breaker",
                "was rejected by an open circuit breaker",
            ),
            Category::BulkheadFull => (
                "was rejected because all slots were in use",
                "was rejected because all slots were in use",
            ),
            Category::Rejected => ("was rejected", "was rejected with E1"),
            Category::Transient | Category::Unknown => ("failed", "failed with E1"),
            Category::Cancelled => ("was cancelled", "was cancelled"),
            Category::Deadline => ("reached its deadline", "reached its deadline"),
            Category::Panic => ("panicked", "panicked with E1"),
            Category::NoHandler => (
                "failed because the node has no handler for the kind",
                "failed because the node has no handler for the kind",
            ),
            Category::BadPayload => (
                "failed because the payload could not be parsed",
                "failed because the payload could not be parsed",
            ),
            other => panic!("no words for {other}"),
        };
        assert_eq!(went(&Failure::new(category, None, "m")), plain);
        assert_eq!(went(&Failure::new(category, Some("E1"), "m")), with_code);
    }
}
