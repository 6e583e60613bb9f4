//! Tests dead letters that are waiting to be announced.

use crate::{Subject, lane, seconds};
use rewheel_core::store::{ChangeVerb, DeadLetter, Edit};
use rewheel_core::{Failure, JobId, NewJob, Status, When};

async fn unannounced(subject: &Subject) -> Vec<DeadLetter> {
    subject.store.unannounced(100).await.unwrap()
}

async fn only(subject: &Subject) -> DeadLetter {
    let mut letters = unannounced(subject).await;
    assert_eq!(letters.len(), 1, "not the only one: {letters:?}");
    letters.remove(0)
}

async fn announce(subject: &Subject, letter: &DeadLetter) {
    subject.store.announce(std::slice::from_ref(letter)).await.unwrap();
}

/// Makes a redriven job a dead letter again.
async fn die_again(subject: &Subject, job: JobId) {
    subject.apply(job, ChangeVerb::Redrive { deadline: None }).await;
    let holder = subject.holder().await;
    let lease = subject.claim_only(holder, "charge").await.lease();
    subject.settle(holder, &subject.dead(lease)).await;
}

/// A dead letter is listed, with what an operator needs to know, until it is announced.
pub async fn tells_a_dead_letter_until_it_was_announced(subject: &Subject) {
    let job = subject.dead_letter("charge").await;
    let dead = subject.get(job).await;
    let letter = only(subject).await;
    assert_eq!((letter.job, letter.version, letter.attempt), (job, dead.version, 1));
    assert_eq!((&letter.lane, &letter.failure), (&lane("charge"), &dead.failure));
    assert_eq!(Status::Dead(letter.died), dead.status);
    assert_eq!(unannounced(subject).await, std::slice::from_ref(&letter));

    announce(subject, &letter).await;
    assert_eq!(unannounced(subject).await, []);
    assert_eq!(subject.get(job).await, dead, "announcing is no visible change");
}

/// Announcing again, or announcing a deleted job, changes nothing.
pub async fn announcing_again_changes_nothing(subject: &Subject) {
    let job = subject.dead_letter("charge").await;
    let letter = only(subject).await;
    let stranger = DeadLetter { job: subject.id(), ..letter.clone() };
    subject.store.announce(&[stranger, letter.clone()]).await.unwrap();
    announce(subject, &letter).await;
    assert_eq!(unannounced(subject).await, []);
    subject.apply(job, ChangeVerb::Cancel).await;
    announce(subject, &letter).await;
}

/// A job given up by a sweep is listed.
pub async fn tells_a_job_that_the_sweep_gave_up(subject: &Subject) {
    let by = subject.holder().await;
    let job = subject.submit("charge").await;
    for _ in 0..3 {
        assert_eq!(unannounced(subject).await, []);
        let holder = subject.holder().await;
        let lease = subject.claim_only(holder, "charge").await.lease();
        subject.start(holder, lease).await;
        subject.take_over(by, holder).await;
    }
    let letter = only(subject).await;
    assert_eq!((letter.job, letter.failure), (job, Some(Failure::of_takeovers(3))));
}

/// A job that missed its deadline is listed.
pub async fn tells_a_job_that_missed_its_deadline(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let deadline = Some(When::In(seconds(1)));
    let new = NewJob { deadline, ..subject.job("charge") };
    subject.insert(std::slice::from_ref(&new)).await;
    subject.clock.advance(seconds(2));
    subject.store.deadlines(seconds(0), 10).await.unwrap();
    let letter = only(subject).await;
    assert_eq!((letter.job, letter.failure), (new.id, Some(Failure::of_deadline())));
    assert_eq!(letter.attempt, 0);
}

/// The oldest death is listed first, up to the limit.
pub async fn tells_the_oldest_death_first(subject: &Subject) {
    let mut died = Vec::new();
    for _ in 0..5 {
        died.push(subject.dead_letter("charge").await);
        subject.clock.advance(seconds(1));
    }
    let mut told = Vec::new();
    for expected in [2, 2, 1, 0] {
        let letters = subject.store.unannounced(2).await.unwrap();
        assert_eq!(letters.len(), expected);
        subject.store.announce(&letters).await.unwrap();
        told.extend(letters.iter().map(|letter| letter.job));
    }
    assert_eq!(told, died);
}

/// A dead letter that was redriven or cancelled is not listed any more.
pub async fn does_not_tell_what_is_no_longer_dead(subject: &Subject) {
    let job = subject.dead_letter("charge").await;
    subject.apply(job, ChangeVerb::Redrive { deadline: None }).await;
    assert_eq!(unannounced(subject).await, []);
    let job = subject.dead_letter("refund").await;
    subject.apply(job, ChangeVerb::Cancel).await;
    assert_eq!(unannounced(subject).await, []);
}

/// A second death is listed although the first one was announced.
pub async fn tells_a_second_death(subject: &Subject) {
    let job = subject.dead_letter("charge").await;
    let first = only(subject).await;
    announce(subject, &first).await;
    die_again(subject, job).await;
    let second = only(subject).await;
    assert_eq!((second.job, second.attempt), (job, 2));
    assert!(second.version > first.version);
}

/// A late announcement of the first death does not mark the second as announced.
pub async fn a_late_announcement_does_not_silence_a_second_death(subject: &Subject) {
    let job = subject.dead_letter("charge").await;
    let first = only(subject).await;
    die_again(subject, job).await;
    announce(subject, &first).await;
    let second = only(subject).await;
    announce(subject, &second).await;
    assert_eq!(unannounced(subject).await, []);
}

/// Editing an announced dead letter does not list it again.
pub async fn an_edit_is_no_second_death(subject: &Subject) {
    let job = subject.dead_letter("charge").await;
    announce(subject, &only(subject).await).await;
    let edit = Edit { attempts_max: Some(9), ..Edit::default() };
    subject.apply(job, ChangeVerb::Edit(Box::new(edit))).await;
    assert_eq!(unannounced(subject).await, []);
}
