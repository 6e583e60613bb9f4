//! Tests claiming jobs.

mod limits;
mod kinds;

use crate::subject::{ATTEMPT_TIMEOUT, GRACE};
use crate::threads::at_once;
use crate::{Subject, lane, seconds};
use rewheel_core::store::{ChangeVerb, Claim, Leased, StoreError, Visit};
use rewheel_core::{
    DueReason, Fence, HolderId, Job, JobId, NewJob, Priority, Retain, State, Status, Tenant,
    Timestamp, Version, When,
};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

pub use self::kinds::*;
pub use self::limits::*;

fn ids(claimed: &[Leased]) -> Vec<JobId> {
    claimed.iter().map(|leased| leased.job.id).collect()
}

/// Claims jobs that are due within a horizon in the lane of the kind `charge`.
async fn claim_ahead(subject: &Subject, holder: HolderId, horizon: Duration) -> Vec<Leased> {
    let visits = [subject.visit(lane("charge"), 100)];
    subject.store.claim(&Claim { holder, visits: &visits, horizon, limit: 100 }).await.unwrap()
}

fn overdue(job: &Job) -> Timestamp {
    match job.status {
        Status::Leased { overdue, .. } => overdue,
        Status::Scheduled
        | Status::Paused
        | Status::Succeeded(_)
        | Status::Failed(_)
        | Status::Dead(_)
        | Status::Cancelled(_) => panic!("not leased: {job:?}"),
    }
}

/// A job that is not due yet is not claimed.
pub async fn skips_jobs_that_are_not_due(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let id = subject.put(NewJob { due: When::In(seconds(60)), ..subject.job("charge") }).await;
    let holder = subject.holder().await;
    subject.clock.advance(seconds(50));
    assert_eq!(subject.claim(holder, &["charge"], 10).await, []);
    subject.clock.advance(seconds(10));
    assert_eq!(ids(&subject.claim(holder, &["charge"], 10).await), [id]);
}

/// A job that is due within the horizon is leased early, and the result contains its due time.
pub async fn takes_what_is_due_within_the_horizon(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let dues = [10, 25, 60].map(seconds);
    let jobs = dues.map(|due| NewJob { due: When::In(due), ..subject.job("charge") });
    subject.insert(&jobs).await;
    let holder = subject.holder().await;

    let claimed = claim_ahead(subject, holder, seconds(30)).await;
    assert_eq!(ids(&claimed), [jobs[0].id, jobs[1].id]);
    for (leased, due) in claimed.iter().zip(dues) {
        assert!(leased.due_in <= due && leased.due_in > due - seconds(5), "{leased:?}");
    }
    assert_eq!(claimed[0].job.due, subject.get(jobs[0].id).await.due, "its due stays");
    assert_eq!(subject.get(jobs[2].id).await.state(), State::Scheduled);
}

/// A leased job is not given to another holder, nor twice to the same one.
pub async fn gives_a_job_to_only_one_claimer(subject: &Subject) {
    let job = subject.submit("charge").await;
    let (first, second) = (subject.holder().await, subject.holder().await);
    assert_eq!(ids(&subject.claim(first, &["charge"], 10).await), [job]);
    assert_eq!(subject.claim(second, &["charge"], 10).await, []);
    assert_eq!(subject.claim(first, &["charge"], 10).await, []);
}

/// Concurrent claimers share the jobs: each job goes to one of them, and none is left.
pub async fn gives_each_job_to_one_of_racing_claimers(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let jobs = subject.jobs("charge", 200);
    subject.insert(&jobs).await;
    let mut holders = Vec::new();
    for _ in 0..8 {
        holders.push(subject.holder().await);
    }
    let visit = subject.visit(lane("charge"), 7);
    let all = at_once(holders.len(), |place| {
        let (store, holder) = (Arc::clone(&subject.store), holders[place]);
        let visits = [visit.clone()];
        async move {
            let claim = Claim { holder, visits: &visits, horizon: Duration::ZERO, limit: 7 };
            let (mut mine, mut in_vain) = (Vec::new(), 0);
            // A store may skip rows that another claimer has locked.
            while in_vain < 3 {
                let claimed = store.claim(&claim).await.unwrap();
                in_vain = if claimed.is_empty() { in_vain + 1 } else { 0 };
                mine.extend(claimed);
            }
            mine
        }
    })
    .await;

    let mut seen = HashSet::new();
    for (holder, mine) in holders.iter().zip(&all) {
        for leased in mine {
            assert!(seen.insert(leased.job.id), "{:?} went to two", leased.job.id);
            let job = subject.get(leased.job.id).await;
            assert_eq!(job, leased.job);
            assert!(matches!(job.status, Status::Leased { holder: by, .. } if by == *holder));
        }
    }
    assert_eq!(seen.len(), 200, "none is left");
}

/// Within a lane the job with the earliest due time goes first.
pub async fn takes_the_job_that_was_due_first(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let now = subject.now().await.as_millis();
    let jobs = [3, 9, 1, 7, 5].map(|ago| NewJob {
        due: When::At(Timestamp::from_millis(now - 1_000 * ago)),
        ..subject.job("charge")
    });
    subject.insert(&jobs).await;
    let holder = subject.holder().await;
    assert_eq!(ids(&subject.claim(holder, &["charge"], 2).await), [jobs[1].id, jobs[3].id]);
    let rest = [jobs[4].id, jobs[0].id, jobs[2].id];
    assert_eq!(ids(&subject.claim(holder, &["charge"], 10).await), rest);
}

/// Of jobs with the same due time the one that was stored first goes first.
pub async fn takes_the_job_that_was_stored_first(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let due = When::At(Timestamp::from_millis(subject.now().await.as_millis() - 1_000));
    let jobs: Vec<NewJob> =
        subject.jobs("charge", 20).into_iter().map(|job| NewJob { due, ..job }).collect();
    subject.insert(&jobs[..7]).await;
    subject.insert(&jobs[7..]).await;
    let holder = subject.holder().await;
    let stored: Vec<JobId> = jobs.iter().map(|job| job.id).collect();
    assert_eq!(ids(&subject.claim(holder, &["charge"], 20).await), stored);
}

/// Every claim of a job has a larger fence than all claims before it.
pub async fn grows_the_fence(subject: &Subject) {
    let job = subject.submit("charge").await;
    let mut holder = subject.holder().await;
    let mut last = Fence::new(0);
    for round in 0..4 {
        let leased = subject.claim(holder, &["charge"], 1).await.remove(0);
        assert!(leased.job.fence > last, "{:?} after {last:?}", leased.job.fence);
        assert_eq!(leased.job.fence, subject.get(job).await.fence);
        last = leased.job.fence;
        if round % 2 == 0 {
            let back = [leased.lease()];
            subject.store.give_back(holder, &back, Retain::default()).await.unwrap();
        } else {
            holder = subject.heir_of(holder).await;
        }
    }
}

/// A claim is a visible change, and changes nothing but the lease.
pub async fn changes_nothing_but_the_lease(subject: &Subject) {
    let id = subject.submit("charge").await;
    let before = subject.get(id).await;
    let holder = subject.holder().await;
    subject.claim(holder, &["charge"], 1).await;

    let job = subject.get(id).await;
    let overdue = overdue(&job);
    let status = Status::Leased { holder, overdue, wanted: None };
    let version = Version::new(before.version.get() + 1);
    assert_eq!(job, Job { status, version, fence: Fence::new(1), ..before });
}

/// A claim returns the whole job: payload, settings, history.
pub async fn brings_the_whole_job_along(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let new = NewJob {
        payload: vec![0, 255, b'x'],
        attempts_max: Some(3),
        attempt_timeout: Some(seconds(7)),
        backoff: Some(rewheel::Backoff::fixed(seconds(2))),
        traceparent: Some("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".to_owned()),
        ..subject.job("charge")
    };
    let id = subject.put(new.clone()).await;
    let holder = subject.holder().await;
    let first = subject.claim(holder, &["charge"], 1).await.remove(0);
    assert_eq!(first.job.payload, Some(new.payload));
    assert_eq!((first.job.attempts_max, first.job.attempt_timeout), (Some(3), Some(seconds(7))));
    assert_eq!((first.job.backoff, &first.job.traceparent), (new.backoff, &new.traceparent));
    assert_eq!((first.job.because, first.job.failure.as_ref()), (DueReason::Submitted, None));

    subject.settle(holder, &subject.retry(first.lease(), Duration::ZERO, false)).await;
    let second = subject.claim(holder, &["charge"], 1).await.remove(0);
    assert_eq!((second.job.attempt, second.job.because), (1, DueReason::Backoff));
    assert_eq!(second.job.failure, Some(subject.timeout()));
    assert_eq!(second.job, subject.get(id).await);
}

/// Claims by dead holders fail, so that they learn of their death, and lease nothing.
pub async fn fails_for_the_dead(subject: &Subject) {
    let job = subject.submit("charge").await;
    let by = subject.holder().await;
    let (left, expired) = (subject.holder().await, subject.holder().await);
    subject.store.leave(left).await.unwrap();
    subject.expire_holder(by, expired).await;
    let stranger = HolderId::new(Timestamp::from_millis(0), &subject.random);

    for holder in [left, expired, stranger] {
        let answer = subject.try_claim(holder, &["charge"], 10).await;
        assert!(matches!(answer, Err(StoreError::HolderDead(id)) if id == holder), "{answer:?}");
    }
    assert_eq!(subject.get(job).await.status, Status::Scheduled);
}

/// An expired lease alone has no effect: until another holder expires it, a holder may claim.
pub async fn works_for_an_overdue_holder_that_is_not_expired(subject: &Subject) {
    let job = subject.submit("charge").await;
    let holder = subject.holder().await;
    subject.clock.advance(crate::subject::LEASE_TTL * 10);
    assert_eq!(ids(&subject.claim(holder, &["charge"], 1).await), [job]);
}

/// A job past its deadline is not started, and does not block the next one.
pub async fn skips_jobs_whose_deadline_has_passed(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let short = NewJob { deadline: Some(When::In(seconds(10))), ..subject.job("charge") };
    let late = subject.put(short).await;
    let next = subject.put(subject.job("charge")).await;
    subject.clock.advance(seconds(10));
    let holder = subject.holder().await;
    assert_eq!(ids(&subject.claim(holder, &["charge"], 1).await), [next]);
    assert_eq!(subject.claim(holder, &["charge"], 10).await, []);
    assert_eq!(subject.get(late).await.state(), State::Scheduled, "the deadline sweep ends it");
}

/// A claim returns the time left until the deadline.
pub async fn tells_what_is_left_until_the_deadline(subject: &Subject) {
    subject.kinds(&["charge", "refund"]).await;
    let deadline = Some(When::In(seconds(60)));
    subject.put(NewJob { deadline, ..subject.job("charge") }).await;
    subject.put(subject.job("refund")).await;
    subject.clock.advance(seconds(20));
    let holder = subject.holder().await;
    let claimed = subject.claim(holder, &["charge", "refund"], 10).await;
    let left = claimed[0].deadline_in.unwrap();
    assert!(left <= seconds(40) && left > seconds(30), "{left:?}");
    assert_eq!(claimed[1].deadline_in, None);
}

/// A job is overdue when the attempt timeout and the grace have passed: its own timeout, or that of
/// the visit.
pub async fn is_overdue_by_the_jobs_own_timeout_first(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    subject.put(NewJob { attempt_timeout: Some(seconds(7)), ..subject.job("charge") }).await;
    subject.put(subject.job("charge")).await;
    // Long after the due time, so that only the time of the claim can count.
    subject.clock.advance(seconds(3_600));
    let holder = subject.holder().await;
    let before = subject.now().await;
    let claimed = subject.claim(holder, &["charge"], 10).await;
    let after = subject.now().await;
    for (leased, timeout) in claimed.iter().zip([seconds(7), ATTEMPT_TIMEOUT]) {
        let expected = before.plus(timeout + GRACE)..=after.plus(timeout + GRACE);
        assert!(expected.contains(&overdue(&leased.job)), "{leased:?}");
    }
}

/// The time of a job that is leased early starts at its due time.
pub async fn is_overdue_from_the_due_where_that_is_later(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    subject.put(NewJob { due: When::In(seconds(60)), ..subject.job("charge") }).await;
    let holder = subject.holder().await;
    let leased = claim_ahead(subject, holder, seconds(90)).await.remove(0);
    assert_eq!(overdue(&leased.job), leased.job.due.plus(ATTEMPT_TIMEOUT + GRACE));
}

/// Only the visited lane is read, not its neighbours.
pub async fn takes_from_the_lane_it_visits(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let acme = Some(Tenant::parse("acme").unwrap());
    let jobs = [
        subject.job("charge"),
        NewJob { tenant: acme.clone(), ..subject.job("charge") },
        NewJob { tenant: acme, priority: Priority::MAX, ..subject.job("charge") },
        NewJob { tenant: Tenant::parse("Acme").ok(), ..subject.job("charge") },
    ];
    subject.insert(&jobs).await;
    let holder = subject.holder().await;
    for job in jobs.iter().rev() {
        let visits: [Visit; 1] = [subject.visit(job.lane(), 10)];
        let claim = Claim { holder, visits: &visits, horizon: Duration::ZERO, limit: 10 };
        assert_eq!(ids(&subject.store.claim(&claim).await.unwrap()), [job.id]);
    }
}

/// A paused, dead or finished job cannot be claimed.
pub async fn skips_jobs_that_are_not_scheduled(subject: &Subject) {
    let paused = subject.submit("charge").await;
    subject.change(paused, ChangeVerb::Pause).await;
    subject.dead_letter("charge").await;
    let (holder, lease) = subject.leased("charge").await;
    subject.succeed(holder, lease).await;
    assert_eq!(subject.claim(holder, &["charge"], 10).await, []);
}
