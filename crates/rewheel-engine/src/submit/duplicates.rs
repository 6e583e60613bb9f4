//! Sets what a submit does if another job has its key.

use super::{SubmitError, field};
use rewheel_core::{Debounce, DuplicatesError, NewJob, OnDuplicate, UniqueUntil, When};
use std::time::Duration;

pub(crate) fn set_unique_until(job: &mut NewJob, until: UniqueUntil) -> Result<(), SubmitError> {
    job.duplicates = job.duplicates.with_unique_until(until).map_err(wrong)?;
    Ok(())
}

pub(crate) fn set_on_duplicate(job: &mut NewJob, on: OnDuplicate) -> Result<(), SubmitError> {
    job.duplicates = job.duplicates.with_on_duplicate(on).map_err(wrong)?;
    Ok(())
}

pub(crate) fn set_debounce(
    job: &mut NewJob,
    delay: Duration,
    max: Option<Duration>,
) -> Result<(), SubmitError> {
    let debounce = Debounce::new(delay, max).map_err(wrong)?;
    if job.duplicates.debounce().is_none() && job.due != When::In(Duration::ZERO) {
        return Err(beside_delay());
    }
    job.duplicates = job.duplicates.with_debounce(debounce).map_err(wrong)?;
    job.due = When::In(debounce.delay());
    Ok(())
}

/// Checks that a job that gets a delay is not debounced, which sets its delay.
pub(crate) fn check_delay(job: &NewJob) -> Result<(), SubmitError> {
    if job.duplicates.debounce().is_some() { Err(beside_delay()) } else { Ok(()) }
}

/// Checks what can be checked only when all fields are set.
pub(crate) fn check(job: &NewJob) -> Result<(), SubmitError> {
    job.check_duplicates().map_err(wrong)
}

fn beside_delay() -> SubmitError {
    field("debounce", "cannot be combined with `delay`: remove one of the two".to_owned())
}

fn wrong(error: DuplicatesError) -> SubmitError {
    field(error.field, error.why)
}
