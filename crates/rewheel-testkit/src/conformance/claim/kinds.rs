//! Tests claims of paused and parked kinds.

use super::ids;
use crate::Subject;
use rewheel_core::store::{Claim, Settlement};
use rewheel_core::{KindChange, Lane, NewJob, Priority};
use std::time::Duration;

/// A paused kind gives nothing until it goes on; others are not disturbed.
pub async fn takes_nothing_of_a_paused_kind(subject: &Subject) {
    let paused = subject.submit("charge").await;
    let other = subject.submit("refund").await;
    subject.apply_kind("charge", KindChange::Pause).await;
    let holder = subject.holder().await;
    assert_eq!(ids(&subject.claim(holder, &["charge", "refund"], 10).await), [other]);
    subject.apply_kind("charge", KindChange::Resume).await;
    assert_eq!(ids(&subject.claim(holder, &["charge", "refund"], 10).await), [paused]);
}

/// A parked kind gives nothing until it is unparked, however long that takes.
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

/// The prober gets one job, over all lanes of the kind; the others get none.
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

/// A probe that ended brings no second one: the right must be won again.
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

/// A probe in vain does not use up the right: there was nothing to try it with.
pub async fn keeps_the_right_to_probe_until_there_is_a_job(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let prober = subject.holder().await;
    subject.park("charge").await;
    subject.probe("charge", prober).await;
    assert_eq!(subject.claim(prober, &["charge"], 10).await, []);
    subject.insert(&subject.jobs("charge", 2)).await;
    assert_eq!(subject.claim(prober, &["charge"], 10).await.len(), 1);
}

/// What a person paused is not probed.
pub async fn gives_the_prober_nothing_of_a_paused_kind(subject: &Subject) {
    subject.submit("charge").await;
    let prober = subject.holder().await;
    subject.park("charge").await;
    subject.probe("charge", prober).await;
    subject.apply_kind("charge", KindChange::Pause).await;
    assert_eq!(subject.claim(prober, &["charge"], 10).await, []);
}
