//! Tests kinds that are paused, parked or probed.

mod parking;
mod editing;

pub use self::editing::*;
pub use self::parking::*;

use crate::subject::{ATTEMPT_TIMEOUT, GRACE};
use crate::{Subject, seconds};
use rewheel_core::store::{Direct, Insert, Inserted, Outcome, Settled};
use rewheel_core::{Actor, KindChange, KindChanged, KindName, NewKind, State};

fn new_kind(name: &str, settings: &str) -> NewKind {
    let name = KindName::parse(name).unwrap();
    NewKind { name, settings: settings.to_owned(), takeovers_max: 7, on_dead: Default::default() }
}

async fn put(subject: &Subject, kinds: &[NewKind]) {
    subject.store.put_kinds(kinds, &Actor::new("suite")).await.unwrap();
}

/// Inserts a job for a holder with a free slot, and returns whether it was leased.
async fn is_direct(subject: &Subject, kind: &str) -> bool {
    let holder = subject.holder().await;
    let direct = Some(Direct { holder, attempt_timeout: ATTEMPT_TIMEOUT, grace: GRACE });
    let jobs = [subject.job(kind)];
    let answers = subject.store.insert(&Insert { direct, ..Insert::new(&jobs) }).await.unwrap();
    let Inserted::Created { leased, .. } = answers[0] else { panic!("not stored: {answers:?}") };
    leased.is_some()
}

/// Kinds read back as they were written, by name.
pub async fn reads_kinds_as_they_were_written(subject: &Subject) {
    let settings = "{\"url\":\"https://bank.example/\u{e4}\"}\n' \" \\ %";
    put(subject, &[new_kind("refund", "{}"), new_kind("charge", settings)]).await;

    let kinds = subject.store.kinds().await.unwrap();
    let names: Vec<&str> = kinds.iter().map(|kind| kind.name.as_str()).collect();
    assert_eq!(names, ["charge", "refund"]);
    assert_eq!((kinds[0].settings.as_str(), kinds[0].takeovers_max), (settings, 7));
    assert_eq!((kinds[0].paused, &kinds[0].parked), (false, &None));
}

/// Writing a kind again replaces its settings.
pub async fn writing_again_replaces_the_settings(subject: &Subject) {
    put(subject, &[new_kind("charge", "{}")]).await;
    let again = NewKind { takeovers_max: 1, ..new_kind("charge", "{\"a\":1}") };
    put(subject, &[again, new_kind("refund", "{}")]).await;

    let kind = subject.kind("charge").await;
    assert_eq!((kind.settings.as_str(), kind.takeovers_max), ("{\"a\":1}", 1));
    assert_eq!(subject.store.kinds().await.unwrap().len(), 2);
}

/// Writing settings does not change whether a kind is paused or parked.
pub async fn writing_leaves_pause_and_park_alone(subject: &Subject) {
    let holder = subject.holder().await;
    put(subject, &[new_kind("charge", "{}")]).await;
    subject.apply_kind("charge", KindChange::Pause).await;
    subject.park("charge").await;
    let before = subject.probe("charge", holder).await;

    put(subject, &[new_kind("charge", "{\"a\":1}")]).await;
    let after = subject.kind("charge").await;
    assert_eq!((after.paused, &after.parked), (true, &before.parked));
    assert_eq!(after.generation, before.generation);
    assert_eq!(after.settings, "{\"a\":1}");
}

/// An unknown kind cannot be changed, and is not created by the attempt.
pub async fn an_unknown_kind_is_not_found(subject: &Subject) {
    let holder = subject.holder().await;
    for change in [
        KindChange::Pause,
        KindChange::Resume,
        KindChange::Park { generation: 0, reason: "down".to_owned() },
        KindChange::Probe { generation: 0, holder },
        KindChange::Unpark { generation: 0 },
    ] {
        assert_eq!(subject.change_kind("charge", change).await, KindChanged::NotFound);
    }
    assert_eq!(subject.store.kinds().await.unwrap(), []);
}

/// No job of a paused kind is claimed or leased by an insert; other kinds continue.
pub async fn a_paused_kind_gives_nothing(subject: &Subject) {
    let holder = subject.holder().await;
    subject.submit("charge").await;
    let other = subject.submit("refund").await;
    let kind = subject.apply_kind("charge", KindChange::Pause).await;
    assert!(kind.paused && subject.kind("charge").await == kind);

    let claimed = subject.claim(holder, &["charge", "refund"], 10).await;
    assert_eq!(claimed.iter().map(|leased| leased.job.id).collect::<Vec<_>>(), [other]);
    subject.kinds(&["empty"]).await;
    subject.apply_kind("empty", KindChange::Pause).await;
    assert!(!is_direct(subject, "empty").await);
}

/// A resumed kind continues with its waiting jobs.
pub async fn a_resumed_kind_goes_on(subject: &Subject) {
    let holder = subject.holder().await;
    let job = subject.submit("charge").await;
    subject.apply_kind("charge", KindChange::Pause).await;
    let kind = subject.apply_kind("charge", KindChange::Resume).await;
    assert!(!kind.paused && subject.kind("charge").await == kind);

    let leased = subject.claim_only(holder, "charge").await;
    assert_eq!(leased.job.id, job);
    assert!(is_direct(subject, "charge").await);
}

/// A running job of a paused kind is settled as usual.
pub async fn what_runs_in_a_paused_kind_is_settled(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    subject.apply_kind("charge", KindChange::Pause).await;
    subject.settle(holder, &subject.retry(lease, seconds(0), false)).await;
    assert_eq!(subject.claim(holder, &["charge"], 1).await, []);

    subject.apply_kind("charge", KindChange::Resume).await;
    let lease = subject.claim_only(holder, "charge").await.lease();
    subject.apply_kind("charge", KindChange::Pause).await;
    let settled = subject.succeed(holder, lease).await;
    assert_eq!(settled, Settled::Applied(Outcome::LetGo(State::Succeeded)));
}

/// Pausing a paused kind, or resuming one that is not paused, writes nothing.
pub async fn pausing_again_changes_nothing(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    for change in [KindChange::Pause, KindChange::Resume] {
        let once = subject.apply_kind("charge", change.clone()).await;
        let log = subject.store.audit(None, None, 100).await.unwrap();
        assert_eq!(log[0].what, change.as_str());
        assert_eq!(subject.apply_kind("charge", change).await, once);
        assert_eq!(subject.store.audit(None, None, 100).await.unwrap(), log);
    }
}

/// Writing kinds at each start leaves an audit entry only if something changed.
pub async fn writing_the_same_leaves_no_trace(subject: &Subject) {
    let (charge, refund) = (new_kind("charge", "{}"), new_kind("refund", "{}"));
    put(subject, &[charge.clone(), refund.clone()]).await;
    let log = subject.store.audit(None, None, 100).await.unwrap();
    assert!(log.iter().all(|entry| entry.what == "put kind" && entry.job.is_none()), "{log:?}");
    assert_eq!(log.len(), 2);

    put(subject, &[charge.clone(), refund]).await;
    assert_eq!(subject.store.audit(None, None, 100).await.unwrap(), log);
    put(subject, &[NewKind { takeovers_max: 1, ..charge }]).await;
    let log = subject.store.audit(None, None, 100).await.unwrap();
    assert_eq!((log.len(), log[0].kind.as_ref().unwrap().as_str()), (3, "charge"));
}
