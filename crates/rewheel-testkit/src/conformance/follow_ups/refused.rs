//! Tests jobs of a settle that cannot be stored as they are.

use super::{applied, charged, children, submitting};
use crate::{Subject, seconds};
use rewheel::Backoff;
use rewheel_core::store::{ChangeVerb, Insert, Inserted, Refusal, Settled};
use rewheel_core::{
    Failure, Format, HolderId, Job, Key, Limits, NewHolder, NewJob, Role, State, Timestamp, When,
};

/// Settles a job that submits a job which is refused. Returns the dead letter.
async fn refused(subject: &Subject, job: NewJob) -> Job {
    let (holder, lease) = charged(subject).await;
    let settled = subject.settle(holder, &submitting(lease, std::slice::from_ref(&job))).await;
    assert_eq!(settled, applied(State::Succeeded), "the end of the parent stands");
    assert_eq!(subject.get(lease.job).await.state(), State::Succeeded);
    let letter = subject.get(job.id).await;
    check_letter(&letter);
    assert_eq!((letter.parent, &letter.lane.kind), (Some(lease.job), &job.kind));
    let unannounced = subject.store.unannounced(100).await.unwrap();
    assert!(unannounced.iter().any(|dead| dead.job == job.id), "no notification will be sent");
    subject.balance().await;
    // A repetition changes nothing.
    let again = subject.settle(holder, &submitting(lease, std::slice::from_ref(&job))).await;
    assert!(matches!(again, Settled::AlreadyApplied(_)), "{again:?}");
    assert_eq!(subject.get(job.id).await, letter);
    letter
}

#[track_caller]
fn check_letter(letter: &Job) {
    assert_eq!(letter.state(), State::Dead);
    let failure = letter.failure.as_ref().expect("a dead letter has a failure");
    assert_eq!(failure.code(), Some(Failure::FOLLOW_UP_REFUSED), "{failure}");
}

fn message(letter: &Job) -> &str {
    letter.failure.as_ref().map_or("", Failure::message)
}

/// One of a kind that does not exist becomes a dead letter of that kind, which is created for it.
pub async fn of_an_unknown_kind_become_dead_letters(subject: &Subject) {
    let letter = refused(subject, subject.job("fax")).await;
    assert!(message(&letter).contains("the kind does not exist"), "{}", message(&letter));
    assert_eq!(letter.payload.as_deref(), Some(br#"{"order":17}"#.as_slice()));
    let kinds = subject.store.kinds().await.unwrap();
    assert!(kinds.iter().any(|kind| kind.name.as_str() == "fax"), "{kinds:?}");
    // A person can put it to work.
    subject.change(letter.id, ChangeVerb::Redrive { deadline: None }).await;
    let holder = subject.holder().await;
    let claimed = subject.claim_only(holder, "fax").await;
    assert_eq!((claimed.job.id, claimed.job.parent), (letter.id, letter.parent));
    assert_eq!(subject.succeed(holder, claimed.lease()).await, applied(State::Succeeded));
    subject.balance().await;
}

/// One with a key that belongs to another payload becomes a dead letter without that key.
pub async fn with_a_reused_key_become_dead_letters(subject: &Subject) {
    subject.kinds(&["mail"]).await;
    let key = Some(Key::parse("order-17").unwrap());
    let first = subject.put(NewJob { key: key.clone(), ..subject.job("mail") }).await;
    let other = NewJob { key, payload: b"other".to_vec(), ..subject.job("mail") };
    let letter = refused(subject, other).await;
    assert_eq!(letter.key, None);
    assert!(message(&letter).contains("order-17"), "{}", message(&letter));
    subject.change(letter.id, ChangeVerb::Cancel).await;
    assert_eq!(subject.get(first).await.state(), State::Scheduled);
    subject.balance().await;
}

/// One whose deadline has passed, or comes before it is due, becomes a dead letter.
pub async fn that_come_too_late_become_dead_letters(subject: &Subject) {
    let past = When::At(Timestamp::from_millis(1));
    let late = NewJob { deadline: Some(past), ..subject.job("mail") };
    let letter = refused(subject, late).await;
    assert!(message(&letter).contains("deadline"), "{}", message(&letter));
    let early = Some(When::In(seconds(5)));
    let late = NewJob { deadline: early, due: When::In(seconds(9)), ..subject.job("mail") };
    refused(subject, late).await;
}

/// One that the store cannot hold becomes a dead letter without its payload.
pub async fn that_are_too_large_become_dead_letters(subject: &Subject) {
    let bytes = subject.store.capabilities().payload_bytes_max + 1;
    let letter = refused(subject, NewJob { payload: vec![b'x'; bytes], ..subject.job("mail") });
    let letter = letter.await;
    assert_eq!(letter.payload, Some(Vec::new()));
    assert!(message(&letter).contains(&bytes.to_string()), "{}", message(&letter));
}

/// Sixteen are stored; the seventeenth of one settle becomes a dead letter.
pub async fn beyond_the_sixteenth_become_dead_letters(subject: &Subject) {
    let (holder, lease) = charged(subject).await;
    let mails = subject.jobs("mail", Limits::FOLLOW_UPS_MAX);
    subject.settle(holder, &submitting(lease, &mails)).await;
    assert!(children(subject, lease.job).await.iter().all(|job| job.state() == State::Scheduled));
    let (holder, lease) = charged(subject).await;
    let mails = subject.jobs("mail", Limits::FOLLOW_UPS_MAX + 1);
    let settled = subject.settle(holder, &submitting(lease, &mails)).await;
    assert_eq!(settled, applied(State::Succeeded));
    for (place, mail) in mails.iter().enumerate() {
        let stored = subject.get(mail.id).await;
        let is_within = place < Limits::FOLLOW_UPS_MAX;
        let state = if is_within { State::Scheduled } else { State::Dead };
        assert_eq!(stored.state(), state, "number {}", place + 1);
    }
    check_letter(&subject.get(mails[Limits::FOLLOW_UPS_MAX].id).await);
    subject.balance().await;
}

/// Those whose payloads are too large together become dead letters; what fits is stored.
pub async fn beyond_the_bytes_become_dead_letters(subject: &Subject) {
    let (holder, lease) = charged(subject).await;
    let half = vec![b'x'; Limits::FOLLOW_UPS_BYTES_MAX / 2];
    let mail = || NewJob { payload: half.clone(), ..subject.job("mail") };
    let mails = [mail(), mail(), mail()];
    let settled = subject.settle(holder, &submitting(lease, &mails)).await;
    assert_eq!(settled, applied(State::Succeeded));
    let mut states = Vec::new();
    for mail in &mails {
        states.push(subject.get(mail.id).await.state());
    }
    assert_eq!(states, [State::Scheduled, State::Scheduled, State::Dead]);
    let letter = subject.get(mails[2].id).await;
    check_letter(&letter);
    assert_eq!(letter.payload, Some(half), "it fits the store, so it can be redriven");
    subject.balance().await;
}

/// One with an id that exists, or twice in one settle, is not stored again.
pub async fn with_a_known_id_are_not_stored_again(subject: &Subject) {
    subject.kinds(&["mail"]).await;
    let first = subject.put(subject.job("mail")).await;
    let (holder, lease) = subject.leased("charge").await;
    let known = NewJob { id: first, ..subject.job("mail") };
    let twice = subject.job("mail");
    let mails = [known, twice.clone(), twice.clone()];
    let settled = subject.settle(holder, &submitting(lease, &mails)).await;
    assert_eq!(settled, applied(State::Succeeded));
    let found = children(subject, lease.job).await;
    assert_eq!(found.iter().map(|job| job.id).collect::<Vec<_>>(), [twice.id]);
    subject.balance().await;
}

/// A backoff that cannot be stored does not cost the parent its end.
pub async fn with_a_strange_backoff_cost_nothing(subject: &Subject) {
    let (holder, lease) = charged(subject).await;
    let backoff = Some(Backoff::exponential(seconds(u64::MAX)));
    let mail = NewJob { backoff, ..subject.job("mail") };
    let settled = subject.settle(holder, &submitting(lease, std::slice::from_ref(&mail))).await;
    assert_eq!(settled, applied(State::Succeeded));
    assert!(subject.store.get(mail.id).await.unwrap().is_some());
    subject.balance().await;
}

/// While a holder of an older release lives, a job with a parent is refused. It is stored when that holder has gone.
pub async fn wait_for_the_last_old_holder(subject: &Subject) {
    subject.kinds(&["mail"]).await;
    let id = HolderId::new(Timestamp::from_millis(1_700_000_000_000), &subject.random);
    let (role, name, format) = (Role::Engine, "old-1".to_owned(), Format::FIRST);
    let old = NewHolder { id, name, role, lease_ttl: seconds(15), format };
    subject.store.join(&old).await.unwrap();
    let stored = subject.store.holder(id).await.unwrap().expect("it joined");
    assert_eq!(stored.format, Format::FIRST);
    let child = NewJob { parent: Some(subject.id()), ..subject.job("mail") };
    let plain = subject.job("mail");
    let answers = subject.answers(&Insert::new(&[child.clone(), plain])).await;
    let refusal = Refusal::HolderTooOld { holder: "old-1".to_owned() };
    assert_eq!(answers[0], Inserted::Refused(refusal));
    assert!(matches!(answers[1], Inserted::Created { .. }), "an ordinary job is stored");
    let letter = refused(subject, subject.job("mail")).await;
    assert!(message(&letter).contains("old-1"), "{}", message(&letter));
    subject.store.leave(id).await.unwrap();
    subject.insert(&[child]).await;
    let (holder, lease) = charged(subject).await;
    let mail = subject.job("mail");
    subject.settle(holder, &submitting(lease, std::slice::from_ref(&mail))).await;
    assert_eq!(subject.get(mail.id).await.state(), State::Scheduled);
    subject.balance().await;
}
