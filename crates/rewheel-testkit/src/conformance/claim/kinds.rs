//! Tests claims of paused and parked kinds.

use super::ids;
use crate::Subject;
use rewheel_core::store::{Claim, Settlement};
use rewheel_core::{KindChange, Lane, NewJob, Priority};
use std::time::Duration;

/// No job of a paused kind is claimed until it is resumed; other kinds are not affected.
pub async fn takes_nothing_of_a_paused_kind(subject: &Subject) {
    let paused = subject.submit("charge").await;
    let other = subject.submit("refund").await;
    subject.apply_kind("charge", KindChange::Pause).await;
    let holder = subject.holder().await;
    assert_eq!(ids(&subject.claim(holder, &["charge", "refund"], 10).await), [other]);
    subject.apply_kind("charge", KindChange::Resume).await;
    assert_eq!(ids(&subject.claim(holder, &["charge", "refund"], 10).await), [paused]);
}

/// No job of a parked kind is claimed until it is unparked, however long that takes.
pub async fn takes_nothing_of_a_parked_kind(subject: &Subject) {
    let parked = subject.submit("charge").await;
    let other = subject.submit("refund").await;
    subject.park("charge").await;
    let holder = subject.holder().await;
    assert_eq!(ids(&subject.claim(holder, &["charge", "refund"], 10).await), [other]);
    subject.clock.advance(Duration::from_secs(3_600));
    assert_eq!(subject.claim(holder, &["charge"], 10).await, []);

    subject.unpark("charge").await;
    assert_eq!(ids(&subject.claim(holder, &["charge"], 10).await), [parked]);
}

/// The prober gets one job of the kind, over all its lanes; other holders get none.
pub async fn gives_the_prober_one_job(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let urgent = NewJob { priority: Priority::MAX, ..subject.job("charge") };
    let lanes: [Lane; 2] = [urgent.lane(), subject.job("charge").lane()];
    subject.insert(&[urgent, subject.job("charge"), subject.job("charge")]).await;
    let (prober, other) = (subject.holder().await, subject.holder().await);
    subject.park("charge").await;
    subject.probe("charge", prober).await;

    let visits = lanes.map(|lane| subject.visit(lane, 10));
    let mut claim = Claim { holder: other, visits: &visits, horizon: Duration::ZERO, limit: 10 };
    assert_eq!(subject.store.claim(&claim).await.unwrap(), [], "it is not the prober");
    claim.holder = prober;
    assert_eq!(subject.store.claim(&claim).await.unwrap().len(), 1);
    assert_eq!(subject.store.claim(&claim).await.unwrap(), [], "one probe at a time");
}

/// A finished probe does not allow a second one: the right to probe must be acquired again.
pub async fn gives_the_prober_no_second_job(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    subject.insert(&subject.jobs("charge", 3)).await;
    let prober = subject.holder().await;
    subject.park("charge").await;
    subject.probe("charge", prober).await;
    let first = subject.claim(prober, &["charge"], 10).await.remove(0);
    subject.settle(prober, &Settlement::succeed(first.lease())).await;
    assert_eq!(subject.claim(prober, &["charge"], 10).await, []);

    subject.park("charge").await;
    subject.probe("charge", prober).await;
    assert_eq!(subject.claim(prober, &["charge"], 10).await.len(), 1);
    assert_eq!(subject.claim(prober, &["charge"], 10).await, []);
}

/// A claim without a job does not use up the right to probe.
pub async fn keeps_the_right_to_probe_until_there_is_a_job(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let prober = subject.holder().await;
    subject.park("charge").await;
    subject.probe("charge", prober).await;
    assert_eq!(subject.claim(prober, &["charge"], 10).await, []);
    subject.insert(&subject.jobs("charge", 2)).await;
    assert_eq!(subject.claim(prober, &["charge"], 10).await.len(), 1);
}

/// A kind that an operator paused is not probed.
pub async fn gives_the_prober_nothing_of_a_paused_kind(subject: &Subject) {
    subject.submit("charge").await;
    let prober = subject.holder().await;
    subject.park("charge").await;
    subject.probe("charge", prober).await;
    subject.apply_kind("charge", KindChange::Pause).await;
    assert_eq!(subject.claim(prober, &["charge"], 10).await, []);
}
