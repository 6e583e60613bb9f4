//! Tests that an unreadable row blocks no other row and waits for an operator.
//!
//! `sql` runs a statement by hand, with `s.` before each table.

use rewheel_core::store::{ChangeVerb, Filter, PageRequest, Settled};
use rewheel_core::{
    Actor, HolderId, JobId, KindEdit, KindEditVerb, KindEdited, KindName, State, Tenant, When,
};
use rewheel_testkit::{Subject, seconds};
use std::time::Duration;

/// Marks the job whose row is damaged.
const MARK: u32 = 77;

/// Stores three jobs. Returns the id of the middle one, which is marked, and the ids of the others.
async fn three(subject: &Subject, deadline: Option<When>) -> (JobId, [JobId; 2]) {
    subject.kinds(&["a"]).await;
    let mut jobs = subject.jobs("a", 3);
    for job in &mut jobs {
        job.deadline = deadline;
    }
    jobs[1].attempts_max = Some(MARK);
    subject.insert(&jobs).await;
    (jobs[1].id, [jobs[0].id, jobs[2].id])
}

/// Sorts jobs for comparison.
fn sorted(jobs: impl IntoIterator<Item = JobId>) -> Vec<JobId> {
    let mut jobs: Vec<JobId> = jobs.into_iter().collect();
    jobs.sort_unstable();
    jobs
}

async fn listed(subject: &Subject) -> Vec<JobId> {
    let page = PageRequest { scan_max: 1_000, ..PageRequest::first(10) };
    let page = subject.store.list(&Filter::default(), &page).await.expect("a list");
    sorted(page.items.into_iter().map(|job| job.id))
}

async fn is_risk(subject: &Subject) -> bool {
    let risks = subject.store.risks().await.expect("risks");
    let found = risks.into_iter().find(|risk| risk.name == "unreadable_jobs");
    assert_eq!(found, subject.store.unreadable().await.expect("a risk"));
    found.is_some()
}

/// Does what an operator does after the row is repaired, or after an upgrade that can read it.
async fn resume(subject: &Subject, job: JobId, holder: HolderId) {
    assert!(is_risk(subject).await);
    assert_eq!(subject.get(job).await.state(), State::Paused);
    subject.apply(job, ChangeVerb::Resume).await;
    assert!(!is_risk(subject).await);
    assert_eq!(subject.claim_only(holder, "a").await.job.id, job);
    subject.balance().await;
}

pub(crate) async fn a_claim_passes_over_it(subject: &Subject, sql: impl AsyncFn(&str)) {
    let (bad, good) = three(subject, None).await;
    sql("UPDATE s.jobs SET backoff = '{' WHERE attempts_max = 77").await;
    let holder = subject.holder().await;
    assert_eq!(listed(subject).await, sorted(good));
    let claimed = subject.claim(holder, &["a"], 10).await;
    assert_eq!(sorted(claimed.iter().map(|leased| leased.job.id)), sorted(good));
    assert!(subject.claim(holder, &["a"], 10).await.is_empty());
    assert!(subject.store.get(bad).await.is_err(), "reading the job itself reports the error");
    for leased in claimed {
        subject.succeed(holder, leased.lease()).await;
    }
    let name = KindName::parse("a").expect("a name");
    let delete = KindEdit { name, what: KindEditVerb::Delete, if_version: None };
    let deleted = subject.store.edit_kind(&delete, &Actor::new("test")).await.expect("an answer");
    assert!(matches!(deleted, KindEdited::HasJobs(_)), "{deleted:?}");
    sql("UPDATE s.jobs SET backoff = NULL WHERE attempts_max = 77").await;
    resume(subject, bad, holder).await;
}

pub(crate) async fn a_sweep_passes_over_it(subject: &Subject, sql: impl AsyncFn(&str)) {
    let (bad, good) = three(subject, None).await;
    let holder = subject.holder().await;
    assert_eq!(subject.claim(holder, &["a"], 10).await.len(), 3);
    sql("UPDATE s.jobs SET wanted = 'freeze' WHERE attempts_max = 77").await;
    let heir = subject.holder().await;
    let events = subject.take_over(heir, holder).await;
    assert_eq!(sorted(events.iter().map(|event| event.job)), sorted(good));
    assert!(subject.sweep(heir).await.is_empty());
    assert_eq!(subject.claim(heir, &["a"], 10).await.len(), 2);
    sql("UPDATE s.jobs SET wanted = NULL WHERE attempts_max = 77").await;
    resume(subject, bad, heir).await;
}

/// The lane of a job is missing: its kind is unknown.
pub(crate) async fn a_sweep_passes_over_a_job_without_a_lane(
    subject: &Subject,
    sql: impl AsyncFn(&str),
) {
    let (_, good) = three(subject, None).await;
    let holder = subject.holder().await;
    assert_eq!(subject.claim(holder, &["a"], 10).await.len(), 3);
    sql("UPDATE s.jobs SET lane = 9999 WHERE attempts_max = 77").await;
    let heir = subject.holder().await;
    let events = subject.take_over(heir, holder).await;
    assert_eq!(sorted(events.iter().map(|event| event.job)), sorted(good));
    assert!(is_risk(subject).await);
    assert_eq!(listed(subject).await, sorted(good));
    assert_eq!(subject.store.tally().await.expect("a tally").len(), 1);
}

pub(crate) async fn deadlines_pass_over_it(subject: &Subject, sql: impl AsyncFn(&str)) {
    let (bad, good) = three(subject, Some(When::In(seconds(60)))).await;
    sql("UPDATE s.jobs SET wanted = 'freeze' WHERE attempts_max = 77").await;
    subject.clock.advance(seconds(61));
    for expected in [sorted(good), Vec::new()] {
        let ended = subject.store.deadlines(Duration::ZERO, 10).await.expect("deadlines");
        assert_eq!(sorted(ended.iter().map(|event| event.job)), expected);
    }
    assert!(is_risk(subject).await);
    assert_eq!(subject.get(bad).await.state(), State::Paused);
    subject.balance().await;
}

pub(crate) async fn a_settle_passes_over_it(subject: &Subject, sql: impl AsyncFn(&str)) {
    let (bad, _) = three(subject, None).await;
    let holder = subject.holder().await;
    let claimed = subject.claim(holder, &["a"], 10).await;
    sql("UPDATE s.jobs SET wanted = 'freeze' WHERE attempts_max = 77").await;
    let retries: Vec<_> =
        claimed.iter().map(|leased| subject.retry(leased.lease(), seconds(60), false)).collect();
    let settled = subject.store.settle(holder, &retries).await.expect("settled");
    for (leased, settled) in claimed.iter().zip(settled) {
        let is_lost = settled == Settled::Lost;
        assert_eq!(is_lost, leased.job.id == bad, "{settled:?}");
    }
    sql("UPDATE s.jobs SET wanted = NULL WHERE attempts_max = 77").await;
    resume(subject, bad, holder).await;
}

/// A page of lanes that is not full is the last one: a lane that cannot be read must not make one look so.
pub(crate) async fn a_lane_hides_no_lanes_behind_it(subject: &Subject, sql: impl AsyncFn(&str)) {
    subject.kinds(&["a"]).await;
    let mut jobs = subject.jobs("a", 3);
    for (job, tenant) in jobs.iter_mut().zip(["t1", "t2", "t3"]) {
        job.tenant = Some(Tenant::parse(tenant).expect("a tenant"));
    }
    subject.insert(&jobs).await;
    let bad = "t".repeat(129);
    sql(&format!("UPDATE s.lanes SET tenant = '{bad}' WHERE tenant = 't1'")).await;
    sql("UPDATE s.lanes SET tenant = 't9' WHERE tenant = 't3'").await;
    let kinds = [KindName::parse("a").expect("a name")];
    let first = subject.store.lanes(&kinds, None, 1).await.expect("lanes");
    assert_eq!(first[0].lane.tenant, jobs[1].tenant);
    let second = subject.store.lanes(&kinds, Some(&first[0].lane), 1).await.expect("lanes");
    assert_eq!(second[0].lane.tenant, Tenant::parse("t9").ok());
}

pub(crate) async fn a_dead_letter_is_announced_without_it(
    subject: &Subject,
    sql: impl AsyncFn(&str),
) {
    let (one, other) = (subject.dead_letter("a").await, subject.dead_letter("a").await);
    sql("UPDATE s.dead SET failure_category = 'melted'").await;
    let letters = subject.store.unannounced(10).await.expect("dead letters");
    assert_eq!(sorted(letters.iter().map(|letter| letter.job)), sorted([one, other]));
    assert!(letters.iter().all(|letter| letter.failure.is_none()));
}
