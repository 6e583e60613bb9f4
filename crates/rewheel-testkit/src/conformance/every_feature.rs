//! Tests each way in which a job ends, for a job that has a parent, an instant, a group, a result and a key that another job took.

use crate::subject::GRACE;
use crate::{Subject, seconds};
use rewheel_core::store::{ChangeVerb, Edit, Insert, Inserted, Settlement};
use rewheel_core::{
    ContentType, Decision, Duplicates, GivenResult, HolderId, JobResult, Lease, NewJob, State,
    StoredResult, UniqueUntil, When,
};
use std::slice::from_ref;

/// The job that ends, and those that its end must not disturb.
struct Jobs {
    own: NewJob,
    /// The next one of its group.
    next: NewJob,
    /// The one that took its key when it was claimed.
    heir: NewJob,
}

/// Stores a job with every feature, and leases it. Then another job takes its key.
async fn leased(subject: &Subject) -> (Jobs, HolderId, Lease) {
    subject.kinds(&["mail"]).await;
    let claimed = Duplicates::new(Some(UniqueUntil::Claimed), None, None).unwrap();
    let own = NewJob { duplicates: claimed, ..subject.full_job("mail") };
    let next = NewJob { id: subject.id(), key: None, ..own.clone() };
    let payload = b"the next state of the page".to_vec();
    let heir = NewJob { id: subject.id(), group_key: None, payload, ..own.clone() };
    let (holder, lease) = subject.lease_new(&own).await;
    subject.insert(&[next.clone(), heir.clone()]).await;
    (Jobs { own, next, heir }, holder, lease)
}

fn result() -> JobResult {
    JobResult { content_type: ContentType::json(), body: b"17".to_vec() }
}

/// Settles the attempt with a result, whatever the decision.
async fn settle(subject: &Subject, (holder, lease): (HolderId, Lease), decision: Decision) {
    let result = Some(GivenResult::Kept(result()));
    subject.settle(holder, &Settlement { decision, result, ..Settlement::succeed(lease) }).await;
}

/// Lets the job wait again, without its key.
async fn waiting(subject: &Subject) -> Jobs {
    let (jobs, holder, lease) = leased(subject).await;
    subject.settle(holder, &subject.retry(lease, seconds(10), false)).await;
    jobs
}

/// Leases the job again.
async fn lease_again(subject: &Subject, jobs: &Jobs) -> (HolderId, Lease) {
    let holder = subject.holder().await;
    let claimed = subject.claim_lane(holder, jobs.own.lane()).await;
    let found = claimed.iter().find(|leased| leased.job.id == jobs.own.id);
    (holder, found.expect("it is due").lease())
}

/// Checks that the job ended with all that it had, and what became of the others.
async fn check(subject: &Subject, jobs: &Jobs, state: State) {
    let ended = subject.get(jobs.own.id).await;
    assert_eq!(ended.state(), state);
    assert_eq!((ended.parent, ended.instant), (jobs.own.parent, jobs.own.instant));
    assert_eq!(ended.group.as_ref().map(|group| &group.key), jobs.own.group_key.as_ref());
    assert_eq!(ended.payload.as_ref(), Some(&jobs.own.payload));
    let stored = subject.store.result(jobs.own.id).await.unwrap();
    let expected = (state == State::Succeeded).then(|| StoredResult::Kept(result()));
    assert_eq!(stored, expected, "only a success has a result");
    // The key is the heir's, whatever became of the job that had it before.
    let again = NewJob { id: subject.id(), duplicates: Duplicates::default(), ..jobs.heir.clone() };
    let answer = subject.answers(&Insert::new(from_ref(&again))).await.remove(0);
    let is_heir = matches!(&answer, Inserted::Duplicate { job, .. } if *job == jobs.heir.id);
    assert!(is_heir, "{answer:?}");
    // The next job of the group runs.
    assert!(!subject.get(jobs.next.id).await.is_blocked());
    assert_eq!(subject.store.stuck_groups(10).await.unwrap(), []);
    subject.balance().await;
}

/// The runner says that the job is done.
pub async fn lasts_after_a_success(subject: &Subject) {
    let (jobs, holder, lease) = leased(subject).await;
    settle(subject, (holder, lease), Decision::Succeed).await;
    check(subject, &jobs, State::Succeeded).await;
}

/// The runner says that the job has failed for good.
pub async fn lasts_after_a_failure(subject: &Subject) {
    let (jobs, holder, lease) = leased(subject).await;
    settle(subject, (holder, lease), Decision::Fail { failure: subject.timeout() }).await;
    check(subject, &jobs, State::Failed).await;
}

/// The runner gives the job up.
pub async fn lasts_in_a_dead_letter(subject: &Subject) {
    let (jobs, holder, lease) = leased(subject).await;
    settle(subject, (holder, lease), Decision::Dead { failure: subject.timeout() }).await;
    check(subject, &jobs, State::Dead).await;
}

/// The job takes its holders with it.
pub async fn lasts_after_takeovers(subject: &Subject) {
    let (jobs, mut holder, mut lease) = leased(subject).await;
    for round in 0..3 {
        if round > 0 {
            (holder, lease) = lease_again(subject, &jobs).await;
        }
        subject.start(holder, lease).await;
        subject.heir_of(holder).await;
    }
    check(subject, &jobs, State::Dead).await;
}

/// The deadline passes before the next attempt.
pub async fn lasts_after_the_deadline(subject: &Subject) {
    let jobs = waiting(subject).await;
    // The others would end, too.
    for job in [&jobs.next, &jobs.heir] {
        let deadline = Some(Some(When::In(seconds(90_000))));
        let edit = Edit { deadline, ..Edit::default() };
        subject.change(job.id, ChangeVerb::Edit(Box::new(edit))).await;
    }
    subject.clock.advance(seconds(3_601));
    subject.store.deadlines(GRACE, 10).await.unwrap();
    check(subject, &jobs, State::Dead).await;
}

/// A user cancels the job before the next attempt.
pub async fn lasts_after_a_cancel_while_it_waits(subject: &Subject) {
    let jobs = waiting(subject).await;
    subject.change(jobs.own.id, ChangeVerb::Cancel).await;
    check(subject, &jobs, State::Cancelled).await;
}

/// A user cancels the job during the attempt, which then fails.
pub async fn lasts_after_a_cancel_while_it_runs(subject: &Subject) {
    let (jobs, holder, lease) = leased(subject).await;
    subject.change(jobs.own.id, ChangeVerb::Cancel).await;
    subject.settle(holder, &subject.retry(lease, seconds(10), false)).await;
    check(subject, &jobs, State::Cancelled).await;
}
