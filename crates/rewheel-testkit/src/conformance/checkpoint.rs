//! Tests checkpoints, which one attempt leaves to the next.

use crate::{Fault, FaultyStore, Subject, Verb, seconds};
use rewheel_core::store::{Insert, Inserted, Outcome, Settled, StoreError};
use rewheel_core::{Fence, HolderId, Key, Lease, NewJob, Retain, State, Timestamp};
use std::sync::Arc;

async fn checkpoint(subject: &Subject, holder: HolderId, lease: Lease, payload: &[u8]) -> bool {
    subject.store.checkpoint(holder, lease, payload).await.unwrap()
}

async fn payload(subject: &Subject, lease: Lease) -> Vec<u8> {
    subject.get(lease.job).await.payload.unwrap()
}

/// The next attempt continues from the checkpoint.
pub async fn is_what_the_next_attempt_gets(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    assert!(checkpoint(subject, holder, lease, b"half").await);
    assert!(checkpoint(subject, holder, lease, b"three quarters").await);
    subject.settle(holder, &subject.retry(lease, seconds(0), false)).await;
    let other = subject.holder().await;
    let claimed = subject.claim(other, &["charge"], 1).await;
    assert_eq!(claimed[0].job.payload.as_deref(), Some(&b"three quarters"[..]));
}

/// A late holder cannot overwrite it.
pub async fn is_refused_to_who_does_not_hold_it(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    let before = subject.get(lease.job).await;
    let another = subject.holder().await;
    let stranger = HolderId::new(Timestamp::from_millis(0), &subject.random);
    for who in [another, stranger] {
        assert!(!checkpoint(subject, who, lease, b"mine").await);
    }
    for fence in [Fence::new(0), lease.fence.next()] {
        assert!(!checkpoint(subject, holder, Lease { fence, ..lease }, b"mine").await);
    }
    assert!(!checkpoint(subject, holder, Lease { job: subject.id(), ..lease }, b"mine").await);
    assert_eq!(subject.get(lease.job).await, before);
}

/// A job that was settled, kept for a retry or given back has another lease, or none.
pub async fn is_refused_when_the_job_is_let_go(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    subject.settle(holder, &subject.retry(lease, seconds(60), true)).await;
    assert!(!checkpoint(subject, holder, lease, b"late").await, "it was kept under the next fence");
    let kept = Lease { fence: lease.fence.next(), ..lease };
    assert!(checkpoint(subject, holder, kept, b"in time").await);
    subject.store.give_back(holder, &[kept], Retain::default()).await.unwrap();
    assert!(!checkpoint(subject, holder, kept, b"late").await, "it was given back");
    assert_eq!(payload(subject, lease).await, b"in time");
    let (holder, lease) = subject.leased("charge").await;
    subject.succeed(holder, lease).await;
    assert!(!checkpoint(subject, holder, lease, b"late").await, "it was settled");
}

/// A checkpoint is a visible change of the payload only.
pub async fn does_not_disturb_the_lease(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    let before = subject.get(lease.job).await;
    assert!(checkpoint(subject, holder, lease, b"half").await);
    let mut after = subject.get(lease.job).await;
    assert_eq!(after.version, before.version.next());
    (after.version, after.payload) = (before.version, before.payload.clone());
    assert_eq!(after, before);
    let settled = subject.succeed(holder, lease).await;
    assert_eq!(settled, Settled::Applied(Outcome::LetGo(State::Succeeded)));
}

/// Submitting the job again compares with the original payload.
pub async fn leaves_the_key_as_it_was(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let new = || NewJob { key: Some(Key::parse("order-17").unwrap()), ..subject.job("charge") };
    let job = subject.put(new()).await;
    let holder = subject.holder().await;
    let claimed = subject.claim(holder, &["charge"], 1).await;
    assert!(checkpoint(subject, holder, claimed[0].lease(), b"half").await);
    let answers = subject.answers(&Insert::new(&[new()])).await;
    assert_eq!(answers, [Inserted::Duplicate { job, state: State::Leased }]);
}

/// It remains after a takeover, and after the job has ended.
pub async fn outlives_the_holder_and_the_job(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    assert!(checkpoint(subject, holder, lease, b"half").await);
    let heir = subject.heir_of(holder).await;
    assert!(!checkpoint(subject, holder, lease, b"late").await);
    let claimed = subject.claim(heir, &["charge"], 1).await;
    assert_eq!(claimed[0].job.payload.as_deref(), Some(&b"half"[..]));
    assert!(checkpoint(subject, heir, claimed[0].lease(), b"all").await);
    subject.succeed(heir, claimed[0].lease()).await;
    assert_eq!(payload(subject, lease).await, b"all");
}

/// A call that fails, or whose response is lost, can be repeated.
pub async fn may_be_repeated(subject: &Subject) {
    let faulty = Arc::new(FaultyStore::new(subject.store.clone()));
    let (holder, lease) = subject.leased("charge").await;
    let through = Subject::new(faulty.clone(), subject.clock.clone());
    for fault in [Fault::Before, Fault::After] {
        faulty.fail_next(Verb::Checkpoint, fault);
        assert!(through.store.checkpoint(holder, lease, b"half").await.is_err());
        assert!(checkpoint(&through, holder, lease, b"half").await);
        assert_eq!(payload(subject, lease).await, b"half");
    }
}

/// A payload that is too large to submit is also too large for a checkpoint.
pub async fn refuses_what_is_too_large(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    let before = subject.get(lease.job).await;
    let large = vec![0; subject.store.capabilities().payload_bytes_max + 1];
    let refused = subject.store.checkpoint(holder, lease, &large).await;
    assert!(matches!(refused, Err(StoreError::Rejected(_))), "{refused:?}");
    assert_eq!(subject.get(lease.job).await, before);
}
