//! Tests pausing and cancelling a job while an attempt runs.

use super::{NOT_KEPT, claim_one, decisions, let_go, with};
use crate::{Subject, seconds};
use rewheel_core::store::{ChangeVerb, Changed, Outcome, Settled, Settlement};
use rewheel_core::{Decision, HolderId, Lease, State, Status, Wanted};
use std::time::Duration;

/// Leases a job, and sets what an operator wants of it.
async fn leased_and_wanted(subject: &Subject, wanted: Wanted) -> (HolderId, Lease) {
    let (holder, lease) = subject.leased("charge").await;
    let what = match wanted {
        Wanted::Pause => ChangeVerb::Pause,
        Wanted::Cancel => ChangeVerb::Cancel,
    };
    let changed = subject.change(lease.job, what).await;
    assert!(matches!(changed, Changed::Wanted { .. }), "{changed:?}");
    (holder, lease)
}

/// A job with a wanted cancel ends with its attempt, whatever was decided; a success stays a
/// success.
pub async fn obeys_a_wanted_cancel(subject: &Subject) {
    for decision in decisions(subject, seconds(60)) {
        let (holder, lease) = leased_and_wanted(subject, Wanted::Cancel).await;
        let settled = subject.settle(holder, &with(lease, decision.clone())).await;
        let expected =
            if decision == Decision::Succeed { State::Succeeded } else { State::Cancelled };
        assert_eq!(settled, let_go(expected), "{decision:?}");
        let job = subject.get(lease.job).await;
        assert_eq!(job.state(), expected, "{decision:?}");
        assert_eq!(job.attempt, u32::from(decision.uses_attempt()), "{decision:?}");
    }
    subject.balance().await;
}

/// A job with a wanted pause is paused, unless its attempt ended it.
pub async fn obeys_a_wanted_pause(subject: &Subject) {
    for decision in decisions(subject, seconds(60)) {
        let (holder, lease) = leased_and_wanted(subject, Wanted::Pause).await;
        let settled = subject.settle(holder, &with(lease, decision.clone())).await;
        let expected = match decision {
            Decision::Succeed => State::Succeeded,
            Decision::Retry { .. } | Decision::Snooze { .. } | Decision::Pause => State::Paused,
            Decision::Dead { .. } => State::Dead,
            Decision::Fail { .. } => State::Failed,
            Decision::Cancel => State::Cancelled,
        };
        assert_eq!(settled, let_go(expected), "{decision:?}");
        assert_eq!(subject.get(lease.job).await.state(), expected, "{decision:?}");
    }
    subject.balance().await;
}

/// A job that was paused instead of retried keeps the due time of the retry.
pub async fn keeps_the_due_of_a_retry_that_was_paused(subject: &Subject) {
    for sticky in [false, true] {
        let (holder, lease) = leased_and_wanted(subject, Wanted::Pause).await;
        let before = subject.now().await.plus(seconds(60));
        subject.settle(holder, &subject.retry(lease, seconds(60), sticky)).await;
        let after = subject.now().await.plus(seconds(60));
        let job = subject.get(lease.job).await;
        assert_eq!((job.status, job.attempt), (Status::Paused, 1));
        assert!((before..=after).contains(&job.due), "{job:?}");
    }
}

/// What was wanted is applied once: a resumed job is not paused again.
pub async fn obeys_only_once(subject: &Subject) {
    let (holder, lease) = leased_and_wanted(subject, Wanted::Pause).await;
    subject.settle(holder, &subject.retry(lease, Duration::ZERO, false)).await;
    subject.change(lease.job, ChangeVerb::Resume).await;
    let again = claim_one(subject, holder, lease.job).await;
    let status = subject.get(lease.job).await.status;
    assert!(matches!(status, Status::Leased { wanted: None, .. }), "{status:?}");
    let settled = subject.settle(holder, &subject.retry(again, Duration::ZERO, false)).await;
    assert_eq!(settled, let_go(State::Scheduled));
}

/// A wanted cancel of a job without retention leaves nothing behind.
pub async fn leaves_nothing_of_a_wanted_cancel_that_is_not_kept(subject: &Subject) {
    let (holder, lease) = leased_and_wanted(subject, Wanted::Cancel).await;
    let retry = subject.retry(lease, seconds(60), true);
    let settled = subject.settle(holder, &Settlement { keep: NOT_KEPT, ..retry.clone() }).await;
    assert!(matches!(settled, Settled::Applied(_)), "{settled:?}");
    assert_eq!(subject.store.get(lease.job).await.unwrap(), None);
    assert_eq!(subject.settle(holder, &retry).await, Settled::AlreadyApplied(Outcome::Gone));
    subject.balance().await;
}
