//! Checks and corrects batches of new jobs.

use rewheel::Backoff;
use rewheel_core::NewJob;
use rewheel_core::store::StoreError;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
use {rewheel_core::JobId, rewheel_core::store::Inserted, std::collections::HashSet};

/// Rejects a backoff whose text cannot be read back: its row would be unreadable. A custom backoff is stored by its name.
pub(crate) fn check_backoff(job: &NewJob) -> Result<(), StoreError> {
    match job.backoff.map(|backoff| Backoff::from_stored(&backoff.to_string())) {
        None | Some(Ok(_)) => Ok(()),
        Some(Err(error)) => Err(StoreError::Rejected(error.into())),
    }
}

/// Corrects the results of jobs that were not stored after all, and of their duplicates.
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
pub(crate) fn leave_out(jobs: &[NewJob], answers: &mut [Inserted]) {
    let stored: HashSet<JobId> = jobs
        .iter()
        .zip(&*answers)
        .filter(|(_, answer)| matches!(answer, Inserted::Created { .. }))
        .map(|(job, _)| job.id)
        .collect();
    for answer in answers {
        match answer {
            Inserted::Created { .. } | Inserted::Replaced { .. } => *answer = Inserted::LeftOut,
            Inserted::Duplicate { job, .. } if stored.contains(job) => *answer = Inserted::LeftOut,
            Inserted::Duplicate { .. } | Inserted::Refused(_) | Inserted::LeftOut => {}
        }
    }
}
