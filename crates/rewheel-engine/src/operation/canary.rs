//! Judges whether the jobs of a canary step succeed.

use rewheel_core::{Failure, Job, State};
use serde::{Deserialize, Serialize};

/// Less than one in this many jobs of a step may have a failed attempt.
const FAILING_PART: usize = 10;

/// The result of a step's jobs so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Health {
    /// All jobs ended well.
    Well,
    /// Some are not done yet.
    AtWork(usize),
    /// Too many failed again.
    Failing {
        /// Number of failed jobs.
        failed: usize,
        /// The failure of one of them.
        example: String,
    },
}

/// How many jobs of a step have ended well, and how many failed again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Seen {
    pub(super) ok: usize,
    pub(super) failed: usize,
    /// One of those that failed, a dead one if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) example: Option<String>,
}

impl Seen {
    /// Counts the current jobs of a step; `None` is a job that ended and was not kept.
    pub(super) fn of(jobs: &[Option<Job>]) -> Seen {
        let failed = || jobs.iter().flatten().filter(|job| has_failed(job));
        let dead = failed().find(|job| has_died(job));
        let is_well = |job: &Job| !job.state().is_live() && !has_died(job);
        Seen {
            ok: jobs.iter().filter(|job| job.as_ref().is_none_or(is_well)).count(),
            failed: failed().count(),
            example: dead.or_else(|| failed().next()).map(|job| job.id.to_string()),
        }
    }
}

fn has_died(job: &Job) -> bool {
    matches!(job.state(), State::Dead | State::Failed)
}

/// Returns whether an attempt failed since the job was redriven, and the job has not succeeded since.
fn has_failed(job: &Job) -> bool {
    has_died(job) || (job.attempt > job.attempts_before && job.state() != State::Succeeded)
}

/// Judges the current jobs of a step; `None` is a job that ended and was not kept. A job that is dead again counts at once;
/// failed attempts that will be retried count when they are a tenth.
pub(super) fn judge(jobs: &[Option<Job>]) -> Health {
    let (mut failed, mut died, mut at_work, mut example) = (0_usize, false, 0, None);
    for job in jobs.iter().flatten() {
        let has_died = has_died(job);
        died |= has_died;
        at_work += usize::from(job.state().is_live());
        if has_failed(job) {
            failed += 1;
            if example.is_none() || has_died {
                example = job.failure.as_ref().map(describe);
            }
        }
    }
    if died || (failed > 0 && failed * FAILING_PART >= jobs.len()) {
        let example = example.unwrap_or_else(|| "no reason given".to_owned());
        return Health::Failing { failed, example };
    }
    if at_work > 0 { Health::AtWork(at_work) } else { Health::Well }
}

fn describe(failure: &Failure) -> String {
    let code = failure.code().map(|code| format!(" {code}")).unwrap_or_default();
    format!("{}{code}: {}", failure.category().as_str(), failure.message())
}

#[cfg(test)]
mod tests {
    use super::{Health, Seen, judge};
    use rewheel::{Category, Random};
    use rewheel_core::{
        DueReason, Failure, Fence, Job, JobId, KindName, Lane, Priority, Shard, State, Status,
        Timestamp, Version,
    };

    /// A job that was redriven after three attempts, and made this many since.
    fn job(state: State, attempts: u32) -> Option<Job> {
        let now = Timestamp::from_millis(0);
        let kind = KindName::parse("charge").unwrap();
        Some(Job {
            id: JobId::new(now, &Random::seeded(1)),
            lane: Lane { kind, tenant: None, priority: Priority::default(), shard: Shard::NONE },
            key: None,
            shard_key: None,
            payload: None,
            attempts_max: None,
            attempt_timeout: None,
            backoff: None,
            traceparent: None,
            parent: None,
            instant: None,
            group: None,
            created: now,
            deadline: None,
            due: now,
            because: DueReason::Person,
            status: match state {
                State::Succeeded => Status::Succeeded(now),
                State::Failed => Status::Failed(now),
                State::Dead => Status::Dead(now),
                State::Cancelled => Status::Cancelled(now),
                State::Paused => Status::Paused,
                State::Scheduled | State::Leased => Status::Scheduled,
            },
            fence: Fence::new(3),
            version: Version::new(9),
            attempt: 3 + attempts,
            attempts_before: 3,
            takeovers: 0,
            takeovers_counted: 0,
            failure: Some(Failure::new(Category::Rejected, Some("404"), "no such order")),
        })
    }

    #[track_caller]
    fn check(jobs: &[(usize, Option<Job>)], expected: Health) {
        let each = |(count, job): &(usize, Option<Job>)| vec![job.clone(); *count];
        let jobs: Vec<Option<Job>> = jobs.iter().flat_map(each).collect();
        assert_eq!(judge(&jobs), expected);
    }

    fn failing(failed: usize) -> Health {
        Health::Failing { failed, example: "rejected 404: no such order".to_owned() }
    }

    #[test]
    fn jobs_that_ended_well_are_well() {
        check(&[(5, job(State::Succeeded, 1)), (2, None)], Health::Well);
        check(&[(1, job(State::Succeeded, 4))], Health::Well);
        // An operator cancelled it: that says nothing about the failure.
        check(&[(1, job(State::Cancelled, 0))], Health::Well);
    }

    #[test]
    fn jobs_that_wait_are_waited_for() {
        check(&[(1, job(State::Scheduled, 0))], Health::AtWork(1));
        check(&[(9, None), (1, job(State::Paused, 0))], Health::AtWork(1));
    }

    #[test]
    fn jobs_are_counted_as_they_are_now() {
        let jobs = [
            job(State::Succeeded, 4),
            None,
            job(State::Cancelled, 0),
            job(State::Scheduled, 0),
            job(State::Scheduled, 1),
            job(State::Dead, 1),
        ];
        let seen = Seen::of(&jobs);
        assert_eq!((seen.ok, seen.failed), (3, 2));
        assert_eq!(seen.example, jobs[5].as_ref().map(|job| job.id.to_string()));
        assert_eq!(Seen::of(&[]), Seen::default());
    }

    #[test]
    fn one_that_is_dead_again_is_enough() {
        check(&[(99, None), (1, job(State::Dead, 1))], failing(1));
        check(&[(1, job(State::Failed, 0))], failing(1));
    }

    #[test]
    fn attempts_that_fail_are_enough_when_they_are_a_tenth() {
        check(&[(1, job(State::Scheduled, 1))], failing(1));
        check(&[(9, None), (1, job(State::Scheduled, 1))], failing(1));
        check(&[(91, None), (9, job(State::Scheduled, 1))], Health::AtWork(9));
        check(&[(90, None), (10, job(State::Scheduled, 2))], failing(10));
    }
}
