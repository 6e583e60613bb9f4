//! Tests idempotency keys, which make submitting a job twice harmless.

mod expiry;

use crate::threads::at_once;
use crate::{Subject, seconds};
use rewheel_core::store::{ChangeVerb, Settlement};
use rewheel_core::store::{Edit, IfRefused, Insert, Inserted, Outcome, Refusal, Sent, Settled};
use rewheel_core::{
    Decision, HolderId, JobId, Key, Lease, NewJob, Retain, State, Tenant, Version, When,
};
use std::slice::from_ref;
use std::sync::Arc;
use std::time::Duration;

pub use self::expiry::*;

/// Makes a job of the kind `charge` with a key.
fn keyed(subject: &Subject, key: &str) -> NewJob {
    NewJob { key: Some(Key::parse(key).unwrap()), ..subject.job("charge") }
}

/// Stores a job of the kind `charge` with the key `order-17`.
async fn put_keyed(subject: &Subject) -> JobId {
    subject.kinds(&["charge"]).await;
    subject.put(keyed(subject, "order-17")).await
}

/// Stores a job of the kind `charge` with the key `order-17`, and leases it.
async fn lease_keyed(subject: &Subject) -> (HolderId, Lease) {
    let job = put_keyed(subject).await;
    let holder = subject.holder().await;
    let claimed = subject.claim(holder, &["charge"], 1).await;
    assert_eq!(claimed[0].job.id, job);
    (holder, claimed[0].lease())
}

/// Submits another job with the key `order-17` and the same payload.
async fn submit_again(subject: &Subject) -> Inserted {
    let new = keyed(subject, "order-17");
    let answer = subject.answers(&Insert::new(from_ref(&new))).await.remove(0);
    if matches!(answer, Inserted::Duplicate { .. }) {
        assert_eq!(subject.store.get(new.id).await.unwrap(), None, "a duplicate is not stored");
    }
    answer
}

/// Submits another job with the key `order-17` and another payload.
async fn submit_other(subject: &Subject) -> Inserted {
    let new = NewJob { payload: b"other".to_vec(), ..keyed(subject, "order-17") };
    subject.answers(&Insert::new(from_ref(&new))).await.remove(0)
}

/// Submitting a job again returns the waiting one, and does not change it.
pub async fn answers_with_the_job_that_has_the_key(subject: &Subject) {
    let job = put_keyed(subject).await;
    let before = subject.get(job).await;

    let answer = submit_again(subject).await;
    assert_eq!(answer, Inserted::Duplicate { job, state: State::Scheduled });
    assert_eq!(subject.get(job).await, before);
    assert_eq!(subject.store.books().await.unwrap().submitted, 1);
    subject.balance().await;
}

/// Submitting again stays harmless after the deadline has passed.
pub async fn answers_with_the_job_after_its_deadline(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let now = subject.store.now().await.unwrap();
    let first = NewJob {
        key: Some(Key::parse("order-17").unwrap()),
        deadline: Some(When::At(now.plus(seconds(60)))),
        ..subject.job("charge")
    };
    let job = subject.put(first.clone()).await;
    subject.clock.advance(seconds(61));
    let again = [NewJob { id: subject.id(), ..first }];
    let duplicate = Inserted::Duplicate { job, state: State::Scheduled };
    assert_eq!(subject.answers(&Insert::new(&again)).await, [duplicate]);
}

/// Only the key and the payload of the second job matter.
pub async fn only_the_payload_must_be_the_same(subject: &Subject) {
    let job = put_keyed(subject).await;
    let new = NewJob {
        due: When::In(seconds(60)),
        attempts_max: Some(1),
        priority: rewheel_core::Priority::MAX,
        ..keyed(subject, "order-17")
    };
    let answers = subject.answers(&Insert::new(from_ref(&new))).await;
    assert_eq!(answers, [Inserted::Duplicate { job, state: State::Scheduled }]);
}

/// The key of a leased or paused job is taken.
pub async fn knows_the_key_of_a_job_at_work(subject: &Subject) {
    let (holder, lease) = lease_keyed(subject).await;
    let job = lease.job;
    assert_eq!(submit_again(subject).await, Inserted::Duplicate { job, state: State::Leased });
    let pause = Settlement { decision: Decision::Pause, ..Settlement::succeed(lease) };
    subject.settle(holder, &pause).await;
    assert_eq!(submit_again(subject).await, Inserted::Duplicate { job, state: State::Paused });
}

/// The key of a dead letter is taken: an operator may redrive it.
pub async fn knows_the_key_of_a_dead_letter(subject: &Subject) {
    let (holder, lease) = lease_keyed(subject).await;
    subject.settle(holder, &subject.dead(lease)).await;
    let answer = submit_again(subject).await;
    assert_eq!(answer, Inserted::Duplicate { job: lease.job, state: State::Dead });
}

/// The key of an ended job returns its final state.
pub async fn remembers_how_a_job_ended(subject: &Subject) {
    let failure = subject.timeout();
    let ends = [
        (Decision::Succeed, State::Succeeded),
        (Decision::Fail { failure }, State::Failed),
        (Decision::Cancel, State::Cancelled),
    ];
    subject.kinds(&["charge"]).await;
    let holder = subject.holder().await;
    for (place, (decision, state)) in ends.into_iter().enumerate() {
        let key = format!("order-{place}");
        let job = subject.put(keyed(subject, &key)).await;
        let lease = subject.claim(holder, &["charge"], 1).await[0].lease();
        let end = Settlement { decision, ..Settlement::succeed(lease) };
        assert_eq!(subject.settle(holder, &end).await, Settled::Applied(Outcome::LetGo(state)));
        let again = keyed(subject, &key);
        let answers = subject.answers(&Insert::new(from_ref(&again))).await;
        assert_eq!(answers, [Inserted::Duplicate { job, state }]);
    }
}

/// The key outlives a job without retention.
pub async fn outlives_a_job_that_is_not_kept(subject: &Subject) {
    let (holder, lease) = lease_keyed(subject).await;
    let keep = Retain { job: Duration::ZERO, key: seconds(3_600) };
    subject.settle(holder, &Settlement { keep, ..Settlement::succeed(lease) }).await;
    assert_eq!(subject.store.get(lease.job).await.unwrap(), None);

    let answer = submit_again(subject).await;
    assert_eq!(answer, Inserted::Duplicate { job: lease.job, state: State::Succeeded });
    let reused = Inserted::Refused(Refusal::KeyReused { job: lease.job });
    assert_eq!(submit_other(subject).await, reused);
}

/// A batch that is sent again after its job ended without retention is recognized by its key.
pub async fn knows_a_job_sent_again_after_it_is_gone(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let new = keyed(subject, "order-17");
    subject.insert(from_ref(&new)).await;
    let holder = subject.holder().await;
    let lease = subject.claim(holder, &["charge"], 1).await[0].lease();
    let keep = Retain { job: Duration::ZERO, key: seconds(3_600) };
    subject.settle(holder, &Settlement { keep, ..Settlement::succeed(lease) }).await;

    let insert = Insert { sent: Sent::Again, ..Insert::new(from_ref(&new)) };
    let known = Inserted::Duplicate { job: new.id, state: State::Succeeded };
    assert_eq!(subject.answers(&insert).await, [known]);
}

/// The same key with another payload is a mistake, in any state of the job.
pub async fn refuses_another_payload(subject: &Subject) {
    let (holder, lease) = lease_keyed(subject).await;
    let reused = Inserted::Refused(Refusal::KeyReused { job: lease.job });
    assert_eq!(submit_other(subject).await, reused, "while it is leased");
    subject.settle(holder, &subject.retry(lease, Duration::ZERO, false)).await;
    assert_eq!(submit_other(subject).await, reused, "while it is scheduled");
    let lease = subject.claim(holder, &["charge"], 1).await[0].lease();
    subject.settle(holder, &subject.dead(lease)).await;
    assert_eq!(submit_other(subject).await, reused, "while it is dead");
    subject.change(lease.job, ChangeVerb::Cancel).await;
    assert_eq!(submit_other(subject).await, reused, "when it has ended");
}

/// A key belongs to a tenant: the same key of another tenant, or of none, is different.
pub async fn tells_tenants_apart(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let tenants = [None, Some("acme"), Some("Acme"), Some("acme "), Some("globex")];
    let jobs = tenants.map(|tenant| NewJob {
        tenant: tenant.map(|name| Tenant::parse(name).unwrap()),
        payload: format!("for {tenant:?}").into_bytes(),
        ..keyed(subject, "order-17")
    });
    subject.insert(&jobs).await;

    for first in jobs {
        let again = NewJob { id: subject.id(), ..first.clone() };
        let answers = subject.answers(&Insert::new(from_ref(&again))).await;
        assert_eq!(answers, [Inserted::Duplicate { job: first.id, state: State::Scheduled }]);
    }
}

/// A key belongs to a kind: the same key of another kind is different.
pub async fn tells_kinds_apart(subject: &Subject) {
    subject.kinds(&["charge", "refund"]).await;
    let key = Some(Key::parse("order-17").unwrap());
    let charge = NewJob { key: key.clone(), ..subject.job("charge") };
    let refund = NewJob { key, payload: b"other".to_vec(), ..subject.job("refund") };
    subject.insert(&[charge, refund]).await;
}

/// Keys are compared byte by byte: case, spaces and accents matter.
pub async fn tells_look_alikes_apart(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let long = "k".repeat(254);
    let keys = ["resume", "Resume", "RESUME", "résumé", "resume ", " resume", "re%ume", "re_ume"];
    let keys: Vec<String> = keys
        .map(str::to_owned)
        .into_iter()
        .chain([format!("{long}1"), format!("{long}2")])
        .collect();
    let jobs: Vec<NewJob> = keys.iter().map(|key| keyed(subject, key)).collect();
    subject.insert(&jobs).await;
    assert_eq!(subject.get(jobs[9].id).await.key, jobs[9].key);
}

/// Jobs without a key are never duplicates.
pub async fn jobs_without_a_key_are_never_duplicates(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    subject.insert(&subject.jobs("charge", 2)).await;
    subject.insert(&subject.jobs("charge", 2)).await;
    assert_eq!(subject.store.books().await.unwrap().live, 4);
}

/// The second job of a batch with the same key is a duplicate of the first.
pub async fn answers_within_a_batch(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let jobs = [
        keyed(subject, "order-17"),
        keyed(subject, "order-17"),
        NewJob { payload: b"other".to_vec(), ..keyed(subject, "order-17") },
    ];
    let answers = subject.answers(&Insert::new(&jobs)).await;

    assert!(matches!(answers[0], Inserted::Created { .. }), "{answers:?}");
    let first = jobs[0].id;
    assert_eq!(answers[1], Inserted::Duplicate { job: first, state: State::Scheduled });
    assert_eq!(answers[2], Inserted::Refused(Refusal::KeyReused { job: first }));
    assert_eq!(subject.store.books().await.unwrap().submitted, 1);
    subject.balance().await;
}

/// In an all-or-nothing batch, a key with two payloads is a refusal.
pub async fn stores_nothing_of_a_batch_that_reuses_a_key(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let other = NewJob { payload: b"other".to_vec(), ..keyed(subject, "order-17") };
    let jobs = [keyed(subject, "order-17"), other];
    let insert = Insert { if_refused: IfRefused::StoreNothing, ..Insert::new(&jobs) };
    let answers = subject.answers(&insert).await;

    assert_eq!(answers[0], Inserted::LeftOut);
    assert!(matches!(answers[1], Inserted::Refused(Refusal::KeyReused { .. })), "{answers:?}");
    assert_eq!(subject.store.books().await.unwrap().submitted, 0);
    assert!(matches!(submit_other(subject).await, Inserted::Created { .. }), "the key is free");
}

/// A job that was refused does not take its key.
pub async fn a_refused_job_takes_no_key(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let late = NewJob { deadline: Some(When::In(Duration::ZERO)), ..keyed(subject, "order-17") };
    let answers = subject.answers(&Insert::new(from_ref(&late))).await;
    assert_eq!(answers, [Inserted::Refused(Refusal::DeadlineTooEarly)]);
    assert!(matches!(submit_other(subject).await, Inserted::Created { .. }));
}

/// The key keeps the submitted payload: an edit does not change it.
pub async fn keeps_the_payload_that_was_submitted(subject: &Subject) {
    let job = put_keyed(subject).await;
    let edit = Edit { payload: Some(b"other".to_vec()), ..Edit::default() };
    subject.change(job, ChangeVerb::Edit(Box::new(edit))).await;
    assert_eq!(subject.get(job).await.version, Version::new(2));

    assert_eq!(submit_again(subject).await, Inserted::Duplicate { job, state: State::Scheduled });
    assert_eq!(submit_other(subject).await, Inserted::Refused(Refusal::KeyReused { job }));
}

/// Concurrent inserts with one key create one job, and all others get its id.
pub async fn creates_one_job_for_racing_inserts(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    for round in 0..10 {
        let jobs: Vec<NewJob> = (0..8).map(|_| keyed(subject, &format!("order-{round}"))).collect();
        let answers = at_once(jobs.len(), |place| {
            let (store, job) = (Arc::clone(&subject.store), jobs[place].clone());
            async move { store.insert(&Insert::new(&[job])).await.unwrap().remove(0) }
        })
        .await;

        let is_new = |answer: &&Inserted| matches!(answer, Inserted::Created { .. });
        assert_eq!(answers.iter().filter(is_new).count(), 1, "{answers:?}");
        let winner = answers.iter().position(|answer| is_new(&answer)).unwrap();
        let known = Inserted::Duplicate { job: jobs[winner].id, state: State::Scheduled };
        for (place, answer) in answers.iter().enumerate().filter(|(place, _)| *place != winner) {
            assert_eq!(answer, &known, "the answer to insert {place}");
        }
    }
    assert_eq!(subject.store.books().await.unwrap().submitted, 10);
}
