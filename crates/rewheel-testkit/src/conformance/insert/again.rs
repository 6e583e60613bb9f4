//! Tests batches that are sent again because the first response was lost.

use crate::{Subject, seconds};
use rewheel_core::store::{Insert, Inserted, Sent, StoreError};
use rewheel_core::{Key, NewJob, State, When};
use std::slice::from_ref;

async fn again(subject: &Subject, jobs: &[NewJob]) -> Vec<Inserted> {
    subject.answers(&Insert { sent: Sent::Again, ..Insert::new(jobs) }).await
}

/// A batch that is sent again before any claim stores nothing twice.
pub async fn knows_jobs_that_are_sent_again(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let jobs = subject.jobs("charge", 3);
    subject.insert(&jobs).await;
    let before = subject.get(jobs[1].id).await;

    for (job, answer) in jobs.iter().zip(again(subject, &jobs).await) {
        assert_eq!(answer, Inserted::Duplicate { job: job.id, state: State::Scheduled });
    }
    assert_eq!(subject.get(jobs[1].id).await, before);
    assert_eq!(subject.store.books().await.unwrap().submitted, 3);
    subject.balance().await;
}

/// A leased job is not stored again, and its lease is not affected.
pub async fn knows_a_leased_job_that_is_sent_again(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let new = subject.job("charge");
    subject.insert(from_ref(&new)).await;
    let holder = subject.holder().await;
    let leased = subject.claim(holder, &["charge"], 1).await.remove(0);

    let answers = again(subject, from_ref(&new)).await;
    assert_eq!(answers, [Inserted::Duplicate { job: new.id, state: State::Leased }]);
    assert_eq!(subject.get(new.id).await, leased.job);
}

/// A job that ended is not stored again.
pub async fn knows_a_finished_job_that_is_sent_again(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let jobs = subject.jobs("charge", 2);
    subject.insert(&jobs).await;
    let holder = subject.holder().await;
    let claimed = subject.claim(holder, &["charge"], 2).await;
    subject.succeed(holder, claimed[0].lease()).await;
    subject.settle(holder, &subject.dead(claimed[1].lease())).await;

    let answers = again(subject, &jobs).await;
    assert_eq!(answers[0], Inserted::Duplicate { job: jobs[0].id, state: State::Succeeded });
    assert_eq!(answers[1], Inserted::Duplicate { job: jobs[1].id, state: State::Dead });
    assert_eq!(subject.claim(holder, &["charge"], 10).await, []);
    subject.balance().await;
}

/// A batch that never arrived is stored when it is sent again, completely or its missing part.
pub async fn stores_what_is_missing_of_a_batch_sent_again(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let jobs = subject.jobs("charge", 3);
    subject.insert(from_ref(&jobs[1])).await;

    let answers = again(subject, &jobs).await;
    assert_eq!(answers[1], Inserted::Duplicate { job: jobs[1].id, state: State::Scheduled });
    for place in [0, 2] {
        assert!(matches!(answers[place], Inserted::Created { .. }), "{answers:?}");
        assert_eq!(subject.get(jobs[place].id).await.state(), State::Scheduled);
    }
    assert_eq!(subject.store.books().await.unwrap().submitted, 3);
}

/// A job with a key that is sent again is a duplicate of itself, not of another job.
pub async fn knows_a_job_with_a_key_that_is_sent_again(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let new = NewJob { key: Some(Key::parse("order-17").unwrap()), ..subject.job("charge") };
    subject.insert(from_ref(&new)).await;

    let answers = again(subject, from_ref(&new)).await;
    assert_eq!(answers, [Inserted::Duplicate { job: new.id, state: State::Scheduled }]);
}

/// A stored job is recognized although its deadline has passed meanwhile: a refusal would
/// contradict the acknowledged insert.
pub async fn knows_a_job_sent_again_after_its_deadline(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let deadline = subject.now().await.plus(seconds(60));
    let new = NewJob { deadline: Some(When::At(deadline)), ..subject.job("charge") };
    subject.insert(from_ref(&new)).await;
    subject.clock.advance(seconds(61));

    let answers = again(subject, from_ref(&new)).await;
    assert_eq!(answers, [Inserted::Duplicate { job: new.id, state: State::Scheduled }]);
}

/// A known id in a first insert is a caller's mistake: the whole batch is rejected, so that its
/// halves can be sent.
pub async fn rejects_a_known_id_that_is_sent_first(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let known = subject.job("charge");
    subject.insert(from_ref(&known)).await;
    let before = subject.get(known.id).await;
    let good = subject.job("charge");
    let twin = NewJob { payload: b"other".to_vec(), ..known.clone() };

    let answer = subject.store.insert(&Insert::new(&[good.clone(), twin])).await;
    assert!(matches!(answer, Err(StoreError::Rejected(_))), "{answer:?}");
    assert_eq!(subject.get(known.id).await, before);
    assert_eq!(subject.store.get(good.id).await.unwrap(), None);
    subject.insert(from_ref(&good)).await;
    subject.balance().await;
}
