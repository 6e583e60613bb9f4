//! Tests that the books account for every job, and that pruning deletes what has expired.

use crate::people::{AGES, KEEP_NOTHING};
use crate::subject::LEASE_TTL;
use crate::{Subject, seconds};
use rewheel_core::store::{
    Books, Change, ChangeVerb, Insert, Inserted, Outcome, Prune, Pruned, Settled, Settlement,
};
use rewheel_core::{Actor, Decision, JobId, Key, Limits, NewJob, Retain, State, When};

const KEEP: Retain = Retain { job: seconds(60), key: seconds(60) };

async fn assert_books(subject: &Subject, live: u64, dead: u64, finished: u64, pruned: u64) {
    let submitted = live + dead + finished + pruned;
    let expected = Books { submitted, live, dead, finished, pruned };
    assert_eq!(subject.store.books().await.unwrap(), expected);
}

/// Ends a job as a success, with this retention.
async fn ended(subject: &Subject, new: &NewJob, keep: Retain) -> JobId {
    let (holder, lease) = subject.lease_new(new).await;
    subject.settle(holder, &Settlement { keep, ..Settlement::succeed(lease) }).await;
    new.id
}

fn keyed(subject: &Subject, key: &str) -> NewJob {
    NewJob { key: Some(Key::parse(key).unwrap()), ..subject.job("charge") }
}

/// Submits a job with a key again, and returns the result.
async fn submit_again(subject: &Subject, new: &NewJob) -> Inserted {
    let again = [NewJob { id: subject.id(), ..new.clone() }];
    subject.store.insert(&Insert::new(&again)).await.unwrap().remove(0)
}

/// The books of an unused store are empty.
pub async fn begin_empty(subject: &Subject) {
    assert_books(subject, 0, 0, 0, 0).await;
    assert_eq!(subject.prune(10).await, Pruned::default());
}

/// The books balance after everything that moves a job.
pub async fn balance_after_every_verb(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let by = subject.holder().await;
    let jobs = subject.jobs("charge", 8);
    subject.insert(&jobs).await;
    assert_books(subject, 8, 0, 0, 0).await;

    let silent = subject.holder().await;
    let leases: Vec<_> =
        subject.claim(silent, &["charge"], 8).await.iter().map(|leased| leased.lease()).collect();
    assert_books(subject, 8, 0, 0, 0).await;
    subject.succeed(silent, leases[0]).await;
    assert_books(subject, 7, 0, 1, 0).await;
    subject.settle(silent, &subject.dead(leases[1])).await;
    assert_books(subject, 6, 1, 1, 0).await;
    let decision = Decision::Fail { failure: subject.timeout() };
    subject.settle(silent, &Settlement { decision, ..Settlement::succeed(leases[2]) }).await;
    assert_books(subject, 5, 1, 2, 0).await;
    for sticky in [true, false] {
        let retry = subject.retry(leases[3 + usize::from(sticky)], seconds(0), sticky);
        subject.settle(silent, &retry).await;
    }
    subject.give_back(silent, leases[5]).await;
    subject.change(leases[6].job, ChangeVerb::Cancel).await;
    assert_books(subject, 5, 1, 2, 0).await;

    subject.take_over(by, silent).await;
    assert_books(subject, 4, 1, 3, 0).await;
    subject.apply(leases[1].job, ChangeVerb::Redrive { deadline: None }).await;
    assert_books(subject, 5, 0, 3, 0).await;
    subject.apply(leases[7].job, ChangeVerb::Pause).await;
    subject.apply(leases[7].job, ChangeVerb::Cancel).await;
    assert_books(subject, 4, 0, 4, 0).await;
    subject.clock.advance(Limits::KEEP_DEFAULT + seconds(1));
    subject.prune_all().await;
    assert_books(subject, 4, 0, 0, 4).await;
}

/// A job that misses its deadline moves from the live jobs to the dead letters, once.
pub async fn balance_after_a_deadline(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let deadline = Some(When::In(seconds(1)));
    subject.insert(&[NewJob { deadline, ..subject.job("charge") }]).await;
    subject.clock.advance(seconds(2));
    for _ in 0..2 {
        subject.store.deadlines(seconds(0), 10).await.unwrap();
        assert_books(subject, 0, 1, 0, 0).await;
    }
}

/// A job that is refused, or exists already, does not count as submitted.
pub async fn do_not_count_what_was_not_stored(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let new = keyed(subject, "order-17");
    subject.insert(std::slice::from_ref(&new)).await;
    assert!(matches!(submit_again(subject, &new).await, Inserted::Duplicate { .. }));
    let other = subject.job("unknown");
    assert!(matches!(submit_again(subject, &other).await, Inserted::Refused(_)));
    assert_books(subject, 1, 0, 0, 0).await;
}

/// A success without retention is deleted with its history, and counts as pruned.
pub async fn count_what_was_not_kept_as_pruned(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    subject.settle(holder, &subject.retry(lease, seconds(0), false)).await;
    let lease = subject.claim_only(holder, "charge").await.lease();
    let settlement = Settlement { keep: KEEP_NOTHING, ..Settlement::succeed(lease) };
    let settled = subject.settle(holder, &settlement).await;
    assert!(matches!(settled, Settled::Applied(_)), "{settled:?}");

    assert_eq!(subject.store.get(lease.job).await.unwrap(), None);
    assert_eq!(subject.store.attempts(lease.job).await.unwrap(), []);
    assert_books(subject, 0, 0, 0, 1).await;
    let again = subject.settle(holder, &settlement).await;
    assert_eq!(again, Settled::AlreadyApplied(Outcome::Gone));
    assert_books(subject, 0, 0, 0, 1).await;
}

/// A job that is cancelled while leased, without retention, counts as pruned once it is given back.
pub async fn count_what_was_given_back_cancelled_as_pruned(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    subject.change(lease.job, ChangeVerb::Cancel).await;
    subject.store.give_back(holder, &[lease], KEEP_NOTHING).await.unwrap();
    assert_eq!(subject.store.get(lease.job).await.unwrap(), None);
    assert_books(subject, 0, 0, 0, 1).await;
}

/// An ended job is deleted with its history when its retention ends, not before.
pub async fn prune_deletes_what_ended_long_ago(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    subject.settle(holder, &subject.retry(lease, seconds(0), false)).await;
    let lease = subject.claim_only(holder, "charge").await.lease();
    subject.settle(holder, &Settlement { keep: KEEP, ..Settlement::succeed(lease) }).await;
    subject.clock.advance(seconds(30));
    assert_eq!(subject.prune_all().await.finished, 0);
    assert_eq!(subject.get(lease.job).await.state(), State::Succeeded);
    assert_eq!(subject.store.attempts(lease.job).await.unwrap().len(), 2);

    subject.clock.advance(seconds(31));
    assert_eq!(subject.prune_all().await.finished, 1);
    assert_eq!(subject.store.get(lease.job).await.unwrap(), None);
    assert_eq!(subject.store.attempts(lease.job).await.unwrap(), []);
    assert_books(subject, 0, 0, 0, 1).await;
}

/// Failed and cancelled jobs are deleted like those that succeeded.
pub async fn prune_deletes_every_final_state(subject: &Subject) {
    for state in [State::Succeeded, State::Failed, State::Cancelled] {
        subject.job_in("charge", state).await;
    }
    subject.clock.advance(Limits::KEEP_DEFAULT + seconds(1));
    assert_eq!(subject.prune_all().await.finished, 3);
    assert_books(subject, 0, 0, 0, 3).await;
}

/// Dead letters and live jobs are never deleted, nor their history, nor their keys.
pub async fn prune_keeps_dead_letters_and_the_living(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let new = keyed(subject, "order-17");
    let (holder, lease) = subject.lease_new(&new).await;
    subject.settle(holder, &subject.dead(lease)).await;
    let live = keyed(subject, "order-18");
    subject.insert(std::slice::from_ref(&live)).await;
    let paused = subject.job_in("refund", State::Paused).await;

    subject.clock.advance(AGES / 10);
    subject.prune_all().await;
    assert_books(subject, 2, 1, 0, 0).await;
    assert_eq!(subject.get(paused).await.state(), State::Paused);
    assert_eq!(subject.get(new.id).await.state(), State::Dead);
    assert_eq!(subject.store.attempts(new.id).await.unwrap().len(), 1);
    for (known, state) in [(&new, State::Dead), (&live, State::Scheduled)] {
        let answer = submit_again(subject, known).await;
        assert_eq!(answer, Inserted::Duplicate { job: known.id, state });
    }
}

/// A key may outlive its job: submitting again is harmless until the key expires.
pub async fn prune_deletes_keys_in_their_own_time(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let new = keyed(subject, "order-17");
    ended(subject, &new, Retain { key: seconds(600), ..KEEP }).await;
    subject.clock.advance(seconds(300));
    let pruned = subject.prune_all().await;
    assert_eq!((pruned.finished, pruned.keys), (1, 0));
    let duplicate = Inserted::Duplicate { job: new.id, state: State::Succeeded };
    assert_eq!(submit_again(subject, &new).await, duplicate);

    subject.clock.advance(seconds(301));
    assert_eq!(subject.prune_all().await.keys, 1);
    assert!(matches!(submit_again(subject, &new).await, Inserted::Created { .. }));
}

/// The key of a job without retention is kept for its own time.
pub async fn prune_deletes_keys_of_jobs_that_are_gone(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let new = keyed(subject, "order-17");
    ended(subject, &new, Retain { job: seconds(0), key: seconds(60) }).await;
    let duplicate = Inserted::Duplicate { job: new.id, state: State::Succeeded };
    assert_eq!(submit_again(subject, &new).await, duplicate);
    subject.clock.advance(seconds(61));
    assert_eq!(subject.prune_all().await.keys, 1);
    assert_books(subject, 0, 0, 0, 1).await;
}

/// A redriven job that ends keeps its key for the usual time after that.
pub async fn prune_keeps_the_key_of_a_redriven_job(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let new = keyed(subject, "order-17");
    let (holder, lease) = subject.lease_new(&new).await;
    subject.settle(holder, &Settlement { keep: KEEP, ..subject.dead(lease) }).await;
    subject.apply(new.id, ChangeVerb::Redrive { deadline: None }).await;
    subject.clock.advance(seconds(3_600));
    subject.prune_all().await;
    let scheduled = Inserted::Duplicate { job: new.id, state: State::Scheduled };
    assert_eq!(submit_again(subject, &new).await, scheduled);

    let lease = subject.claim_only(holder, "charge").await.lease();
    subject.settle(holder, &Settlement { keep: KEEP, ..Settlement::succeed(lease) }).await;
    subject.clock.advance(seconds(61));
    assert_eq!(subject.prune_all().await.keys, 1);
}

/// Audit entries are deleted when they are older than the caller wants them.
pub async fn prune_deletes_old_audit_entries(subject: &Subject) {
    let job = subject.submit("charge").await;
    subject.apply(job, ChangeVerb::Pause).await;
    subject.clock.advance(seconds(60));
    subject.apply(job, ChangeVerb::Resume).await;
    let prune = Prune { limit: 1_000, audit_older_than: seconds(30) };
    let pruned = subject.store.prune(&prune).await.unwrap();
    assert_eq!(pruned.audit, 2, "the kind and the pause");
    let log = subject.store.audit(None, None, 10).await.unwrap();
    assert_eq!(log.iter().map(|entry| entry.what.as_str()).collect::<Vec<_>>(), ["resume"]);
    assert!(subject.store.prune(&prune).await.unwrap().is_nothing());
}

/// Holders are deleted long after their death, never while they are alive.
pub async fn prune_forgets_the_long_dead(subject: &Subject) {
    let (silent, dead) = (subject.holder().await, subject.holder().await);
    subject.store.leave(dead).await.unwrap();
    subject.clock.advance(Limits::DEAD_HOLDERS_KEPT - LEASE_TTL);
    assert_eq!(subject.prune_all().await.holders, 0);
    assert!(subject.find(dead).await.is_some());

    subject.clock.advance(LEASE_TTL + seconds(1));
    assert_eq!(subject.prune_all().await.holders, 1);
    assert_eq!(subject.find(dead).await, None);
    assert_eq!(subject.find(silent).await.unwrap().died, None);
}

/// No more is deleted per call than the limit, and everything in the end.
pub async fn prune_deletes_no_more_than_asked(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    for number in 0..5 {
        ended(subject, &keyed(subject, &format!("order-{number}")), KEEP).await;
    }
    subject.clock.advance(seconds(61));
    for (expected, kept) in [(2, 3), (2, 1), (1, 0)] {
        let pruned = subject.prune(2).await;
        assert_eq!((pruned.finished, pruned.keys), (expected, expected));
        assert_books(subject, 0, 0, kept, 5 - kept).await;
    }
    assert!(subject.prune_all().await.finished == 0);
}

/// Adding up the ledger does not change the sums, and happens once.
pub async fn prune_adds_up_the_ledger(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    for _ in 0..150 {
        subject.insert(&subject.jobs("charge", 2)).await;
    }
    let drop = [Change::new(subject.submit("charge").await, ChangeVerb::Cancel)];
    subject.store.change(&drop, &Actor::new("suite"), KEEP_NOTHING).await.unwrap();
    assert_books(subject, 300, 0, 0, 1).await;

    assert!(subject.prune_all().await.ledger >= 50);
    assert_books(subject, 300, 0, 0, 1).await;
    assert!(subject.prune(1_000).await.is_nothing());
    subject.submit("charge").await;
    assert_books(subject, 301, 0, 0, 1).await;
}
