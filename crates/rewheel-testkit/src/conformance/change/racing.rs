//! Tests operator changes to jobs that are being settled.

use crate::race::both;
use crate::{Subject, seconds};
use rewheel_core::store::{ChangeVerb, Changed, Edit, Outcome, Settled, Settlement};
use rewheel_core::{Decision, DueReason, State};

/// Returns the final state of a leased job when an operator and its holder act on it, the operator
/// first.
async fn person_first(
    subject: &Subject,
    kind: &str,
    what: ChangeVerb,
    decision: Decision,
) -> State {
    let (holder, lease) = subject.leased(kind).await;
    subject.change(lease.job, what).await;
    let settlement = Settlement { decision, ..Settlement::succeed(lease) };
    subject.settle(holder, &settlement).await;
    subject.get(lease.job).await.state()
}

/// The same with the holder first; returns also the operator's result.
async fn holder_first(
    subject: &Subject,
    kind: &str,
    what: ChangeVerb,
    decision: Decision,
) -> (Changed, State) {
    let (holder, lease) = subject.leased(kind).await;
    let settlement = Settlement { decision, ..Settlement::succeed(lease) };
    subject.settle(holder, &settlement).await;
    let changed = subject.change(lease.job, what).await;
    (changed, subject.get(lease.job).await.state())
}

/// A job that succeeded before it could be stopped stays succeeded.
pub async fn success_stays_success(subject: &Subject) {
    for what in [ChangeVerb::Pause, ChangeVerb::Cancel] {
        let state = person_first(subject, "first", what.clone(), Decision::Succeed).await;
        assert_eq!(state, State::Succeeded);
        let (told, state) = holder_first(subject, "last", what, Decision::Succeed).await;
        assert_eq!((told, state), (Changed::WrongState(State::Succeeded), State::Succeeded));
    }
}

/// A job that would be retried is stopped by an operator, in either order.
pub async fn a_retry_is_stopped_in_either_order(subject: &Subject) {
    for sticky in [true, false] {
        let because = DueReason::Backoff;
        let retry = || Decision::Retry { after: seconds(60), sticky, because };
        for (what, state) in
            [(ChangeVerb::Pause, State::Paused), (ChangeVerb::Cancel, State::Cancelled)]
        {
            let first = person_first(subject, "first", what.clone(), retry()).await;
            assert_eq!(first, state);
            let (told, last) = holder_first(subject, "last", what, retry()).await;
            if sticky {
                // Its holder kept the job, and is notified at its next renewal.
                assert!(matches!(told, Changed::Wanted { .. }), "{told:?}");
                assert_eq!(last, State::Leased);
            } else {
                assert!(matches!(told, Changed::Applied { .. }), "{told:?}");
                assert_eq!(last, state);
            }
        }
    }
}

/// A retry that an operator paused keeps its due time from the backoff after it is resumed.
pub async fn a_paused_retry_keeps_its_backoff(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    subject.change(lease.job, ChangeVerb::Pause).await;
    let before = subject.now().await;
    let settled = subject.settle(holder, &subject.retry(lease, seconds(60), true)).await;
    assert_eq!(settled, Settled::Applied(Outcome::LetGo(State::Paused)));

    let job = subject.get(lease.job).await;
    assert_eq!(job.attempt, 1);
    assert!(job.due >= before.plus(seconds(60)));
    subject.apply(lease.job, ChangeVerb::Resume).await;
    assert_eq!(subject.get(lease.job).await.due, job.due);
    assert_eq!(subject.claim(holder, &["charge"], 1).await, []);
}

/// A dead letter cannot be paused, but is cancelled if that was wanted.
pub async fn a_death_cannot_be_paused(subject: &Subject) {
    let death = || Decision::Dead { failure: subject.timeout() };
    assert_eq!(person_first(subject, "charge", ChangeVerb::Pause, death()).await, State::Dead);
    assert_eq!(
        person_first(subject, "charge", ChangeVerb::Cancel, death()).await,
        State::Cancelled
    );
    let (told, state) = holder_first(subject, "charge", ChangeVerb::Cancel, death()).await;
    assert!(matches!(told, Changed::Applied { state: State::Cancelled, .. }), "{told:?}");
    assert_eq!(state, State::Cancelled);
    subject.balance().await;
}

/// The next holder runs the edited job, or the edit is refused.
pub async fn an_edit_is_run_or_refused(subject: &Subject) {
    let edit = || {
        let payload = Some(b"new".to_vec());
        ChangeVerb::Edit(Box::new(Edit { payload, ..Edit::default() }))
    };
    let (holder, lease) = subject.leased("charge").await;
    assert_eq!(subject.change(lease.job, edit()).await, Changed::WrongState(State::Leased));
    subject.settle(holder, &subject.retry(lease, seconds(0), false)).await;
    subject.apply(lease.job, edit()).await;
    let leased = subject.claim_only(holder, "charge").await;
    assert_eq!(leased.job.payload.as_deref(), Some(b"new".as_slice()));
}

/// A concurrent cancel and settlement agree on the result.
pub async fn a_cancel_and_a_success_agree(subject: &Subject) {
    for cancel_first in [true, false] {
        let (holder, lease) = subject.leased("charge").await;
        let cancel = subject.change(lease.job, ChangeVerb::Cancel);
        let succeed = subject.succeed(holder, lease);
        let (changed, settled) = if cancel_first {
            both(cancel, succeed).await
        } else {
            let (settled, changed) = both(succeed, cancel).await;
            (changed, settled)
        };
        assert_eq!(settled, Settled::Applied(Outcome::LetGo(State::Succeeded)));
        let told = matches!(changed, Changed::Wanted { .. } | Changed::WrongState(_));
        assert!(told, "{changed:?}");
        assert_eq!(subject.get(lease.job).await.state(), State::Succeeded);
    }
}

/// A concurrent edit and claim agree on the payload that runs.
pub async fn an_edit_and_a_claim_agree(subject: &Subject) {
    let holder = subject.holder().await;
    for edit_first in [true, false] {
        let job = subject.submit("charge").await;
        let change = Edit { payload: Some(b"new".to_vec()), ..Edit::default() };
        let edit = subject.change(job, ChangeVerb::Edit(Box::new(change)));
        let claim = subject.claim(holder, &["charge"], 1);
        let (changed, claimed) = if edit_first {
            both(edit, claim).await
        } else {
            let (claimed, changed) = both(claim, edit).await;
            (changed, claimed)
        };
        let leased = match claimed.into_iter().next() {
            Some(leased) => leased,
            // A claim does not wait for a row that another transaction is writing.
            None => subject.claim_only(holder, "charge").await,
        };
        let runs_new = leased.job.payload.as_deref() == Some(b"new".as_slice());
        let refused = changed == Changed::WrongState(State::Leased);
        assert!(refused || matches!(changed, Changed::Applied { .. }), "{changed:?}");
        assert_eq!(runs_new, !refused, "what was accepted is run");
        subject.succeed(holder, leased.lease()).await;
    }
}
