//! Tests sequences with holders that die, pause or answer late.

use crate::subject::{ATTEMPT_TIMEOUT, GRACE, LEASE_TTL};
use crate::{Subject, seconds};
use rewheel_core::store::{
    ChangeVerb, Changed, Direct, Edit, HolderExpiry, Insert, Inserted, Leased, Outcome, Settled,
    StoreError,
};
use rewheel_core::{
    ExpiryWatch, HolderId, JobId, KindChange, Lease, Limits, NewJob, Retain, State, When,
};
use std::time::Duration;

async fn insert_direct(subject: &Subject, holder: HolderId, job: &NewJob) -> Option<Lease> {
    let direct = Some(Direct { holder, attempt_timeout: ATTEMPT_TIMEOUT, grace: GRACE });
    let jobs = std::slice::from_ref(job);
    let answers = subject.store.insert(&Insert { direct, ..Insert::new(jobs) }).await.unwrap();
    let Inserted::Created { leased, .. } = answers[0] else { panic!("not stored: {answers:?}") };
    leased.map(|fence| Lease { job: job.id, fence })
}

/// A holder is paused with a claim and a direct insert in flight; it is expired, swept and deleted; then its statements arrive. A holder
/// dies only once, and every lease write needs a live holder.
pub async fn a_claim_that_arrives_after_its_holder_is_forgotten(subject: &Subject) {
    let (by, stopped) = (subject.holder().await, subject.holder().await);
    let job = subject.submit("charge").await;
    subject.take_over(by, stopped).await;
    subject.clock.advance(Limits::DEAD_HOLDERS_KEPT + seconds(1));
    subject.prune_all().await;
    assert_eq!(subject.find(stopped).await, None);

    let claim = subject.try_claim(stopped, &["charge"], 10).await;
    assert!(matches!(claim, Err(StoreError::HolderDead(_))), "{claim:?}");
    subject.kinds(&["refund"]).await;
    let direct = subject.job("refund");
    assert_eq!(insert_direct(subject, stopped, &direct).await, None);
    for job in [job, direct.id] {
        assert_eq!(subject.get(job).await.state(), State::Scheduled);
    }
}

/// A claim commits, its response is lost, and its holder keeps renewing. Each leased row becomes overdue eventually, and its holder can
/// find it before.
pub async fn a_claim_whose_reply_is_lost(subject: &Subject) {
    let (by, holder) = (subject.holder().await, subject.holder().await);
    let job = subject.submit("charge").await;
    drop(subject.claim(holder, &["charge"], 10).await);
    let young = subject.store.held(holder, seconds(3_600), None, 10).await.unwrap();
    assert_eq!(young, [], "its reply may still be on its way");
    let held = subject.store.held(holder, Duration::ZERO, None, 10).await.unwrap();
    assert_eq!(held.iter().map(|lease| lease.job).collect::<Vec<_>>(), [job]);

    for _ in 0..8 {
        subject.clock.advance(LEASE_TTL / 3);
        subject.store.renew(holder).await.unwrap();
    }
    assert_eq!(subject.sweep(by).await.len(), 1);
    assert_eq!(subject.claim_only(by, "charge").await.job.id, job);
    assert_eq!(subject.store.held(holder, Duration::ZERO, None, 10).await.unwrap(), []);
}

/// A sticky settle whose response is lost is repeated: the attempt counts once, and a late first call does not change the due time of the
/// second attempt.
pub async fn a_sticky_retry_that_is_repeated(subject: &Subject) {
    let (holder, first) = subject.leased("charge").await;
    let retry = subject.retry(first, seconds(1), true);
    let settled = subject.settle(holder, &retry).await;
    let fence = first.fence.next();
    assert!(matches!(settled, Settled::Applied(Outcome::Kept { fence: f, .. }) if f == fence));
    let again = subject.settle(holder, &retry).await;
    let kept = |f| f == fence;
    assert!(matches!(again, Settled::AlreadyApplied(Outcome::Kept { fence: f, .. }) if kept(f)));
    assert_eq!(subject.get(first.job).await.attempt, 1);

    let second = Lease { fence, ..first };
    subject.settle(holder, &subject.retry(second, seconds(500), true)).await;
    let due = subject.get(first.job).await.due;
    subject.settle(holder, &retry).await;
    let job = subject.get(first.job).await;
    assert_eq!((job.due, job.attempt), (due, 2));
    assert_eq!(subject.store.attempts(first.job).await.unwrap().len(), 2);
}

/// A failover loses a fence, and another holder gets the same number: the holder is part of the check. A redrive continues from the last
/// fence, not from zero.
pub async fn a_fence_that_two_holders_name(subject: &Subject) {
    let zombie = subject.holder().await;
    let (holder, lease) = subject.leased("charge").await;
    assert_eq!(subject.succeed(zombie, lease).await, Settled::Lost);
    let start = subject.store.start(zombie, &[lease]).await.unwrap();
    assert_eq!(start, [false]);
    let answers = subject.store.give_back(zombie, &[lease], Retain::default()).await;
    assert_eq!(answers.unwrap(), [Settled::Lost]);
    assert_eq!(subject.get(lease.job).await.state(), State::Leased);

    subject.settle(holder, &subject.dead(lease)).await;
    subject.apply(lease.job, ChangeVerb::Redrive { deadline: None }).await;
    let redriven = subject.claim_only(zombie, "charge").await;
    assert!(redriven.job.fence > lease.fence);
    let late = subject.settle(holder, &subject.retry(lease, seconds(60), false)).await;
    assert!(!matches!(late, Settled::Applied(_)), "{late:?}");
    assert_eq!(subject.get(lease.job).await.state(), State::Leased);
}

/// A poison job kills each node that holds it beside a thousand others. After the first crash all of them are suspects, and some of those
/// run beside the poison. Only a start that was recorded under the ended lease counts, once: the others never reach the cap.
pub async fn a_poison_job_beside_a_thousand(subject: &Subject) {
    let by = subject.holder().await;
    let poison = subject.submit("charge").await;
    let others = subject.jobs("charge", 999);
    subject.insert(&others).await;
    // A third never starts. No other job starts in the run that could reach the cap, either.
    let (never, suspects) = others.split_at(333);
    let (second, third) = suspects.split_at(333);
    for (crash, beside) in [&[], second, third, &[]].into_iter().enumerate() {
        let node = subject.holder().await;
        let claimed = subject.claim(node, &["charge"], 1_000).await;
        assert_eq!(claimed.len(), 1_000);
        assert!(claimed.iter().all(|leased| leased.job.is_suspect() == (crash > 0)));
        let starts = |job| crash > 0 && (job == poison || beside.iter().any(|new| new.id == job));
        let started = claimed.iter().filter(|leased| starts(leased.job.id));
        let started: Vec<Lease> = started.map(Leased::lease).collect();
        let recorded = subject.store.start(node, &started).await.unwrap();
        assert!(recorded.into_iter().all(|recorded| recorded));
        assert_eq!(subject.take_over(by, node).await.len(), 1_000);
    }
    let books = subject.store.books().await.unwrap();
    assert_eq!((books.live, books.dead, books.missing()), (999, 1, 0));
    let dead = subject.get(poison).await;
    assert_eq!((dead.state(), dead.takeovers, dead.takeovers_counted), (State::Dead, 4, 3));
    let ids: Vec<JobId> = others.iter().map(|job| job.id).collect();
    for job in subject.store.live(&ids).await.unwrap() {
        let counted = u32::from(never.iter().all(|new| new.id != job.id));
        assert_eq!((job.takeovers, job.takeovers_counted), (4, counted));
    }
}

/// The store is unavailable, all leases expire, and the first node that recovers sees its peers as silent. An expired lease only makes a
/// holder eligible: others watch its renewal counter for one lease duration before they expire it.
pub async fn a_store_that_was_away(subject: &Subject) {
    let (first, (peer, lease)) = (subject.holder().await, subject.leased("charge").await);
    subject.clock.advance(LEASE_TTL + seconds(1));
    let mut expiry_watch = ExpiryWatch::new(LEASE_TTL);
    subject.store.renew(first).await.unwrap();
    let seen = subject.store.holders().await.unwrap();
    assert!(seen.iter().any(|holder| holder.id == peer && holder.expired));
    assert_eq!(expiry_watch.renewed(Duration::ZERO, &seen), []);
    assert_eq!(subject.sweep(first).await, []);

    // Even a node that had decided to expire the peer is too late once the peer has renewed.
    subject.store.renew(peer).await.unwrap();
    assert_eq!(subject.store.expire_holder(first, peer, 0).await.unwrap(), HolderExpiry::Alive);
    let settled = subject.succeed(peer, lease).await;
    assert_eq!(settled, Settled::Applied(Outcome::LetGo(State::Succeeded)));
}

/// The direct path could run a job of a parked or paused kind, or before older jobs. The insert itself checks this.
pub async fn a_direct_insert_that_must_wait(subject: &Subject) {
    let holder = subject.holder().await;
    subject.kinds(&["parked", "paused", "busy", "free"]).await;
    subject.park("parked").await;
    subject.apply_kind("paused", KindChange::Pause).await;
    subject.submit("busy").await;
    for kind in ["parked", "paused", "busy"] {
        let job = subject.job(kind);
        assert_eq!(insert_direct(subject, holder, &job).await, None, "{kind}");
        assert_eq!(subject.get(job.id).await.state(), State::Scheduled);
    }
    let future = NewJob { due: When::In(seconds(60)), ..subject.job("free") };
    assert_eq!(insert_direct(subject, holder, &future).await, None);
    let job = subject.job("free");
    let lease = insert_direct(subject, holder, &job).await.expect("one that is not due is no bar");
    subject.succeed(holder, lease).await;
}

/// One node's view parks a kind for all, a timeout lets all nodes rush in at once, or the prober dies and no other node probes. Park and
/// probe are compare-and-set; the right to probe ends with its holder; time alone does nothing.
pub async fn a_kind_whose_prober_dies(subject: &Subject) {
    let (prober, heir) = (subject.holder().await, subject.holder().await);
    subject.kinds(&["charge"]).await;
    subject.insert(&subject.jobs("charge", 100)).await;
    subject.park("charge").await;
    subject.probe("charge", prober).await;
    subject.claim_only(prober, "charge").await;
    subject.clock.advance(seconds(3_600));
    for holder in [prober, heir] {
        assert_eq!(subject.claim(holder, &["charge"], 100).await, [], "a stampede");
    }
    subject.take_over(heir, prober).await;
    assert_eq!(subject.claim(heir, &["charge"], 100).await, [], "it has no lease");
    subject.probe("charge", heir).await;
    let probe = subject.claim_only(heir, "charge").await;
    subject.succeed(heir, probe.lease()).await;
    subject.unpark("charge").await;
    assert_eq!(subject.claim(heir, &["charge"], 100).await.len(), 99);
}

/// A cancel and an edit are accepted while a node still runs the old payload. An edit of a leased job is refused; a cancel is stored as
/// wanted, reported with the heartbeat, and applied by settle and sweep.
pub async fn a_change_while_another_runs_it(subject: &Subject) {
    let by = subject.holder().await;
    let (holder, lease) = subject.leased("charge").await;
    let edit = Edit { payload: Some(b"new".to_vec()), ..Edit::default() };
    let edit = subject.change(lease.job, ChangeVerb::Edit(Box::new(edit))).await;
    assert_eq!(edit, Changed::WrongState(State::Leased));
    subject.change(lease.job, ChangeVerb::Cancel).await;
    assert_eq!(subject.store.renew(holder).await.unwrap().wanted[0].lease, lease);
    let settled = subject.settle(holder, &subject.retry(lease, seconds(1), true)).await;
    assert_eq!(settled, Settled::Applied(Outcome::LetGo(State::Cancelled)));

    let (holder, lease) = subject.leased("charge").await;
    subject.change(lease.job, ChangeVerb::Cancel).await;
    assert_eq!(subject.take_over(by, holder).await[0].to, State::Cancelled);
    subject.balance().await;
}
