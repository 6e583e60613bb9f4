//! Decides what happens to a job after an attempt.

use crate::failure::Failure;
use crate::failure_rules::Sticky;
use crate::job::Wanted;
use crate::limits::Limits;
use crate::state::State;
use rewheel::{Backoff, Category, Random, Retry, Series, Step, Verdict, duration};
use std::time::Duration;

/// The result that a runner reports for one attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// The attempt succeeded.
    Done,
    /// This attempt failed. The rules and the policy of the kind decide whether another one follows.
    AttemptFailed {
        /// Whether another attempt can help.
        verdict: Verdict,
        /// The failure.
        failure: Failure,
    },
    /// The job ends in state `failed` now, even if it has attempts left. No operator action is needed.
    FailJob(Failure),
    /// The job ends in state `dead` now, even if it has attempts left. An operator must handle it.
    Dead(Failure),
    /// The runner decides: the job is paused until an operator resumes it.
    Pause,
    /// The runner decides: the job is no longer wanted and is cancelled.
    Cancel,
    /// Run the job again after this time. The attempt does not count.
    Snooze(Duration),
}

/// What happens to a job after an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The job succeeded.
    Succeed,
    /// The job is retried.
    Retry {
        /// Delay before the next attempt.
        after: Duration,
        /// Whether the job stays with its holder while it waits.
        sticky: bool,
        /// The reason for the delay.
        because: DueReason,
    },
    /// The job runs again after a delay; the attempt does not count.
    Snooze {
        /// Delay before the next attempt.
        after: Duration,
        /// The reason for the delay.
        because: DueReason,
    },
    /// The job is given up and becomes a dead letter, for an operator to handle.
    Dead {
        /// The last failure.
        failure: Failure,
    },
    /// The job is given up; no operator action is needed.
    Fail {
        /// The last failure.
        failure: Failure,
    },
    /// The job is paused until an operator resumes it.
    Pause,
    /// The job is cancelled.
    Cancel,
}

impl Decision {
    /// Returns the name used in SQL, JSON, metrics and logs.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Decision::Succeed => "succeed",
            Decision::Retry { .. } => "retry",
            Decision::Snooze { .. } => "snooze",
            Decision::Dead { .. } => "dead",
            Decision::Fail { .. } => "fail",
            Decision::Pause => "pause",
            Decision::Cancel => "cancel",
        }
    }

    /// Returns whether the attempt counts. An attempt that snoozed or paused the job does not.
    pub const fn uses_attempt(&self) -> bool {
        match self {
            Decision::Succeed
            | Decision::Retry { .. }
            | Decision::Dead { .. }
            | Decision::Fail { .. }
            | Decision::Cancel => true,
            Decision::Snooze { .. } | Decision::Pause => false,
        }
    }

    /// Returns the next state of the job, given the pause or cancel that a user requested during
    /// the attempt. A success stays a success, and an ended job cannot be paused.
    pub const fn state(&self, wanted: Option<Wanted>) -> State {
        match (self, wanted) {
            (Decision::Succeed, _) => State::Succeeded,
            (_, Some(Wanted::Cancel)) | (Decision::Cancel, _) => State::Cancelled,
            (Decision::Dead { .. }, _) => State::Dead,
            (Decision::Fail { .. }, _) => State::Failed,
            (Decision::Pause, _) => State::Paused,
            (Decision::Retry { .. } | Decision::Snooze { .. }, Some(Wanted::Pause)) => {
                State::Paused
            }
            (Decision::Retry { sticky: true, .. }, None) => State::Leased,
            (Decision::Retry { sticky: false, .. } | Decision::Snooze { .. }, None) => {
                State::Scheduled
            }
        }
    }

    /// Returns the delay before the next attempt, and its reason.
    pub const fn wait(&self) -> Option<(Duration, DueReason)> {
        match self {
            Decision::Retry { after, because, .. } => Some((*after, *because)),
            Decision::Snooze { after, because } => Some((*after, *because)),
            Decision::Succeed
            | Decision::Dead { .. }
            | Decision::Fail { .. }
            | Decision::Pause
            | Decision::Cancel => None,
        }
    }

    /// Returns the failure for which the job was given up.
    pub const fn failure(&self) -> Option<&Failure> {
        match self {
            Decision::Dead { failure } | Decision::Fail { failure } => Some(failure),
            Decision::Succeed
            | Decision::Retry { .. }
            | Decision::Snooze { .. }
            | Decision::Pause
            | Decision::Cancel => None,
        }
    }
}

/// Why a job is due at this time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DueReason {
    /// The submitter chose the time.
    Submitted,
    /// The backoff chose the time.
    Backoff,
    /// The job's custom backoff is not registered on the node that ran it: the backoff of its kind chose the time.
    UnknownBackoff,
    /// The called service asked for the delay (`Retry-After`).
    RetryAfter,
    /// The runner asked for the delay.
    Snooze,
    /// A circuit breaker is open: the breaker of the kind, or of the host that the job calls.
    Parked,
    /// A rate limit delayed the job.
    RateLimit,
    /// The retry budget of its kind is used up.
    RetryBudget,
    /// An operator chose the time.
    Person,
}

impl DueReason {
    /// Every reason.
    pub const ALL: [DueReason; 9] = [
        DueReason::Submitted,
        DueReason::Backoff,
        DueReason::UnknownBackoff,
        DueReason::RetryAfter,
        DueReason::Snooze,
        DueReason::Parked,
        DueReason::RateLimit,
        DueReason::RetryBudget,
        DueReason::Person,
    ];

    /// Returns the name used in SQL and JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            DueReason::Submitted => "submitted",
            DueReason::Backoff => "backoff",
            DueReason::UnknownBackoff => "unknown_backoff",
            DueReason::RetryAfter => "retry_after",
            DueReason::Snooze => "snooze",
            DueReason::Parked => "parked",
            DueReason::RateLimit => "rate_limit",
            DueReason::RetryBudget => "retry_budget",
            DueReason::Person => "person",
        }
    }

    /// Finds a reason by its name.
    pub fn named(name: &str) -> Option<DueReason> {
        DueReason::ALL.into_iter().find(|because| because.as_str() == name)
    }
}

/// What happens to a job that is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum GiveUp {
    /// The job becomes a dead letter, for an operator to handle.
    #[default]
    Dead,
    /// The job ends as failed; no operator action is needed.
    Fail,
}

/// How a job is retried: its own settings, or those of its kind as a fallback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Maximum number of attempts, at least one.
    pub attempts_max: u32,
    /// The delays between attempts.
    pub backoff: Backoff,
    /// The longest delay that the called service may ask for.
    pub retry_after_max: Duration,
    /// Multiplier of the backoff delay; 1 unless a rule changes it.
    pub backoff_factor: u32,
    /// The longest delay for which the job stays with its holder.
    pub sticky_max: Duration,
    /// Whether the job stays with its holder while it waits; depends on the delay unless a rule
    /// decides.
    pub sticky: Sticky,
    /// What happens to the job when it is given up.
    pub on_give_up: GiveUp,
}

impl Default for Policy {
    fn default() -> Policy {
        Policy {
            attempts_max: Limits::ATTEMPTS_MAX_DEFAULT,
            backoff: Backoff::exponential(Duration::from_millis(100)),
            retry_after_max: Limits::RETRY_AFTER_MAX_DEFAULT,
            backoff_factor: 1,
            sticky_max: Limits::STICKY_MAX_DEFAULT,
            sticky: Sticky::ByWait,
            on_give_up: GiveUp::Dead,
        }
    }
}

/// What the decision needs to know about the job besides its latest attempt.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct History {
    /// The attempt that just ended, counted from 1.
    pub attempt: u32,
    /// The delay before that attempt.
    pub previous: Option<Duration>,
    /// Time left until the deadline, by the store's clock.
    pub deadline_in: Option<Duration>,
    /// The share of recent attempts of the kind that failed, 0 to 1.
    pub failure_ratio: f64,
}

impl History {
    /// Returns the history of an attempt with all other values unset.
    pub const fn of_attempt(attempt: u32) -> History {
        History { attempt, previous: None, deadline_in: None, failure_ratio: 1.0 }
    }
}

/// Decides what happens after an attempt. The function uses no clock and no store: the same
/// input and the same random numbers always lead to the same decision.
///
/// ```
/// use rewheel::{Category, Random, Verdict};
/// use rewheel_core::{Decision, Failure, History, Policy, Report, decide};
///
/// let timeout = Failure::new(Category::Timeout, Some("504"), "no answer");
/// let report = Report::AttemptFailed { verdict: Verdict::Retry, failure: timeout.clone() };
/// let policy = Policy { attempts_max: 3, ..Policy::default() };
/// let random = Random::thread();
///
/// let first = decide(&report, &policy, &History::of_attempt(1), &random);
/// assert!(matches!(first, Decision::Retry { sticky: true, .. }));
/// let last = decide(&report, &policy, &History::of_attempt(3), &random);
/// assert_eq!(last, Decision::Dead { failure: timeout });
/// ```
pub fn decide(report: &Report, policy: &Policy, history: &History, random: &Random) -> Decision {
    match report {
        Report::Done => Decision::Succeed,
        Report::FailJob(failure) => Decision::Fail { failure: failure.clone() },
        Report::Dead(failure) => Decision::Dead { failure: failure.clone() },
        Report::Pause => Decision::Pause,
        Report::Cancel => Decision::Cancel,
        Report::Snooze(after) if ends_before(*after, history) => deadline_passes(*after, None),
        Report::Snooze(after) => Decision::Snooze { after: *after, because: DueReason::Snooze },
        Report::AttemptFailed { verdict, failure } => {
            after_failure(*verdict, failure, policy, history, random)
        }
    }
}

fn after_failure(
    verdict: Verdict,
    failure: &Failure,
    policy: &Policy,
    history: &History,
    random: &Random,
) -> Decision {
    let retry = Retry::new(policy.backoff)
        .attempts_max(policy.attempts_max.max(1))
        .retry_after_max(policy.retry_after_max);
    let mut series = Series::starting_at(retry, history.attempt);
    series.set_failure_ratio(history.failure_ratio);
    if let Some(previous) = history.previous {
        series.set_previous(previous);
    }
    // A job can wait: it comes back after the longest allowed delay, where a call would give up.
    let allowed = match verdict {
        Verdict::RetryAfter(asked) => Verdict::RetryAfter(asked.min(policy.retry_after_max)),
        verdict @ (Verdict::Done | Verdict::Retry | Verdict::Stop) => verdict,
    };
    let after = match series.after(allowed, Duration::ZERO, random) {
        Step::Wait(after) => stretched(after, policy),
        // A failure judged as done is still not a success.
        Step::Return | Step::GiveUp(_) => return give_up(failure, policy),
    };
    if ends_before(after, history) {
        return deadline_passes(after, Some(failure));
    }
    Decision::Retry {
        after,
        sticky: match policy.sticky {
            Sticky::ByWait => after <= policy.sticky_max,
            Sticky::Yes => true,
            Sticky::No => false,
        },
        because: match verdict {
            Verdict::RetryAfter(_) => DueReason::RetryAfter,
            Verdict::Done | Verdict::Retry | Verdict::Stop => DueReason::Backoff,
        },
    }
}

/// Applies the factor. The result is not longer than the longest delay a callee may ask for, unless
/// the backoff itself is.
fn stretched(after: Duration, policy: &Policy) -> Duration {
    after.saturating_mul(policy.backoff_factor).min(policy.retry_after_max).max(after)
}

fn give_up(failure: &Failure, policy: &Policy) -> Decision {
    let failure = failure.clone();
    match policy.on_give_up {
        GiveUp::Dead => Decision::Dead { failure },
        GiveUp::Fail => Decision::Fail { failure },
    }
}

/// Returns whether the deadline comes before a delay of `after` has passed.
fn ends_before(after: Duration, history: &History) -> bool {
    history.deadline_in.is_some_and(|left| left <= after)
}

/// A retry after the deadline would only delay the dead letter. A missed deadline always becomes a
/// dead letter, whatever the kind says about giving up.
fn deadline_passes(after: Duration, failure: Option<&Failure>) -> Decision {
    let wait = duration::text(after);
    let message = match failure {
        Some(failure) => format!(
            "the deadline passes before the next attempt, due in {wait}; last failure: {failure}"
        ),
        None => format!("the deadline passes before the next attempt, due in {wait}"),
    };
    Decision::Dead { failure: Failure::new(Category::Deadline, None, &message) }
}

#[cfg(test)]
mod tests;
