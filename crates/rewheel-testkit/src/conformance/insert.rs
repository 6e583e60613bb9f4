//! Tests inserting jobs.

mod again;

use crate::threads::in_time;
use crate::{Subject, lane, millis, seconds};
use rewheel_core::store::{Claim, IfRefused, Insert, Inserted, Refusal, StoreError, Wakes};
use rewheel_core::{Fence, JobId, Key, Limits, NewJob, State, Timestamp, When};
use std::slice::from_ref;
use std::time::Duration;

pub use self::again::*;

const HUNDRED_YEARS: Duration = Duration::from_secs(100 * 365 * 24 * 3_600);

fn created(answer: &Inserted) -> bool {
    matches!(answer, Inserted::Created { leased: None, .. })
}

/// A job reads back as it was submitted.
pub async fn stores_a_job_as_it_was_given(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let new = subject.job("charge");
    subject.insert(from_ref(&new)).await;

    let job = subject.get(new.id).await;
    assert_eq!((job.id, &job.lane, job.state()), (new.id, &lane("charge"), State::Scheduled));
    assert_eq!(job.payload.as_ref(), Some(&new.payload));
    assert_eq!((job.attempt, job.takeovers, job.fence), (0, 0, Fence::new(0)));
    assert_eq!((job.failure, job.deadline, job.due), (None, None, job.created));
}

/// A job with all fields set reads back with all of them.
pub async fn stores_everything_that_a_job_says(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let before = subject.now().await;
    let (due, deadline) = (before.plus(seconds(3_600)), before.plus(seconds(7_200)));
    let (due, deadline) = (When::At(due), Some(When::At(deadline)));
    let new = NewJob { due, deadline, ..subject.full_job("charge") };
    subject.insert(from_ref(&new)).await;
    let after = subject.now().await;

    let job = subject.get(new.id).await;
    let mut stored = new.to_job(job.created);
    // It is the first of its group.
    let group = stored.group.as_mut().expect("it has a group");
    (group.blocked, group.turn) = (false, job.group.as_ref().and_then(|group| group.turn));
    assert!(group.turn.is_some());
    assert_eq!(job, stored);
    assert_eq!((job.attempt, job.attempts_before), (3, 3), "attempts of a call in process");
    assert!((before..=after).contains(&job.created), "created when it was stored: {job:?}");
}

/// A payload is bytes: bytes that no text may contain are stored, too.
pub async fn stores_any_bytes_as_payload(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    for payload in [Vec::new(), vec![0], (0..=u8::MAX).rev().collect()] {
        let id = subject.put(NewJob { payload: payload.clone(), ..subject.job("charge") }).await;
        assert_eq!(subject.get(id).await.payload, Some(payload));
    }
}

/// Results are in the order of the jobs.
pub async fn answers_in_the_order_of_the_jobs(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let key = Some(Key::parse("order-17").unwrap());
    let first = NewJob { key: key.clone(), ..subject.job("charge") };
    let known = subject.put(first).await;
    let jobs = [
        subject.job("charge"),
        subject.job("unknown-kind"),
        NewJob { key, ..subject.job("charge") },
        NewJob { deadline: Some(When::In(Duration::ZERO)), ..subject.job("charge") },
        subject.job("charge"),
    ];
    let answers = subject.answers(&Insert::new(&jobs)).await;

    assert!(created(&answers[0]) && created(&answers[4]), "{answers:?}");
    assert_eq!(answers[1], Inserted::Refused(Refusal::UnknownKind));
    assert_eq!(answers[2], Inserted::Duplicate { job: known, state: State::Scheduled });
    assert_eq!(answers[3], Inserted::Refused(Refusal::DeadlineTooEarly));
}

/// The result contains the due time, which the submitter cannot know if it gave a delay.
pub async fn answers_when_a_job_is_due(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let new = NewJob { due: When::In(seconds(90)), ..subject.job("charge") };
    let before = subject.now().await.plus(seconds(90));
    let answers = subject.answers(&Insert::new(from_ref(&new))).await;
    let after = subject.now().await.plus(seconds(90));

    let job = subject.get(new.id).await;
    assert_eq!(answers, [Inserted::Created { due: job.due, leased: None }]);
    assert!((before..=after).contains(&job.due), "{job:?}");
}

/// An empty batch is not an error.
pub async fn takes_an_empty_batch(subject: &Subject) {
    assert_eq!(subject.answers(&Insert::new(&[])).await, []);
}

/// A job of an unknown kind would wait forever.
pub async fn refuses_a_kind_that_does_not_exist(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let new = subject.job("charge-card");
    let answers = subject.answers(&Insert::new(from_ref(&new))).await;

    assert_eq!(answers, [Inserted::Refused(Refusal::UnknownKind)]);
    assert_eq!(subject.store.get(new.id).await.unwrap(), None);
    assert_eq!(subject.store.books().await.unwrap().submitted, 0);
}

/// A deadline that has passed leaves no time to run.
pub async fn refuses_a_deadline_that_has_passed(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let now = subject.now().await.as_millis();
    let long_due = When::At(Timestamp::from_millis(now - 60_000));
    let passed = When::At(Timestamp::from_millis(now - 1));
    let jobs = [passed, When::In(Duration::ZERO), When::In(seconds(10))].map(|deadline| NewJob {
        due: long_due,
        deadline: Some(deadline),
        ..subject.job("charge")
    });
    let answers = subject.answers(&Insert::new(&jobs)).await;

    assert_eq!(answers[0], Inserted::Refused(Refusal::DeadlineTooEarly));
    assert_eq!(answers[1], Inserted::Refused(Refusal::DeadlineTooEarly));
    assert!(created(&answers[2]), "it has ten seconds: {answers:?}");
}

/// A deadline before the due time could never be met; one at the due time can.
pub async fn refuses_a_deadline_before_the_due(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let jobs = [59_999, 60_000, 60_001].map(|deadline| NewJob {
        due: When::In(seconds(60)),
        deadline: Some(When::In(millis(deadline))),
        ..subject.job("charge")
    });
    let answers = subject.answers(&Insert::new(&jobs)).await;

    assert_eq!(answers[0], Inserted::Refused(Refusal::DeadlineTooEarly));
    assert!(created(&answers[1]) && created(&answers[2]), "{answers:?}");
    assert_eq!(subject.store.get(jobs[0].id).await.unwrap(), None);
}

/// A payload of the maximum size is accepted; one byte more is refused.
pub async fn refuses_a_payload_that_is_too_large(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let bytes_max = subject.store.capabilities().payload_bytes_max;
    let jobs = [bytes_max, bytes_max + 1]
        .map(|bytes| NewJob { payload: vec![b'x'; bytes], ..subject.job("charge") });
    let answers = subject.answers(&Insert::new(&jobs)).await;

    assert!(created(&answers[0]), "{answers:?}");
    let too_large = Refusal::TooLarge { bytes: bytes_max + 1, bytes_max };
    assert_eq!(answers[1], Inserted::Refused(too_large));
    assert_eq!(subject.get(jobs[0].id).await.payload.unwrap().len(), bytes_max);
    assert_eq!(subject.store.get(jobs[1].id).await.unwrap(), None);
}

/// The largest insert is stored; with one job more, nothing is.
pub async fn rejects_more_jobs_than_an_insert_may_hold(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let jobs: Vec<NewJob> = (0..=Limits::SUBMIT_MAX).map(|_| subject.job("charge")).collect();
    let error = subject.store.insert(&Insert::new(&jobs)).await.unwrap_err();

    assert!(matches!(error, StoreError::Rejected(_)), "{error:?}");
    assert!(error.with_causes().contains("the limit is 10000"), "{}", error.with_causes());
    assert_eq!(subject.store.books().await.unwrap().submitted, 0);
    let answers = subject.answers(&Insert::new(&jobs[1..])).await;
    assert!(answers.iter().all(created));
}

/// One bad job does not keep the others from being stored.
pub async fn stores_the_others_when_one_is_refused(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let jobs = [subject.job("charge"), subject.job("unknown-kind"), subject.job("charge")];
    subject.answers(&Insert::new(&jobs)).await;

    let holder = subject.holder().await;
    let claimed = subject.claim(holder, &["charge"], 10).await;
    let ids: Vec<JobId> = claimed.iter().map(|leased| leased.job.id).collect();
    assert_eq!(ids, [jobs[0].id, jobs[2].id]);
    subject.balance().await;
}

/// In an all-or-nothing batch, one bad job leaves nothing: no job, no key, no line in the ledger.
pub async fn stores_nothing_when_one_is_refused(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let old_key = Some(Key::parse("order-1").unwrap());
    let known = subject.put(NewJob { key: old_key.clone(), ..subject.job("charge") }).await;
    let good = NewJob { key: Some(Key::parse("order-2").unwrap()), ..subject.job("charge") };
    let bad = subject.job("unknown-kind");
    let jobs = [good.clone(), bad, NewJob { key: old_key, ..subject.job("charge") }];
    let insert = Insert { if_refused: IfRefused::StoreNothing, ..Insert::new(&jobs) };
    let answers = subject.answers(&insert).await;

    assert_eq!(answers[0], Inserted::LeftOut);
    assert_eq!(answers[1], Inserted::Refused(Refusal::UnknownKind));
    assert_eq!(answers[2], Inserted::Duplicate { job: known, state: State::Scheduled });
    assert_eq!(subject.store.get(good.id).await.unwrap(), None);
    assert_eq!(subject.store.books().await.unwrap().submitted, 1);
    let key_is_free = NewJob { payload: b"other".to_vec(), id: subject.id(), ..good };
    subject.put(key_is_free).await;
}

/// In an all-or-nothing batch, a duplicate is not a refusal.
pub async fn stores_all_where_none_is_refused(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let key = Some(Key::parse("order-1").unwrap());
    let known = subject.put(NewJob { key: key.clone(), ..subject.job("charge") }).await;
    let jobs = [subject.job("charge"), NewJob { key, ..subject.job("charge") }];
    let insert = Insert { if_refused: IfRefused::StoreNothing, ..Insert::new(&jobs) };
    let answers = subject.answers(&insert).await;

    assert!(created(&answers[0]), "{answers:?}");
    assert_eq!(answers[1], Inserted::Duplicate { job: known, state: State::Scheduled });
    assert_eq!(subject.get(jobs[0].id).await.state(), State::Scheduled);
}

/// A thousand jobs of one batch are all stored, and wait in the given order.
pub async fn stores_a_thousand_jobs_at_once(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let jobs = subject.jobs("charge", 1_000);
    subject.insert(&jobs).await;
    let books = subject.store.books().await.unwrap();
    assert_eq!((books.submitted, books.live), (1_000, 1_000));

    let holder = subject.holder().await;
    let claimed = subject.claim(holder, &["charge"], 1_000).await;
    assert!(claimed.iter().map(|leased| leased.job.id).eq(jobs.iter().map(|job| job.id)));
}

/// A due time in the past is kept, and the job may run at once.
pub async fn takes_a_due_in_the_past(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let due = Timestamp::from_millis(subject.now().await.as_millis() - 3_600_000);
    let id = subject.put(NewJob { due: When::At(due), ..subject.job("charge") }).await;

    let holder = subject.holder().await;
    let claimed = subject.claim(holder, &["charge"], 10).await;
    assert_eq!(claimed.len(), 1);
    assert_eq!((claimed[0].job.id, claimed[0].job.due), (id, due));
    assert_eq!(claimed[0].due_in, Duration::ZERO);
}

/// A due time beyond every calendar neither overflows nor comes early.
pub async fn takes_a_due_in_the_far_future(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let dues = [HUNDRED_YEARS, Duration::MAX];
    let jobs = dues.map(|due| NewJob { due: When::In(due), ..subject.job("charge") });
    subject.insert(&jobs).await;
    let distant = subject.now().await.plus(HUNDRED_YEARS - seconds(3_600));
    for job in &jobs {
        assert!(subject.get(job.id).await.due > distant);
    }

    let holder = subject.holder().await;
    subject.clock.advance(seconds(365 * 24 * 3_600));
    let visits = [subject.visit(lane("charge"), 10)];
    let mut claim = Claim { holder, visits: &visits, horizon: seconds(3_600), limit: 10 };
    assert_eq!(subject.store.claim(&claim).await.unwrap(), []);
    claim.horizon = HUNDRED_YEARS;
    let claimed = subject.store.claim(&claim).await.unwrap();
    assert_eq!(claimed.len(), 1, "one is due within a hundred years: {claimed:?}");
    assert!(claimed[0].due_in > HUNDRED_YEARS - seconds(366 * 24 * 3_600));
}

/// A watcher is woken for a new job before the next poll.
pub async fn wakes_a_watcher(subject: &Subject) {
    if subject.store.capabilities().wakes == Wakes::None {
        return subject.skip("sends no wake-ups");
    }
    subject.kinds(&["charge"]).await;
    let mut watch = subject.store.watch();
    subject.put(subject.job("charge")).await;
    in_time("waking", watch.changed()).await;
}
