//! Tests what operators do to jobs.

mod edit;
mod redrive;
mod racing;
mod reserved;

pub use self::edit::*;
pub use self::racing::*;
pub use self::redrive::*;
pub use self::reserved::*;

use crate::people::KEEP_NOTHING;
use crate::race::both;
use crate::{Subject, lane, seconds};
use rewheel_core::store::{Change, ChangeVerb, Changed, Edit, Insert, Inserted};
use rewheel_core::{
    Actor, DueReason, JobId, Key, NewJob, Retain, State, Status, Version, Wanted, When,
};
use std::time::Duration;

fn every_what() -> Vec<ChangeVerb> {
    let edit = Edit { attempts_max: Some(9), ..Edit::default() };
    vec![
        ChangeVerb::Pause,
        ChangeVerb::Resume,
        ChangeVerb::Cancel,
        ChangeVerb::Retry,
        ChangeVerb::Redrive { deadline: None },
        ChangeVerb::Edit(Box::new(edit)),
    ]
}

/// The expected result, in addition to the table of transitions.
fn expected(what: &ChangeVerb, state: State, version: Version) -> Changed {
    match (what, state) {
        (ChangeVerb::Pause | ChangeVerb::Cancel, State::Leased) => {
            Changed::Wanted { version: version.next() }
        }
        (ChangeVerb::Resume, State::Scheduled | State::Leased)
        | (ChangeVerb::Pause, State::Paused)
        | (ChangeVerb::Cancel, State::Cancelled) => Changed::Unchanged { state, version },
        _ => what.leads_to(state).map_or(Changed::WrongState(state), |state| Changed::Applied {
            state,
            version: version.next(),
        }),
    }
}

/// Each operator action leads from each state to the state in the table, or is refused.
pub async fn does_to_each_state_what_the_table_says(subject: &Subject) {
    for what in every_what() {
        for state in State::ALL {
            // A separate kind, so that only this job is leased on the way.
            let job = subject.job_in(&format!("{}-{state}", what.as_str()), state).await;
            let before = subject.get(job).await;

            let changed = subject.change(job, what.clone()).await;
            assert_eq!(changed, expected(&what, state, before.version), "{what:?} of {state}");
            let (to, version) = if let Changed::Applied { state, version } = changed {
                (state, version)
            } else if let Changed::Wanted { version } = changed {
                (State::Leased, version)
            } else {
                (state, before.version)
            };
            let after = subject.get(job).await;
            assert_eq!((after.state(), after.version), (to, version), "{what:?} of {state}");
            assert_eq!(after.fence, before.fence, "{what:?} of {state} is no lease write");
        }
    }
    subject.balance().await;
}

/// A missing job is reported as not found, and the others of the batch are still changed.
pub async fn answers_for_each_in_order(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let jobs = subject.jobs("charge", 2);
    subject.insert(&jobs).await;
    let cancelled = subject.job_in("refund", State::Cancelled).await;
    let changes = [
        Change::new(subject.id(), ChangeVerb::Pause),
        Change::new(jobs[1].id, ChangeVerb::Pause),
        Change::new(cancelled, ChangeVerb::Pause),
        Change::new(jobs[0].id, ChangeVerb::Cancel),
    ];
    let answers = subject.store.change(&changes, &Actor::new("suite"), Retain::default()).await;
    let version = Version::new(2);
    assert_eq!(
        answers.unwrap(),
        [
            Changed::NotFound,
            Changed::Applied { state: State::Paused, version },
            Changed::WrongState(State::Cancelled),
            Changed::Applied { state: State::Cancelled, version },
        ]
    );
    assert_eq!(subject.get(jobs[1].id).await.state(), State::Paused);
    assert_eq!(subject.get(jobs[0].id).await.state(), State::Cancelled);
}

/// Repeating an action changes neither the job nor the audit log.
pub async fn doing_it_again_changes_nothing(subject: &Subject) {
    let job = subject.submit("charge").await;
    for (what, state) in [
        (ChangeVerb::Pause, State::Paused),
        (ChangeVerb::Resume, State::Scheduled),
        (ChangeVerb::Cancel, State::Cancelled),
    ] {
        let version = subject.apply(job, what.clone()).await;
        let log = subject.store.audit(Some(job), None, 100).await.unwrap();
        for _ in 0..2 {
            let again = subject.change(job, what.clone()).await;
            assert_eq!(again, Changed::Unchanged { state, version });
        }
        assert_eq!(subject.get(job).await.version, version);
        assert_eq!(subject.store.audit(Some(job), None, 100).await.unwrap(), log);
    }
}

async fn wanted(subject: &Subject, job: JobId) -> Option<Wanted> {
    let status = subject.get(job).await.status;
    let Status::Leased { wanted, .. } = status else { panic!("not leased: {status:?}") };
    wanted
}

/// Pausing or cancelling a leased job sets what is wanted; a wanted cancel overrides a wanted
/// pause.
pub async fn a_leased_job_is_wanted_to_change(subject: &Subject) {
    let (_, lease) = subject.leased("charge").await;
    let before = subject.get(lease.job).await;

    let paused = Changed::Wanted { version: before.version.next() };
    assert_eq!(subject.change(lease.job, ChangeVerb::Pause).await, paused);
    assert_eq!(wanted(subject, lease.job).await, Some(Wanted::Pause));
    let version = before.version.next();
    let again = Changed::Unchanged { state: State::Leased, version };
    assert_eq!(subject.change(lease.job, ChangeVerb::Pause).await, again);

    let version = version.next();
    assert_eq!(subject.change(lease.job, ChangeVerb::Cancel).await, Changed::Wanted { version });
    for what in [ChangeVerb::Cancel, ChangeVerb::Pause] {
        let again = Changed::Unchanged { state: State::Leased, version };
        assert_eq!(subject.change(lease.job, what).await, again);
        assert_eq!(wanted(subject, lease.job).await, Some(Wanted::Cancel));
    }
    assert_eq!(subject.get(lease.job).await.fence, lease.fence);
}

/// Resuming a leased job withdraws a wanted pause, but not a wanted cancel.
pub async fn resuming_takes_back_a_wanted_pause(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    subject.change(lease.job, ChangeVerb::Pause).await;
    let resumed = subject.change(lease.job, ChangeVerb::Resume).await;
    assert!(matches!(resumed, Changed::Applied { state: State::Leased, .. }), "{resumed:?}");
    assert_eq!(wanted(subject, lease.job).await, None);
    assert_eq!(subject.store.renew(holder).await.unwrap().wanted, []);

    subject.change(lease.job, ChangeVerb::Cancel).await;
    let resumed = subject.change(lease.job, ChangeVerb::Resume).await;
    assert!(matches!(resumed, Changed::Unchanged { state: State::Leased, .. }), "{resumed:?}");
    assert_eq!(wanted(subject, lease.job).await, Some(Wanted::Cancel));
}

/// A change with a version is made only while the job has that version.
pub async fn a_change_may_name_a_version(subject: &Subject) {
    let job = subject.submit("charge").await;
    let seen = subject.get(job).await.version;
    let paused = subject.change_if(job, ChangeVerb::Pause, seen).await;
    assert_eq!(paused, Changed::Applied { state: State::Paused, version: seen.next() });

    // A caller with an old version gets this result even for a change without effect or one that is
    // not allowed.
    for what in [ChangeVerb::Cancel, ChangeVerb::Pause, ChangeVerb::Redrive { deadline: None }] {
        let behind = subject.change_if(job, what, seen).await;
        assert_eq!(behind, Changed::VersionChanged(seen.next()));
    }
    assert_eq!(subject.get(job).await.state(), State::Paused);
}

/// Of two callers with the same version one changes the job.
pub async fn of_two_who_saw_the_same_version_one_wins(subject: &Subject) {
    let job = subject.submit("charge").await;
    let seen = subject.get(job).await.version;
    let (pause, cancel) = both(
        subject.change_if(job, ChangeVerb::Pause, seen),
        subject.change_if(job, ChangeVerb::Cancel, seen),
    )
    .await;
    let state = subject.get(job).await.state();
    let applied = Changed::Applied { state, version: seen.next() };
    let answers = [pause, cancel];
    assert!(answers.contains(&applied), "{answers:?}");
    assert!(answers.contains(&Changed::VersionChanged(seen.next())), "{answers:?}");
}

/// A job that waits for its backoff runs now if an operator retries it.
pub async fn retrying_runs_it_now(subject: &Subject) {
    let (holder, lease) = subject.leased("charge").await;
    subject.settle(holder, &subject.retry(lease, seconds(3_600), false)).await;
    assert_eq!(subject.claim(holder, &["charge"], 1).await, []);

    subject.apply(lease.job, ChangeVerb::Retry).await;
    let leased = subject.claim_only(holder, "charge").await;
    assert_eq!((leased.job.because, leased.job.attempt), (DueReason::Person, 1));
    assert_eq!(leased.due_in, Duration::ZERO);
}

/// A paused job that is retried becomes scheduled, and runs now.
pub async fn retrying_a_paused_job_resumes_it(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let holder = subject.holder().await;
    let mut new = subject.job("charge");
    new.due = When::In(seconds(3_600));
    subject.insert(std::slice::from_ref(&new)).await;
    subject.apply(new.id, ChangeVerb::Pause).await;

    subject.apply(new.id, ChangeVerb::Retry).await;
    assert_eq!(subject.claim_only(holder, "charge").await.job.id, new.id);
}

/// A paused job cannot be claimed; after resuming it has its old due time.
pub async fn resuming_keeps_the_due(subject: &Subject) {
    let holder = subject.holder().await;
    let job = subject.submit("charge").await;
    let before = subject.get(job).await;
    subject.apply(job, ChangeVerb::Pause).await;
    assert_eq!(subject.claim(holder, &["charge"], 1).await, []);
    assert_eq!(subject.lanes(&["charge"]).await, []);
    subject.clock.advance(seconds(60));

    subject.apply(job, ChangeVerb::Resume).await;
    let after = subject.get(job).await;
    assert_eq!((after.due, after.because), (before.due, before.because));
    assert_eq!(subject.lanes(&["charge"]).await[0].lane, lane("charge"));
    assert_eq!(subject.claim_only(holder, "charge").await.job.id, job);
}

/// A cancelled job has ended: it is not claimed, and its key returns that it was cancelled.
pub async fn cancelling_ends_a_job(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let holder = subject.holder().await;
    let mut new = subject.job("charge");
    new.key = Some(Key::parse("order-17").unwrap());
    subject.insert(std::slice::from_ref(&new)).await;
    subject.apply(new.id, ChangeVerb::Cancel).await;

    assert_eq!(subject.claim(holder, &["charge"], 1).await, []);
    assert!(matches!(subject.get(new.id).await.status, Status::Cancelled(_)));
    let again = NewJob { id: subject.id(), ..new.clone() };
    let answers = subject.store.insert(&Insert::new(&[again])).await.unwrap();
    assert_eq!(answers, [Inserted::Duplicate { job: new.id, state: State::Cancelled }]);
    assert_eq!(subject.store.books().await.unwrap().finished, 1);
    subject.balance().await;
}

/// A cancelled dead letter has ended.
pub async fn cancelling_a_dead_letter_ends_it(subject: &Subject) {
    let job = subject.dead_letter("charge").await;
    subject.apply(job, ChangeVerb::Cancel).await;

    let books = subject.store.books().await.unwrap();
    assert_eq!((books.dead, books.finished, books.missing()), (0, 1, 0));
    assert_eq!(subject.store.unannounced(10).await.unwrap(), []);
    assert_eq!(subject.store.attempts(job).await.unwrap().len(), 1);
}

/// A job that is cancelled without retention is deleted at once, and accounted for.
pub async fn cancelling_keeps_nothing_where_nothing_is_kept(subject: &Subject) {
    let job = subject.submit("charge").await;
    let cancel = [Change::new(job, ChangeVerb::Cancel)];
    subject.store.change(&cancel, &Actor::new("suite"), KEEP_NOTHING).await.unwrap();

    assert_eq!(subject.store.get(job).await.unwrap(), None);
    assert_eq!(subject.store.books().await.unwrap().pruned, 1);
    subject.balance().await;
}
