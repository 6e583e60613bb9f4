//! Tests submits that replace a job that waits.

use super::{claimed_replace, job, key_job, lease, payload, put, replace, send, submit};
use crate::{Subject, seconds};
use rewheel_core::store::{ChangeVerb, Claim, Direct, IfRefused, Insert, Inserted, Refusal, Sent};
use rewheel_core::{
    AuditEntry, DueReason, Duplicates, Fence, Job, JobId, Key, NewJob, Priority, State, Status,
    Version, When,
};
use std::slice::from_ref;
use std::time::Duration;

fn replaced(job: JobId) -> Inserted {
    Inserted::Replaced { job, state: State::Scheduled }
}

/// Returns the entries of the audit log about replacements of a job, the oldest first.
pub(super) async fn replacements(subject: &Subject, job: JobId) -> Vec<AuditEntry> {
    let mut entries = subject.store.audit(Some(job), None, 1_000).await.unwrap();
    entries.retain(|entry| entry.what == "replace");
    entries.sort_by_key(|entry| entry.seq);
    entries
}

/// The job gets everything that the submit gives; its id, its key and the time of its creation stay.
pub async fn replaces_what_a_waiting_job_runs(subject: &Subject) {
    let waiting = put(subject, "1").await;
    let before = subject.get(waiting).await;
    subject.clock.advance(seconds(5));
    let full = NewJob { parent: None, tenant: None, group_key: None, ..subject.full_job("index") };
    let new = NewJob {
        key: before.key.clone(),
        duplicates: replace(),
        due: When::In(seconds(30)),
        ..full
    };
    assert_eq!(submit(subject, &new).await, replaced(waiting));
    let after = subject.get(waiting).await;
    let expected = new.to_job(after.due);
    let (created, version) = (before.created, Version::new(2));
    let due = after.due;
    assert!(due >= created.plus(seconds(35)), "{due:?}");
    let deadline = after.deadline;
    assert!(deadline.is_some_and(|deadline| deadline > due));
    assert_eq!(after, Job { id: waiting, created, version, due, deadline, ..expected });
    assert_eq!((after.fence, after.because), (Fence::new(0), DueReason::Submitted));
    assert_eq!(subject.store.get(new.id).await.unwrap(), None, "it is no job of its own");
    assert_eq!(subject.store.books().await.unwrap().submitted, 1);
    subject.balance().await;
}

/// The audit log says what was replaced, and by which submit.
pub async fn writes_the_audit_log(subject: &Subject) {
    let waiting = put(subject, "1").await;
    let new = NewJob { priority: Priority::MAX, ..job(subject, "2", replace()) };
    submit(subject, &new).await;
    let entries = replacements(subject, waiting).await;
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0].who.as_str(), "submit");
    let before: Vec<_> = entries[0].before.iter().filter(|(name, _)| *name != "due").collect();
    assert_eq!(before, [("payload", Some("1")), ("priority", Some("5"))]);
    let after: Vec<_> = entries[0].after.iter().filter(|(name, _)| *name != "due").collect();
    let id = new.id.to_string();
    assert_eq!(after, [("payload", Some("2")), ("priority", Some("9")), ("submit", Some(&*id))]);
}

/// A replaced job is claimed from its new lane, with its new payload, and only once.
pub async fn a_replaced_job_is_claimed_from_its_new_lane(subject: &Subject) {
    let waiting = put(subject, "1").await;
    let new = NewJob { priority: Priority::MAX, ..job(subject, "2", replace()) };
    submit(subject, &new).await;
    let holder = subject.holder().await;
    assert_eq!(subject.claim(holder, &["index"], 10).await, [], "its old lane is empty");
    let heads: Vec<_> = subject.lanes(&["index"]).await.into_iter().map(|head| head.lane).collect();
    assert_eq!(heads, [new.lane()]);
    let (visits, horizon) = ([subject.visit(new.lane(), 10)], Duration::ZERO);
    let claim = Claim { holder, visits: &visits, horizon, limit: 10 };
    let claimed = subject.store.claim(&claim).await.unwrap();
    assert_eq!(claimed.len(), 1);
    assert_eq!((claimed[0].job.id, payload(&claimed[0].job)), (waiting, "2"));
}

/// A paused job stays paused.
pub async fn a_paused_job_stays_paused(subject: &Subject) {
    let waiting = put(subject, "1").await;
    subject.change(waiting, ChangeVerb::Pause).await;
    let answer = send(subject, "2", replace()).await;
    assert_eq!(answer, Inserted::Replaced { job: waiting, state: State::Paused });
    let after = subject.get(waiting).await;
    assert_eq!((after.status, payload(&after)), (Status::Paused, "2"));
    let holder = subject.holder().await;
    assert_eq!(subject.claim(holder, &["index"], 1).await, []);
    subject.change(waiting, ChangeVerb::Resume).await;
    assert_eq!(payload(&subject.claim(holder, &["index"], 1).await[0].job), "2");
}

/// The key remembers the payload of the last submit.
pub async fn the_key_knows_the_new_payload(subject: &Subject) {
    let waiting = put(subject, "1").await;
    send(subject, "2", replace()).await;
    let duplicate = Inserted::Duplicate { job: waiting, state: State::Scheduled };
    assert_eq!(send(subject, "2", Duplicates::default()).await, duplicate);
    let reused = Inserted::Refused(Refusal::KeyReused { job: waiting });
    assert_eq!(send(subject, "1", Duplicates::default()).await, reused);
}

/// A submit that cannot be stored replaces nothing.
pub async fn a_refused_submit_replaces_nothing(subject: &Subject) {
    let waiting = put(subject, "1").await;
    let before = subject.get(waiting).await;
    let late = NewJob { deadline: Some(When::In(Duration::ZERO)), ..job(subject, "2", replace()) };
    assert_eq!(submit(subject, &late).await, Inserted::Refused(Refusal::DeadlineTooEarly));
    assert_eq!(subject.get(waiting).await, before);
    let jobs = [job(subject, "3", replace()), subject.job("unknown")];
    let insert = Insert { if_refused: IfRefused::StoreNothing, ..Insert::new(&jobs) };
    let answers = subject.answers(&insert).await;
    assert_eq!(answers, [Inserted::LeftOut, Inserted::Refused(Refusal::UnknownKind)]);
    assert_eq!(subject.get(waiting).await, before);
    assert_eq!(replacements(subject, waiting).await, []);
    let duplicate = Inserted::Duplicate { job: waiting, state: State::Scheduled };
    assert_eq!(send(subject, "1", Duplicates::default()).await, duplicate, "the key is as before");
}

/// A submit whose answer was lost has no effect when it is sent again: not on a later submit, and not on a job that runs.
pub async fn a_submit_sent_again_answers_as_before(subject: &Subject) {
    let waiting = put(subject, "1").await;
    let second = job(subject, "2", claimed_replace());
    let again = Insert { sent: Sent::Again, ..Insert::new(from_ref(&second)) };
    assert_eq!(subject.answers(&again).await, [replaced(waiting)], "the first time");
    assert_eq!(subject.answers(&again).await, [replaced(waiting)]);
    assert_eq!(subject.get(waiting).await.version, Version::new(2));
    send(subject, "3", claimed_replace()).await;
    assert_eq!(subject.answers(&again).await, [replaced(waiting)]);
    assert_eq!(payload(&subject.get(waiting).await), "3", "the last arrival wins");
    let holder = subject.holder().await;
    subject.claim(holder, &["index"], 1).await;
    let leased = Inserted::Replaced { job: waiting, state: State::Leased };
    assert_eq!(subject.answers(&again).await, [leased]);
    assert_eq!(subject.store.books().await.unwrap().submitted, 1);
}

/// The jobs of a batch come one after the other: a later one replaces an earlier one, which no holder got on the direct path.
pub async fn replaces_within_a_batch(subject: &Subject) {
    subject.kinds(&["index"]).await;
    let holder = subject.holder().await;
    let jobs = [
        job(subject, "1", Duplicates::default()),
        job(subject, "2", replace()),
        NewJob { priority: Priority::MAX, ..job(subject, "3", claimed_replace()) },
        job(subject, "4", Duplicates::default()),
        NewJob { key: Key::parse("page-8").ok(), ..job(subject, "5", replace()) },
    ];
    let direct = Direct { holder, attempt_timeout: seconds(1), grace: seconds(1) };
    let insert = Insert { direct: Some(direct), ..Insert::new(&jobs) };
    let answers = subject.answers(&insert).await;
    let first = jobs[0].id;
    assert!(matches!(answers[0], Inserted::Created { leased: None, .. }), "{answers:?}");
    assert_eq!(answers[1..3], [replaced(first), replaced(first)]);
    assert_eq!(answers[3], Inserted::Refused(Refusal::KeyReused { job: first }));
    assert!(matches!(answers[4], Inserted::Created { .. }), "{answers:?}");
    let stored = subject.get(first).await;
    assert_eq!((payload(&stored), stored.version), ("3", Version::new(3)));
    assert_eq!(stored.lane, jobs[2].lane());
    let submits: Vec<_> = replacements(subject, first).await;
    assert_eq!(submits.len(), 2);
    assert_eq!(subject.store.books().await.unwrap().submitted, 2);
    subject.balance().await;
}

/// The jobs of a batch find the job that another batch has stored, whether it waits or was claimed.
pub async fn a_batch_finds_stored_jobs(subject: &Subject) {
    let (_, old) = lease(subject, "1").await;
    let jobs = [job(subject, "2", claimed_replace()), job(subject, "3", claimed_replace())];
    let answers = subject.answers(&Insert::new(&jobs)).await;
    assert!(matches!(answers[0], Inserted::Created { .. }), "{answers:?}");
    assert_eq!(answers[1], replaced(jobs[0].id));
    let jobs = [job(subject, "4", claimed_replace()), job(subject, "5", claimed_replace())];
    let waiting = key_job(subject).await.unwrap().id;
    assert_ne!(waiting, old.job);
    assert_eq!(subject.answers(&Insert::new(&jobs)).await, [replaced(waiting), replaced(waiting)]);
    let stored = subject.get(waiting).await;
    assert_eq!((payload(&stored), stored.version), ("5", Version::new(4)));
    assert_eq!(payload(&subject.get(old.job).await), "1");
}
