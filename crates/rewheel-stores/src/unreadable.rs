//! Builds the operator advice for jobs whose rows cannot be read.

use rewheel_core::store::Risk;

/// Returns the risk for jobs that were set aside because their rows cannot be read.
pub(crate) fn unreadable_jobs(count: u64, first: &str, reason: &str) -> Risk {
    let message = format!(
        "{count} jobs are paused because their rows cannot be read, the first is {first} ({reason}): if a newer \
         Rewheel wrote them, upgrade this one; else mend the rows; then resume the jobs"
    );
    Risk { name: "unreadable_jobs", message }
}
