//! Sets fields of a job to submit; all entry points in Rust use it.

use super::{SubmitError, duplicates, field, name};
use rewheel_core::{GroupKey, Key, Limits, NewJob, Priority, PriorityError, ShardKey, When};
use std::time::Duration;

pub(crate) fn set_key(job: &mut NewJob, key: &str) -> Result<(), SubmitError> {
    job.key = Some(Key::parse(key).map_err(|why| name("key", why))?);
    Ok(())
}

pub(crate) fn set_shard_key(job: &mut NewJob, key: &str) -> Result<(), SubmitError> {
    job.shard_key = Some(ShardKey::parse(key).map_err(|why| name("shard_key", why))?);
    Ok(())
}

pub(crate) fn set_group_key(job: &mut NewJob, key: &str) -> Result<(), SubmitError> {
    job.group_key = Some(GroupKey::parse(key).map_err(|why| name("group_key", why))?);
    Ok(())
}

pub(crate) fn set_priority(job: &mut NewJob, priority: u8) -> Result<(), SubmitError> {
    let wrong = |why: PriorityError| field("priority", why.to_string());
    job.priority = Priority::new(priority).map_err(wrong)?;
    Ok(())
}

pub(crate) fn set_delay(job: &mut NewJob, delay: Duration) -> Result<(), SubmitError> {
    duplicates::check_delay(job)?;
    job.due = When::In(delay.min(Limits::DURATION_MAX));
    Ok(())
}

#[expect(clippy::unnecessary_wraps, reason = "all setters have the same type")]
pub(crate) fn set_deadline_in(job: &mut NewJob, left: Duration) -> Result<(), SubmitError> {
    job.deadline = Some(When::In(left.min(Limits::DURATION_MAX)));
    Ok(())
}

pub(crate) fn set_attempts_max(job: &mut NewJob, attempts_max: u32) -> Result<(), SubmitError> {
    if attempts_max == 0 {
        return Err(field("attempts_max", "must be 1 or more".to_owned()));
    }
    job.attempts_max = Some(attempts_max);
    Ok(())
}

pub(crate) fn set_attempt_timeout(job: &mut NewJob, timeout: Duration) -> Result<(), SubmitError> {
    if timeout.is_zero() {
        return Err(field("attempt_timeout", "must be longer than 0s".to_owned()));
    }
    job.attempt_timeout = Some(timeout);
    Ok(())
}
