//! Tests reserving room under a tenant's job cap.

use crate::Subject;
use crate::race::both;
use rewheel_core::store::{ChangeVerb, Claim, Reserve, StoreError};
use rewheel_core::{HolderId, JobId, Lease, NewJob, Tenant};
use std::time::Duration;

const JOBS_MAX: u64 = 10;

fn tenant(name: &str) -> Tenant {
    Tenant::parse(name).unwrap()
}

/// With so many holders that nothing is reserved beyond what is needed.
fn needs(holder: HolderId, needed: u64) -> Reserve {
    let tenant = tenant("acme");
    Reserve { holder, tenant, jobs_max: JOBS_MAX, on_the_way: 0, needed, holders: 1_000 }
}

async fn reserve(subject: &Subject, reserve: &Reserve) -> u64 {
    subject.store.reserve(reserve).await.unwrap()
}

async fn submit(subject: &Subject, of: &str, count: usize) -> Vec<JobId> {
    subject.kinds(&["charge"]).await;
    let mut jobs: Vec<NewJob> = subject.jobs("charge", count);
    jobs.iter_mut().for_each(|job| job.tenant = Some(tenant(of)));
    subject.insert(&jobs).await;
    jobs.iter().map(|job| job.id).collect()
}

async fn claim(subject: &Subject, holder: HolderId, count: usize) -> Vec<Lease> {
    let lane = NewJob { tenant: Some(tenant("acme")), ..subject.job("charge") }.lane();
    let visits = [subject.visit(lane, count)];
    let claim = Claim { holder, visits: &visits, horizon: Duration::ZERO, limit: count };
    let claimed = subject.store.claim(&claim).await.unwrap();
    claimed.iter().map(|leased| leased.lease()).collect()
}

/// Scheduled, leased and paused jobs count; ended jobs and those of other tenants do not.
pub async fn counts_the_live_jobs_of_a_tenant(subject: &Subject) {
    let holder = subject.holder().await;
    submit(subject, "other", 5).await;
    subject.submit("charge").await;
    let jobs = submit(subject, "acme", 6).await;
    let leases = claim(subject, holder, 3).await;
    assert_eq!(leases.len(), 3);
    subject.succeed(holder, leases[0]).await;
    subject.settle(holder, &subject.dead(leases[1])).await;
    let scheduled = jobs.iter().find(|job| leases.iter().all(|lease| lease.job != **job)).unwrap();
    subject.change(*scheduled, ChangeVerb::Pause).await;
    // One leased, two scheduled, one paused.
    assert_eq!(reserve(subject, &needs(holder, 100)).await, JOBS_MAX - 4);
}

/// Room that one holder reserved is not given to another, and its next reservation replaces the last.
pub async fn gives_the_same_room_to_one_only(subject: &Subject) {
    let (one, other) = (subject.holder().await, subject.holder().await);
    assert_eq!(reserve(subject, &needs(one, 7)).await, 7);
    assert_eq!(reserve(subject, &needs(other, 7)).await, 3);
    assert_eq!(reserve(subject, &needs(one, 7)).await, 7);
    assert_eq!(reserve(subject, &needs(one, 2)).await, 2);
    assert_eq!(reserve(subject, &needs(other, 100)).await, 8);
    assert_eq!(reserve(subject, &needs(one, 0)).await, 0);
    assert_eq!(reserve(subject, &needs(other, 100)).await, 10);
}

/// Room for jobs being submitted stays reserved, however full the tenant is.
pub async fn keeps_what_is_on_its_way(subject: &Subject) {
    let (one, other) = (subject.holder().await, subject.holder().await);
    assert_eq!(reserve(subject, &needs(one, 4)).await, 4);
    submit(subject, "acme", 6).await;
    let on_the_way = Reserve { on_the_way: 4, ..needs(one, 3) };
    assert_eq!(reserve(subject, &on_the_way).await, 4);
    assert_eq!(reserve(subject, &needs(other, 1)).await, 0);
}

/// A job that ended frees its room.
pub async fn has_room_again_when_jobs_ended(subject: &Subject) {
    let holder = subject.holder().await;
    submit(subject, "acme", 10).await;
    assert_eq!(reserve(subject, &needs(holder, 1)).await, 0);
    for lease in claim(subject, holder, 2).await {
        subject.succeed(holder, lease).await;
    }
    assert_eq!(reserve(subject, &needs(holder, 5)).await, 2);
}

/// Reservations of dead holders are freed, and dead holders cannot reserve.
pub async fn frees_what_the_dead_had(subject: &Subject) {
    let (one, other) = (subject.holder().await, subject.holder().await);
    assert_eq!(reserve(subject, &needs(one, 10)).await, 10);
    assert_eq!(reserve(subject, &needs(other, 1)).await, 0);
    subject.store.leave(one).await.unwrap();
    assert_eq!(reserve(subject, &needs(other, 1)).await, 1);
    let refused = subject.store.reserve(&needs(one, 1)).await;
    assert!(matches!(refused, Err(StoreError::HolderDead(dead)) if dead == one), "{refused:?}");
}

/// Each tenant has its own room.
pub async fn tells_tenants_apart(subject: &Subject) {
    let holder = subject.holder().await;
    assert_eq!(reserve(subject, &needs(holder, 10)).await, 10);
    let other = Reserve { tenant: tenant("Acme"), ..needs(holder, 10) };
    assert_eq!(reserve(subject, &other).await, 10);
}

/// Two concurrent reservations do not get more than there is.
pub async fn serves_racing_holders_one_after_the_other(subject: &Subject) {
    let (one, other) = (subject.holder().await, subject.holder().await);
    for round in 0..20 {
        let tenant = tenant(&format!("acme {round}"));
        let first = Reserve { tenant: tenant.clone(), ..needs(one, 8) };
        let second = Reserve { tenant, ..needs(other, 8) };
        let (a, b) = both(subject.store.reserve(&first), subject.store.reserve(&second)).await;
        let mut granted = [a.unwrap(), b.unwrap()];
        granted.sort_unstable();
        assert_eq!(granted, [2, 8]);
    }
}
