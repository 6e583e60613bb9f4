//! Tests edits of a job's payload and settings.

use crate::{Subject, lane, seconds};
use rewheel_core::store::{ChangeVerb, Changed, Edit, Insert, Inserted};
use rewheel_core::{DueReason, Key, Lane, NewJob, Priority, State, When};
use std::time::Duration;

fn edit(edit: Edit) -> ChangeVerb {
    ChangeVerb::Edit(Box::new(edit))
}

/// Every editable field is changed in every editable state, and nothing else.
pub async fn edits_what_it_is_told_to(subject: &Subject) {
    for state in [State::Scheduled, State::Paused, State::Dead] {
        let job = subject.job_in(state.as_str(), state).await;
        let before = subject.get(job).await;
        let due = subject.now().await.plus(seconds(60));
        let deadline = due.plus(seconds(60));
        let change = Edit {
            payload: Some(b"\0new".to_vec()),
            priority: Some(Priority::MAX),
            due: Some(When::At(due)),
            deadline: Some(Some(When::At(deadline))),
            attempts_max: Some(3),
        };
        subject.apply(job, edit(change)).await;

        let mut expected = before.clone();
        expected.payload = Some(b"\0new".to_vec());
        expected.lane.priority = Priority::MAX;
        (expected.due, expected.because) = (due, DueReason::Person);
        expected.deadline = Some(deadline);
        expected.attempts_max = Some(3);
        expected.version = before.version.next();
        assert_eq!(subject.get(job).await, expected);
    }
}

/// Fields that an edit does not name stay unchanged.
pub async fn edits_one_thing_at_a_time(subject: &Subject) {
    let job = subject.submit("charge").await;
    let mut expected = subject.get(job).await;
    let in_a_day = subject.now().await.plus(seconds(86_400));

    expected.attempts_max = Some(3);
    let edits = [
        (Edit { attempts_max: Some(3), ..Edit::default() }, expected.clone()),
        {
            expected.payload = Some(Vec::new());
            (Edit { payload: Some(Vec::new()), ..Edit::default() }, expected.clone())
        },
        {
            expected.deadline = Some(in_a_day);
            let deadline = Some(Some(When::At(in_a_day)));
            (Edit { deadline, ..Edit::default() }, expected.clone())
        },
        {
            expected.lane.priority = Priority::MIN;
            (Edit { priority: Some(Priority::MIN), ..Edit::default() }, expected.clone())
        },
        {
            (expected.due, expected.because) = (in_a_day, DueReason::Person);
            (Edit { due: Some(When::At(in_a_day)), ..Edit::default() }, expected.clone())
        },
        {
            expected.deadline = None;
            (Edit { deadline: Some(None), ..Edit::default() }, expected)
        },
    ];
    for (change, mut expected) in edits {
        expected.version = subject.apply(job, edit(change)).await;
        assert_eq!(subject.get(job).await, expected);
    }
}

/// A relative due time counts from when the store writes it.
pub async fn edits_the_due_by_the_clock_of_the_store(subject: &Subject) {
    let job = subject.submit("charge").await;
    subject.clock.advance(seconds(3_600));
    let before = subject.now().await;
    let change = Edit { due: Some(When::In(seconds(60))), ..Edit::default() };
    subject.apply(job, edit(change)).await;
    let due = subject.get(job).await.due;
    assert!(due >= before.plus(seconds(60)) && due <= subject.now().await.plus(seconds(60)));
}

/// A job with a new priority moves to another lane, where a claim finds it.
pub async fn another_priority_moves_it_to_another_lane(subject: &Subject) {
    let holder = subject.holder().await;
    let job = subject.submit("charge").await;
    let change = Edit { priority: Some(Priority::MAX), ..Edit::default() };
    subject.apply(job, edit(change)).await;

    assert_eq!(subject.claim(holder, &["charge"], 1).await, []);
    let urgent = Lane { priority: Priority::MAX, ..lane("charge") };
    let lanes: Vec<Lane> =
        subject.lanes(&["charge"]).await.into_iter().map(|head| head.lane).collect();
    assert_eq!(lanes, std::slice::from_ref(&urgent));
    assert_eq!(subject.claim_lane(holder, urgent).await[0].job.id, job);
}

/// A job with an earlier due time is claimed at that time.
pub async fn an_earlier_due_is_found_by_a_claim(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let holder = subject.holder().await;
    let mut new = subject.job("charge");
    new.due = When::In(seconds(3_600));
    subject.insert(std::slice::from_ref(&new)).await;
    let change = Edit { due: Some(When::In(Duration::ZERO)), ..Edit::default() };
    subject.apply(new.id, edit(change)).await;

    assert_eq!(subject.lanes(&["charge"]).await[0].due_in, Duration::ZERO);
    assert_eq!(subject.claim_only(holder, "charge").await.job.id, new.id);
}

/// A leased job cannot be edited: its holder may be running it.
pub async fn a_leased_job_cannot_be_edited(subject: &Subject) {
    let (_, lease) = subject.leased("charge").await;
    let before = subject.get(lease.job).await;
    let change = Edit { payload: Some(b"new".to_vec()), ..Edit::default() };
    let changed = subject.change(lease.job, edit(change)).await;
    assert_eq!(changed, Changed::WrongState(State::Leased));
    assert_eq!(subject.get(lease.job).await, before);
}

/// A payload that is too large is refused, with the limit.
pub async fn a_payload_too_large_is_refused(subject: &Subject) {
    let job = subject.submit("charge").await;
    let before = subject.get(job).await;
    let bytes_max = subject.store.capabilities().payload_bytes_max;
    let change =
        Edit { payload: Some(vec![b'x'; bytes_max + 1]), attempts_max: Some(3), ..Edit::default() };
    assert_eq!(subject.change(job, edit(change)).await, Changed::TooLarge { bytes_max });
    assert_eq!(subject.get(job).await, before);
}

/// The key keeps the hash of the submitted payload: only that makes submitting again harmless.
pub async fn the_key_remembers_what_was_submitted(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let mut new = subject.job("charge");
    new.key = Some(Key::parse("order-17").unwrap());
    subject.insert(std::slice::from_ref(&new)).await;
    let change = Edit { payload: Some(b"new".to_vec()), ..Edit::default() };
    subject.apply(new.id, edit(change)).await;

    let again = NewJob { id: subject.id(), ..new.clone() };
    let answers = subject.store.insert(&Insert::new(&[again])).await.unwrap();
    assert_eq!(answers, [Inserted::Duplicate { job: new.id, state: State::Scheduled }]);
}
