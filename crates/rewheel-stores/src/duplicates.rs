//! What all stores share to replace jobs that wait.

use rewheel_core::{Job, NewJob, State};
use std::collections::HashSet;

/// The name of a replacement in the audit log.
pub(crate) const REPLACE: &str = "replace";

/// The author of a replacement in the audit log. The entry names the submit itself.
pub(crate) const SUBMIT: &str = "submit";

/// The state of a job that is in no table: it ended and is not kept. That is usual only for jobs that succeeded.
pub(crate) const GONE: State = State::Succeeded;

/// Returns whether a later job of the batch may replace an earlier one. Then no job of the batch is leased at once, so that the result
/// does not depend on whether a lane happens to be empty.
pub(crate) fn has_twins(jobs: &[NewJob]) -> bool {
    if jobs.iter().all(|job| job.duplicates.is_default()) {
        return false;
    }
    let mut names = HashSet::new();
    let keyed = jobs.iter().filter_map(|job| Some((&job.kind, &job.tenant, job.key.as_ref()?)));
    !keyed.into_iter().all(|name| names.insert(name))
}

/// Returns whether engines must look at a replaced job again. They need not if it was only postponed: they look when they expected it
/// to be due.
pub(crate) fn wakes(before: &Job, after: &Job) -> bool {
    before.lane != after.lane || after.due < before.due
}
