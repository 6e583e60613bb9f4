//! Explains in words why a job is due at its due time.

use rewheel::{Category, duration};
use rewheel_core::store::{AttemptEnd, AttemptRecord};
use rewheel_core::{DueReason, Failure, Job};
use std::time::Duration;

/// Whether a job still waits for its due time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// It still waits.
    Lasts,
    /// It is running or has ended.
    IsOver,
}

/// A failed attempt, and the delay after it.
struct Before<'a> {
    attempt: u32,
    failure: &'a Failure,
    delay: Option<Duration>,
}

/// Explains why a job is due at its due time. Lists have no attempts; then the text contains no
/// delay.
pub(super) fn text(job: &Job, wait: Wait, attempts: &[AttemptRecord]) -> String {
    let waiting = match wait {
        Wait::Lasts => "waiting",
        Wait::IsOver => "waited",
    };
    match job.because {
        DueReason::Submitted => submitted(job, waiting),
        DueReason::Backoff => match before(job, attempts) {
            Some(Before { attempt, failure, delay: Some(delay) }) => {
                format!("attempt {attempt} {}; {waiting} {}", went(failure), duration::text(delay))
            }
            Some(Before { attempt, failure, delay: None }) => {
                format!("attempt {attempt} {}; {waiting} for the backoff delay", went(failure))
            }
            None => format!("an attempt failed; {waiting} for the backoff delay"),
        },
        DueReason::UnknownBackoff => {
            let why = "the node does not know the custom backoff of the job, and used the backoff of the kind";
            match before(job, attempts) {
                Some(Before { attempt, failure, .. }) => {
                    format!("attempt {attempt} {}; {why}", went(failure))
                }
                None => why.to_owned(),
            }
        }
        DueReason::RetryAfter => match before(job, attempts) {
            Some(Before { attempt, failure, delay: Some(delay) }) => format!(
                "attempt {attempt} {}; {waiting} {} as the called service requested",
                went(failure),
                duration::text(delay)
            ),
            Some(Before { attempt, failure, delay: None }) => {
                format!("attempt {attempt} {}; {waiting} as the called service requested", went(failure))
            }
            None => format!("an attempt failed; {waiting} as the called service requested"),
        },
        DueReason::Snooze => snoozed(job, attempts),
        DueReason::Parked => match job.failure.as_ref() {
            // The target of the job, not its kind.
            Some(failure) if failure.category() == Category::CircuitOpen => {
                format!("{}; no attempt is counted", failure.message())
            }
            Some(_) | None => {
                "the kind is parked (its circuit breaker is open); the job waits until a probe attempt succeeds".to_owned()
            }
        },
        DueReason::RateLimit => {
            "a rate limit was reached; the job waits until the limit allows an attempt".to_owned()
        }
        DueReason::RetryBudget => {
            let why = match wait {
                Wait::Lasts => {
                    "the retry budget of the kind is used up; the job waits until the budget allows a retry"
                }
                Wait::IsOver => {
                    "the retry budget of the kind was used up; the job waited until the budget allowed a retry"
                }
            };
            match before(job, attempts) {
                Some(Before { attempt, failure, .. }) => {
                    format!("attempt {attempt} {}; {why}", went(failure))
                }
                None => why.to_owned(),
            }
        }
        DueReason::Person => "an operator set the due time".to_owned(),
    }
}

/// Explains the due time of a submit. Attempts before it are those of a call in process: a redrive sets another reason.
fn submitted(job: &Job, waiting: &str) -> String {
    let delay = job.due.since(job.created);
    match (job.attempts_before, delay.is_zero()) {
        (0, true) => "submitted to run immediately".to_owned(),
        (0, false) => format!("submitted to run {} later", duration::text(delay)),
        (attempts, is_now) => {
            let s = if attempts == 1 { "" } else { "s" };
            let delay = duration::text(delay);
            let then =
                if is_now { "to run immediately".to_owned() } else { format!("{waiting} {delay}") };
            format!(
                "submitted after {attempts} attempt{s} of the call in the process of the caller; {then}"
            )
        }
    }
}

/// Finds the attempt before the current wait.
fn before<'a>(job: &'a Job, attempts: &'a [AttemptRecord]) -> Option<Before<'a>> {
    let retried = |record: &&AttemptRecord| record.decision == "retry";
    let retried = attempts.iter().rev().find(retried);
    if let Some((record, failure)) = retried.and_then(|record| Some((record, record.failure()?))) {
        return Some(Before { attempt: record.attempt, failure, delay: record.delay });
    }
    // An ended job has only its last failure, which came after the wait.
    let failure = job.failure.as_ref().filter(|_| job.status.finished().is_none())?;
    Some(Before { attempt: job.attempt, failure, delay: None })
}

/// Explains a snooze. A rule that snoozes leaves a record; a runner that asks for more time leaves
/// none.
fn snoozed(job: &Job, attempts: &[AttemptRecord]) -> String {
    let led_here = |record: &&AttemptRecord| {
        let ended = record.started.plus(record.duration);
        let waited = job.due.since(ended);
        record.decision == "snooze"
            && record.delay.is_some_and(|delay| waited.abs_diff(delay) < Duration::from_secs(1))
    };
    match attempts.iter().rev().find(led_here) {
        Some(AttemptRecord { attempt, delay: Some(Duration::ZERO), .. }) => {
            format!(
                "attempt {attempt} was interrupted and is not counted; the job runs again immediately"
            )
        }
        Some(AttemptRecord { attempt, ended: AttemptEnd::Failed(failure), delay, .. }) => format!(
            "attempt {attempt} {}; snoozed for {}, and the attempt is not counted",
            went(failure),
            duration::text(delay.unwrap_or_default())
        ),
        // A snooze is no success.
        Some(AttemptRecord { ended: AttemptEnd::Succeeded(_), .. }) | None => match &job.failure {
            Some(failure) if failure.category() == Category::CircuitOpen => {
                format!("{}; the job waits, and no attempt is counted", failure.message())
            }
            Some(_) | None => "the runner snoozed the job; no attempt is counted".to_owned(),
        },
    }
}

/// Describes the failure of an attempt in words.
fn went(failure: &Failure) -> String {
    let plain = match failure.category() {
        Category::Timeout => return "timed out".to_owned(),
        Category::CircuitOpen => return "was rejected by an open circuit breaker".to_owned(),
        Category::BulkheadFull => return "was rejected because all slots were in use".to_owned(),
        Category::Cancelled => return "was cancelled".to_owned(),
        Category::Deadline => return "reached its deadline".to_owned(),
        Category::NoHandler => {
            return "failed because the node has no handler for the kind".to_owned();
        }
        Category::BadPayload => return "failed because the payload could not be parsed".to_owned(),
        Category::Throttled => "was throttled",
        Category::Rejected => "was rejected",
        Category::Panic => "panicked",
        Category::Io | Category::Transient | Category::Unknown | _ => "failed",
    };
    match (failure.code(), failure.category()) {
        (Some(code), _) => format!("{plain} with {code}"),
        (None, Category::Io) => format!("{plain}: {}", failure.category()),
        (None, _) => plain.to_owned(),
    }
}

#[cfg(test)]
mod tests;
