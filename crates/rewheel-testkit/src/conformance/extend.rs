//! Tests extending the time of a running attempt.

use crate::subject::{ATTEMPT_TIMEOUT, GRACE};
use crate::{Fault, FaultyStore, Subject, Verb, seconds};
use rewheel_core::store::{Extension, Sweep};
use rewheel_core::{Fence, HolderId, Lease, Retain, Timestamp};
use std::sync::Arc;
use std::time::Duration;

fn by(lease: Lease, timeout: Duration) -> Extension {
    Extension { lease, timeout, total_max: seconds(100_000), grace: GRACE }
}

async fn extend(subject: &Subject, holder: HolderId, extension: &Extension) -> Option<Timestamp> {
    subject.store.extend(holder, extension).await.unwrap()
}

/// Sweeps, and returns whether that freed a job of a live holder.
async fn is_swept(subject: &Subject, holder: HolderId) -> bool {
    subject.store.renew(holder).await.unwrap();
    !subject.store.sweep(&Sweep::new(holder, 1_000, Retain::default())).await.unwrap().is_empty()
}

/// The attempt becomes overdue later, and the lease stays the same.
pub async fn keeps_a_job_from_being_overdue(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    let now = subject.now().await;
    let overdue = extend(subject, holder, &by(lease, ATTEMPT_TIMEOUT * 10)).await.unwrap();
    assert!(overdue >= now.plus(ATTEMPT_TIMEOUT * 10 + GRACE));
    subject.clock.advance(ATTEMPT_TIMEOUT * 2 + GRACE);
    assert!(!is_swept(subject, holder).await, "it has more time");
    assert_eq!(subject.get(lease.job).await.fence, lease.fence);
    subject.clock.advance(ATTEMPT_TIMEOUT * 10);
    assert!(is_swept(subject, holder).await, "its time is over");
}

/// A request for less time than is left changes nothing.
pub async fn takes_no_time_away(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    let long = extend(subject, holder, &by(lease, ATTEMPT_TIMEOUT * 3)).await;
    assert_eq!(extend(subject, holder, &by(lease, seconds(1))).await, long);
}

/// However often it is extended, an attempt does not exceed the total limit.
pub async fn has_a_total_that_it_does_not_pass(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    let now = subject.now().await;
    let total_max = ATTEMPT_TIMEOUT * 2;
    let extension = Extension { total_max, ..by(lease, ATTEMPT_TIMEOUT * 10) };
    for _ in 0..3 {
        let overdue = extend(subject, holder, &extension).await.unwrap();
        assert!(overdue <= now.plus(total_max + GRACE), "{overdue:?}");
        subject.clock.advance(seconds(1));
    }
}

/// A holder that does not have the job, has another fence, or is dead gets no more time.
pub async fn is_refused_to_who_does_not_hold_it(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    let another = subject.holder().await;
    let stranger = HolderId::new(Timestamp::from_millis(0), &subject.random);
    for who in [another, stranger] {
        assert_eq!(extend(subject, who, &by(lease, seconds(60))).await, None);
    }
    let wrong = Lease { fence: Fence::new(0), ..lease };
    assert_eq!(extend(subject, holder, &by(wrong, seconds(60))).await, None);
    subject.succeed(holder, lease).await;
    assert_eq!(extend(subject, holder, &by(lease, seconds(60))).await, None);
    let (dead, lease) = subject.leased("charge").await;
    subject.store.leave(dead).await.unwrap();
    assert_eq!(extend(subject, dead, &by(lease, seconds(60))).await, None);
}

/// The call may be repeated after a lost response.
pub async fn may_be_repeated(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    let faulty = Arc::new(FaultyStore::new(subject.store.clone()));
    let through = Subject::new(faulty.clone(), subject.clock.clone());
    faulty.fail_next(Verb::Extend, Fault::After);
    let extension = by(lease, ATTEMPT_TIMEOUT * 5);
    assert!(through.store.extend(holder, &extension).await.is_err());
    assert!(extend(&through, holder, &extension).await.is_some());
}
