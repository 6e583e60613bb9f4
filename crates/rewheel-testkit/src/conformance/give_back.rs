//! Tests jobs that a holder gives back unstarted.

use crate::threads::in_time;
use crate::{Subject, lane, seconds};
use rewheel_core::store::{ChangeVerb, Changed, Outcome, Settled, Wakes};
use rewheel_core::{Fence, HolderId, Job, Lease, NewJob, Retain, State, Status, Version, When};
use std::time::Duration;

async fn give_back(subject: &Subject, holder: HolderId, lease: Lease) -> Settled {
    let answers = subject.store.give_back(holder, &[lease], Retain::default()).await.unwrap();
    assert_eq!(answers.len(), 1);
    answers[0]
}

fn let_go(state: State) -> Settled {
    Settled::Applied(Outcome::LetGo(state))
}

fn already(state: State) -> Settled {
    Settled::AlreadyApplied(Outcome::LetGo(state))
}

/// A job that is given back is as before its claim, except for its fence and version.
pub async fn leaves_no_trace_of_the_claim(subject: &Subject) {
    let job = subject.submit("charge").await;
    let before = subject.get(job).await;
    let holder = subject.holder().await;
    let leased = subject.claim(holder, &["charge"], 1).await.remove(0);
    subject.clock.advance(seconds(5));
    assert_eq!(give_back(subject, holder, leased.lease()).await, let_go(State::Scheduled));

    let after = subject.get(job).await;
    let version = Version::new(leased.job.version.get() + 1);
    assert_eq!(after, Job { fence: after.fence, version, ..before });
    assert!(after.fence >= leased.job.fence, "the fence never shrinks");
    assert_eq!(subject.store.attempts(job).await.unwrap(), []);
    assert_eq!(subject.lanes(&["charge"]).await[0].lane, lane("charge"));
}

/// A job that was leased early keeps its due time.
pub async fn keeps_the_due(subject: &Subject) {
    use rewheel_core::store::Claim;
    subject.kinds(&["charge"]).await;
    let due = subject.now().await.plus(seconds(60));
    let job = subject.put(NewJob { due: When::At(due), ..subject.job("charge") }).await;
    let holder = subject.holder().await;
    let visits = [subject.visit(lane("charge"), 1)];
    let claim = Claim { holder, visits: &visits, horizon: seconds(90), limit: 1 };
    let leased = subject.store.claim(&claim).await.unwrap().remove(0);
    give_back(subject, holder, leased.lease()).await;
    assert_eq!((subject.get(job).await.due, subject.get(job).await.attempt), (due, 0));
    assert_eq!(subject.claim(holder, &["charge"], 1).await, []);
}

/// A job that is given back is claimed next, before jobs that were due after it.
pub async fn keeps_the_place_in_the_lane(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    subject.clock.advance(seconds(1));
    subject.put(subject.job("charge")).await;
    give_back(subject, holder, lease).await;
    let another = subject.holder().await;
    let claimed = subject.claim(another, &["charge"], 1).await;
    assert_eq!(claimed[0].job.id, lease.job);
    assert!(claimed[0].job.fence > lease.fence);
}

/// A pause or cancel that an operator wanted meanwhile is applied.
pub async fn obeys_what_is_wanted(subject: &Subject) {
    for (what, state) in
        [(ChangeVerb::Pause, State::Paused), (ChangeVerb::Cancel, State::Cancelled)]
    {
        let (holder, lease) = subject.leased("charge").await;
        let due = subject.get(lease.job).await.due;
        let changed = subject.change(lease.job, what).await;
        assert!(matches!(changed, Changed::Wanted { .. }), "{changed:?}");
        assert_eq!(give_back(subject, holder, lease).await, let_go(state));
        let job = subject.get(lease.job).await;
        assert_eq!((job.state(), job.due, job.attempt), (state, due, 0));
        assert_eq!(give_back(subject, holder, lease).await, already(state));
    }
    subject.balance().await;
}

/// A job with a wanted cancel and without retention leaves nothing behind.
pub async fn leaves_nothing_of_a_wanted_cancel_that_is_not_kept(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    subject.change(lease.job, ChangeVerb::Cancel).await;
    let keep = Retain { job: Duration::ZERO, key: Duration::ZERO };
    let answers = subject.store.give_back(holder, &[lease], keep).await.unwrap();
    assert!(matches!(answers[0], Settled::Applied(_)), "{answers:?}");
    assert_eq!(subject.store.get(lease.job).await.unwrap(), None);
    let again = give_back(subject, holder, lease).await;
    assert_eq!(again, Settled::AlreadyApplied(Outcome::Gone));
    assert_eq!(subject.store.books().await.unwrap().pruned, 1);
    subject.balance().await;
}

/// A repetition changes nothing, and returns the same result.
pub async fn answers_again_what_it_did(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    give_back(subject, holder, lease).await;
    let before = subject.get(lease.job).await;
    assert_eq!(give_back(subject, holder, lease).await, already(State::Scheduled));
    assert_eq!(subject.get(lease.job).await, before);
}

/// A repetition does not take the job away if the same holder has claimed it again.
pub async fn does_not_take_away_a_new_lease(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    give_back(subject, holder, lease).await;
    let new = subject.claim(holder, &["charge"], 1).await.remove(0);
    let again = give_back(subject, holder, lease).await;
    assert!(matches!(again, Settled::AlreadyApplied(Outcome::LetGo(_))), "{again:?}");
    assert_eq!(subject.get(lease.job).await, new.job);
}

/// A job that was given back cannot be settled any more.
pub async fn ends_the_right_to_settle(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    give_back(subject, holder, lease).await;
    let before = subject.get(lease.job).await;
    assert_eq!(subject.succeed(holder, lease).await, Settled::Lost);
    assert_eq!(subject.settle(holder, &subject.dead(lease)).await, Settled::Lost);
    assert_eq!(subject.get(lease.job).await, before);
    // A second give-back is still recognized as a repetition.
    assert_eq!(give_back(subject, holder, lease).await, already(State::Scheduled));

    // The same with a wanted cancel.
    let (holder, lease) = subject.leased("refund").await;
    subject.change(lease.job, ChangeVerb::Cancel).await;
    assert_eq!(give_back(subject, holder, lease).await, let_go(State::Cancelled));
    assert_eq!(subject.succeed(holder, lease).await, Settled::Lost);
    assert_eq!(subject.get(lease.job).await.state(), State::Cancelled);
}

/// A holder that does not have the job cannot give it back.
pub async fn is_lost_for_who_does_not_hold_it(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    let another = subject.holder().await;
    let before = subject.get(lease.job).await;
    assert_eq!(give_back(subject, another, lease).await, Settled::Lost);
    let ahead = Lease { fence: lease.fence.next(), ..lease };
    assert_eq!(give_back(subject, holder, ahead).await, Settled::Lost);
    assert_eq!(subject.get(lease.job).await, before);

    let by = subject.heir_of(holder).await;
    let new = subject.claim(by, &["charge"], 1).await.remove(0);
    assert_eq!(give_back(subject, holder, lease).await, Settled::Lost);
    assert_eq!(subject.get(lease.job).await, new.job);
}

/// A dead holder may still give back jobs that were not swept, so that others need not wait for the
/// sweep.
pub async fn works_for_the_dead(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    subject.store.leave(holder).await.unwrap();
    assert_eq!(give_back(subject, holder, lease).await, let_go(State::Scheduled));
    let job = subject.get(lease.job).await;
    assert_eq!((job.status, job.takeovers), (Status::Scheduled, 0));
}

/// The items of a batch are answered in order, each on its own.
pub async fn answers_in_the_order_of_the_items(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    subject.insert(&subject.jobs("charge", 3)).await;
    let holder = subject.holder().await;
    let claimed = subject.claim(holder, &["charge"], 3).await;
    subject.succeed(holder, claimed[1].lease()).await;
    let stale = Lease { fence: Fence::new(0), ..claimed[2].lease() };
    let unknown = Lease { job: subject.id(), fence: Fence::new(1) };
    let leases = [claimed[1].lease(), claimed[0].lease(), stale, unknown, claimed[2].lease()];
    let answers = subject.store.give_back(holder, &leases, Retain::default()).await.unwrap();
    let expected = [
        already(State::Succeeded),
        let_go(State::Scheduled),
        Settled::Lost,
        Settled::AlreadyApplied(Outcome::Gone),
        let_go(State::Scheduled),
    ];
    assert_eq!(answers, expected);
}

/// A start that was recorded before the job was given back does not count in a later takeover.
pub async fn takes_back_a_recorded_start(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    assert_eq!(subject.store.start(holder, &[lease]).await.unwrap(), [true]);
    give_back(subject, holder, lease).await;
    let another = subject.holder().await;
    subject.claim(another, &["charge"], 1).await;
    subject.heir_of(another).await;
    let job = subject.get(lease.job).await;
    assert_eq!((job.takeovers, job.takeovers_counted), (1, 0));
}

/// A watcher is woken for a job that was given back.
pub async fn wakes_a_watcher(subject: &Subject) {
    if subject.store.capabilities().wakes == Wakes::None {
        return subject.skip("sends no wake-ups");
    }
    let (holder, lease) = subject.leased("charge").await;
    let mut watch = subject.store.watch();
    give_back(subject, holder, lease).await;
    in_time("waking", watch.changed()).await;
}
