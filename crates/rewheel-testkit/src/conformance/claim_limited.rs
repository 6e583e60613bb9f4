//! Tests fleet-wide limits.

mod slots;
mod rates;
mod racing;

use crate::{Subject, lane};
use rewheel_core::store::{
    FleetLimit, Leased, LimitOf, LimitWait, LimitedClaim, LimitedClaimed, StoreError, StoreResult,
    Visit,
};
use rewheel_core::{HolderId, JobId, KindName, Lane, NewJob, Shard, Tenant, When};
use std::time::Duration;

pub use self::racing::*;
pub use self::rates::*;
pub use self::slots::*;

const FULL: Option<LimitWait> = Some(LimitWait::Concurrency);

fn tenant(name: &str) -> Tenant {
    Tenant::parse(name).unwrap()
}

/// Limits the concurrency of a kind.
fn of_kind(kind: &str, most: u32) -> FleetLimit {
    let of = LimitOf::Kind(KindName::parse(kind).unwrap());
    FleetLimit { of, concurrency_max: Some(most), interval: None }
}

/// Limits the concurrency of a tenant.
fn of_tenant(name: &str, most: u32) -> FleetLimit {
    let of = LimitOf::Tenant(tenant(name));
    FleetLimit { of, concurrency_max: Some(most), interval: None }
}

/// Limits the rate of a kind: one start per interval.
fn rate(kind: &str, interval: Duration) -> FleetLimit {
    FleetLimit { concurrency_max: None, interval: Some(interval), ..of_kind(kind, 0) }
}

fn lane_of(kind: &str, name: &str) -> Lane {
    let tenant = Some(tenant(name));
    Lane { shard: Shard::of(tenant.as_ref(), None), tenant, ..lane(kind) }
}

/// Stores this many jobs in a lane of a new kind.
async fn fill(subject: &Subject, lane: &Lane, count: usize) -> Vec<JobId> {
    subject.kinds(&[lane.kind.as_str()]).await;
    let mut jobs = subject.jobs(lane.kind.as_str(), count);
    jobs.iter_mut().for_each(|job| job.tenant = lane.tenant.clone());
    subject.insert(&jobs).await;
    jobs.iter().map(|job| job.id).collect()
}

async fn try_claim(
    subject: &Subject,
    holder: HolderId,
    lanes: &[Lane],
    limits: &[FleetLimit],
) -> StoreResult<LimitedClaimed> {
    let visits: Vec<Visit> = lanes.iter().map(|lane| subject.visit(lane.clone(), 10)).collect();
    subject.store.claim_limited(&LimitedClaim { holder, visits: &visits, limit: 100, limits }).await
}

/// Claims at most ten jobs of each lane.
async fn claim(
    subject: &Subject,
    holder: HolderId,
    lanes: &[Lane],
    limits: &[FleetLimit],
) -> LimitedClaimed {
    let claimed = try_claim(subject, holder, lanes, limits).await.unwrap();
    assert_eq!(claimed.waits.len(), limits.len());
    claimed
}

fn ids(claimed: &LimitedClaimed) -> Vec<JobId> {
    claimed.leased.iter().map(|leased| leased.job.id).collect()
}

async fn waits(subject: &Subject, limits: &[FleetLimit]) -> Vec<Option<LimitWait>> {
    subject.store.limit_waits(limits).await.unwrap()
}

/// It leases the same jobs as an ordinary claim.
pub async fn leases_as_a_claim_does(subject: &Subject) {
    let holder = subject.holder().await;
    let charge = fill(subject, &lane("charge"), 3).await;
    let refund = fill(subject, &lane("refund"), 1).await;
    let late = NewJob { due: When::In(Duration::from_secs(60)), ..subject.job("charge") };
    subject.put(late).await;
    let lanes = [lane("refund"), lane("charge")];
    let limits = [of_kind("charge", 9), of_kind("refund", 9)];
    let claimed = claim(subject, holder, &lanes, &limits).await;
    assert_eq!(ids(&claimed), [&refund[..], &charge[..]].concat());
    assert_eq!(claimed.waits, [None, None]);
    for leased in &claimed.leased {
        assert_eq!((leased.due_in, leased.deadline_in), (Duration::ZERO, None));
        assert_eq!(subject.get(leased.job.id).await, leased.job);
    }
    let mut leases: Vec<_> = claimed.leased.iter().map(Leased::lease).collect();
    leases.sort_by_key(|lease| lease.job);
    assert_eq!(subject.store.held(holder, Duration::ZERO, None, 10).await.unwrap(), leases);
    for lease in leases {
        subject.succeed(holder, lease).await;
    }
    subject.balance().await;
}

/// The limit of each visit and that of the claim apply as well.
pub async fn keeps_the_limits_of_visits_and_claim(subject: &Subject) {
    let holder = subject.holder().await;
    let charge = fill(subject, &lane("charge"), 9).await;
    let refund = fill(subject, &lane("refund"), 9).await;
    let visits = [subject.visit(lane("charge"), 2), subject.visit(lane("refund"), 9)];
    let limits = [of_kind("charge", 5), of_kind("refund", 5)];
    let claim = LimitedClaim { holder, visits: &visits, limit: 4, limits: &limits };
    let claimed = subject.store.claim_limited(&claim).await.unwrap();
    assert_eq!(ids(&claimed), [&charge[..2], &refund[..2]].concat());
    assert_eq!(claimed.waits, [None, None]);
}

/// A dead holder gets its error, whether a slot is free or not.
pub async fn refuses_the_dead(subject: &Subject) {
    let (dead, other) = (subject.holder().await, subject.holder().await);
    fill(subject, &lane("charge"), 3).await;
    subject.store.leave(dead).await.unwrap();
    for most in [1, 0] {
        let refused = try_claim(subject, dead, &[lane("charge")], &[of_kind("charge", most)]).await;
        assert!(matches!(refused, Err(StoreError::HolderDead(of)) if of == dead), "{refused:?}");
    }
    let refused = try_claim(subject, dead, &[], &[]).await;
    assert!(matches!(refused, Err(StoreError::HolderDead(of)) if of == dead), "{refused:?}");
    let claimed = claim(subject, other, &[lane("charge")], &[of_kind("charge", 1)]).await;
    assert_eq!(claimed.leased.len(), 1);
}

/// A paused or parked kind gives no jobs, and uses no slot.
pub async fn takes_nothing_of_a_closed_kind(subject: &Subject) {
    use rewheel_core::KindChange;
    let holder = subject.holder().await;
    for kind in ["paused", "parked", "open"] {
        fill(subject, &lane_of(kind, "acme"), 2).await;
    }
    subject.apply_kind("paused", KindChange::Pause).await;
    subject.park("parked").await;
    let lanes = ["paused", "parked", "open"].map(|kind| lane_of(kind, "acme"));
    let claimed = claim(subject, holder, &lanes, &[of_tenant("acme", 2)]).await;
    assert_eq!(claimed.leased.len(), 2);
    assert!(claimed.leased.iter().all(|leased| leased.job.lane == lanes[2]));
}

/// The prober of a parked kind gets its one job, if a slot is free.
pub async fn gives_the_prober_one_job_within_the_limit(subject: &Subject) {
    let (prober, other) = (subject.holder().await, subject.holder().await);
    let jobs = fill(subject, &lane("charge"), 3).await;
    let (lanes, limits) = ([lane("charge")], [of_kind("charge", 1)]);
    let first = claim(subject, other, &lanes, &limits).await;
    assert_eq!(ids(&first), jobs[..1]);
    subject.park("charge").await;
    subject.probe("charge", prober).await;
    assert_eq!(claim(subject, prober, &lanes, &limits).await.leased, []);
    subject.succeed(other, first.leased[0].lease()).await;
    assert_eq!(claim(subject, other, &lanes, &limits).await.leased, []);
    assert_eq!(ids(&claim(subject, prober, &lanes, &limits).await), jobs[1..2]);
    assert_eq!(waits(subject, &limits).await, [FULL]);
    let more = [of_kind("charge", 5)];
    assert_eq!(claim(subject, prober, &lanes, &more).await.leased, []);
}
