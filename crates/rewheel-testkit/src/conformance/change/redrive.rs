//! Tests redriving dead letters.

use crate::{Subject, seconds};
use rewheel_core::store::{ChangeVerb, Changed};
use rewheel_core::{DueReason, JobId, State, When};

/// Stores a job with a deadline of a minute, and lets the deadline pass.
async fn missed_deadline(subject: &Subject) -> JobId {
    subject.kinds(&["charge"]).await;
    let mut new = subject.job("charge");
    new.deadline = Some(When::In(seconds(60)));
    subject.insert(std::slice::from_ref(&new)).await;
    subject.clock.advance(seconds(61));
    new.id
}

/// A redriven job keeps its fence and its history, and restarts its count of attempts.
pub async fn redriving_keeps_what_was(subject: &Subject) {
    let by = subject.holder().await;
    let (silent, lease) = subject.leased("charge").await;
    subject.start(silent, lease).await;
    subject.take_over(by, silent).await;
    let second = subject.claim_only(by, "charge").await.lease();
    subject.settle(by, &subject.dead(second)).await;
    let dead = subject.get(lease.job).await;
    let history = subject.store.attempts(lease.job).await.unwrap();
    subject.clock.advance(seconds(60));

    let version = subject.apply(lease.job, ChangeVerb::Redrive { deadline: None }).await;
    let job = subject.get(lease.job).await;
    assert_eq!((job.state(), job.version), (State::Scheduled, version));
    assert_eq!((job.fence, version), (dead.fence, dead.version.next()));
    assert_eq!((job.takeovers, job.takeovers_counted), (1, 1));
    assert_eq!((job.attempt, job.attempts_before), (1, 1));
    assert_eq!((&job.failure, &job.payload), (&dead.failure, &dead.payload));
    assert!(job.due > dead.due && job.due <= subject.now().await);
    assert_eq!(job.because, DueReason::Person);
    assert_eq!(subject.store.attempts(lease.job).await.unwrap(), history);

    let leased = subject.claim_only(by, "charge").await;
    assert_eq!(leased.job.fence, dead.fence.next());
    subject.balance().await;
}

/// Retrying a dead letter redrives it.
pub async fn retrying_a_dead_letter_redrives_it(subject: &Subject) {
    let job = subject.dead_letter("charge").await;
    subject.apply(job, ChangeVerb::Retry).await;
    let redriven = subject.get(job).await;
    assert_eq!(redriven.state(), State::Scheduled);
    assert_eq!((redriven.attempt, redriven.attempts_before), (1, 1));
}

/// A dead letter whose deadline has passed needs a new one in the future.
pub async fn redriving_needs_a_deadline_that_lies_ahead(subject: &Subject) {
    let job = missed_deadline(subject).await;
    subject.store.deadlines(seconds(0), 10).await.unwrap();
    let dead = subject.get(job).await;

    let past = subject.now().await;
    subject.clock.advance(seconds(1));
    for what in [
        ChangeVerb::Retry,
        ChangeVerb::Redrive { deadline: None },
        ChangeVerb::Redrive { deadline: Some(When::At(past)) },
    ] {
        assert_eq!(subject.change(job, what).await, Changed::NeedsDeadline);
        assert_eq!(subject.get(job).await, dead);
    }
    let deadline = subject.now().await.plus(seconds(60));
    subject.apply(job, ChangeVerb::Redrive { deadline: Some(When::At(deadline)) }).await;
    let redriven = subject.get(job).await;
    assert_eq!((redriven.state(), redriven.deadline), (State::Scheduled, Some(deadline)));
}

/// A job past its deadline that no sweep has ended yet cannot be retried by an operator either.
pub async fn retrying_past_the_deadline_needs_another(subject: &Subject) {
    let scheduled = missed_deadline(subject).await;
    assert_eq!(subject.change(scheduled, ChangeVerb::Retry).await, Changed::NeedsDeadline);
    subject.apply(scheduled, ChangeVerb::Pause).await;
    assert_eq!(subject.change(scheduled, ChangeVerb::Retry).await, Changed::NeedsDeadline);
    assert_eq!(subject.get(scheduled).await.state(), State::Paused);
}

/// A deadline that has not passed is kept, unless a new one is given.
pub async fn redriving_may_replace_the_deadline(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let mut new = subject.job("charge");
    new.deadline = Some(When::In(seconds(3_600)));
    let (holder, lease) = subject.lease_new(&new).await;
    subject.settle(holder, &subject.dead(lease)).await;
    let old = subject.get(lease.job).await.deadline;

    subject.apply(lease.job, ChangeVerb::Redrive { deadline: None }).await;
    assert_eq!(subject.get(lease.job).await.deadline, old);

    let again = subject.claim_only(holder, "charge").await.lease();
    subject.settle(holder, &subject.dead(again)).await;
    let deadline = subject.now().await.plus(seconds(7_200));
    subject.apply(lease.job, ChangeVerb::Redrive { deadline: Some(When::At(deadline)) }).await;
    let redriven = subject.get(lease.job).await;
    assert_eq!((redriven.deadline, redriven.attempts_before), (Some(deadline), 2));
}
