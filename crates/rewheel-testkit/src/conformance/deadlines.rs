//! Tests that jobs end when their deadline has passed.

use crate::{Subject, lane, seconds};
use rewheel::Category;
use rewheel_core::store::{ChangeVerb, Outcome, Settled};
use rewheel_core::{
    Cause, Failure, JobEvent, JobId, KindChange, NewJob, State, Status, Timestamp, When,
};

const DEADLINE: u64 = 60;
const GRACE: u64 = 30;

fn with_deadline(subject: &Subject, kind: &str) -> NewJob {
    let mut new = subject.job(kind);
    new.deadline = Some(When::In(seconds(DEADLINE)));
    new
}

/// Stores a job with a deadline.
async fn submit(subject: &Subject, kind: &str) -> JobId {
    subject.kinds(&[kind]).await;
    let new = with_deadline(subject, kind);
    subject.insert(std::slice::from_ref(&new)).await;
    new.id
}

async fn sweep(subject: &Subject) -> Vec<JobEvent> {
    subject.store.deadlines(seconds(GRACE), 100).await.unwrap()
}

async fn assert_ended(subject: &Subject, job: JobId) -> Timestamp {
    let ended = subject.get(job).await;
    assert_eq!(ended.failure, Some(Failure::of_deadline()));
    assert_eq!(ended.failure.unwrap().category(), Category::Deadline);
    let Status::Dead(at) = ended.status else { panic!("not dead: {:?}", ended.status) };
    at
}

/// A scheduled job that did not run in time becomes a dead letter.
pub async fn ends_a_scheduled_job(subject: &Subject) {
    let job = submit(subject, "charge").await;
    subject.clock.advance(seconds(DEADLINE + 1));

    let events = sweep(subject).await;
    let event = &events[0];
    assert_eq!((events.len(), event.job, event.kind.as_str()), (1, job, "charge"));
    assert_eq!((event.from, event.to), (State::Scheduled, State::Dead));
    assert_eq!((event.cause, event.holder), (Cause::Deadline, None));
    assert_eq!(assert_ended(subject, job).await, event.at);
    assert_eq!(sweep(subject).await, []);
}

/// A paused job also ends at its deadline.
pub async fn ends_a_paused_job(subject: &Subject) {
    let job = submit(subject, "charge").await;
    subject.apply(job, ChangeVerb::Pause).await;
    subject.clock.advance(seconds(DEADLINE + 1));

    assert_eq!(sweep(subject).await[0].from, State::Paused);
    assert_ended(subject, job).await;
}

/// A leased job gets a grace time, then it is taken from its holder.
pub async fn ends_a_leased_job_after_the_grace_time(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let (holder, lease) = subject.lease_new(&with_deadline(subject, "charge")).await;
    subject.clock.advance(seconds(DEADLINE + 1));
    assert_eq!(sweep(subject).await, []);
    assert_eq!(subject.get(lease.job).await.state(), State::Leased);
    subject.clock.advance(seconds(GRACE));

    let events = sweep(subject).await;
    assert_eq!((events.len(), events[0].from), (1, State::Leased));
    assert_eq!(events[0].holder, Some(holder));
    assert_ended(subject, lease.job).await;
    assert_eq!(subject.succeed(holder, lease).await, Settled::Lost);
    subject.balance().await;
}

/// Work that was done in time may be settled within the grace time.
pub async fn what_was_done_in_time_counts(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let (holder, lease) = subject.lease_new(&with_deadline(subject, "charge")).await;
    subject.clock.advance(seconds(DEADLINE + 1));
    sweep(subject).await;

    let settled = subject.succeed(holder, lease).await;
    assert_eq!(settled, Settled::Applied(Outcome::LetGo(State::Succeeded)));
    subject.clock.advance(seconds(3_600));
    assert_eq!(sweep(subject).await, []);
}

/// A job of a parked kind ends at its deadline.
pub async fn ends_a_job_of_a_parked_kind(subject: &Subject) {
    let job = submit(subject, "charge").await;
    subject.park("charge").await;
    subject.clock.advance(seconds(DEADLINE + 1));
    assert_eq!(sweep(subject).await.len(), 1);
    assert_ended(subject, job).await;
}

/// A job of a paused kind ends at its deadline.
pub async fn ends_a_job_of_a_paused_kind(subject: &Subject) {
    let job = submit(subject, "charge").await;
    subject.apply_kind("charge", KindChange::Pause).await;
    subject.clock.advance(seconds(DEADLINE + 1));
    assert_eq!(sweep(subject).await.len(), 1);
    assert_ended(subject, job).await;
}

/// No job ends before its deadline, or without one.
pub async fn ends_nothing_before_its_time(subject: &Subject) {
    let job = submit(subject, "charge").await;
    let without = subject.submit("charge").await;
    subject.clock.advance(seconds(DEADLINE - 30));
    assert_eq!(sweep(subject).await, []);
    subject.clock.advance(seconds(3_600));

    let ended: Vec<JobId> = sweep(subject).await.iter().map(|event| event.job).collect();
    assert_eq!(ended, [job]);
    assert_eq!(subject.get(without).await.state(), State::Scheduled);
}

/// No more jobs are ended per call than the limit, and all in the end.
pub async fn ends_no_more_than_asked(subject: &Subject) {
    for _ in 0..5 {
        submit(subject, "charge").await;
    }
    subject.clock.advance(seconds(DEADLINE + 1));
    for expected in [2, 2, 1, 0] {
        let events = subject.store.deadlines(seconds(GRACE), 2).await.unwrap();
        assert_eq!(events.len(), expected);
    }
    assert_eq!(subject.store.books().await.unwrap().dead, 5);
    subject.balance().await;
}

/// No job starts after its deadline, even if no sweep has ended it yet.
pub async fn nothing_starts_after_its_deadline(subject: &Subject) {
    let holder = subject.holder().await;
    submit(subject, "charge").await;
    let fresh = subject.submit("charge").await;
    subject.clock.advance(seconds(DEADLINE + 1));

    assert_eq!(subject.claim_only(holder, "charge").await.job.id, fresh);
    assert_eq!(sweep(subject).await.len(), 1);
}

/// A missed deadline uses no attempt, and earlier failures stay in the history.
pub async fn a_missed_deadline_is_no_attempt(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let (holder, lease) = subject.lease_new(&with_deadline(subject, "charge")).await;
    subject.settle(holder, &subject.retry(lease, seconds(1), false)).await;
    let before = subject.get(lease.job).await;
    subject.clock.advance(seconds(DEADLINE + 1));
    sweep(subject).await;

    assert_ended(subject, lease.job).await;
    let dead = subject.get(lease.job).await;
    assert_eq!((dead.attempt, dead.takeovers), (1, 0));
    assert!(dead.version > before.version);
    assert_eq!(subject.store.attempts(lease.job).await.unwrap().len(), 1);
}

/// A redriven job lives until its new deadline, and ends at that.
pub async fn a_new_deadline_counts_afresh(subject: &Subject) {
    let job = submit(subject, "charge").await;
    subject.clock.advance(seconds(DEADLINE + 1));
    sweep(subject).await;
    let first = assert_ended(subject, job).await;
    let deadline = Some(When::In(seconds(DEADLINE)));
    subject.apply(job, ChangeVerb::Redrive { deadline }).await;
    assert_eq!(sweep(subject).await, []);
    assert_eq!(subject.lanes(&["charge"]).await[0].lane, lane("charge"));

    subject.clock.advance(seconds(DEADLINE + 1));
    assert_eq!(sweep(subject).await.len(), 1);
    assert!(assert_ended(subject, job).await > first);
}
