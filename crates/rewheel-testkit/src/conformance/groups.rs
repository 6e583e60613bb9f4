//! Tests groups: one lease at a time for each group, in the order of acceptance.

mod endings;
mod lines;
mod operators;

pub use self::endings::*;
pub use self::lines::*;
pub use self::operators::*;

use crate::Subject;
use rewheel_core::store::{Direct, GroupsReleased, Insert, Inserted, Leased, Settlement};
use rewheel_core::{
    Duplicates, GroupKey, HolderId, JobId, Key, Lease, NewJob, OnDuplicate, State, Tenant, Turn,
    When,
};
use std::time::Duration;

/// Builds a job of kind `mail` in a group.
fn grouped(subject: &Subject, group: &str) -> NewJob {
    NewJob { group_key: Some(GroupKey::parse(group).unwrap()), ..subject.job("mail") }
}

/// Stores jobs of one group, one insert each, and returns them in this order.
async fn line(subject: &Subject, count: usize) -> Vec<JobId> {
    subject.kinds(&["mail"]).await;
    let mut ids = Vec::with_capacity(count);
    for _ in 0..count {
        ids.push(subject.put(grouped(subject, "customer-17")).await);
    }
    ids
}

/// Claims everything of kind `mail` that may run.
async fn claim(subject: &Subject, holder: HolderId) -> Vec<Leased> {
    subject.claim(holder, &["mail"], 100).await
}

/// Claims the only job that may run.
async fn claim_one(subject: &Subject, holder: HolderId, id: JobId) -> Lease {
    let claimed = claim(subject, holder).await;
    let ids: Vec<JobId> = claimed.iter().map(|leased| leased.job.id).collect();
    assert_eq!(ids, [id]);
    claimed[0].lease()
}

/// Checks which jobs wait for others of their groups.
async fn check_blocked(subject: &Subject, jobs: &[JobId], blocked: &[JobId]) {
    for job in jobs {
        let is_blocked = subject.get(*job).await.is_blocked();
        assert_eq!(is_blocked, blocked.contains(job), "job {job}");
    }
    check_lines(subject).await;
}

/// Checks that no group lacks a job that may run.
async fn check_lines(subject: &Subject) {
    assert_eq!(subject.store.stuck_groups(100).await.unwrap(), []);
}

async fn turn(subject: &Subject, job: JobId) -> Turn {
    subject.get(job).await.group.expect("it has a group").turn.expect("it was released")
}

/// The jobs of a group run one after the other, as they were accepted.
pub async fn run_one_at_a_time_in_order(subject: &Subject) {
    let jobs = line(subject, 4).await;
    let holder = subject.holder().await;
    check_blocked(subject, &jobs, &jobs[1..]).await;
    for (nth, job) in jobs.iter().enumerate() {
        let lease = claim_one(subject, holder, *job).await;
        assert_eq!(claim(subject, holder).await, [], "another one runs");
        subject.succeed(holder, lease).await;
        check_blocked(subject, &jobs, jobs.get(nth + 2..).unwrap_or_default()).await;
    }
    assert_eq!(claim(subject, holder).await, []);
    subject.balance().await;
}

/// The jobs of one insert run in the order of the insert, whatever their ids and priorities of time are.
pub async fn of_one_insert_keep_its_order(subject: &Subject) {
    subject.kinds(&["mail"]).await;
    let mut jobs: Vec<NewJob> = (0..40).map(|_| grouped(subject, "customer-17")).collect();
    jobs.reverse();
    subject.insert(&jobs).await;
    let holder = subject.holder().await;
    for job in &jobs {
        let lease = claim_one(subject, holder, job.id).await;
        subject.succeed(holder, lease).await;
    }
}

/// A submit that replaces a job of a group changes neither its group nor its place.
pub async fn keep_the_place_of_a_replaced_job(subject: &Subject) {
    subject.kinds(&["mail"]).await;
    let key = Some(Key::parse("invoice-2").unwrap());
    let first = subject.put(grouped(subject, "customer-17")).await;
    let second = subject.put(NewJob { key: key.clone(), ..grouped(subject, "customer-17") }).await;
    let third = subject.put(grouped(subject, "customer-17")).await;
    let duplicates = Duplicates::new(None, Some(OnDuplicate::Replace), None).unwrap();
    let new = NewJob { key, duplicates, payload: b"2".to_vec(), ..subject.job("mail") };
    let replaced = Inserted::Replaced { job: second, state: State::Scheduled };
    assert_eq!(subject.store.insert(&Insert::new(&[new])).await.unwrap(), [replaced]);
    let jobs = [first, second, third];
    check_blocked(subject, &jobs, &jobs[1..]).await;
    let holder = subject.holder().await;
    for job in jobs {
        let lease = claim_one(subject, holder, job).await;
        subject.succeed(holder, lease).await;
    }
    let group = subject.get(second).await.group.expect("it keeps its group");
    assert_eq!(group.key.as_str(), "customer-17");
}

/// A job that is due later holds up those behind it.
pub async fn wait_for_the_due_of_the_first(subject: &Subject) {
    subject.kinds(&["mail"]).await;
    let due = When::In(Duration::from_secs(60));
    let first = subject.put(NewJob { due, ..grouped(subject, "customer-17") }).await;
    let second = subject.put(grouped(subject, "customer-17")).await;
    let holder = subject.holder().await;
    assert_eq!(claim(subject, holder).await, []);
    subject.clock.advance(Duration::from_secs(61));
    let lease = claim_one(subject, holder, first).await;
    subject.succeed(holder, lease).await;
    claim_one(subject, holder, second).await;
}

/// Groups of other kinds, tenants and keys do not wait for each other, and jobs without a group wait for none.
pub async fn are_apart_by_kind_tenant_and_key(subject: &Subject) {
    subject.kinds(&["mail", "print"]).await;
    let first = grouped(subject, "customer-17");
    let tenant = Some(Tenant::parse("acme").unwrap());
    let group_key = first.group_key.clone();
    let others = [
        grouped(subject, "customer-18"),
        NewJob { tenant, ..grouped(subject, "customer-17") },
        NewJob { group_key, ..subject.job("print") },
        subject.job("mail"),
    ];
    subject.insert(&[first]).await;
    subject.insert(&others).await;
    for job in &others {
        assert!(!subject.get(job.id).await.is_blocked());
    }
    assert_eq!(subject.get(others[3].id).await.group, None);
}

/// An insert leases no job of a group.
pub async fn take_no_direct_path(subject: &Subject) {
    subject.kinds(&["mail"]).await;
    let holder = subject.holder().await;
    let jobs = [grouped(subject, "customer-17")];
    let (attempt_timeout, grace) = (Duration::from_secs(30), Duration::from_secs(5));
    let direct = Some(Direct { holder, attempt_timeout, grace });
    let answers = subject.answers(&Insert { direct, ..Insert::new(&jobs) }).await;
    assert!(matches!(answers[0], Inserted::Created { leased: None, .. }), "{answers:?}");
    claim_one(subject, holder, jobs[0].id).await;
}

/// Each release has a larger number than the one before; a retry is the same turn.
pub async fn have_turns_that_grow(subject: &Subject) {
    let jobs = line(subject, 3).await;
    let holder = subject.holder().await;
    let mut last = Turn::new(0);
    for job in &jobs {
        let lease = claim_one(subject, holder, *job).await;
        let own = turn(subject, *job).await;
        assert!(own > last);
        subject.settle(holder, &subject.retry(lease, Duration::ZERO, false)).await;
        let leased = claim(subject, holder).await.remove(0);
        assert_eq!(leased.job.group.as_ref().and_then(|group| group.turn), Some(own));
        subject.settle(holder, &Settlement::succeed(leased.lease())).await;
        assert_eq!(turn(subject, *job).await, own, "an ended job keeps it");
        last = own;
    }
    // The line was empty in between.
    let next = subject.put(grouped(subject, "customer-17")).await;
    assert!(turn(subject, next).await > last);
}

/// A service that compares turns remembers those from before a restore: a counter would start lower.
pub async fn have_turns_that_are_not_below_the_time(subject: &Subject) {
    let now = subject.store.now().await.unwrap();
    let jobs = line(subject, 1).await;
    let turn = turn(subject, jobs[0]).await;
    assert!(i64::try_from(turn.get()).unwrap() >= now.as_millis(), "{turn:?}");
}

/// A release makes a job due that waited for its group; the insert does not.
pub async fn are_due_from_their_release_on(subject: &Subject) {
    let jobs = line(subject, 2).await;
    let holder = subject.holder().await;
    let lease = claim_one(subject, holder, jobs[0]).await;
    assert_eq!(subject.get(jobs[0]).await.due, subject.get(jobs[0]).await.created);
    let (due, version) = (subject.get(jobs[1]).await.due, subject.get(jobs[1]).await.version);
    subject.clock.advance(Duration::from_secs(10));
    subject.succeed(holder, lease).await;
    let released = subject.get(jobs[1]).await;
    assert!(released.due.since(due) >= Duration::from_secs(10), "{released:?}");
    assert_eq!(released.version, version);
}

/// A check finds nothing to do where every line has its head, and visits every line.
pub async fn are_checked_line_by_line(subject: &Subject) {
    subject.kinds(&["mail"]).await;
    let jobs: Vec<NewJob> =
        (0..12).map(|nth| grouped(subject, &format!("customer-{}", nth % 6))).collect();
    subject.insert(&jobs).await;
    let check = async |limit| subject.store.release_groups(limit).await.unwrap();
    assert_eq!(check(100).await, GroupsReleased { checked: 6, released: 0 });
    for checked in [4, 2, 4, 2] {
        assert_eq!(check(4).await, GroupsReleased { checked, released: 0 });
    }
    check_lines(subject).await;
}
