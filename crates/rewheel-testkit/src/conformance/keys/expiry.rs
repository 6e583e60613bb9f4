//! Tests when a key may be used again.

use super::{keyed, lease_keyed, put_keyed, submit_again, submit_other};
use crate::{Subject, millis, seconds};
use rewheel_core::store::{
    Change, ChangeVerb, Changed, Inserted, Outcome, Prune, Settled, Settlement,
};
use rewheel_core::{Actor, Decision, JobId, Retain, State};
use std::time::Duration;

const YEAR: Duration = Duration::from_secs(365 * 24 * 3_600);

fn is_new(answer: &Inserted) -> bool {
    matches!(answer, Inserted::Created { .. })
}

fn known(job: JobId, state: State) -> Inserted {
    Inserted::Duplicate { job, state }
}

async fn prune(subject: &Subject) {
    let all = Prune { limit: 1_000, audit_older_than: YEAR };
    while !subject.store.prune(&all).await.unwrap().is_nothing() {}
}

/// A key is taken for its retention after its job ended, and then free for any payload.
pub async fn expires_a_while_after_the_end(subject: &Subject) {
    let (holder, lease) = lease_keyed(subject).await;
    // The time before the end does not count.
    subject.clock.advance(seconds(120));
    let keep = Retain { job: YEAR, key: seconds(60) };
    subject.settle(holder, &Settlement { keep, ..Settlement::succeed(lease) }).await;

    subject.clock.advance(seconds(50));
    assert_eq!(submit_again(subject).await, known(lease.job, State::Succeeded));
    subject.clock.advance(seconds(11));
    assert!(is_new(&submit_other(subject).await));
    assert_eq!(subject.get(lease.job).await.state(), State::Succeeded, "the first is still kept");
}

/// Once a key is reused, it belongs to the second job: pruning the first job does not free it.
pub async fn stands_for_the_second_job_when_used_again(subject: &Subject) {
    let (holder, lease) = lease_keyed(subject).await;
    let keep = Retain { job: seconds(60), key: seconds(60) };
    subject.settle(holder, &Settlement { keep, ..Settlement::succeed(lease) }).await;
    subject.clock.advance(seconds(61));
    let second = subject.put(keyed(subject, "order-17")).await;

    assert_eq!(submit_again(subject).await, known(second, State::Scheduled));
    subject.clock.advance(YEAR);
    prune(subject).await;
    assert_eq!(subject.store.get(lease.job).await.unwrap(), None);
    assert_eq!(submit_again(subject).await, known(second, State::Scheduled));
    subject.balance().await;
}

/// A key outlives its pruned job, and still has its final state.
pub async fn outlives_a_pruned_job(subject: &Subject) {
    let (holder, lease) = lease_keyed(subject).await;
    let keep = Retain { job: seconds(60), key: seconds(3_600) };
    let failed = Decision::Fail { failure: subject.timeout() };
    let settlement = Settlement { decision: failed, keep, ..Settlement::succeed(lease) };
    subject.settle(holder, &settlement).await;
    subject.clock.advance(seconds(61));
    prune(subject).await;

    assert_eq!(subject.store.get(lease.job).await.unwrap(), None);
    assert_eq!(submit_again(subject).await, known(lease.job, State::Failed));
    subject.clock.advance(seconds(3_600));
    prune(subject).await;
    assert!(is_new(&submit_again(subject).await));
}

/// The key of a job that has not ended never expires.
pub async fn does_not_expire_before_the_end(subject: &Subject) {
    let job = put_keyed(subject).await;
    subject.clock.advance(YEAR);
    prune(subject).await;
    assert_eq!(submit_again(subject).await, known(job, State::Scheduled));
}

/// The key of a dead letter does not expire: an operator may redrive it at any time.
pub async fn does_not_expire_with_a_dead_letter(subject: &Subject) {
    let (holder, lease) = lease_keyed(subject).await;
    let keep = Retain { job: seconds(1), key: seconds(1) };
    subject.settle(holder, &Settlement { keep, ..subject.dead(lease) }).await;
    subject.clock.advance(YEAR);
    prune(subject).await;
    assert_eq!(submit_again(subject).await, known(lease.job, State::Dead));
}

/// The key stays with a redriven job, and expires after its second end.
pub async fn stays_with_a_redriven_job(subject: &Subject) {
    let (holder, lease) = lease_keyed(subject).await;
    subject.settle(holder, &subject.dead(lease)).await;
    let redriven = subject.change(lease.job, ChangeVerb::Redrive { deadline: None }).await;
    assert!(matches!(redriven, Changed::Applied { state: State::Scheduled, .. }));
    assert_eq!(submit_again(subject).await, known(lease.job, State::Scheduled));

    let second = subject.claim(holder, &["charge"], 1).await[0].lease();
    let keep = Retain { job: YEAR, key: seconds(60) };
    let settled = subject.settle(holder, &Settlement { keep, ..Settlement::succeed(second) }).await;
    assert_eq!(settled, Settled::Applied(Outcome::LetGo(State::Succeeded)));
    assert_eq!(submit_again(subject).await, known(lease.job, State::Succeeded));
    subject.clock.advance(seconds(61));
    assert!(is_new(&submit_again(subject).await));
}

/// The key of a job that an operator cancelled expires like any other.
pub async fn expires_after_a_person_cancelled_the_job(subject: &Subject) {
    let job = put_keyed(subject).await;
    let keep = Retain { job: YEAR, key: seconds(60) };
    let cancel = [Change::new(job, ChangeVerb::Cancel)];
    subject.store.change(&cancel, &Actor::new("suite"), keep).await.unwrap();
    assert_eq!(submit_again(subject).await, known(job, State::Cancelled));
    subject.clock.advance(seconds(61));
    assert!(is_new(&submit_again(subject).await));
}

/// A key without retention is free as soon as its job has ended.
pub async fn is_free_at_once_where_it_is_not_kept(subject: &Subject) {
    let (holder, lease) = lease_keyed(subject).await;
    let keep = Retain { job: YEAR, key: Duration::ZERO };
    subject.settle(holder, &Settlement { keep, ..Settlement::succeed(lease) }).await;
    subject.clock.advance(millis(1));
    assert!(is_new(&submit_other(subject).await));
}
