//! Decides what follows an attempt of a job.

use crate::failure::Failure;
use crate::job::Wanted;
use crate::limits::Limits;
use crate::route::Sticky;
use crate::state::State;
use rewheel::{Backoff, Category, Random, Retry, Series, Step, Verdict, duration};
use std::time::Duration;

/// What a runner says about one attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// It did what it should.
    Done,
    /// This attempt failed. The rules and the policy of the kind decide whether another one follows.
    AttemptFailed {
        /// Whether another attempt can help.
        verdict: Verdict,
        /// What happened.
        failure: Failure,
    },
    /// The job ends in state `failed` now, whatever attempts it has left. It needs no person.
    FailJob(Failure),
    /// The job ends in state `dead` now, whatever attempts it has left. A person must look at it.
    Dead(Failure),
    /// The runner asks for a person before it goes on.
    Pause,
    /// The runner found that nobody wants it.
    Cancel,
    /// Not yet: run it again after this time, as if this attempt had not been.
    Snooze(Duration),
}

/// What is to be done with a job after an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It is done.
    Succeed,
    /// Another attempt follows.
    Retry {
        /// After this time.
        after: Duration,
        /// Whether it stays with its holder meanwhile.
        sticky: bool,
        /// Why then.
        because: Because,
    },
    /// It runs again after this time, and the attempt does not count.
    Snooze {
        /// After this time.
        after: Duration,
        /// Why then.
        because: Because,
    },
    /// It is given up, and asks for a person.
    Dead {
        /// What finally happened.
        failure: Failure,
    },
    /// It is given up, and nobody is waiting.
    Fail {
        /// What finally happened.
        failure: Failure,
    },
    /// It waits for a person.
    Pause,
    /// It is stopped.
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

    /// Returns whether the attempt counts. One that asked for time or for a person does not.
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

    /// Returns what the job becomes, where a person wanted `wanted` meanwhile. Success stays
    /// success, and what has ended cannot be paused.
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

    /// Returns how long it waits before the next attempt, and why.
    pub const fn wait(&self) -> Option<(Duration, Because)> {
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

    /// Returns what it was given up for.
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

/// Why a job is due when it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Because {
    /// Whoever submitted it said so.
    Submitted,
    /// Its backoff says so.
    Backoff,
    /// The callee asked for it.
    RetryAfter,
    /// The runner asked for it.
    Snooze,
    /// Its kind is parked.
    Parked,
    /// A rate limit had no room for it.
    RateLimit,
    /// The retries that its kind has earned are used up.
    RetryBudget,
    /// A person said so.
    Person,
}

impl Because {
    /// Every reason.
    pub const ALL: [Because; 8] = [
        Because::Submitted,
        Because::Backoff,
        Because::RetryAfter,
        Because::Snooze,
        Because::Parked,
        Because::RateLimit,
        Because::RetryBudget,
        Because::Person,
    ];

    /// Returns the name used in SQL and JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Because::Submitted => "submitted",
            Because::Backoff => "backoff",
            Because::RetryAfter => "retry_after",
            Because::Snooze => "snooze",
            Because::Parked => "parked",
            Because::RateLimit => "rate_limit",
            Because::RetryBudget => "retry_budget",
            Because::Person => "person",
        }
    }

    /// Finds a reason by its name.
    pub fn named(name: &str) -> Option<Because> {
        Because::ALL.into_iter().find(|because| because.as_str() == name)
    }
}

/// What becomes of a job that is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum GiveUp {
    /// It asks for a person.
    #[default]
    Dead,
    /// It ends, and nobody is waiting.
    Fail,
}

/// How a job is retried: its own settings, and its kind's where it has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// How many attempts it gets, at least one.
    pub attempts_max: u32,
    /// How long to wait between them.
    pub backoff: Backoff,
    /// How long a callee may make it wait.
    pub retry_after_max: Duration,
    /// How many times as long to wait as the backoff says; 1, unless a rule says otherwise.
    pub backoff_factor: u32,
    /// Up to which wait it stays with its holder.
    pub sticky_max: Duration,
    /// Whether it stays with its holder; by the wait, unless a rule says otherwise.
    pub sticky: Sticky,
    /// What becomes of it when it is given up.
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

/// What is known about the job besides its latest attempt.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct History {
    /// The attempt that just ended, counted from 1.
    pub attempt: u32,
    /// The wait before it.
    pub previous: Option<Duration>,
    /// How long until its deadline, by the store's clock.
    pub deadline_in: Option<Duration>,
    /// The share of recent attempts of its kind that failed, 0 to 1.
    pub failure_ratio: f64,
}

impl History {
    /// An attempt of which nothing else is known.
    pub const fn of_attempt(attempt: u32) -> History {
        History { attempt, previous: None, deadline_in: None, failure_ratio: 1.0 }
    }
}

/// Decides what follows an attempt. No clock, no store: the same input and the same chance always
/// lead to the same decision.
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
        Report::Snooze(after) => Decision::Snooze { after: *after, because: Because::Snooze },
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
    let after = match series.after(verdict, Duration::ZERO, random) {
        Step::Wait(after) => stretched(after, policy),
        // A failure that is judged done is still no success.
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
            Verdict::RetryAfter(_) => Because::RetryAfter,
            Verdict::Done | Verdict::Retry | Verdict::Stop => Because::Backoff,
        },
    }
}

/// A factor makes nobody wait longer than a callee could, unless the backoff does so by itself.
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

/// Whether the deadline comes before a wait of `after` is over.
fn ends_before(after: Duration, history: &History) -> bool {
    history.deadline_in.is_some_and(|left| left <= after)
}

/// Waiting for a deadline that will pass anyway only keeps a person from hearing of it. Whatever
/// the kind says about giving up, a missed deadline is for a person.
fn deadline_passes(after: Duration, failure: Option<&Failure>) -> Decision {
    let wait = duration::text(after);
    let message = match failure {
        Some(failure) => format!("the deadline ends before the next attempt in {wait}; {failure}"),
        None => format!("the deadline ends before the next attempt in {wait}"),
    };
    Decision::Dead { failure: Failure::new(Category::Deadline, None, &message) }
}

#[cfg(test)]
mod tests;
