//! Tests kinds whose dependency is considered down.

use super::is_direct;
use crate::people::AGES;
use crate::race::both;
use crate::{Subject, seconds};
use rewheel_core::{Kind, KindChange, KindChanged};

fn park(kind: &Kind, reason: &str) -> KindChange {
    KindChange::Park { generation: kind.generation, reason: reason.to_owned() }
}

/// No job of a parked kind is claimed or leased by an insert; the kind has a reason and a time.
pub async fn a_parked_kind_gives_nothing(subject: &Subject) {
    let holder = subject.holder().await;
    subject.submit("charge").await;
    subject.submit("refund").await;
    let before = subject.kind("charge").await;
    let parked = subject.apply_kind("charge", park(&before, "bank down")).await;

    assert!(parked.generation > before.generation);
    assert_eq!(subject.kind("charge").await, parked);
    let why = parked.parked.unwrap();
    assert_eq!((why.reason.as_str(), why.prober), ("bank down", None));
    assert!(why.since <= subject.now().await);
    let claimed = subject.claim(holder, &["charge", "refund"], 10).await;
    assert_eq!((claimed.len(), claimed[0].job.lane.kind.as_str()), (1, "refund"));
    subject.kinds(&["empty"]).await;
    subject.park("empty").await;
    assert!(!is_direct(subject, "empty").await);
}

/// A caller with an older generation parks nothing, and gets the current state.
pub async fn parking_needs_the_latest_generation(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let seen = subject.kind("charge").await;
    subject.park("charge").await;
    let unparked = subject.unpark("charge").await;

    let late = subject.change_kind("charge", park(&seen, "old news")).await;
    assert_eq!(late, KindChanged::Refused(unparked.clone()));
    assert_eq!(subject.kind("charge").await, unparked);
}

/// Of two concurrent parks one succeeds.
pub async fn of_two_who_park_one_does(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let seen = subject.kind("charge").await;
    let (a, b) = both(
        subject.change_kind("charge", park(&seen, "a")),
        subject.change_kind("charge", park(&seen, "b")),
    )
    .await;
    let now = subject.kind("charge").await;
    let mut answers = [a, b];
    answers.sort_by_key(|answer| matches!(answer, KindChanged::Refused(_)));
    assert_eq!(answers, [KindChanged::Applied(now.clone()), KindChanged::Refused(now)]);
}

/// A prober that failed parks again: the start of the outage stays, and the right to probe is free.
pub async fn parking_again_frees_the_right_to_probe(subject: &Subject) {
    let (first, second) = (subject.holder().await, subject.holder().await);
    subject.kinds(&["charge"]).await;
    let since = subject.park("charge").await.parked.unwrap().since;
    let probing = subject.probe("charge", first).await;
    subject.clock.advance(seconds(60));

    let again = subject.apply_kind("charge", park(&probing, "still down")).await;
    assert!(again.generation > probing.generation);
    let parked = again.parked.unwrap();
    assert_eq!((parked.since, parked.prober), (since, None));
    assert_eq!(parked.reason, "still down");
    let probing = subject.probe("charge", second).await;
    assert_eq!(probing.parked.unwrap().prober, Some(second));
}

/// Only a parked kind can be probed, by a live holder with its latest generation.
pub async fn probing_needs_a_parked_kind_and_a_living_prober(subject: &Subject) {
    let (holder, dead) = (subject.holder().await, subject.holder().await);
    subject.store.leave(dead).await.unwrap();
    subject.kinds(&["charge"]).await;
    let open = subject.kind("charge").await;
    let probe = |kind: &Kind, holder| KindChange::Probe { generation: kind.generation, holder };
    let refused = subject.change_kind("charge", probe(&open, holder)).await;
    assert_eq!(refused, KindChanged::Refused(open.clone()));

    let parked = subject.park("charge").await;
    for change in [probe(&open, holder), probe(&parked, dead)] {
        let refused = subject.change_kind("charge", change).await;
        assert_eq!(refused, KindChanged::Refused(parked.clone()));
    }
    let probing = subject.apply_kind("charge", probe(&parked, holder)).await;
    assert!(probing.generation > parked.generation);
}

/// Of two probers one wins, and the other waits as long as the first is alive.
pub async fn of_two_probers_one_wins(subject: &Subject) {
    let (a, b) = (subject.holder().await, subject.holder().await);
    subject.submit("charge").await;
    let generation = subject.park("charge").await.generation;
    let (one, two) = both(
        subject.change_kind("charge", KindChange::Probe { generation, holder: a }),
        subject.change_kind("charge", KindChange::Probe { generation, holder: b }),
    )
    .await;
    let now = subject.kind("charge").await;
    let (winner, loser) = match (&one, &two) {
        (KindChanged::Applied(_), KindChanged::Refused(_)) => (a, b),
        (KindChanged::Refused(_), KindChanged::Applied(_)) => (b, a),
        answers => panic!("not one winner: {answers:?}"),
    };
    assert_eq!(now.parked.as_ref().unwrap().prober, Some(winner));
    let again = KindChange::Probe { generation: now.generation, holder: loser };
    assert_eq!(subject.change_kind("charge", again).await, KindChanged::Refused(now));
    assert_eq!(subject.claim(loser, &["charge"], 10).await, []);
    assert_eq!(subject.claim(winner, &["charge"], 10).await.len(), 1);
}

/// The prober gets one job each time it acquires the right to probe.
pub async fn a_prober_gets_one_job_for_each_right(subject: &Subject) {
    let prober = subject.holder().await;
    subject.kinds(&["charge"]).await;
    subject.insert(&subject.jobs("charge", 5)).await;
    subject.park("charge").await;
    for _ in 0..2 {
        subject.probe("charge", prober).await;
        let leased = subject.claim_only(prober, "charge").await;
        assert_eq!(subject.claim(prober, &["charge"], 10).await, []);
        // Not even after that job has ended: the right was for one job.
        subject.settle(prober, &subject.retry(leased.lease(), seconds(3_600), false)).await;
        assert_eq!(subject.claim(prober, &["charge"], 10).await, []);
        subject.park("charge").await;
    }
}

/// The right to probe ends with its holder, so that another holder can probe.
pub async fn the_right_to_probe_dies_with_its_holder(subject: &Subject) {
    let (by, silent, gone) =
        (subject.holder().await, subject.holder().await, subject.holder().await);
    subject.submit("charge").await;
    subject.park("charge").await;
    subject.probe("charge", silent).await;
    subject.claim_only(silent, "charge").await;
    subject.expire_holder(by, silent).await;
    subject.probe("charge", gone).await;
    subject.store.leave(gone).await.unwrap();

    let probing = subject.probe("charge", by).await;
    assert_eq!(probing.parked.unwrap().prober, Some(by));
    subject.sweep(by).await;
    subject.claim_only(by, "charge").await;
}

/// However long a kind is parked, time alone does not unpark it.
pub async fn time_never_unparks(subject: &Subject) {
    let holder = subject.holder().await;
    subject.submit("charge").await;
    let parked = subject.park("charge").await;
    for _ in 0..3 {
        subject.clock.advance(AGES / 100);
        assert_eq!(subject.kind("charge").await, parked);
        assert_eq!(subject.claim(holder, &["charge"], 1).await, []);
    }
}

/// An unparked kind continues with its waiting jobs.
pub async fn an_unparked_kind_goes_on(subject: &Subject) {
    let holder = subject.holder().await;
    let job = subject.submit("charge").await;
    let parked = subject.park("charge").await;
    let unparked = subject.unpark("charge").await;
    assert_eq!(unparked.parked, None);
    assert!(unparked.generation > parked.generation);
    assert_eq!(subject.claim_only(holder, "charge").await.job.id, job);
    assert!(is_direct(subject, "charge").await);
}

/// Unparking needs a parked kind, and its latest generation.
pub async fn unparking_needs_the_latest_generation(subject: &Subject) {
    let holder = subject.holder().await;
    subject.kinds(&["charge"]).await;
    let open = subject.kind("charge").await;
    let unpark = |kind: &Kind| KindChange::Unpark { generation: kind.generation };
    let refused = subject.change_kind("charge", unpark(&open)).await;
    assert_eq!(refused, KindChanged::Refused(open));

    let parked = subject.park("charge").await;
    let probing = subject.probe("charge", holder).await;
    let refused = subject.change_kind("charge", unpark(&parked)).await;
    assert_eq!(refused, KindChanged::Refused(probing));
}

/// An operator's pause and a park are independent: ending one does not end the other.
pub async fn a_pause_outlives_a_park(subject: &Subject) {
    let holder = subject.holder().await;
    subject.submit("charge").await;
    subject.apply_kind("charge", KindChange::Pause).await;
    subject.park("charge").await;
    subject.probe("charge", holder).await;
    assert_eq!(subject.claim(holder, &["charge"], 1).await, []);
    subject.unpark("charge").await;
    assert_eq!(subject.claim(holder, &["charge"], 1).await, []);

    subject.park("charge").await;
    subject.apply_kind("charge", KindChange::Resume).await;
    assert_eq!(subject.claim(holder, &["charge"], 1).await, []);
    subject.unpark("charge").await;
    subject.claim_only(holder, "charge").await;
}
