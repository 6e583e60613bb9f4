//! Tests the ways in which a job ends, for a job that a settle submitted.

use super::{applied, charged, submitting};
use crate::subject::GRACE;
use crate::{Subject, seconds};
use rewheel_core::store::{ChangeVerb, Settlement};
use rewheel_core::{Decision, HolderId, Job, JobId, Lease, NewJob, State, When};

/// Submits a job by a settle. Returns it with its parent.
async fn submitted(subject: &Subject, mail: NewJob) -> (JobId, JobId) {
    let (holder, lease) = charged(subject).await;
    subject.settle(holder, &submitting(lease, std::slice::from_ref(&mail))).await;
    (mail.id, lease.job)
}

/// Leases the job, which is the only due one of its kind.
async fn leased(subject: &Subject) -> (HolderId, Lease) {
    let holder = subject.holder().await;
    (holder, subject.claim_only(holder, "mail").await.lease())
}

/// Checks that a job has ended, and that its parent is still known.
async fn check(subject: &Subject, (job, parent): (JobId, JobId), state: State) -> Job {
    let ended = subject.get(job).await;
    assert_eq!((ended.state(), ended.parent), (state, Some(parent)));
    subject.balance().await;
    ended
}

/// It succeeds, fails, or dies because the runner says so.
pub async fn end_by_a_decision(subject: &Subject) {
    let failure = subject.timeout();
    for (decision, state) in [
        (Decision::Succeed, State::Succeeded),
        (Decision::Fail { failure: failure.clone() }, State::Failed),
        (Decision::Dead { failure }, State::Dead),
        (Decision::Cancel, State::Cancelled),
    ] {
        let job = submitted(subject, subject.job("mail")).await;
        let (holder, lease) = leased(subject).await;
        let settlement = Settlement { decision, ..submitting(lease, &[subject.job("charge")]) };
        assert_eq!(subject.settle(holder, &settlement).await, applied(state));
        check(subject, job, state).await;
        // What it submitted in turn must not disturb the next round.
        let (holder, next) = {
            let holder = subject.holder().await;
            (holder, subject.claim_only(holder, "charge").await.lease())
        };
        subject.succeed(holder, next).await;
    }
}

/// It dies because its holders die.
pub async fn end_by_takeovers(subject: &Subject) {
    let job = submitted(subject, subject.job("mail")).await;
    for _ in 0..3 {
        let (holder, lease) = leased(subject).await;
        subject.start(holder, lease).await;
        subject.heir_of(holder).await;
    }
    check(subject, job, State::Dead).await;
    subject.change(job.0, ChangeVerb::Redrive { deadline: None }).await;
    assert_eq!(subject.get(job.0).await.parent, Some(job.1));
}

/// It dies because its deadline passes.
pub async fn end_by_the_deadline(subject: &Subject) {
    let deadline = Some(When::In(seconds(60)));
    let job = submitted(subject, NewJob { deadline, ..subject.job("mail") }).await;
    subject.clock.advance(seconds(61));
    subject.store.deadlines(GRACE, 10).await.unwrap();
    check(subject, job, State::Dead).await;
}

/// A user cancels it while it lives, while it runs, and when it is a dead letter.
pub async fn end_by_a_cancel(subject: &Subject) {
    let job = submitted(subject, subject.job("mail")).await;
    subject.change(job.0, ChangeVerb::Cancel).await;
    check(subject, job, State::Cancelled).await;

    let job = submitted(subject, subject.job("mail")).await;
    let (holder, lease) = leased(subject).await;
    subject.change(job.0, ChangeVerb::Cancel).await;
    subject.give_back(holder, lease).await;
    check(subject, job, State::Cancelled).await;

    let job = submitted(subject, subject.job("mail")).await;
    let (holder, lease) = leased(subject).await;
    subject.settle(holder, &subject.dead(lease)).await;
    check(subject, job, State::Dead).await;
    subject.change(job.0, ChangeVerb::Cancel).await;
    check(subject, job, State::Cancelled).await;
}
