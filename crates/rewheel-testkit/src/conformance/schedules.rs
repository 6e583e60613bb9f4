//! Tests what schedules need of a store: the engine's own jobs submit for any tenant, change their payload as they settle, and are
//! changed by the engine.

use crate::{Subject, seconds};
use rewheel_core::store::{
    Change, ChangeScope, ChangeVerb, Changed, Edit, Insert, Inserted, Outcome, Settled, Settlement,
};
use rewheel_core::{
    Actor, Decision, DueReason, HolderId, JobId, Key, Lease, NewJob, Retain, State, Tenant,
    Timestamp, When,
};
use std::time::Duration;

const KIND: &str = "rewheel.schedule";

/// Fires a schedule: submits a job, changes the payload and snoozes.
fn firing(lease: Lease, job: &NewJob, payload: &[u8]) -> Settlement {
    Settlement {
        decision: Decision::Snooze { after: seconds(60), because: DueReason::Snooze },
        follow_ups: vec![job.clone()],
        payload: Some(payload.to_vec()),
        ..Settlement::succeed(lease)
    }
}

async fn leased(subject: &Subject) -> (HolderId, Lease, NewJob) {
    subject.kinds(&["report"]).await;
    let (holder, lease) = subject.leased(KIND).await;
    let job = NewJob {
        tenant: Some(Tenant::parse("shop").unwrap()),
        instant: Some(Timestamp::from_millis(1_700_000_000_000)),
        ..subject.job("report")
    };
    (holder, lease, job)
}

fn let_go(state: State) -> Settled {
    Settled::Applied(Outcome::LetGo(state))
}

async fn payload(subject: &Subject, job: JobId) -> Vec<u8> {
    subject.get(job).await.payload.unwrap()
}

/// Payload, snooze and job are one; the job has its own tenant and its instant.
pub async fn fire_in_one_settle(subject: &Subject) {
    let (holder, lease, job) = leased(subject).await;
    let settled = subject.settle(holder, &firing(lease, &job, b"fired once")).await;
    assert_eq!(settled, let_go(State::Scheduled));
    assert_eq!(payload(subject, lease.job).await, b"fired once");
    let made = subject.get(job.id).await;
    assert_eq!((made.parent, made.instant), (Some(lease.job), job.instant));
    assert_eq!(made.lane.tenant, job.tenant);
    let claimed = subject.claim_lane(holder, job.lane()).await.remove(0);
    assert_eq!(claimed.job.instant, job.instant);
    subject.succeed(holder, claimed.lease()).await;
    assert_eq!(subject.get(job.id).await.instant, job.instant, "it moves with the job");
    subject.balance().await;
}

/// A settle that does not count changes neither the payload nor anything else.
pub async fn fire_nothing_if_the_settle_was_lost(subject: &Subject) {
    let (holder, lease, job) = leased(subject).await;
    let late = Lease { fence: lease.fence.next(), ..lease };
    assert_eq!(subject.settle(holder, &firing(late, &job, b"late")).await, Settled::Lost);
    assert_ne!(payload(subject, lease.job).await, b"late");
    assert_eq!(subject.store.get(job.id).await.unwrap(), None);
    // The same settle again: it was applied once, and the payload of the first stays.
    let first = firing(lease, &job, b"first");
    assert_eq!(subject.settle(holder, &first).await, let_go(State::Scheduled));
    let other = firing(lease, &subject.job("report"), b"second");
    let again = subject.settle(holder, &other).await;
    assert_eq!(again, Settled::AlreadyApplied(Outcome::LetGo(State::Scheduled)));
    assert_eq!(payload(subject, lease.job).await, b"first");
    assert_eq!(subject.store.get(other.follow_ups[0].id).await.unwrap(), None);
}

/// A payload is written with every decision, also for a job that ends or stays with its holder.
pub async fn change_their_payload_with_every_decision(subject: &Subject) {
    let (after, because) = (seconds(60), DueReason::Backoff);
    for decision in [
        Decision::Succeed,
        Decision::Retry { after, sticky: true, because },
        Decision::Retry { after, sticky: false, because },
        Decision::Dead { failure: subject.timeout() },
        Decision::Fail { failure: subject.timeout() },
        Decision::Pause,
        Decision::Cancel,
    ] {
        let (holder, lease) = subject.leased("charge").await;
        let given = decision.as_str().as_bytes().to_vec();
        let settlement =
            Settlement { decision, payload: Some(given.clone()), ..Settlement::succeed(lease) };
        assert!(matches!(subject.settle(holder, &settlement).await, Settled::Applied(_)));
        assert_eq!(payload(subject, lease.job).await, given);
        subject.store.leave(holder).await.unwrap();
    }
}

async fn own(subject: &Subject, job: JobId, what: ChangeVerb, key: Duration) -> Changed {
    let change = [Change { scope: ChangeScope::Engine, ..Change::new(job, what) }];
    let keep = Retain { key, ..Retain::default() };
    subject.store.change(&change, &Actor::new("suite"), keep).await.unwrap().remove(0)
}

/// The engine pauses, edits and resumes its own jobs, and no others.
pub async fn are_changed_by_the_engine(subject: &Subject) {
    let (job, users) = (subject.submit(KIND).await, subject.submit("charge").await);
    let due = Timestamp::from_millis(2_000_000_000_000);
    let edit =
        Edit { payload: Some(b"edited".to_vec()), due: Some(When::At(due)), ..Edit::default() };
    for (what, state) in [
        (ChangeVerb::Pause, State::Paused),
        (ChangeVerb::Edit(Box::new(edit)), State::Paused),
        (ChangeVerb::Resume, State::Scheduled),
        (ChangeVerb::Cancel, State::Cancelled),
    ] {
        let refused = own(subject, users, what.clone(), seconds(60)).await;
        assert_eq!(refused, Changed::Reserved, "{what:?}");
        let name = what.as_str();
        let changed = own(subject, job, what, seconds(60)).await;
        assert!(
            matches!(changed, Changed::Applied { state: now, .. } if now == state),
            "{changed:?}"
        );
        assert_eq!(subject.store.audit(Some(job), None, 10).await.unwrap()[0].what, name);
    }
    let after = subject.get(job).await;
    assert_eq!((after.payload.as_deref(), after.due), (Some(b"edited".as_slice()), due));
}

/// The name of a removed schedule can be used at once.
pub async fn free_their_name_when_they_are_removed(subject: &Subject) {
    subject.kinds(&[KIND]).await;
    let named = || NewJob { key: Some(Key::parse("nightly").unwrap()), ..subject.job(KIND) };
    let first = subject.put(named()).await;
    let removed = own(subject, first, ChangeVerb::Cancel, Duration::ZERO).await;
    assert!(matches!(removed, Changed::Applied { state: State::Cancelled, .. }), "{removed:?}");
    let second = NewJob { payload: b"another".to_vec(), ..named() };
    let answers = subject.store.insert(&Insert::new(&[second])).await.unwrap();
    assert!(matches!(answers[0], Inserted::Created { .. }), "{answers:?}");
}
