//! Tests settlements that are sent again because the first response was lost.

use super::{NOT_KEPT, claim_one, decisions, let_go, with};
use crate::threads::at_once;
use crate::{Subject, seconds};
use rewheel_core::store::{ChangeVerb, Outcome, Settled, Settlement};
use rewheel_core::{Fence, State};
use std::sync::Arc;
use std::time::Duration;

fn already(state: State) -> Settled {
    Settled::AlreadyApplied(Outcome::LetGo(state))
}

/// Repeating a settlement that released the job returns the state of the job, and changes nothing:
/// no attempt, no record, no due time.
pub async fn answers_again_what_a_job_became(subject: &Subject) {
    for decision in decisions(subject, seconds(60)) {
        let state = decision.state(None);
        if state == State::Leased {
            continue;
        }
        let (holder, lease) = subject.leased("charge").await;
        let failure = Some(subject.timeout());
        let settlement = Settlement { failure, ..with(lease, decision.clone()) };
        assert_eq!(subject.settle(holder, &settlement).await, let_go(state));
        let before = subject.get(lease.job).await;
        subject.clock.advance(seconds(1));
        assert_eq!(subject.settle(holder, &settlement).await, already(state), "{decision:?}");
        assert_eq!(subject.get(lease.job).await, before, "{decision:?}");
        assert_eq!(subject.store.attempts(lease.job).await.unwrap().len(), 1, "{decision:?}");
    }
    subject.balance().await;
}

/// Repeating a success without retention finds nothing, and overwrites nothing.
pub async fn answers_gone_where_nothing_was_kept(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    let settlement = Settlement { keep: NOT_KEPT, ..Settlement::succeed(lease) };
    subject.settle(holder, &settlement).await;
    let again = subject.settle(holder, &settlement).await;
    assert_eq!(again, Settled::AlreadyApplied(Outcome::Gone));
    assert_eq!(subject.store.books().await.unwrap().pruned, 1);
    subject.balance().await;
}

/// Repeating a sticky retry returns the same fence as the first time, and counts the attempt once.
pub async fn answers_the_same_fence_to_a_repeated_sticky_retry(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    let settlement = subject.retry(lease, seconds(60), true);
    subject.settle(holder, &settlement).await;
    let before = subject.get(lease.job).await;
    subject.clock.advance(seconds(20));

    let again = subject.settle(holder, &settlement).await;
    let Settled::AlreadyApplied(Outcome::Kept { fence, due_in }) = again else {
        panic!("{again:?}")
    };
    assert_eq!(fence, lease.fence.next());
    assert!(due_in <= seconds(40) && due_in > seconds(30), "{due_in:?}");
    assert_eq!(subject.get(lease.job).await, before);
    assert_eq!(subject.store.attempts(lease.job).await.unwrap().len(), 1);
    let mut kept = lease;
    kept.fence = fence;
    assert_eq!(subject.succeed(holder, kept).await, let_go(State::Succeeded));
    assert_eq!(subject.get(lease.job).await.attempt, 2);
}

/// A repeated retry is recognized even if another holder has the job by now; that lease is not
/// affected.
pub async fn does_not_disturb_who_claimed_meanwhile(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    let settlement = subject.retry(lease, Duration::ZERO, false);
    subject.settle(holder, &settlement).await;
    let another = subject.holder().await;
    claim_one(subject, another, lease.job).await;
    let before = subject.get(lease.job).await;

    let again = subject.settle(holder, &settlement).await;
    assert!(matches!(again, Settled::AlreadyApplied(Outcome::LetGo(_))), "{again:?}");
    assert_eq!(subject.get(lease.job).await, before);
}

/// A repeated retry that was not sticky is not reported as kept, although the same holder claimed
/// the job again under the next fence: it would run twice.
pub async fn is_not_kept_by_claiming_it_again(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    let settlement = subject.retry(lease, Duration::ZERO, false);
    subject.settle(holder, &settlement).await;
    let again = claim_one(subject, holder, lease.job).await;
    assert!(again.fence > lease.fence);

    let repeated = subject.settle(holder, &settlement).await;
    assert!(matches!(repeated, Settled::AlreadyApplied(Outcome::LetGo(_))), "{repeated:?}");
    assert_eq!(subject.succeed(holder, again).await, let_go(State::Succeeded));
}

/// A death that is repeated after a redrive does not end the job again.
pub async fn does_not_kill_a_redriven_job_again(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    let death = subject.dead(lease);
    subject.settle(holder, &death).await;
    subject.change(lease.job, ChangeVerb::Redrive { deadline: None }).await;
    let before = subject.get(lease.job).await;

    assert_eq!(subject.settle(holder, &death).await, already(State::Scheduled));
    assert_eq!(subject.get(lease.job).await, before);
}

/// A batch that was partly written before is answered item by item.
pub async fn answers_a_batch_that_was_written_in_part(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    subject.insert(&subject.jobs("charge", 3)).await;
    let holder = subject.holder().await;
    let claimed = subject.claim(holder, &["charge"], 3).await;
    let items: Vec<Settlement> =
        claimed.iter().map(|leased| Settlement::succeed(leased.lease())).collect();
    subject.settle(holder, &items[1]).await;
    let answers = subject.store.settle(holder, &items).await.unwrap();
    let new = let_go(State::Succeeded);
    assert_eq!(answers, [new, already(State::Succeeded), new]);
    subject.balance().await;
}

/// Of identical concurrent settlements one is applied; the others get its result.
pub async fn applies_one_of_racing_settlements(subject: &Subject) {
    for _ in 0..10 {
        let (holder, lease) = subject.leased("charge").await;
        let settlement = subject.retry(lease, seconds(60), true);
        let answers = at_once(4, |_| {
            let (store, settlement) = (Arc::clone(&subject.store), settlement.clone());
            async move { store.settle(holder, &[settlement]).await.unwrap()[0] }
        })
        .await;

        let next: Fence = lease.fence.next();
        let kept =
            |outcome: &Outcome| matches!(outcome, Outcome::Kept { fence, .. } if *fence == next);
        let applied =
            |answer: &&Settled| matches!(answer, Settled::Applied(outcome) if kept(outcome));
        let known =
            |answer: &&Settled| matches!(answer, Settled::AlreadyApplied(outcome) if kept(outcome));
        assert_eq!(answers.iter().filter(applied).count(), 1, "{answers:?}");
        assert_eq!(answers.iter().filter(known).count(), 3, "{answers:?}");
        assert_eq!(subject.get(lease.job).await.attempt, 1);
    }
}
