//! Tests recording the start of suspect jobs.

use crate::{Subject, seconds};
use rewheel_core::store::{Outcome, Settled, StoreError};
use rewheel_core::{Fence, HolderId, JobId, Lease, Retain, State, Timestamp};
use std::time::Duration;

async fn start(subject: &Subject, holder: HolderId, lease: Lease) -> bool {
    let answers = subject.store.start(holder, &[lease]).await.unwrap();
    assert_eq!(answers.len(), 1);
    answers[0]
}

/// Returns how often a job was taken over, and how often it was running then.
async fn takeovers(subject: &Subject, job: JobId) -> (u32, u32) {
    let job = subject.get(job).await;
    (job.takeovers, job.takeovers_counted)
}

/// A takeover counts against a job whose start was recorded, and not against one that waited.
pub async fn makes_a_takeover_count(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    subject.insert(&subject.jobs("charge", 2)).await;
    let holder = subject.holder().await;
    let claimed = subject.claim(holder, &["charge"], 2).await;
    assert!(start(subject, holder, claimed[0].lease()).await);
    subject.heir_of(holder).await;
    assert_eq!(takeovers(subject, claimed[0].job.id).await, (1, 1));
    assert_eq!(takeovers(subject, claimed[1].job.id).await, (1, 0));
}

/// A start that is recorded twice after a lost response counts once.
pub async fn may_be_repeated(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    assert!(start(subject, holder, lease).await);
    assert!(start(subject, holder, lease).await);
    subject.heir_of(holder).await;
    assert_eq!(takeovers(subject, lease.job).await, (1, 1));
}

/// A start belongs to one lease: the next holder of the job starts without it.
pub async fn counts_for_its_own_lease_only(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    assert!(start(subject, holder, lease).await);
    let second = subject.heir_of(holder).await;
    assert_eq!(subject.claim(second, &["charge"], 1).await.len(), 1);
    subject.heir_of(second).await;
    assert_eq!(takeovers(subject, lease.job).await, (2, 1));
}

/// A started attempt was settled: a holder that dies while the job waits for its sticky retry did
/// not die because of it.
pub async fn does_not_count_for_a_sticky_retry_that_waits(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    assert!(start(subject, holder, lease).await);
    subject.settle(holder, &subject.retry(lease, seconds(60), true)).await;
    subject.heir_of(holder).await;
    assert_eq!(takeovers(subject, lease.job).await, (1, 0));
}

/// Each attempt of a sticky retry may be recorded under its own fence only.
pub async fn counts_for_the_next_fence_of_a_sticky_retry(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    subject.settle(holder, &subject.retry(lease, Duration::ZERO, true)).await;
    assert!(!start(subject, holder, lease).await, "that attempt is over");
    let kept = Lease { fence: lease.fence.next(), ..lease };
    assert!(start(subject, holder, kept).await);
    subject.heir_of(holder).await;
    assert_eq!(takeovers(subject, lease.job).await, (1, 1));
}

/// A holder that does not have the job gets `false`, and records nothing.
pub async fn is_refused_to_who_does_not_hold_it(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    let another = subject.holder().await;
    let stranger = HolderId::new(Timestamp::from_millis(0), &subject.random);
    for who in [another, stranger] {
        assert!(!held_to_start(subject, who, lease).await);
    }
    assert!(!start(subject, holder, Lease { fence: lease.fence.next(), ..lease }).await);
    assert!(!start(subject, holder, Lease { fence: Fence::new(0), ..lease }).await);
    assert!(!start(subject, holder, Lease { job: subject.id(), ..lease }).await);
    subject.heir_of(holder).await;
    assert_eq!(takeovers(subject, lease.job).await, (1, 0));
}

/// A dead holder cannot start jobs, even before it is swept.
pub async fn is_refused_to_the_dead(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    subject.store.leave(holder).await.unwrap();
    assert!(!held_to_start(subject, holder, lease).await);
    subject.heir_of(holder).await;
    assert_eq!(takeovers(subject, lease.job).await, (1, 0));
}

/// Returns whether a holder that may be dead was told that it has the job.
async fn held_to_start(subject: &Subject, holder: HolderId, lease: Lease) -> bool {
    match subject.store.start(holder, &[lease]).await {
        Ok(answers) => answers == [true],
        Err(StoreError::HolderDead(_)) => false,
        Err(other) => panic!("{other}"),
    }
}

/// A job that was settled, given back or taken over cannot be started any more.
pub async fn is_refused_when_the_job_is_let_go(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    subject.succeed(holder, lease).await;
    assert!(!start(subject, holder, lease).await, "it was settled");
    let (holder, lease) = subject.leased("charge").await;
    subject.store.give_back(holder, &[lease], Retain::default()).await.unwrap();
    assert!(!start(subject, holder, lease).await, "it was given back");
}

/// The items of a batch are answered in order, and each held one is recorded.
pub async fn answers_in_the_order_of_the_items(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    subject.insert(&subject.jobs("charge", 3)).await;
    let holder = subject.holder().await;
    let claimed = subject.claim(holder, &["charge"], 3).await;
    subject.succeed(holder, claimed[1].lease()).await;
    let leases = [claimed[2].lease(), claimed[1].lease(), claimed[0].lease()];
    assert_eq!(subject.store.start(holder, &leases).await.unwrap(), [true, false, true]);
    subject.heir_of(holder).await;
    assert_eq!(takeovers(subject, claimed[0].job.id).await, (1, 1));
    assert_eq!(takeovers(subject, claimed[2].job.id).await, (1, 1));
}

/// A start changes neither the lease nor the next steps.
pub async fn does_not_disturb_the_lease(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    let before = subject.get(lease.job).await;
    assert!(start(subject, holder, lease).await);
    let job = subject.get(lease.job).await;
    assert_eq!((job.status, job.fence, job.attempt), (before.status, before.fence, 0));
    let settled = subject.succeed(holder, lease).await;
    assert_eq!(settled, Settled::Applied(Outcome::LetGo(State::Succeeded)));
}
