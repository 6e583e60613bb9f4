//! Tests conditional writes, changes and deletes of kinds.

use super::{new_kind, put};
use crate::Subject;
use crate::race::both;
use rewheel_core::store::{Insert, Inserted, Refusal};
use rewheel_core::{
    Actor, KindChange, KindEdit, KindEditVerb, KindEdited, KindName, State, Version,
};

async fn edit(subject: &Subject, what: KindEditVerb, if_version: Option<Version>) -> KindEdited {
    let edit = KindEdit { name: KindName::parse("charge").unwrap(), what, if_version };
    subject.store.edit_kind(&edit, &Actor::new("suite")).await.unwrap()
}

fn settings(text: &str) -> KindEditVerb {
    KindEditVerb::Put { settings: text.to_owned(), takeovers_max: 7, on_dead: Default::default() }
}

async fn log(subject: &Subject) -> Vec<String> {
    let log = subject.store.audit(None, None, 100).await.unwrap();
    log.into_iter().map(|entry| entry.what).collect()
}

/// Each change by an operator increases the version of a kind; changes by the engine, and changes without effect, do not.
pub async fn people_change_the_version_of_a_kind(subject: &Subject) {
    let holder = subject.holder().await;
    put(subject, &[new_kind("charge", "{}")]).await;
    let mut version = subject.kind("charge").await.version;
    for change in [KindChange::Pause, KindChange::Resume, KindChange::Close, KindChange::Reset] {
        let kind = subject.apply_kind("charge", change.clone()).await;
        assert!(kind.version > version, "{change:?}");
        assert_eq!(subject.kind("charge").await, kind);
        assert_eq!(subject.apply_kind("charge", change).await.version, kind.version);
        version = kind.version;
    }
    put(subject, &[new_kind("charge", "{\"a\":1}")]).await;
    assert!(subject.kind("charge").await.version > version);
    let version = subject.kind("charge").await.version;
    put(subject, &[new_kind("charge", "{\"a\":1}")]).await;
    subject.park("charge").await;
    subject.probe("charge", holder).await;
    subject.unpark("charge").await;
    assert_eq!(subject.kind("charge").await.version, version);
}

/// An edit with a version applies to that version only.
pub async fn an_edit_of_a_kind_may_name_a_version(subject: &Subject) {
    assert_eq!(edit(subject, settings("{}"), Some(Version::new(1))).await, KindEdited::NotFound);
    let KindEdited::Done(first) = edit(subject, settings("{}"), None).await else { panic!() };
    assert_eq!(subject.kind("charge").await, first);
    let KindEdited::Done(second) = edit(subject, settings("{\"a\":1}"), Some(first.version)).await
    else {
        panic!()
    };
    assert_eq!(
        (subject.kind("charge").await, second.settings.as_str()),
        (second.clone(), "{\"a\":1}")
    );
    let before = log(subject).await;
    let late = [settings("{}"), KindEditVerb::Change(KindChange::Pause), KindEditVerb::Delete];
    for what in late {
        let answer = edit(subject, what, Some(first.version)).await;
        assert_eq!(answer, KindEdited::VersionChanged(second.clone()));
    }
    assert_eq!((subject.kind("charge").await, log(subject).await), (second.clone(), before));
    let pause = KindEditVerb::Change(KindChange::Pause);
    let KindEdited::Done(third) = edit(subject, pause, Some(second.version)).await else {
        panic!()
    };
    assert!(third.paused && third.version > second.version);
}

/// Of two edits of the same version of a kind, one wins.
pub async fn of_two_who_edit_a_kind_one_does(subject: &Subject) {
    put(subject, &[new_kind("charge", "{}")]).await;
    let seen = Some(subject.kind("charge").await.version);
    let (one, other) = both(
        edit(subject, settings("{\"a\":1}"), seen),
        edit(subject, settings("{\"a\":2}"), seen),
    )
    .await;
    let is_done = |edited: &KindEdited| matches!(edited, KindEdited::Done(_));
    assert!(is_done(&one) != is_done(&other), "{one:?} {other:?}");
}

/// Settings that differ only in secrets, which the audit log hides, are written.
pub async fn writing_another_secret_is_a_change(subject: &Subject) {
    let of = |secret: &str| format!("{{\"callback\":{{\"secrets\":[\"{secret}\"]}}}}");
    put(subject, &[new_kind("charge", &of("old"))]).await;
    put(subject, &[new_kind("charge", &of("new"))]).await;
    assert_eq!(subject.kind("charge").await.settings, of("new"));
    assert_eq!(log(subject).await, ["put kind", "put kind"]);
}

/// A kind without unfinished jobs can be deleted, with an audit entry. It accepts no jobs after that.
pub async fn deletes_a_kind_without_unfinished_jobs(subject: &Subject) {
    assert_eq!(edit(subject, KindEditVerb::Delete, None).await, KindEdited::NotFound);
    let done = subject.job_in("charge", State::Succeeded).await;
    let kind = subject.kind("charge").await;
    assert_eq!(edit(subject, KindEditVerb::Delete, None).await, KindEdited::Done(kind.clone()));
    assert_eq!(subject.store.kinds().await.unwrap(), []);
    assert_eq!(log(subject).await[0], "delete kind");
    assert_eq!(subject.get(done).await.state(), State::Succeeded);
    let jobs = [subject.job("charge")];
    let answers = subject.store.insert(&Insert::new(&jobs)).await.unwrap();
    assert_eq!(answers, [Inserted::Refused(Refusal::UnknownKind)]);
    assert_eq!(edit(subject, KindEditVerb::Delete, None).await, KindEdited::NotFound);

    subject.clock.advance(crate::seconds(1));
    subject.submit("charge").await;
    assert!(subject.kind("charge").await.version != kind.version, "it is another kind");
}

/// A kind with unfinished jobs stays.
pub async fn keeps_a_kind_that_has_unfinished_jobs(subject: &Subject) {
    for state in [State::Scheduled, State::Leased, State::Paused, State::Dead] {
        let job = subject.job_in("charge", state).await;
        let kind = subject.kind("charge").await;
        let refused = edit(subject, KindEditVerb::Delete, None).await;
        assert_eq!(refused, KindEdited::HasJobs(kind.clone()), "{state}");
        assert_eq!(subject.kind("charge").await, kind);
        subject.change(job, rewheel_core::store::ChangeVerb::Cancel).await;
        if state == State::Leased {
            let (by, job) = (subject.holder().await, subject.get(job).await);
            let rewheel_core::Status::Leased { holder, .. } = job.status else { panic!() };
            subject.store.leave(holder).await.unwrap();
            subject.sweep(by).await;
        }
    }
    assert!(matches!(edit(subject, KindEditVerb::Delete, None).await, KindEdited::Done(_)));
}
