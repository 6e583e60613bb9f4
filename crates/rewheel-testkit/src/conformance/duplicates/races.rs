//! Tests submits with the same key that race with each other and with claims, cancels and pauses.

use super::replace::replacements;
use super::{claimed_replace, job, key_job, payload, put, replace};
use crate::Subject;
use crate::threads::at_once;
use rewheel_core::store::{
    Change, ChangeVerb, Claim, Filter, Insert, Inserted, PageRequest, Store, StoreResult,
};
use rewheel_core::{Actor, HolderId, Job, Key, KindName, NewJob, Retain, State, Version, Waits};
use std::collections::BTreeSet;
use std::sync::Arc;

const ROUNDS: usize = 10;
const SUBMITS: usize = 6;

/// What one thread of a race does.
#[derive(Clone)]
enum Racer {
    Submit(Box<NewJob>),
    Claim(HolderId),
    Change(Change),
}

impl Racer {
    async fn run(self, subject: RacedStore) -> StoreResult<Option<Inserted>> {
        let RacedStore { store, visit } = subject;
        match self {
            Racer::Submit(new) => {
                store.insert(&Insert::new(&[*new])).await.map(|mut all| all.pop())
            }
            Racer::Claim(holder) => {
                let (visits, horizon) = ([visit], std::time::Duration::ZERO);
                let claim = Claim { holder, visits: &visits, horizon, limit: 1 };
                store.claim(&claim).await.map(|_| None)
            }
            Racer::Change(change) => {
                let by = Actor::new("suite");
                store.change(&[change], &by, Retain::default()).await.map(|_| None)
            }
        }
    }
}

#[derive(Clone)]
struct RacedStore {
    store: Arc<dyn Store>,
    visit: rewheel_core::store::Visit,
}

/// Runs all at once. Returns the answers of the submits.
async fn race(subject: &Subject, racers: &[Racer]) -> Vec<Inserted> {
    let visit = subject.visit(crate::lane("index"), 1);
    let raced = RacedStore { store: Arc::clone(&subject.store), visit };
    let answers = at_once(racers.len(), |place| racers[place].clone().run(raced.clone())).await;
    answers.into_iter().filter_map(|answer| answer.expect("no racer fails")).collect()
}

fn submits(subject: &Subject, round: usize) -> Vec<NewJob> {
    let text = |nth| format!("{round}-{nth}");
    (0..SUBMITS).map(|nth| job(subject, &text(nth), claimed_replace())).collect()
}

fn racers(jobs: &[NewJob]) -> Vec<Racer> {
    jobs.iter().map(|job| Racer::Submit(Box::new(job.clone()))).collect()
}

/// Returns the jobs of the kind `index` that were never claimed and have not ended.
async fn waiting(subject: &Subject) -> Vec<Job> {
    let kinds = vec![KindName::parse("index").unwrap()];
    let filter = Filter { kinds, ..Filter::default() };
    let mut jobs = subject.store.list(&filter, &PageRequest::first(1_000)).await.unwrap().items;
    jobs.retain(|job| job.waits() == Waits::Yes);
    jobs
}

/// Submits that race with each other make one job, which has the payload of one of them; every other one has replaced it or was
/// replaced.
pub async fn racing_submits_replace_one_job(subject: &Subject) {
    subject.kinds(&["index"]).await;
    for round in 0..ROUNDS {
        let key = Key::parse(&format!("page-{round}")).ok();
        let jobs = submits(subject, round);
        let jobs: Vec<NewJob> =
            jobs.into_iter().map(|job| NewJob { key: key.clone(), ..job }).collect();
        let answers = race(subject, &racers(&jobs)).await;
        let is_new = |answer: &&Inserted| matches!(answer, Inserted::Created { .. });
        assert_eq!(answers.iter().filter(is_new).count(), 1, "{answers:?}");
        let winner = answers.iter().position(|answer| is_new(&answer)).unwrap();
        let first = jobs[winner].id;
        for answer in answers.iter().filter(|answer| !is_new(answer)) {
            assert_eq!(answer, &Inserted::Replaced { job: first, state: State::Scheduled });
        }
        let stored = subject.get(first).await;
        assert_eq!(stored.version, Version::new(SUBMITS as u64), "each replaced it once");
        let entries = replacements(subject, first).await;
        let last = entries.last().unwrap().after.iter().find(|(name, _)| *name == "payload");
        assert_eq!(last, Some(("payload", Some(payload(&stored)))), "the last arrival wins");
    }
    assert_eq!(subject.store.books().await.unwrap().submitted, ROUNDS as u64);
    subject.balance().await;
}

/// A claim gets a job before or after a submit replaced it, and never one that is replaced afterwards. At most one job waits, and each
/// submit that was accepted is in a job or was replaced by another.
pub async fn submits_that_race_with_claims_lose_nothing(subject: &Subject) {
    subject.kinds(&["index"]).await;
    let holder = subject.holder().await;
    for round in 0..ROUNDS {
        let jobs = submits(subject, round);
        let mut racers = racers(&jobs);
        racers.extend([Racer::Claim(holder), Racer::Claim(holder), Racer::Claim(holder)]);
        let answers = race(subject, &racers).await;
        assert_eq!(answers.len(), jobs.len());
        let mut stored = BTreeSet::new();
        for (new, answer) in jobs.iter().zip(&answers) {
            match answer {
                Inserted::Created { .. } => stored.insert(new.id),
                Inserted::Replaced { job, .. } => stored.insert(*job),
                Inserted::Duplicate { .. } | Inserted::Refused(_) | Inserted::LeftOut => {
                    panic!("{answer:?}")
                }
            };
        }
        let waiting = waiting(subject).await;
        assert!(waiting.len() <= 1, "{waiting:?}");
        if let Some(waiting) = waiting.first() {
            assert_eq!(key_job(subject).await.unwrap().id, waiting.id);
        }
        for id in stored {
            let job = subject.get(id).await;
            let entries = replacements(subject, id).await;
            let last =
                entries.last().map(|entry| entry.after.iter().find(|(name, _)| *name == "submit"));
            let last = last.flatten().and_then(|(_, submit)| submit.map(str::to_owned));
            let winner = last.unwrap_or_else(|| id.to_string());
            if let Some(new) = jobs.iter().find(|new| new.id.to_string() == winner) {
                assert_eq!(job.payload.as_deref(), Some(new.payload.as_slice()), "{job:?}");
            }
        }
    }
    subject.balance().await;
}

/// Cancels and pauses that race with submits end or hold one of the jobs; no submit fails, and at most one job waits.
pub async fn submits_that_race_with_operators_lose_nothing(subject: &Subject) {
    for round in 0..ROUNDS {
        let known = match waiting(subject).await.pop() {
            Some(job) => job.id,
            None => put(subject, "first").await,
        };
        let jobs = submits(subject, round);
        let mut racers = racers(&jobs);
        for what in [ChangeVerb::Pause, ChangeVerb::Resume, ChangeVerb::Cancel] {
            racers.push(Racer::Change(Change::new(known, what)));
        }
        let answers = race(subject, &racers).await;
        let is_stored = |answer: &Inserted| {
            matches!(answer, Inserted::Created { .. } | Inserted::Replaced { .. })
        };
        assert!(answers.iter().all(is_stored), "{answers:?}");
        let waiting = waiting(subject).await;
        assert!(waiting.len() <= 1, "{waiting:?}");
        // The next round has a job to begin with; a key that was not given up would not accept it.
        for job in waiting {
            subject.change(job.id, ChangeVerb::Cancel).await;
        }
        let fresh = job(subject, "first", super::claimed());
        assert!(matches!(super::submit(subject, &fresh).await, Inserted::Created { .. }));
    }
    subject.balance().await;
}

/// Batches with the same keys in different orders wait for each other, without a deadlock.
pub async fn racing_batches_do_not_deadlock(subject: &Subject) {
    subject.kinds(&["index"]).await;
    let keys: Vec<Key> = (0..8).map(|nth| Key::parse(&format!("page-{nth}")).unwrap()).collect();
    for _ in 0..ROUNDS {
        let answers = at_once(4, |place| {
            let mut jobs: Vec<NewJob> = keys
                .iter()
                .map(|key| NewJob { key: Some(key.clone()), ..job(subject, "1", replace()) })
                .collect();
            jobs.rotate_left(2 * place);
            if place % 2 == 1 {
                jobs.reverse();
            }
            let store = Arc::clone(&subject.store);
            async move { store.insert(&Insert::new(&jobs)).await }
        })
        .await;
        for answer in answers {
            let answer = answer.expect("no batch fails");
            let is_stored = |one: &Inserted| {
                matches!(one, Inserted::Created { .. } | Inserted::Replaced { .. })
            };
            assert!(answer.iter().all(is_stored), "{answer:?}");
        }
    }
    assert_eq!(subject.store.books().await.unwrap().submitted, 8);
}
