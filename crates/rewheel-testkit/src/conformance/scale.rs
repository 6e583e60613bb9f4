//! Tests that the cost of reads does not grow with rows that they do not need.

use crate::subject::{Subject, seconds};
use crate::threads::at_once;
use rewheel_core::store::{Change, ChangeVerb, Changed, Sample};
use rewheel_core::{
    Actor, Job, JobId, Kind, KindChange, KindEdit, KindEditVerb, KindName, Retain, State, When,
};
use std::sync::Arc;
use std::time::Duration;

/// A cached count has the same numbers as a tally, also for kinds without jobs, and its age.
pub async fn a_sample_is_what_a_tally_counts(subject: &Subject) {
    assert_eq!(subject.store.sample().await.unwrap(), None);
    for state in [State::Dead, State::Leased, State::Paused, State::Succeeded, State::Scheduled] {
        subject.job_in("charge", state).await;
    }
    subject.kinds(&["refund"]).await;
    assert!(subject.store.take_sample().await.unwrap());
    subject.clock.advance(seconds(7));
    let sample = subject.store.sample().await.unwrap().unwrap();
    assert_eq!(sample.tallies, subject.store.tally().await.unwrap());
    assert_eq!((sample.tallies.len(), sample.jobs()), (2, 4));
    assert!(sample.age >= seconds(7), "{:?}", sample.age);
}

/// Nodes that ask at the same time count once; the next count waits for its interval.
pub async fn a_sample_is_taken_by_one_node_at_a_time(subject: &Subject) {
    subject.submit("charge").await;
    let ask = || subject.store.take_sample();
    let taken = at_once(8, |_| {
        let store = Arc::clone(&subject.store);
        async move { store.take_sample().await.unwrap() }
    })
    .await;
    assert_eq!(taken.iter().filter(|taken| **taken).count(), 1, "{taken:?}");
    subject.submit("charge").await;
    subject.clock.advance(Sample::INTERVAL_MIN - seconds(2));
    assert!(!ask().await.unwrap());
    assert_eq!(subject.store.sample().await.unwrap().unwrap().jobs(), 1);
    subject.clock.advance(seconds(2));
    assert!(ask().await.unwrap());
    assert_eq!(subject.store.sample().await.unwrap().unwrap().jobs(), 2);
}

/// A store is counted at once if it has no more jobs than the limit, dead letters included.
pub async fn a_small_store_is_counted_now(subject: &Subject) {
    subject.job_in("charge", State::Dead).await;
    subject.job_in("charge", State::Succeeded).await;
    subject.insert(&subject.jobs("charge", 4)).await;
    let sample = subject.store.sample_now(5).await.unwrap().expect("there are five");
    assert_eq!(sample.tallies, subject.store.tally().await.unwrap());
    assert_eq!((sample.jobs(), sample.age), (5, Duration::ZERO));
    assert_eq!(subject.store.sample_now(4).await.unwrap(), None);
}

/// Each acknowledged change is part of the next count of a small store: nothing is cached.
pub async fn a_small_count_has_every_acknowledged_change(subject: &Subject) {
    subject.kinds(&["charge"]).await;
    let counted = async || {
        let sample = subject.store.sample_now(10).await.unwrap().expect("a small store");
        let jobs = |state| sample.tallies[0].jobs[&state];
        let states = [State::Scheduled, State::Leased, State::Paused, State::Dead];
        (states.map(jobs), sample.tallies[0].oldest_due)
    };
    let job = subject.submit("charge").await;
    let due = Some(subject.get(job).await.due);
    assert_eq!(counted().await, ([1, 0, 0, 0], due));
    subject.change(job, ChangeVerb::Pause).await;
    assert_eq!(counted().await, ([0, 0, 1, 0], None));
    subject.change(job, ChangeVerb::Resume).await;
    assert_eq!(counted().await.0, [1, 0, 0, 0]);
    let holder = subject.holder().await;
    let lease = subject.claim(holder, &["charge"], 1).await[0].lease();
    assert_eq!(counted().await, ([0, 1, 0, 0], None));
    subject.settle(holder, &subject.dead(lease)).await;
    assert_eq!(counted().await, ([0, 0, 0, 1], None));
    subject.change(job, ChangeVerb::Cancel).await;
    assert_eq!(counted().await, ([0, 0, 0, 0], None));
}

/// Jobs of a large claim are tallied as leased, and do not count for the earliest due time.
pub async fn a_large_claim_is_tallied_as_leased(subject: &Subject) {
    subject.kinds(&["charge", "refund"]).await;
    let mut jobs = subject.jobs("charge", 300);
    jobs[299].due = When::In(seconds(3_600));
    let later = jobs[299].id;
    subject.insert(&jobs).await;
    let holder = subject.holder().await;
    assert_eq!(subject.claim(holder, &["charge"], 299).await.len(), 299);
    let tallies = subject.store.tally().await.unwrap();
    let count = |state: State| tallies[0].jobs[&state];
    assert_eq!((count(State::Scheduled), count(State::Leased)), (1, 299));
    assert_eq!(tallies[0].oldest_due, Some(subject.get(later).await.due));
}

const STATES: [State; 7] = [
    State::Scheduled,
    State::Leased,
    State::Paused,
    State::Dead,
    State::Succeeded,
    State::Failed,
    State::Cancelled,
];

/// Jobs are found by id, many at once, in any table.
pub async fn finds_jobs_in_every_state(subject: &Subject) {
    let mut expected = Vec::new();
    for state in STATES {
        let job = subject.job_in(state.as_str(), state).await;
        expected.push(Job { payload: None, ..subject.get(job).await });
    }
    let mut ids: Vec<JobId> = expected.iter().map(|job| job.id).collect();
    ids.extend([subject.id(), ids[3]]);
    let mut found = subject.store.find(&ids).await.unwrap();
    found.sort_by_key(|job| job.id);
    expected.sort_by_key(|job| job.id);
    assert_eq!(found, expected);
    assert_eq!(subject.store.find(&[]).await.unwrap(), []);
}

/// A batch of changes does to each job what a single change would do, in any state, and twice if requested twice. Each changed job has an
/// audit entry.
pub async fn changes_many_jobs_in_every_state(subject: &Subject) {
    let whats = [
        ChangeVerb::Pause,
        ChangeVerb::Cancel,
        ChangeVerb::Retry,
        ChangeVerb::Redrive { deadline: None },
    ];
    for what in whats.into_iter().chain([ChangeVerb::Resume]) {
        let (mut alone, mut together) = (Vec::new(), Vec::new());
        for state in STATES {
            // A separate kind for each: leasing one would lease the others.
            let kind = |of: &str| format!("{of}-{}-{state}", what.as_str());
            alone.push(subject.job_in(&kind("one"), state).await);
            together.push(subject.job_in(&kind("other"), state).await);
        }
        let mut changes: Vec<Change> =
            together.iter().rev().map(|job| Change::new(*job, what.clone())).collect();
        changes.push(Change::new(subject.id(), what.clone()));
        changes.push(Change::new(together[0], ChangeVerb::Cancel));
        let by = Actor::new("suite");
        let answers = subject.store.change(&changes, &by, Retain::default()).await.unwrap();
        for (place, job) in alone.iter().enumerate() {
            let (expected, got) = (subject.change(*job, what.clone()).await, answers[6 - place]);
            let same = std::mem::discriminant(&expected) == std::mem::discriminant(&got);
            assert!(same, "{what:?} of {:?}: {got:?}, alone {expected:?}", STATES[place]);
            if place > 0 {
                let (one, other) = (subject.get(*job).await, subject.get(together[place]).await);
                assert_eq!(one.state(), other.state(), "{what:?} of {:?}", STATES[place]);
                assert_eq!(one.status.wanted(), other.status.wanted());
            }
            let logged = async |job| subject.store.audit(Some(job), None, 10).await.unwrap();
            let (one, other) = (logged(*job).await, logged(together[place]).await);
            let more = usize::from(place == 0 && what != ChangeVerb::Cancel);
            assert_eq!(one.len() + more, other.len(), "{what:?} of {:?}", STATES[place]);
        }
        assert_eq!(answers[7], Changed::NotFound);
        assert_eq!(subject.get(together[0]).await.state(), State::Cancelled, "{what:?}");
    }
    subject.balance().await;
}

/// Reads the kinds until no change is left, and returns the position for the next call. A store may report a change twice while a
/// transaction is open.
async fn settled(subject: &Subject, mut at: u64) -> u64 {
    for _ in 0..100_000 {
        let read = subject.store.kinds_since(at).await.unwrap();
        if read.kinds.is_empty() {
            return at;
        }
        at = read.at;
    }
    panic!("a transaction stays open");
}

/// Kinds are read once; then only changed ones, and all of them again after one was deleted.
pub async fn reads_the_kinds_that_changed(subject: &Subject) {
    let names: Vec<String> = (0..20).map(|n| format!("kind-{n:02}")).collect();
    subject.kinds(&names.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let all = subject.store.kinds_since(0).await.unwrap();
    assert!(all.all);
    assert_eq!(all.kinds, subject.store.kinds().await.unwrap());
    let at = settled(subject, all.at).await;

    let by = Actor::new("suite");
    let name = |n: usize| KindName::parse(&names[n]).unwrap();
    // Writing the same settings again is not a change.
    subject.kinds(&[names[3].as_str()]).await;
    subject.store.change_kind(&name(7), &KindChange::Pause, &by).await.unwrap();
    let read = subject.store.kinds_since(at).await.unwrap();
    let told = |kinds: &[Kind]| kinds.iter().map(|kind| kind.name.to_string()).collect::<Vec<_>>();
    assert_eq!((read.all, told(&read.kinds)), (false, vec![names[7].clone()]));
    assert!(read.kinds[0].paused);
    let at = settled(subject, read.at).await;

    subject.kinds(&["another"]).await;
    let read = subject.store.kinds_since(at).await.unwrap();
    assert_eq!((read.all, told(&read.kinds)), (false, vec!["another".to_owned()]));
    let delete = KindEdit { name: name(5), what: KindEditVerb::Delete, if_version: None };
    subject.store.edit_kind(&delete, &by).await.unwrap();
    let read = subject.store.kinds_since(read.at).await.unwrap();
    assert!(read.all);
    assert_eq!(read.kinds, subject.store.kinds().await.unwrap());
    assert_eq!(read.kinds.len(), 20);
    settled(subject, read.at).await;
}
