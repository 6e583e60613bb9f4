//! New jobs, and keys that make submitting them again harmless.

use crate::{Subject, lane};
use rewheel_core::{Fence, State};

/// A job reads back as it was submitted.
pub async fn stores_a_job_as_it_was_given(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let new = subject.job("charge");
    subject.insert(std::slice::from_ref(&new)).await;

    let job = subject.get(new.id).await;
    assert_eq!((job.id, &job.lane, job.state()), (new.id, &lane("charge"), State::Scheduled));
    assert_eq!(job.payload.as_ref(), Some(&new.payload));
    assert_eq!((job.attempt, job.takeovers, job.fence), (0, 0, Fence::new(0)));
    assert_eq!((job.failure, job.deadline, job.due), (None, None, job.created));
}
