//! Tests what holders and operators report about the dependency of a kind.

use crate::Subject;
use crate::seconds;
use crate::subject::LEASE_TTL;
use rewheel_core::{
    Format, HolderId, Kind, KindChange, KindChanged, NewHolder, Role, Timestamp, WorkerOwner,
};
use std::time::Duration;

fn suspect(holder: HolderId) -> KindChange {
    KindChange::Suspect { holder, reason: "no answer".to_owned() }
}

fn open() -> KindChange {
    KindChange::Open { reason: "maintenance".to_owned() }
}

/// A holder with a broken network does not stop other holders, however often it reports a failure.
pub async fn one_suspect_of_several_holders_parks_nothing(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let (alone, _other) = (subject.holder().await, subject.holder().await);
    for _ in 0..2 {
        let kind = subject.apply_kind("charge", suspect(alone)).await;
        assert_eq!((kind.parked, kind.suspects), (None, vec![alone]));
    }
    assert_eq!(subject.kind("charge").await.suspects, [alone]);
}

/// Two suspicions are enough; the reason is that of the second.
pub async fn two_suspects_park_a_kind(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let holders = [subject.holder().await, subject.holder().await, subject.holder().await];
    let before = subject.apply_kind("charge", suspect(holders[0])).await;
    let kind = subject.apply_kind("charge", suspect(holders[1])).await;
    assert!(kind.generation > before.generation);
    assert_eq!(
        (kind.parked.map(|parked| parked.reason), kind.suspects),
        (Some("no answer".to_owned()), vec![])
    );
    let late = subject.change_kind("charge", suspect(holders[2])).await;
    assert_eq!(late, KindChanged::Refused(subject.kind("charge").await));
}

/// A single holder parks a kind alone.
pub async fn the_only_holder_parks_alone(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let holder = subject.holder().await;
    assert!(subject.apply_kind("charge", suspect(holder)).await.parked.is_some());
}

/// Workers do not report suspicions, because the engine that settles does: they are not counted. But they may probe.
pub async fn a_worker_has_no_say(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let engine = subject.holder().await;
    let id = HolderId::new(Timestamp::from_millis(0), &subject.random);
    let (name, lease_ttl) = ("py-1".to_owned(), LEASE_TTL);
    let role = Role::Worker { owner: WorkerOwner::NoToken };
    subject
        .store
        .join(&NewHolder { id, name, role, lease_ttl, format: Format::CURRENT })
        .await
        .unwrap();
    assert_eq!(subject.find(id).await.unwrap().role, role);
    assert_eq!(subject.find(engine).await.unwrap().role, Role::Engine);
    let refused = subject.change_kind("charge", suspect(id)).await;
    assert!(matches!(refused, KindChanged::Refused(_)), "{refused:?}");
    let parked = subject.apply_kind("charge", suspect(engine)).await;
    assert!(parked.parked.is_some());
    subject.insert(&subject.jobs("charge", 2)).await;
    let probe = |kind: &Kind, holder| KindChange::Probe { generation: kind.generation, holder };
    let probing = subject.apply_kind("charge", probe(&parked, id)).await;
    let refused = subject.change_kind("charge", probe(&probing, engine)).await;
    assert_eq!(refused, KindChanged::Refused(probing.clone()), "the worker lives");
    assert_eq!(subject.claim(id, &["charge"], 10).await.len(), 1);
    subject.store.leave(id).await.unwrap();
    subject.apply_kind("charge", probe(&probing, engine)).await;
}

/// Suspicions of a dead holder do not count, and it cannot report new ones.
pub async fn a_suspicion_dies_with_its_holder(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let (dead, one, _other) =
        (subject.holder().await, subject.holder().await, subject.holder().await);
    subject.apply_kind("charge", suspect(dead)).await;
    subject.store.leave(dead).await.unwrap();
    let kind = subject.apply_kind("charge", suspect(one)).await;
    assert_eq!((kind.parked, kind.suspects), (None, vec![one]));
    let refused = subject.change_kind("charge", suspect(dead)).await;
    assert!(matches!(refused, KindChanged::Refused(_)), "{refused:?}");
}

/// A holder that sees the dependency work withdraws its suspicion.
pub async fn a_suspicion_is_taken_back(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let (one, other) = (subject.holder().await, subject.holder().await);
    subject.apply_kind("charge", suspect(one)).await;
    let kind = subject.apply_kind("charge", KindChange::Trust { holder: one }).await;
    assert_eq!(kind.suspects, []);
    assert_eq!(subject.apply_kind("charge", suspect(other)).await.parked, None);
}

/// A kind that an operator parked is not probed, and only an operator can unpark it.
pub async fn a_person_parks_a_kind_for_good(subject: &Subject) {
    let holder = subject.holder().await;
    subject.submit("charge").await;
    let kind = subject.apply_kind("charge", open()).await;
    assert_eq!(
        (kind.parked.map(|parked| parked.reason), kind.forced),
        (Some("maintenance".to_owned()), true)
    );
    let generation = kind.generation;
    for change in [KindChange::Probe { generation, holder }, KindChange::Unpark { generation }] {
        let refused = subject.change_kind("charge", change).await;
        assert!(matches!(refused, KindChanged::Refused(_)), "{refused:?}");
    }
    assert_eq!(subject.apply_kind("charge", open()).await.generation, generation);
    assert!(subject.claim(holder, &["charge"], 5).await.is_empty());
    let kind = subject.apply_kind("charge", KindChange::Reset).await;
    assert_eq!((kind.parked, kind.forced), (None, false));
    assert_eq!(subject.claim(holder, &["charge"], 5).await.len(), 1);
}

/// A kind that an operator unparked stays unparked until the decision is left to holders again.
pub async fn a_person_keeps_a_kind_from_parking(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let holder = subject.holder().await;
    subject.park("charge").await;
    let kind = subject.apply_kind("charge", KindChange::Close).await;
    assert_eq!((&kind.parked, kind.forced), (&None, true));
    let park = KindChange::Park { generation: kind.generation, reason: "down".to_owned() };
    for change in [suspect(holder), park] {
        let refused = subject.change_kind("charge", change).await;
        assert_eq!(refused, KindChanged::Refused(kind.clone()));
    }
    subject.apply_kind("charge", KindChange::Reset).await;
    assert!(subject.apply_kind("charge", suspect(holder)).await.parked.is_some());
}

fn hold(lasts: Duration) -> KindChange {
    KindChange::Hold { lasts, reason: "told to wait".to_owned() }
}

/// A called service that asks to wait parks its kind for all, and a longer hold stays.
pub async fn a_hold_parks_a_kind_until_then(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let [holder, _other] = [subject.holder().await, subject.holder().await];
    subject.submit("charge").await;
    let before = subject.store.now().await.unwrap();
    let kind = subject.apply_kind("charge", hold(seconds(60))).await;
    let after = subject.store.now().await.unwrap();
    assert_eq!(subject.kind("charge").await, kind, "one holder is enough, and it is stored");
    let parked = kind.parked.clone().unwrap();
    let until = parked.until.unwrap();
    assert!((before.plus(seconds(60))..=after.plus(seconds(60))).contains(&until), "{until:?}");
    assert_eq!((parked.reason.as_str(), parked.prober), ("told to wait", None));
    assert!(subject.claim(holder, &["charge"], 5).await.is_empty());
    let shorter = subject.change_kind("charge", hold(seconds(5))).await;
    assert_eq!(shorter, KindChanged::Refused(kind.clone()));
    let longer = subject.apply_kind("charge", hold(seconds(90))).await;
    assert!(longer.parked.as_ref().unwrap().until > Some(until));
    assert_eq!((longer.parked.unwrap().since, longer.version), (parked.since, kind.version));
    // A probe that succeeds ends it. The next time it is parked for another reason, it is not held.
    let probing = subject.probe("charge", holder).await;
    assert!(probing.parked.unwrap().until.is_some());
    assert_eq!(subject.claim(holder, &["charge"], 5).await.len(), 1);
    subject.unpark("charge").await;
    subject.park("charge").await;
    assert_eq!(subject.kind("charge").await.parked.unwrap().until, None);
}

/// An operator ends a hold early. Nodes also see a reset of a kind that is not parked: they end what only they know.
pub async fn a_person_ends_a_hold(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    subject.apply_kind("charge", hold(seconds(60))).await;
    let kind = subject.apply_kind("charge", KindChange::Reset).await;
    assert_eq!((&kind.parked, kind.forced), (&None, false));
    let again = subject.apply_kind("charge", KindChange::Reset).await;
    assert!(again.generation > kind.generation, "{again:?}");
    assert_eq!((subject.kind("charge").await, again.version), (again, kind.version));
    let closed = subject.apply_kind("charge", KindChange::Close).await;
    let refused = subject.change_kind("charge", hold(seconds(60))).await;
    assert_eq!(refused, KindChanged::Refused(closed), "an operator wants it to run");
}
