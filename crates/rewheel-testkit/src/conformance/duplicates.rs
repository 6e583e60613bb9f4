//! Tests submits that say what to do about another job with the same key.

mod debounce;
mod races;
mod replace;

use crate::people::KEEP_NOTHING;
use crate::{Subject, seconds};
use rewheel_core::store::{
    ChangeVerb, Changed, Filter, Insert, Inserted, PageRequest, Refusal, Settlement,
};
use rewheel_core::{
    Debounce, Duplicates, HolderId, Job, JobId, Key, Lease, NewJob, OnDuplicate, State,
    UniqueUntil, When,
};
use std::slice::from_ref;

pub use self::debounce::*;
pub use self::races::*;
pub use self::replace::*;

/// The submit takes the key of a job that was claimed.
fn claimed() -> Duplicates {
    Duplicates::new(Some(UniqueUntil::Claimed), None, None).unwrap()
}

/// The submit replaces a job that waits.
fn replace() -> Duplicates {
    Duplicates::new(None, Some(OnDuplicate::Replace), None).unwrap()
}

/// Both.
fn claimed_replace() -> Duplicates {
    Duplicates::new(Some(UniqueUntil::Claimed), Some(OnDuplicate::Replace), None).unwrap()
}

fn debounced(delay: u64, max: u64) -> Duplicates {
    let debounce = Debounce::new(seconds(delay), Some(seconds(max))).unwrap();
    Duplicates::new(None, None, Some(debounce)).unwrap()
}

/// Makes a job of the kind `index` with the key `page-7`.
fn job(subject: &Subject, payload: &str, duplicates: Duplicates) -> NewJob {
    let due = duplicates.debounce().map_or(seconds(0), Debounce::delay);
    NewJob {
        key: Key::parse("page-7").ok(),
        payload: payload.as_bytes().to_vec(),
        due: When::In(due),
        duplicates,
        ..subject.job("index")
    }
}

/// Submits one job.
async fn submit(subject: &Subject, new: &NewJob) -> Inserted {
    subject.answers(&Insert::new(from_ref(new))).await.remove(0)
}

/// Submits a job of the kind `index` with the key `page-7`.
async fn send(subject: &Subject, payload: &str, duplicates: Duplicates) -> Inserted {
    submit(subject, &job(subject, payload, duplicates)).await
}

/// Stores a job of the kind `index` with the key `page-7`.
async fn put(subject: &Subject, payload: &str) -> JobId {
    subject.kinds(&["index"]).await;
    subject.put(job(subject, payload, Duplicates::default())).await
}

/// Stores such a job, and leases it.
async fn lease(subject: &Subject, payload: &str) -> (HolderId, Lease) {
    put(subject, payload).await;
    let holder = subject.holder().await;
    (holder, subject.claim(holder, &["index"], 1).await[0].lease())
}

/// Returns the job that has the key `page-7`.
async fn key_job(subject: &Subject) -> Option<Job> {
    let filter = Filter { key: Key::parse("page-7").ok(), ..Filter::default() };
    subject.store.list(&filter, &PageRequest::first(10)).await.unwrap().items.pop()
}

fn payload(job: &Job) -> &str {
    std::str::from_utf8(job.payload.as_deref().unwrap()).unwrap()
}

fn is_created(answer: &Inserted) -> bool {
    matches!(answer, Inserted::Created { .. })
}

/// A job that was claimed gives up its key to a submit that says so, and continues.
pub async fn a_claimed_job_gives_up_its_key(subject: &Subject) {
    let (holder, old) = lease(subject, "1").await;
    let new = job(subject, "2", claimed());
    assert!(is_created(&submit(subject, &new).await));
    assert_eq!(key_job(subject).await.unwrap().id, new.id);
    let before = subject.get(old.job).await;
    assert_eq!((before.state(), before.key), (State::Leased, new.key.clone()));
    subject.settle(holder, &subject.retry(old, seconds(60), false)).await;
    let again = send(subject, "2", Duplicates::default()).await;
    assert_eq!(again, Inserted::Duplicate { job: new.id, state: State::Scheduled });
    subject.balance().await;
}

/// A job that waits keeps its key, also before a submit that would take it from a claimed one.
pub async fn a_waiting_job_keeps_its_key(subject: &Subject) {
    let waiting = put(subject, "1").await;
    let duplicate = Inserted::Duplicate { job: waiting, state: State::Scheduled };
    assert_eq!(send(subject, "1", claimed()).await, duplicate);
    let reused = Inserted::Refused(Refusal::KeyReused { job: waiting });
    assert_eq!(send(subject, "2", claimed()).await, reused);
    subject.change(waiting, ChangeVerb::Pause).await;
    let duplicate = Inserted::Duplicate { job: waiting, state: State::Paused };
    assert_eq!(send(subject, "1", claimed()).await, duplicate);
    assert_eq!(subject.store.books().await.unwrap().submitted, 1);
}

/// The end of a job that gave up its key changes nothing about the key, whatever its retention.
pub async fn an_old_job_ends_without_its_key(subject: &Subject) {
    let (holder, old) = lease(subject, "1").await;
    let new = job(subject, "2", claimed());
    submit(subject, &new).await;
    subject.settle(holder, &Settlement { keep: KEEP_NOTHING, ..Settlement::succeed(old) }).await;
    let duplicate = Inserted::Duplicate { job: new.id, state: State::Scheduled };
    assert_eq!(send(subject, "2", Duplicates::default()).await, duplicate, "it did not expire");
    let newer = subject.claim(holder, &["index"], 1).await[0].lease();
    assert_eq!(newer.job, new.id);
    subject.succeed(holder, newer).await;
    let duplicate = Inserted::Duplicate { job: new.id, state: State::Succeeded };
    assert_eq!(send(subject, "2", Duplicates::default()).await, duplicate);
    subject.balance().await;
}

/// A job that has ended has no reason to keep the key, whether it was claimed or not.
pub async fn an_ended_job_gives_up_its_key(subject: &Subject) {
    let (holder, succeeded) = lease(subject, "1").await;
    subject.succeed(holder, succeeded).await;
    assert!(is_created(&send(subject, "2", claimed()).await));
    let waiting = key_job(subject).await.unwrap().id;
    let changed = subject.change(waiting, ChangeVerb::Cancel).await;
    assert!(matches!(changed, Changed::Applied { .. }), "{changed:?}");
    assert!(is_created(&send(subject, "3", claimed()).await), "cancelled before it was claimed");
    let lease = subject.claim(holder, &["index"], 1).await[0].lease();
    subject.settle(holder, &subject.dead(lease)).await;
    assert!(is_created(&send(subject, "4", claimed()).await), "dead");
    subject.balance().await;
}

/// A dead letter that gave up its key is redriven without it.
pub async fn a_redriven_job_stays_without_its_key(subject: &Subject) {
    let (holder, old) = lease(subject, "1").await;
    subject.settle(holder, &subject.dead(old)).await;
    let new = job(subject, "2", claimed());
    submit(subject, &new).await;
    subject.change(old.job, ChangeVerb::Redrive { deadline: None }).await;
    assert_eq!(key_job(subject).await.unwrap().id, new.id);
    let claimed = subject.claim(holder, &["index"], 2).await;
    assert_eq!(claimed.len(), 2);
    let redriven = claimed.iter().find(|leased| leased.job.id == old.job).unwrap().lease();
    subject
        .settle(holder, &Settlement { keep: KEEP_NOTHING, ..Settlement::succeed(redriven) })
        .await;
    let duplicate = Inserted::Duplicate { job: new.id, state: State::Leased };
    assert_eq!(send(subject, "2", Duplicates::default()).await, duplicate);
}

/// Without `claimed`, a job that was claimed keeps its key: it cannot be replaced any more, and another payload is a mistake.
pub async fn a_claimed_job_is_not_replaced(subject: &Subject) {
    let (holder, old) = lease(subject, "1").await;
    let duplicate = Inserted::Duplicate { job: old.job, state: State::Leased };
    assert_eq!(send(subject, "1", replace()).await, duplicate);
    let reused = Inserted::Refused(Refusal::KeyReused { job: old.job });
    assert_eq!(send(subject, "2", replace()).await, reused);
    subject.settle(holder, &subject.retry(old, seconds(0), false)).await;
    assert_eq!(send(subject, "2", replace()).await, reused, "also while it waits for a retry");
    assert_eq!(payload(&subject.get(old.job).await), "1");
}

/// Jobs that a settle submits follow the same rules: here each run of a job submits the next one under its own key.
pub async fn a_follow_up_takes_the_key_of_its_parent(subject: &Subject) {
    let (holder, parent) = lease(subject, "1").await;
    let next = job(subject, "2", claimed());
    let follow_ups = vec![next.clone()];
    subject.settle(holder, &Settlement { follow_ups, ..Settlement::succeed(parent) }).await;
    assert_eq!(key_job(subject).await.unwrap().id, next.id);
    let (later, lease) = (job(subject, "3", replace()), subject.leased("other").await);
    let settlement = Settlement { follow_ups: vec![later], ..Settlement::succeed(lease.1) };
    subject.settle(lease.0, &settlement).await;
    let replaced = subject.get(next.id).await;
    assert_eq!((payload(&replaced), replaced.parent), ("3", Some(lease.1.job)));
    // It is listed by the parent that it has now, and by no other.
    for (of, listed) in [(parent.job, vec![]), (lease.1.job, vec![next.id])] {
        let filter = Filter { parent: Some(of), ..Filter::default() };
        let page = subject.store.list(&filter, &PageRequest::first(10)).await.unwrap();
        assert_eq!(page.items.iter().map(|job| job.id).collect::<Vec<_>>(), listed);
    }
    subject.balance().await;
}
