//! Tests taking jobs from dead or stalled holders.

use crate::people::KEEP_NOTHING;
use crate::race::both;
use crate::subject::{ATTEMPT_TIMEOUT, GRACE, LEASE_TTL};
use crate::{Subject, lane, seconds};
use rewheel_core::store::{
    ChangeVerb, Claim, Extension, Leased, Settled, StoreError, Sweep, Watched,
};
use rewheel_core::{
    Actor, Cause, Failure, HolderId, JobId, KindName, Lease, Limits, NewKind, Retain, State,
    Status, Timestamp, When,
};
use std::collections::HashSet;
use std::time::Duration;

/// The jobs of an expired holder are freed, once.
pub async fn takes_the_jobs_of_one_who_was_expired(subject: &Subject) {
    let by = subject.holder().await;
    let (silent, lease) = subject.leased("charge").await;
    assert_eq!(subject.sweep(by).await, []);

    let events = subject.take_over(by, silent).await;
    assert_eq!(events.iter().map(|event| event.job).collect::<Vec<_>>(), [lease.job]);
    assert_eq!(subject.get(lease.job).await.status, Status::Scheduled);
    assert_eq!(subject.sweep(by).await, []);
}

/// The jobs of a holder that left without giving them back are freed.
pub async fn takes_the_jobs_of_one_who_left(subject: &Subject) {
    let by = subject.holder().await;
    let (gone, lease) = subject.leased("charge").await;
    subject.store.leave(gone).await.unwrap();

    assert_eq!(subject.sweep(by).await.len(), 1);
    assert_eq!(subject.claim_only(by, "charge").await.job.id, lease.job);
}

/// The jobs of a deleted holder are freed.
pub async fn takes_the_jobs_of_the_unknown(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let by = subject.holder().await;
    let mut new = subject.job("charge");
    // Not overdue for a long time: only the death of its holder can free it.
    new.attempt_timeout = Some(Limits::DEAD_HOLDERS_KEPT * 10);
    let (gone, lease) = subject.lease_new(&new).await;
    subject.store.leave(gone).await.unwrap();
    subject.clock.advance(Limits::DEAD_HOLDERS_KEPT + seconds(1));
    assert_eq!(subject.prune_all().await.holders, 1);
    assert_eq!(subject.find(gone).await, None);
    assert_eq!(subject.get(lease.job).await.state(), State::Leased);

    assert_eq!(subject.sweep(by).await.len(), 1);
    assert_eq!(subject.get(lease.job).await.state(), State::Scheduled);
}

/// An expired lease frees nothing as long as its holder was not expired.
pub async fn leaves_the_jobs_of_the_living(subject: &Subject) {
    let by = subject.holder().await;
    let (expired, lease) = subject.leased("charge").await;
    subject.clock.advance(LEASE_TTL + seconds(1));
    assert!(subject.find(expired).await.unwrap().expired);

    assert_eq!(subject.sweep(by).await, []);
    assert_eq!(subject.get(lease.job).await.state(), State::Leased);
}

/// An overdue job is taken from a live holder.
pub async fn takes_what_is_overdue_from_the_living(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    subject.clock.advance(ATTEMPT_TIMEOUT + GRACE - seconds(20));
    subject.store.renew(holder).await.unwrap();
    assert_eq!(subject.sweep(holder).await, []);
    subject.clock.advance(seconds(21));

    let events = subject.sweep(holder).await;
    assert_eq!((events.len(), events[0].holder), (1, Some(holder)));
    assert_eq!(subject.get(lease.job).await.takeovers, 1);
}

/// A job is taken when its own time is over, although another job that was claimed with it has more time, and was claimed before together
/// with a third one that has more time.
pub async fn takes_what_is_overdue_beside_jobs_that_were_extended(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let (holder, by) = (subject.holder().await, subject.holder().await);
    let hour = seconds(3_600);
    let extend = async |lease| {
        let extension = Extension { lease, timeout: hour, total_max: hour * 2, grace: GRACE };
        subject.store.extend(holder, &extension).await.unwrap().unwrap();
    };
    subject.insert(&subject.jobs("charge", 2)).await;
    let first = subject.claim(holder, &["charge"], 2).await;
    let [one, two] = [first[0].lease(), first[1].lease()];
    extend(one).await;
    subject.settle(holder, &subject.retry(two, seconds(0), false)).await;
    subject.clock.advance(seconds(20));
    let late = subject.put(subject.job("charge")).await;
    let second = subject.claim(holder, &["charge"], 2).await;
    let again = second.iter().map(Leased::lease).find(|lease| lease.job == two.job).unwrap();
    extend(again).await;
    // Once when the time of the first claim is over, and once when the time of the second one is.
    let mut taken = Vec::new();
    for _ in 0..2 {
        subject.clock.advance(seconds(20));
        subject.store.renew(holder).await.unwrap();
        subject.store.renew(by).await.unwrap();
        taken.extend(subject.sweep(by).await.into_iter().map(|event| event.job));
    }
    assert_eq!(taken, [late]);
}

/// A clock that jumps ahead makes every job look overdue. A live holder keeps its job until the clock was watched for as long as the job
/// was leased for.
pub async fn leaves_what_only_a_jump_of_the_clock_made_overdue(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    let sweeper = subject.holder().await;
    subject.clock.advance(seconds(3_600));
    let sweep = async |watched| {
        let sweep = Sweep { watched, ..Sweep::new(sweeper, 10, Retain::default()) };
        subject.store.sweep(&sweep).await.unwrap().len()
    };
    let until = subject.now().await;
    let hold = ATTEMPT_TIMEOUT + GRACE;
    assert_eq!(sweep(Watched { until, since: Duration::ZERO }).await, 0);
    assert_eq!(sweep(Watched { until, since: hold - seconds(1) }).await, 0);
    // It jumped after it was last read.
    let before = Timestamp::from_millis(until.as_millis() - 3_600_000);
    assert_eq!(sweep(Watched { until: before, since: hold }).await, 0);
    assert_eq!(subject.get(lease.job).await.state(), State::Leased);

    assert_eq!(sweep(Watched { until, since: hold }).await, 1);
    assert!(subject.find(holder).await.is_some());
}

/// The jobs of dead holders are freed whatever the clock does.
pub async fn takes_the_jobs_of_the_dead_after_the_clock_jumped(subject: &Subject) {
    let (gone, lease) = subject.leased("charge").await;
    let sweeper = subject.holder().await;
    subject.store.leave(gone).await.unwrap();
    let watched = Watched { until: Timestamp::from_millis(0), since: Duration::ZERO };
    let sweep = Sweep { watched, ..Sweep::new(sweeper, 10, Retain::default()) };
    assert_eq!(subject.store.sweep(&sweep).await.unwrap()[0].job, lease.job);
}

/// A sticky retry becomes overdue as long after its due time as its settlement said.
pub async fn takes_a_sticky_retry_that_was_forgotten(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    subject.settle(holder, &subject.retry(lease, seconds(100), true)).await;
    subject.clock.advance(seconds(100) + ATTEMPT_TIMEOUT + GRACE - seconds(20));
    assert_eq!(subject.sweep(holder).await, []);
    subject.clock.advance(seconds(21));
    assert_eq!(subject.sweep(holder).await.len(), 1);
}

/// No more jobs are freed per call than the limit.
pub async fn frees_no_more_than_asked(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let (by, gone) = (subject.holder().await, subject.holder().await);
    subject.insert(&subject.jobs("charge", 5)).await;
    assert_eq!(subject.claim(gone, &["charge"], 5).await.len(), 5);
    subject.store.leave(gone).await.unwrap();

    let mut freed = HashSet::new();
    for expected in [2, 2, 1, 0] {
        let events = subject.store.sweep(&Sweep::new(by, 2, Retain::default())).await.unwrap();
        assert_eq!(events.len(), expected);
        freed.extend(events.iter().map(|event| event.job));
    }
    assert_eq!(freed.len(), 5);
}

/// A takeover uses no attempt and keeps the due time, but is visible.
pub async fn keeps_due_and_attempt(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let by = subject.holder().await;
    let (holder, lease) = subject.leased("charge").await;
    subject.settle(holder, &subject.retry(lease, seconds(1), true)).await;
    let before = subject.get(lease.job).await;
    subject.take_over(by, holder).await;

    let after = subject.get(lease.job).await;
    assert_eq!((after.due, after.because), (before.due, before.because));
    assert_eq!((after.attempt, after.attempts_before), (1, 0));
    assert_eq!((after.takeovers, after.takeovers_counted), (1, 0));
    assert!(after.fence > before.fence && after.version > before.version);
    assert_eq!(after.failure, before.failure);
}

/// A holder that was declared dead cannot overwrite later results.
pub async fn makes_a_late_settlement_match_nothing(subject: &Subject) {
    let by = subject.holder().await;
    let (silent, lease) = subject.leased("charge").await;
    subject.take_over(by, silent).await;
    assert_eq!(subject.succeed(silent, lease).await, Settled::Lost);

    let next = subject.claim_only(by, "charge").await;
    assert!(next.job.fence > lease.fence);
    assert_eq!(subject.succeed(silent, lease).await, Settled::Lost);
    assert_eq!(subject.get(lease.job).await.state(), State::Leased);
    assert!(matches!(subject.succeed(by, next.lease()).await, Settled::Applied(_)));
}

/// The result names the freed job, its kind and its previous holder.
pub async fn tells_what_it_freed(subject: &Subject) {
    let by = subject.holder().await;
    let (silent, lease) = subject.leased("charge").await;
    let events = subject.take_over(by, silent).await;

    let event = &events[0];
    assert_eq!((event.job, event.kind.as_str()), (lease.job, "charge"));
    assert_eq!((event.from, event.to), (State::Leased, State::Scheduled));
    assert_eq!((event.cause, event.holder), (Cause::Takeover, Some(silent)));
    assert!(event.at <= subject.now().await);
}

/// A takeover counts against a job only if its start had been recorded under the same fence.
pub async fn counts_only_recorded_starts(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let by = subject.holder().await;
    let (silent, lease) = subject.leased("charge").await;
    subject.start(silent, lease).await;
    subject.take_over(by, silent).await;
    let job = subject.get(lease.job).await;
    assert_eq!((job.takeovers, job.takeovers_counted), (1, 1));

    // Leased again, but not started: the old start does not count.
    let unlucky = subject.holder().await;
    subject.claim_only(unlucky, "charge").await;
    subject.take_over(by, unlucky).await;
    let job = subject.get(lease.job).await;
    assert_eq!((job.takeovers, job.takeovers_counted), (2, 1));
}

async fn crash(subject: &Subject, by: HolderId, kind: &str) -> JobId {
    let holder = subject.holder().await;
    let lease = subject.claim_only(holder, kind).await.lease();
    subject.start(holder, lease).await;
    subject.take_over(by, holder).await;
    lease.job
}

/// A job that was running at the death of its holders as often as its kind allows becomes a dead letter.
pub async fn gives_up_a_job_that_takes_its_holders_with_it(subject: &Subject) {
    let by = subject.holder().await;
    let job = subject.submit("charge").await;
    for _ in 0..2 {
        crash(subject, by, "charge").await;
        assert_eq!(subject.get(job).await.state(), State::Scheduled);
    }
    crash(subject, by, "charge").await;

    let dead = subject.get(job).await;
    assert_eq!((dead.state(), dead.attempt), (State::Dead, 0));
    assert_eq!((dead.takeovers, dead.takeovers_counted), (3, 3));
    assert_eq!(dead.failure, Some(Failure::of_takeovers(3)));
    subject.balance().await;
}

/// The cap is that of the kind at the time of the takeover.
pub async fn obeys_the_cap_of_the_kind(subject: &Subject) {
    let by = subject.holder().await;
    let put = async |takeovers_max| {
        let name = KindName::parse("charge").unwrap();
        let kind =
            NewKind { name, settings: "{}".to_owned(), takeovers_max, on_dead: Default::default() };
        subject.store.put_kinds(&[kind], &Actor::new("suite")).await.unwrap();
    };
    put(1).await;
    subject.insert(&[subject.job("charge")]).await;
    let job = crash(subject, by, "charge").await;
    assert_eq!(subject.get(job).await.state(), State::Dead);

    put(2).await;
    subject.insert(&[subject.job("charge")]).await;
    let job = crash(subject, by, "charge").await;
    assert_eq!(subject.get(job).await.state(), State::Scheduled);
}

/// Takeovers of a job that was not started never make it a dead letter.
pub async fn never_gives_up_a_job_that_was_not_started(subject: &Subject) {
    let by = subject.holder().await;
    let job = subject.submit("charge").await;
    for count in 1..=6 {
        let holder = subject.holder().await;
        subject.claim_only(holder, "charge").await;
        subject.store.leave(holder).await.unwrap();
        subject.sweep(by).await;
        let freed = subject.get(job).await;
        assert_eq!((freed.state(), freed.takeovers), (State::Scheduled, count));
        assert_eq!(freed.takeovers_counted, 0);
    }
}

/// A job that crashes its process is given up; two thousand jobs waiting beside it are not charged.
pub async fn does_not_charge_the_innocent_for_the_poison(subject: &Subject) {
    let by = subject.holder().await;
    let poison = subject.submit("charge").await;
    for _ in 0..2 {
        subject.insert(&subject.jobs("charge", 1_000)).await;
    }
    for _ in 0..4 {
        let holder = subject.holder().await;
        let claimed = claim_all(subject, holder).await;
        assert_eq!(claimed.len(), 2_001);
        let lease = claimed.iter().find(|leased| leased.job.id == poison).unwrap();
        // Starts are recorded for suspects only.
        if lease.job.is_suspect() {
            subject.start(holder, lease.lease()).await;
        }
        subject.store.leave(holder).await.unwrap();
        while !subject.sweep(by).await.is_empty() {}
    }
    assert_eq!(subject.get(poison).await.state(), State::Dead);
    let innocent = claim_all(subject, by).await;
    assert_eq!(innocent.len(), 2_000);
    for leased in innocent {
        assert_eq!((leased.job.takeovers, leased.job.takeovers_counted), (4, 0));
        assert_eq!(leased.job.attempt, 0);
    }
}

async fn claim_all(subject: &Subject, holder: HolderId) -> Vec<Leased> {
    let mut all = Vec::new();
    loop {
        let claimed = subject.claim(holder, &["charge"], 1_000).await;
        if claimed.is_empty() {
            return all;
        }
        all.extend(claimed);
    }
}

/// What an operator wanted meanwhile is applied when the job is freed.
pub async fn obeys_what_people_want(subject: &Subject) {
    let by = subject.holder().await;
    for (what, state) in
        [(ChangeVerb::Pause, State::Paused), (ChangeVerb::Cancel, State::Cancelled)]
    {
        let (gone, lease) = subject.leased("charge").await;
        subject.change(lease.job, what).await;
        subject.store.leave(gone).await.unwrap();

        assert_eq!(subject.sweep(by).await[0].to, state);
        let job = subject.get(lease.job).await;
        assert_eq!((job.state(), job.takeovers), (state, 1));
    }
    subject.balance().await;
}

/// A wanted pause or cancel is applied even if this takeover exceeds the cap.
pub async fn obeys_people_before_the_cap(subject: &Subject) {
    let by = subject.holder().await;
    subject.submit("charge").await;
    for _ in 0..2 {
        crash(subject, by, "charge").await;
    }
    let holder = subject.holder().await;
    let lease = subject.claim_only(holder, "charge").await.lease();
    subject.start(holder, lease).await;
    subject.change(lease.job, ChangeVerb::Pause).await;
    subject.take_over(by, holder).await;
    let job = subject.get(lease.job).await;
    assert_eq!((job.state(), job.takeovers_counted), (State::Paused, 3));
}

/// A job cancelled by the sweep is kept no longer than the caller's retention.
pub async fn drops_what_is_cancelled_where_nothing_is_kept(subject: &Subject) {
    let by = subject.holder().await;
    let (gone, lease) = subject.leased("charge").await;
    subject.change(lease.job, ChangeVerb::Cancel).await;
    subject.store.leave(gone).await.unwrap();

    subject.store.sweep(&Sweep::new(by, 10, KEEP_NOTHING)).await.unwrap();
    assert_eq!(subject.store.get(lease.job).await.unwrap(), None);
    assert_eq!(subject.store.books().await.unwrap().pruned, 1);
    subject.balance().await;
}

/// A dead holder cannot sweep.
pub async fn the_dead_sweep_nothing(subject: &Subject) {
    let (gone, lease) = subject.leased("charge").await;
    subject.store.leave(gone).await.unwrap();

    let answer = subject.store.sweep(&Sweep::new(gone, 10, Retain::default())).await;
    assert!(matches!(answer, Err(StoreError::HolderDead(dead)) if dead == gone), "{answer:?}");
    assert_eq!(subject.get(lease.job).await.state(), State::Leased);
}

/// Two concurrent sweeps free each job once.
pub async fn two_who_sweep_free_each_job_once(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let (a, b, gone) = (subject.holder().await, subject.holder().await, subject.holder().await);
    subject.insert(&subject.jobs("charge", 50)).await;
    subject.claim(gone, &["charge"], 50).await;
    subject.store.leave(gone).await.unwrap();

    let (first, second) = both(subject.sweep(a), subject.sweep(b)).await;
    assert_eq!(first.len() + second.len(), 50);
    for leased in subject.claim(a, &["charge"], 50).await {
        assert_eq!((leased.job.takeovers, leased.job.fence.get()), (1, 3));
    }
}

/// A claim that runs concurrently with the expiration of its holder leaves no job that is never swept.
pub async fn finds_what_a_claim_took_during_the_expiry(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let by = subject.holder().await;
    for claim_first in [true, false] {
        let silent = subject.holder().await;
        subject.insert(&subject.jobs("charge", 3)).await;
        subject.clock.advance(LEASE_TTL + seconds(1));
        let claim = subject.try_claim(silent, &["charge"], 3);
        let bury = subject.store.expire_holder(by, silent, 0);
        let claimed =
            if claim_first { both(claim, bury).await.0 } else { both(bury, claim).await.1 };
        let taken = match claimed {
            Ok(claimed) => claimed.iter().map(Leased::lease).collect(),
            Err(StoreError::HolderDead(_)) => Vec::<Lease>::new(),
            Err(other) => panic!("{other}"),
        };
        assert_eq!(subject.sweep(by).await.len(), taken.len());
        for lease in taken {
            assert_eq!(subject.succeed(silent, lease).await, Settled::Lost);
        }
        let free = subject.claim_lane(by, lane("charge")).await;
        assert_eq!(free.len(), 3);
        for leased in free {
            subject.succeed(by, leased.lease()).await;
        }
    }
}

/// A job that waits at its holder for its due time is not overdue before that.
pub async fn leaves_what_waits_for_its_due(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let holder = subject.holder().await;
    let mut new = subject.job("charge");
    new.due = When::In(seconds(60));
    subject.insert(&[new]).await;
    let visits = [subject.visit(lane("charge"), 1)];
    let horizon = seconds(90);
    let claim = Claim { holder, visits: &visits, horizon, limit: 1 };
    assert_eq!(subject.store.claim(&claim).await.unwrap().len(), 1);

    subject.clock.advance(seconds(60) + ATTEMPT_TIMEOUT + GRACE - seconds(20));
    assert_eq!(subject.sweep(holder).await, []);
    subject.clock.advance(seconds(21));
    assert_eq!(subject.sweep(holder).await.len(), 1);
}
