//! Tests how much one claim takes.

use super::ids;
use crate::{Subject, lane};
use rewheel_core::JobId;
use rewheel_core::store::{Claim, Leased, Visit};
use std::time::Duration;

/// Claims with a limit for each kind, and one for all.
async fn claim(subject: &Subject, lanes: &[(&str, usize)], limit: usize) -> Vec<Leased> {
    let holder = subject.holder().await;
    let visits: Vec<Visit> =
        lanes.iter().map(|(kind, limit)| subject.visit(lane(kind), *limit)).collect();
    let claim = Claim { holder, visits: &visits, horizon: Duration::ZERO, limit };
    subject.store.claim(&claim).await.unwrap()
}

/// Stores this many jobs of each kind.
async fn fill(subject: &Subject, kinds: &[&str], count: usize) -> Vec<Vec<JobId>> {
    subject.kinds(kinds).await;
    let mut all = Vec::new();
    for kind in kinds {
        let jobs = subject.jobs(kind, count);
        subject.insert(&jobs).await;
        all.push(jobs.iter().map(|job| job.id).collect());
    }
    all
}

/// A visit takes no more than its limit.
pub async fn keeps_to_the_limit_of_a_visit(subject: &Subject) {
    let jobs = fill(subject, &["charge", "refund"], 5).await;
    let claimed = claim(subject, &[("charge", 2), ("refund", 3)], 100).await;
    assert_eq!(ids(&claimed), [&jobs[0][..2], &jobs[1][..3]].concat());
}

/// All visits together take no more than the limit of the claim.
pub async fn keeps_to_the_limit_of_all_visits(subject: &Subject) {
    let jobs = fill(subject, &["charge", "refund"], 5).await;
    let claimed = claim(subject, &[("charge", 4), ("refund", 4)], 6).await;
    assert_eq!(ids(&claimed), [&jobs[0][..4], &jobs[1][..2]].concat());
}

/// Lanes are visited in the caller's order, whatever their names.
pub async fn visits_lanes_in_the_order_given(subject: &Subject) {
    let jobs = fill(subject, &["a", "b", "c"], 2).await;
    let claimed = claim(subject, &[("b", 2), ("c", 2), ("a", 2)], 5).await;
    assert_eq!(ids(&claimed), [&jobs[1][..], &jobs[2][..], &jobs[0][..1]].concat());
}

/// A lane without jobs uses nothing of the limit.
pub async fn goes_on_behind_an_empty_lane(subject: &Subject) {
    let jobs = fill(subject, &["charge"], 3).await;
    subject.kinds(&["refund"]).await;
    let lanes = [("refund", 3), ("unknown-kind", 3), ("charge", 3)];
    assert_eq!(ids(&claim(subject, &lanes, 3).await), jobs[0]);
}

/// A claim without visits, or with a limit of zero, takes nothing.
pub async fn takes_nothing_without_visits(subject: &Subject) {
    fill(subject, &["charge"], 3).await;
    assert_eq!(claim(subject, &[], 10).await, []);
    assert_eq!(claim(subject, &[("charge", 0)], 10).await, []);
    assert_eq!(claim(subject, &[("charge", 10)], 0).await, []);
}
