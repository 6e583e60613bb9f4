//! Tests the engine's own jobs, which operators can only abort.

use crate::Subject;
use rewheel_core::State;
use rewheel_core::store::{ChangeVerb, Changed, Edit};

/// Only an abort changes a job of a reserved kind, in any state; a refused change writes nothing.
pub async fn a_reserved_job_is_only_aborted(subject: &Subject) {
    let kind = "rewheel.operation";
    let job = subject.submit(kind).await;
    let edit = Edit { payload: Some(b"{}".to_vec()), ..Edit::default() };
    let whats = [
        ChangeVerb::Pause,
        ChangeVerb::Resume,
        ChangeVerb::Cancel,
        ChangeVerb::Retry,
        ChangeVerb::Redrive { deadline: None },
        ChangeVerb::Edit(Box::new(edit)),
    ];
    let before = subject.get(job).await;
    for what in &whats {
        assert_eq!(subject.change(job, what.clone()).await, Changed::Reserved, "{what:?}");
    }
    assert_eq!(subject.get(job).await, before);
    assert_eq!(subject.store.audit(Some(job), None, 10).await.unwrap(), []);
    subject.apply(job, ChangeVerb::Abort).await;
    assert_eq!(subject.get(job).await.state(), State::Cancelled);
    assert_eq!(subject.store.audit(Some(job), None, 10).await.unwrap()[0].what, "abort");
    let (_, lease) = subject.leased(kind).await;
    let dead = subject.dead_letter(kind).await;
    for other in [lease.job, dead] {
        for what in &whats {
            assert_eq!(subject.change(other, what.clone()).await, Changed::Reserved, "{what:?}");
        }
    }
    assert!(matches!(subject.change(lease.job, ChangeVerb::Abort).await, Changed::Wanted { .. }));
    subject.apply(dead, ChangeVerb::Abort).await;
}

/// A job of an ordinary kind cannot be aborted.
pub async fn other_jobs_are_not_aborted(subject: &Subject) {
    let job = subject.submit("charge").await;
    assert_eq!(subject.change(job, ChangeVerb::Abort).await, Changed::Reserved);
    assert_eq!(subject.get(job).await.state(), State::Scheduled);
}
