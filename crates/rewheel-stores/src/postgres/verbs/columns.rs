//! Converts new jobs to one array per column.

use super::super::row::{millis, uuid};
use super::super::session::Param;
use rewheel_core::{Key, NewJob, ShardKey, Timestamp, When};
use uuid::Uuid;

/// The columns of jobs to store. A column without any value is an empty array, which the statement reads as NULLs.
#[derive(Default)]
pub(super) struct Columns<'a> {
    ids: Vec<Uuid>,
    lanes: Vec<i32>,
    due_at: Vec<Option<i64>>,
    due_in: Vec<Option<i64>>,
    deadline_at: Vec<Option<i64>>,
    deadline_in: Vec<Option<i64>>,
    attempts_max: Vec<Option<i64>>,
    attempt_timeout: Vec<Option<i64>>,
    backoff: Vec<Option<String>>,
    key: Vec<Option<&'a str>>,
    shard_key: Vec<Option<&'a str>>,
    traceparent: Vec<Option<&'a str>>,
    payload: Vec<&'a [u8]>,
    attempts_before: Vec<Option<i64>>,
}

impl<'a> Columns<'a> {
    pub(super) fn of(jobs: &[(&'a NewJob, i32)]) -> Columns<'a> {
        Columns {
            ids: jobs.iter().map(|(job, _)| uuid(job.id)).collect(),
            lanes: jobs.iter().map(|(_, lane)| *lane).collect(),
            due_at: sparse(jobs, |job| at(job.due)),
            due_in: sparse(jobs, |job| within(job.due)),
            deadline_at: sparse(jobs, |job| job.deadline.and_then(at)),
            deadline_in: sparse(jobs, |job| job.deadline.and_then(within)),
            attempts_max: sparse(jobs, |job| job.attempts_max.map(i64::from)),
            attempt_timeout: sparse(jobs, |job| job.attempt_timeout.map(millis)),
            backoff: sparse(jobs, |job| job.backoff.map(|backoff| backoff.to_string())),
            key: sparse(jobs, |job| job.key.as_ref().map(Key::as_str)),
            shard_key: sparse(jobs, |job| job.shard_key.as_ref().map(ShardKey::as_str)),
            traceparent: sparse(jobs, |job| job.traceparent.as_deref()),
            payload: jobs.iter().map(|(job, _)| job.payload.as_slice()).collect(),
            attempts_before: sparse(jobs, |job| {
                (job.attempts_before > 0).then(|| i64::from(job.attempts_before))
            }),
        }
    }

    pub(super) fn params(&self) -> [Param<'_>; 14] {
        [
            &self.ids,
            &self.lanes,
            &self.due_at,
            &self.due_in,
            &self.deadline_at,
            &self.deadline_in,
            &self.attempts_max,
            &self.attempt_timeout,
            &self.backoff,
            &self.key,
            &self.shard_key,
            &self.traceparent,
            &self.payload,
            &self.attempts_before,
        ]
    }
}

/// Builds a column that is empty unless at least one job has a value.
fn sparse<'a, T>(
    jobs: &[(&'a NewJob, i32)],
    value: impl Fn(&'a NewJob) -> Option<T>,
) -> Vec<Option<T>> {
    let values: Vec<Option<T>> = jobs.iter().map(|(job, _)| value(job)).collect();
    if values.iter().any(Option::is_some) { values } else { Vec::new() }
}

fn at(when: When) -> Option<i64> {
    match when {
        When::At(at) => Some(Timestamp::as_millis(at)),
        When::In(_) => None,
    }
}

fn within(when: When) -> Option<i64> {
    match when {
        When::In(duration) => Some(millis(duration)),
        When::At(_) => None,
    }
}
