//! Tests the limit on jobs that are leased at once.

use super::{FULL, claim, fill, ids, lane_of, of_kind, of_tenant, waits};
use crate::subject::{ATTEMPT_TIMEOUT, GRACE};
use crate::{Subject, lane, seconds};
use rewheel_core::Retain;
use rewheel_core::store::{Direct, Insert, Inserted, LimitOf, Sweep};

/// All holders together lease no more jobs than the limit.
pub async fn leases_no_more_than_may_be(subject: &Subject) {
    let (one, other) = (subject.holder().await, subject.holder().await);
    let jobs = fill(subject, &lane("charge"), 5).await;
    let (lanes, limits) = ([lane("charge")], [of_kind("charge", 2)]);
    assert_eq!(waits(subject, &limits).await, [None]);
    let claimed = claim(subject, one, &lanes, &limits).await;
    assert_eq!((ids(&claimed), claimed.waits), (jobs[..2].to_vec(), vec![FULL]));
    let claimed = claim(subject, other, &lanes, &limits).await;
    assert_eq!((ids(&claimed), claimed.waits), (vec![], vec![FULL]));
    assert_eq!(waits(subject, &limits).await, [FULL]);
    let larger = [of_kind("charge", 3)];
    assert_eq!(ids(&claim(subject, other, &lanes, &larger).await), jobs[2..3]);
    // After the limit is lowered, more jobs are leased than it allows.
    assert_eq!(claim(subject, other, &lanes, &limits).await.waits, [FULL]);
}

/// Jobs leased by ordinary claims count, too.
pub async fn counts_the_leases_of_every_claim(subject: &Subject) {
    let holder = subject.holder().await;
    subject.kinds(&["charge"]).await;
    let direct = Some(Direct { holder, attempt_timeout: ATTEMPT_TIMEOUT, grace: GRACE });
    let jobs = subject.jobs("charge", 2);
    let answers = subject.answers(&Insert { direct, ..Insert::new(&jobs) }).await;
    let is_leased = |answer: &Inserted| matches!(answer, Inserted::Created { leased: Some(_), .. });
    assert!(answers.iter().all(is_leased), "{answers:?}");
    fill(subject, &lane("charge"), 9).await;
    assert_eq!(subject.claim(holder, &["charge"], 3).await.len(), 3);
    let (lanes, limits) = ([lane("charge")], [of_kind("charge", 7)]);
    assert_eq!(claim(subject, holder, &lanes, &limits).await.leased.len(), 2);
    assert_eq!(claim(subject, holder, &lanes, &limits).await.leased, []);
}

/// A job that was claimed, given back and claimed again counts once.
pub async fn counts_a_job_once(subject: &Subject) {
    let holder = subject.holder().await;
    fill(subject, &lane("charge"), 4).await;
    for _ in 0..3 {
        let leased = subject.claim(holder, &["charge"], 1).await;
        subject.give_back(holder, leased[0].lease()).await;
    }
    assert_eq!(subject.claim(holder, &["charge"], 1).await.len(), 1);
    let claimed = claim(subject, holder, &[lane("charge")], &[of_kind("charge", 3)]).await;
    assert_eq!(claimed.leased.len(), 2);
}

/// A slot becomes free when its job is settled or given back, not before.
pub async fn frees_the_slot_of_a_job_that_is_let_go(subject: &Subject) {
    let holder = subject.holder().await;
    fill(subject, &lane("charge"), 5).await;
    let (lanes, limits) = ([lane("charge")], [of_kind("charge", 1)]);
    let next = async || {
        let claimed = claim(subject, holder, &lanes, &limits).await;
        assert_eq!((claimed.leased.len(), &claimed.waits[..]), (1, &[FULL][..]));
        claimed.leased[0].lease()
    };
    let lease = next().await;
    assert_eq!(claim(subject, holder, &lanes, &limits).await.leased, []);
    subject.succeed(holder, lease).await;
    let lease = next().await;
    subject.give_back(holder, lease).await;
    let lease = next().await;
    subject.settle(holder, &subject.dead(lease)).await;
    let lease = next().await;
    subject.settle(holder, &subject.retry(lease, seconds(60), false)).await;
    let lease = next().await;
    // A sticky retry stays leased.
    subject.settle(holder, &subject.retry(lease, seconds(1), true)).await;
    assert_eq!(claim(subject, holder, &lanes, &limits).await.leased, []);
    assert_eq!(waits(subject, &limits).await, [FULL]);
}

/// The slots of a dead holder and of overdue jobs become free when the jobs are swept.
pub async fn frees_the_slots_of_jobs_that_are_swept(subject: &Subject) {
    let (dead, other) = (subject.holder().await, subject.holder().await);
    fill(subject, &lane("charge"), 2).await;
    let (lanes, limits) = ([lane("charge")], [of_kind("charge", 2)]);
    assert_eq!(claim(subject, dead, &lanes, &limits).await.leased.len(), 2);
    subject.store.leave(dead).await.unwrap();
    assert_eq!(claim(subject, other, &lanes, &limits).await.waits, [FULL]);
    assert_eq!(subject.sweep(other).await.len(), 2);
    assert_eq!(claim(subject, other, &lanes, &limits).await.leased.len(), 2);
    subject.clock.advance(ATTEMPT_TIMEOUT + GRACE + seconds(1));
    assert_eq!(claim(subject, other, &lanes, &limits).await.waits, [FULL]);
    subject.store.sweep(&Sweep::new(other, 1, Retain::default())).await.unwrap();
    assert_eq!(claim(subject, other, &lanes, &limits).await.leased.len(), 1);
}

/// The limit of a tenant applies over all kinds.
pub async fn keeps_the_limit_of_a_tenant(subject: &Subject) {
    let holder = subject.holder().await;
    let lanes = [lane_of("charge", "acme"), lane_of("refund", "acme"), lane_of("charge", "other")];
    for lane in &lanes {
        fill(subject, lane, 3).await;
    }
    let claimed = claim(subject, holder, &lanes, &[of_tenant("acme", 4)]).await;
    let count = |nth: usize| claimed.leased.iter().filter(|one| one.job.lane == lanes[nth]).count();
    assert_eq!([count(0), count(1), count(2)], [3, 1, 3]);
    assert_eq!(claimed.waits, [FULL]);
}

/// A lane under two limits obeys both.
pub async fn keeps_both_limits_of_a_lane(subject: &Subject) {
    let holder = subject.holder().await;
    let lanes = [lane_of("charge", "acme"), lane_of("charge", "other"), lane_of("refund", "acme")];
    for lane in &lanes {
        fill(subject, lane, 9).await;
    }
    let limits = [of_tenant("acme", 3), of_kind("charge", 5)];
    let claimed = claim(subject, holder, &lanes, &limits).await;
    let count = |nth: usize| claimed.leased.iter().filter(|one| one.job.lane == lanes[nth]).count();
    assert_eq!([count(0), count(1), count(2)], [3, 2, 0]);
    assert_eq!(claimed.waits, [FULL, FULL]);
}

/// Slots that a lane cannot use go to the next lane, in the order of the visits.
pub async fn gives_unused_slots_to_the_next_lane(subject: &Subject) {
    let holder = subject.holder().await;
    let lanes = ["a", "b", "c", "d"].map(|name| lane_of("charge", name));
    let a = fill(subject, &lanes[0], 2).await;
    let c = fill(subject, &lanes[2], 4).await;
    let d = fill(subject, &lanes[3], 4).await;
    let claimed = claim(subject, holder, &lanes, &[of_kind("charge", 7)]).await;
    assert_eq!(ids(&claimed), [&a[..], &c[..], &d[..1]].concat());
    assert_eq!(claimed.waits, [FULL]);
}

/// Lanes without a limit are claimed normally beside limited ones.
pub async fn leaves_other_lanes_alone(subject: &Subject) {
    let holder = subject.holder().await;
    let charge = fill(subject, &lane("charge"), 3).await;
    let refund = fill(subject, &lane("refund"), 3).await;
    let lanes = [lane("charge"), lane("refund")];
    let claimed = claim(subject, holder, &lanes, &[of_kind("charge", 1)]).await;
    assert_eq!(ids(&claimed), [&charge[..1], &refund[..]].concat());
    assert_eq!(ids(&claim(subject, holder, &lanes, &[]).await), charge[1..]);
}

/// A limit of zero allows nothing; of two limits for the same jobs the smaller applies.
pub async fn keeps_the_smallest_limit(subject: &Subject) {
    let holder = subject.holder().await;
    fill(subject, &lane("charge"), 9).await;
    let lanes = [lane("charge")];
    let claimed = claim(subject, holder, &lanes, &[of_kind("charge", 0)]).await;
    assert_eq!((claimed.leased, claimed.waits), (vec![], vec![FULL]));
    let limits = [of_kind("charge", 7), of_kind("charge", 2), of_kind("charge", 3)];
    let claimed = claim(subject, holder, &lanes, &limits).await;
    assert_eq!((claimed.leased.len(), claimed.waits), (2, vec![None, FULL, None]));
    assert_eq!(waits(subject, &limits).await, [None, FULL, None]);
}

/// A kind and a tenant with the same name are different.
pub async fn tells_a_kind_from_a_tenant(subject: &Subject) {
    let holder = subject.holder().await;
    let lanes = [lane_of("acme", "other"), lane_of("charge", "acme")];
    for lane in &lanes {
        fill(subject, lane, 3).await;
    }
    let limits = [of_tenant("acme", 1), of_kind("acme", 2)];
    assert!(matches!((&limits[0].of, &limits[1].of), (LimitOf::Tenant(_), LimitOf::Kind(_))));
    let claimed = claim(subject, holder, &lanes, &limits).await;
    let count = |nth: usize| claimed.leased.iter().filter(|one| one.job.lane == lanes[nth]).count();
    assert_eq!([count(0), count(1)], [2, 1]);
}

/// A used-up limit causes no wait if no further job is due.
pub async fn waits_for_nothing_without_jobs(subject: &Subject) {
    let holder = subject.holder().await;
    fill(subject, &lane("charge"), 2).await;
    let (lanes, limits) = ([lane("charge")], [of_kind("charge", 3), of_tenant("acme", 0)]);
    let claimed = claim(subject, holder, &lanes, &limits).await;
    assert_eq!((claimed.leased.len(), claimed.waits), (2, vec![None, None]));
    assert_eq!(waits(subject, &limits).await, [None, FULL]);
    assert_eq!(waits(subject, &[]).await, []);
}
