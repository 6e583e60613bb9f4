//! Tests late settlements, when the job belongs to another holder or to none.

use super::{claim_one, let_go};
use crate::{Subject, seconds};
use rewheel_core::store::{ChangeVerb, Outcome, Settled, Settlement, Sweep};
use rewheel_core::{Fence, HolderId, Job, Lease, State, Status, Timestamp};
use std::time::Duration;

/// Checks that a settlement is lost, and does not change the job.
async fn check_lost(subject: &Subject, holder: HolderId, lease: Lease) {
    let before: Job = subject.get(lease.job).await;
    let late = [
        Settlement::succeed(lease),
        subject.retry(lease, seconds(60), false),
        subject.retry(lease, seconds(60), true),
        subject.dead(lease),
    ];
    let records = subject.store.attempts(lease.job).await.unwrap();
    for settlement in late {
        let settled = subject.settle(holder, &settlement).await;
        assert_eq!(settled, Settled::Lost, "{:?}", settlement.decision);
    }
    assert_eq!(subject.get(lease.job).await, before);
    assert_eq!(subject.store.attempts(lease.job).await.unwrap(), records);
}

/// After a takeover the old holder has lost the job, before and after another holder claims it.
pub async fn is_lost_after_a_takeover(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    let by = subject.heir_of(holder).await;
    assert!(subject.get(lease.job).await.fence > lease.fence);
    check_lost(subject, holder, lease).await;
    let new = claim_one(subject, by, lease.job).await;
    check_lost(subject, holder, lease).await;
    assert_eq!(subject.succeed(by, new).await, let_go(State::Succeeded));
    check_lost(subject, holder, lease).await;
}

/// A live holder that kept a job until it was overdue has lost it, too, even if it claims the same
/// job again.
pub async fn is_lost_after_being_overdue(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    subject.clock.advance(seconds(3_600));
    let keep = rewheel_core::Retain::default();
    assert_eq!(subject.store.sweep(&Sweep::new(holder, 10, keep)).await.unwrap().len(), 1);
    check_lost(subject, holder, lease).await;
    let new = claim_one(subject, holder, lease.job).await;
    check_lost(subject, holder, lease).await;
    assert_eq!(subject.succeed(holder, new).await, let_go(State::Succeeded));
}

/// The fence continues through death and redrive: an old fence is not reused.
pub async fn is_lost_after_a_redrive(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    let by = subject.heir_of(holder).await;
    let second = claim_one(subject, by, lease.job).await;
    subject.settle(by, &subject.dead(second)).await;
    check_lost(subject, holder, lease).await;
    subject.change(lease.job, ChangeVerb::Redrive { deadline: None }).await;
    check_lost(subject, holder, lease).await;
    let third = claim_one(subject, by, lease.job).await;
    assert!(third.fence > second.fence && second.fence > lease.fence);
    check_lost(subject, holder, lease).await;
}

/// A settlement of attempt 1 that arrives after attempt 2 was settled does not overwrite it.
pub async fn does_not_overwrite_the_next_attempt(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    subject.settle(holder, &subject.retry(lease, Duration::ZERO, true)).await;
    let second = Lease { fence: lease.fence.next(), ..lease };
    subject.settle(holder, &subject.retry(second, seconds(500), true)).await;
    check_lost(subject, holder, lease).await;
    let third = Lease { fence: second.fence.next(), ..lease };
    subject.settle(holder, &subject.retry(third, seconds(900), false)).await;
    check_lost(subject, holder, lease).await;
    check_lost(subject, holder, second).await;
}

/// A different decision about an attempt that was settled as a sticky retry is not written: the
/// first one counts.
pub async fn does_not_change_its_mind(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    subject.settle(holder, &subject.retry(lease, seconds(60), true)).await;
    let before = subject.get(lease.job).await;
    let settled = subject.succeed(holder, lease).await;
    assert!(matches!(settled, Settled::AlreadyApplied(_)), "{settled:?}");
    assert_eq!(subject.get(lease.job).await, before);
}

/// The holder is part of the check: the right fence with another holder is not enough.
pub async fn is_lost_for_another_holder(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    let another = subject.holder().await;
    check_lost(subject, another, lease).await;
    let stranger = HolderId::new(Timestamp::from_millis(0), &subject.random);
    check_lost(subject, stranger, lease).await;
    assert_eq!(subject.succeed(holder, lease).await, let_go(State::Succeeded));
    check_lost(subject, another, lease).await;
}

/// A holder must name the right fence.
pub async fn is_lost_under_another_fence(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    for fence in [Fence::new(0), lease.fence.next(), Fence::new(1_000)] {
        check_lost(subject, holder, Lease { fence, ..lease }).await;
    }
}

/// A job that was never claimed cannot be settled.
pub async fn is_lost_for_a_job_that_was_not_claimed(subject: &Subject) {
    let job = subject.submit("charge").await;
    let holder = subject.holder().await;
    check_lost(subject, holder, Lease { job, fence: Fence::new(0) }).await;
    check_lost(subject, holder, Lease { job, fence: Fence::new(1) }).await;
}

/// A settlement of an unknown or deleted job has no effect.
pub async fn finds_nothing_of_an_unknown_job(subject: &Subject) {
    let holder = subject.holder().await;
    let unknown = Lease { job: subject.id(), fence: Fence::new(1) };
    let settled = subject.settle(holder, &subject.dead(unknown)).await;
    assert_eq!(settled, Settled::AlreadyApplied(Outcome::Gone));
    assert_eq!(subject.store.get(unknown.job).await.unwrap(), None);
    assert_eq!(subject.store.attempts(unknown.job).await.unwrap(), []);
    subject.balance().await;
}

/// A dead holder may still report its results until its jobs are swept.
pub async fn takes_the_last_words_of_the_dead(subject: &Subject) {
    let by = subject.holder().await;
    let (left, lease) = subject.leased("charge").await;
    subject.store.leave(left).await.unwrap();
    assert_eq!(subject.succeed(left, lease).await, let_go(State::Succeeded));
    let (expired, lease) = subject.leased("charge").await;
    subject.expire_holder(by, expired).await;
    let settled = subject.settle(expired, &subject.retry(lease, seconds(60), false)).await;
    assert_eq!(settled, let_go(State::Scheduled));
}

/// A dead holder cannot keep a sticky retry: the job waits in the store, with its due time.
pub async fn lets_go_of_a_sticky_retry_of_the_dead(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    subject.store.leave(holder).await.unwrap();
    let settlement = subject.retry(lease, seconds(60), true);
    let before = subject.now().await.plus(seconds(60));
    assert_eq!(subject.settle(holder, &settlement).await, let_go(State::Scheduled));
    let after = subject.now().await.plus(seconds(60));

    let job = subject.get(lease.job).await;
    assert_eq!((job.status, job.attempt), (Status::Scheduled, 1));
    assert!((before..=after).contains(&job.due), "{job:?}");
    let again = subject.settle(holder, &settlement).await;
    assert_eq!(again, Settled::AlreadyApplied(Outcome::LetGo(State::Scheduled)));
    let another = subject.holder().await;
    subject.clock.advance(seconds(60));
    claim_one(subject, another, lease.job).await;
}
