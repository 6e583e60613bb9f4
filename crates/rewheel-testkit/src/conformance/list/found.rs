//! Tests finding jobs by key, cursors, and the list of failures.

use super::pages;
use crate::Subject;
use rewheel_core::store::{ChangeVerb, Count, FailureScan, Filter, PageRequest};
use rewheel_core::{JobId, Key, KindName, NewJob, State, Tenant};

fn keyed(subject: &Subject, kind: &str, tenant: Option<&str>, key: &str) -> NewJob {
    NewJob {
        key: Some(Key::parse(key).unwrap()),
        tenant: tenant.map(|tenant| Tenant::parse(tenant).unwrap()),
        ..subject.job(kind)
    }
}

fn of_key(key: &str) -> Filter {
    Filter { key: Some(Key::parse(key).unwrap()), ..Filter::default() }
}

async fn found(subject: &Subject, filter: &Filter) -> Vec<JobId> {
    let mut found = super::ids(subject, filter).await;
    found.sort();
    let count = subject.store.count(filter, 100).await.unwrap();
    assert_eq!(count, Count::Exactly(found.len() as u64));
    found
}

/// A key finds its jobs, of all kinds and tenants or of one, and no others.
pub async fn finds_the_jobs_of_a_key(subject: &Subject) {
    subject.kinds(&["charge", "refund"]).await;
    let plain = subject.put(keyed(subject, "charge", None, "order-17")).await;
    let acme = subject.put(keyed(subject, "charge", Some("acme"), "order-17")).await;
    let refund = subject.put(keyed(subject, "refund", None, "order-17")).await;
    subject.put(keyed(subject, "charge", None, "order-170")).await;
    subject.put(keyed(subject, "charge", None, "Order-17")).await;
    subject.put(subject.job("charge")).await;

    let mut all = vec![plain, acme, refund];
    all.sort();
    assert_eq!(found(subject, &of_key("order-17")).await, all);
    let charge = vec![KindName::parse("charge").unwrap()];
    let mut both = vec![plain, acme];
    both.sort();
    let of_kind = Filter { kinds: charge.clone(), ..of_key("order-17") };
    assert_eq!(found(subject, &of_kind).await, both);
    let tenant = Some(Tenant::parse("acme").unwrap());
    let of_tenant = Filter { tenant: tenant.clone(), ..of_key("order-17") };
    assert_eq!(found(subject, &of_tenant).await, [acme]);
    assert_eq!(
        found(subject, &Filter { kinds: charge, tenant, ..of_key("order-17") }).await,
        [acme]
    );
    assert_eq!(found(subject, &of_key("order-18")).await, []);
    let other = Some(Tenant::parse("other").unwrap());
    assert_eq!(found(subject, &Filter { tenant: other, ..of_key("order-17") }).await, []);
    let pages = pages(subject, &of_key("order-17"), PageRequest::first(1)).await;
    let listed: Vec<JobId> = pages.iter().flatten().map(|job| job.id).collect();
    assert_eq!(listed, all.into_iter().rev().collect::<Vec<_>>());
}

/// A key finds its job in every state; a filter by state applies.
pub async fn finds_the_job_of_a_key_in_every_state(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let check = async |job: JobId, state: State| {
        assert_eq!(subject.get(job).await.state(), state);
        assert_eq!(found(subject, &of_key("a")).await, [job]);
        assert_eq!(found(subject, &Filter { states: vec![state], ..of_key("a") }).await, [job]);
        let other = if state == State::Paused { State::Dead } else { State::Paused };
        assert_eq!(found(subject, &Filter { states: vec![other], ..of_key("a") }).await, []);
    };
    let (holder, lease) = subject.lease_new(&keyed(subject, "charge", None, "a")).await;
    let job = lease.job;
    check(job, State::Leased).await;
    subject.settle(holder, &subject.dead(lease)).await;
    check(job, State::Dead).await;
    subject.apply(job, ChangeVerb::Redrive { deadline: None }).await;
    check(job, State::Scheduled).await;
    subject.apply(job, ChangeVerb::Pause).await;
    check(job, State::Paused).await;
    subject.apply(job, ChangeVerb::Cancel).await;
    check(job, State::Cancelled).await;
}

/// If a page ends between jobs that the filter excludes, its cursor contains none of their ids.
pub async fn a_cursor_names_no_job_that_is_kept_back(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let job = |tenant: &str| NewJob {
        tenant: Some(Tenant::parse(tenant).unwrap()),
        ..subject.job("charge")
    };
    let others: Vec<NewJob> = (0..30).map(|_| job("bank")).collect();
    let own: Vec<NewJob> = (0..3).map(|_| job("shop")).collect();
    subject.insert(&others).await;
    subject.insert(&own).await;
    let filter = Filter { tenant: Some(Tenant::parse("shop").unwrap()), ..Filter::default() };
    let mut request = PageRequest { scan_max: 4, ..PageRequest::first(2) };
    let mut listed = Vec::new();
    loop {
        let page = subject.store.list(&filter, &request).await.unwrap();
        listed.extend(page.items.iter().map(|job| job.id));
        let Some(cursor) = page.next else { break };
        let place = cursor.job();
        assert!(others.iter().all(|other| other.id != place), "{place} is a job of another tenant");
        assert!(request.cursor != Some(cursor), "the list does not get on");
        request.cursor = Some(cursor);
    }
    assert_eq!(listed, super::newest_first(own.iter().map(|job| job.id).collect()));
}

fn scan() -> FailureScan {
    FailureScan { kinds: Vec::new(), tenant: None, rows_max: 100, bytes_max: 1 << 20 }
}

/// Only failures are read: dead letters, and live jobs after a failed attempt.
pub async fn reads_what_failed(subject: &Subject) {
    let dead = subject.dead_letter("charge").await;
    let (holder, lease) = subject.leased("refund").await;
    subject.settle(holder, &subject.retry(lease, crate::seconds(60), false)).await;
    subject.submit("charge").await;
    subject.job_in("charge", State::Succeeded).await;
    subject.job_in("charge", State::Failed).await;

    let failures = subject.store.failures(&scan()).await.unwrap();
    assert!(failures.complete);
    let told: Vec<_> = failures.jobs.iter().map(|job| (job.id, job.is_dead)).collect();
    assert_eq!(told, [(dead, true), (lease.job, false)]);
    for failed in &failures.jobs {
        let job = subject.get(failed.id).await;
        assert_eq!((Some(&failed.failure), &failed.kind), (job.failure.as_ref(), &job.lane.kind));
        assert_eq!(failed.seen, job.status.finished().unwrap_or(job.created));
    }
    let kinds = vec![KindName::parse("refund").unwrap()];
    let of_kind = subject.store.failures(&FailureScan { kinds, ..scan() }).await.unwrap();
    assert_eq!(of_kind.jobs, failures.jobs[1..]);
    let tenant = Some(Tenant::parse("acme").unwrap());
    let of_tenant = subject.store.failures(&FailureScan { tenant, ..scan() }).await.unwrap();
    assert_eq!((of_tenant.jobs.len(), of_tenant.complete), (0, true));
}

/// A limited number of rows is read, and the result says whether it is complete.
pub async fn reads_a_bounded_number_of_failures(subject: &Subject) {
    let mut dead = Vec::new();
    for _ in 0..4 {
        dead.push(subject.dead_letter("charge").await);
    }
    let dead = super::newest_first(dead);
    let read = async |scan: &FailureScan| {
        let failures = subject.store.failures(scan).await.unwrap();
        (failures.jobs.iter().map(|job| job.id).collect::<Vec<_>>(), failures.complete)
    };
    let few = FailureScan { rows_max: 3, ..scan() };
    assert_eq!(read(&few).await, (dead[..3].to_vec(), false));
    assert_eq!(read(&FailureScan { rows_max: 4, ..scan() }).await, (dead.clone(), true));
    // Jobs of other kinds count, because they are read, too.
    let kinds = vec![KindName::parse("refund").unwrap()];
    assert_eq!(read(&FailureScan { kinds, ..few }).await, (Vec::new(), false));
    let (found, _) = read(&FailureScan { bytes_max: 0, ..scan() }).await;
    assert_eq!(found, []);
}
