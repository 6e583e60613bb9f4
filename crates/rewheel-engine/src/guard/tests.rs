//! Tests of guarded store calls: brief errors, outages, timeouts and refusals.

mod conformance;

use super::GuardedStore;
use crate::settings::EngineSettings;
use rewheel::{Moment, Random, Retry, Retryable, millis, seconds};
use rewheel_core::store::{
    Change, ChangeVerb, Insert, Inserted, KindStore, LeaseStore, OperateStore, ReadStore, Store,
    StoreError, SubmitStore,
};
use rewheel_core::{
    Actor, Floor, Format, HolderId, KindName, NewHolder, NewJob, NewKind, Retain, RetryAsk,
    RetryPool, Role, Timestamp, Version,
};
use rewheel_stores::MemoryStore;
use rewheel_testkit::{Fault, FaultyStore, Verb};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinSet;

fn guarded(store: Arc<dyn Store>) -> GuardedStore {
    GuardedStore::new(store, &EngineSettings::default(), &Random::seeded(1))
}

/// A store whose next calls can be made to fail.
fn faulty() -> (Arc<FaultyStore>, GuardedStore) {
    let faulty = Arc::new(FaultyStore::new(Arc::new(MemoryStore::new())));
    let guarded = guarded(Arc::<FaultyStore>::clone(&faulty));
    (faulty, guarded)
}

/// A store that fails as long as requested, with the number of calls that reached it.
struct Outage {
    fault: Arc<Mutex<Option<Fault>>>,
    reached: Arc<AtomicU32>,
    store: GuardedStore,
}

impl Outage {
    fn new() -> Outage {
        let (fault, reached) = (Arc::<Mutex<Option<Fault>>>::default(), Arc::default());
        let (now, counted) = (Arc::clone(&fault), Arc::<AtomicU32>::clone(&reached));
        let faulty = FaultyStore::with_faults(Arc::new(MemoryStore::new()), move |_verb| {
            counted.fetch_add(1, Ordering::SeqCst);
            let fault = *now.lock().unwrap();
            Box::pin(async move { fault })
        });
        Outage { fault, reached, store: guarded(Arc::new(faulty)) }
    }

    fn set(&self, fault: Option<Fault>) {
        *self.fault.lock().unwrap() = fault;
    }

    /// Returns how many calls reached the store since the last check.
    fn reached(&self) -> u32 {
        self.reached.swap(0, Ordering::SeqCst)
    }

    /// Calls until the breaker is open.
    async fn goes_away(&self) {
        self.set(Some(Fault::Before));
        for _ in 0..3 {
            self.store.now().await.unwrap_err();
        }
        self.reached();
    }

    fn now(&self) -> Moment {
        self.store.clock.now()
    }
}

fn holder() -> NewHolder {
    let id = HolderId::new(Timestamp::from_millis(0), &Random::seeded(7));
    NewHolder {
        id,
        name: "test".to_owned(),
        role: Role::Engine,
        lease_ttl: seconds(15),
        format: Format::CURRENT,
    }
}

fn new_job(random: &Random) -> NewJob {
    let id = rewheel_core::JobId::new(Timestamp::from_millis(0), random);
    NewJob::new(id, KindName::parse("work").unwrap(), Vec::new())
}

async fn put_kind(store: &impl KindStore) {
    let name = KindName::parse("work").unwrap();
    let kind =
        NewKind { name, settings: "{}".to_owned(), takeovers_max: 3, on_dead: Default::default() };
    store.put_kinds(&[kind], &Actor::new("test")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_blip_is_not_noticed() {
    let (faulty, store) = faulty();
    for fault in [Fault::Before, Fault::After] {
        (0..3).for_each(|_| faulty.fail_next(Verb::Tally, fault));
        let before = store.clock.now();
        assert!(store.tally().await.is_ok(), "{fault:?}");
        assert!(store.clock.now().since(before) < millis(300));
    }
}

#[tokio::test(start_paused = true)]
async fn calls_that_fail_together_are_all_made_again() {
    let (faulty, store) = faulty();
    let store = Arc::new(store);
    (0..100).for_each(|_| faulty.fail_next(Verb::Now, Fault::Before));
    let mut calls = JoinSet::new();
    for _ in 0..100 {
        let store = Arc::clone(&store);
        calls.spawn(async move { store.now().await.is_ok() });
    }
    assert!(calls.join_all().await.into_iter().all(|is_ok| is_ok));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_never_answers_is_given_up_after_its_time() {
    let (faulty, store) = faulty();
    store.join(&holder()).await.unwrap();
    let EngineSettings { statement_timeout, lease_ttl, .. } = EngineSettings::default();
    for (verb, time) in [(Verb::Books, statement_timeout), (Verb::Renew, lease_ttl / 3)] {
        faulty.fail_next(verb, Fault::NoAnswer);
        let before = store.clock.now();
        let error = if verb == Verb::Books {
            store.books().await.unwrap_err()
        } else {
            store.renew(holder().id).await.unwrap_err()
        };
        assert!(matches!(error, StoreError::Ambiguous(_)), "{error:?}");
        let took = store.clock.now().since(before);
        assert!(took >= time && took < time + millis(5), "{verb:?} took {took:?}");
        let text = error.with_causes();
        let wanted =
            if verb == Verb::Books { "within 10s: check" } else { "within 3s333ms: check" };
        assert!(text.contains(wanted) && text.contains("engine.statement_timeout"), "{text}");
    }
}

/// A node that starts on a busy server must not give up after a third of a short lease.
#[tokio::test(start_paused = true)]
async fn a_registration_may_take_as_long_as_any_call() {
    let slow = FaultyStore::with_faults(Arc::new(MemoryStore::new()), |verb| {
        Box::pin(async move {
            if verb == Verb::Join {
                tokio::time::sleep(seconds(4)).await;
            }
            None
        })
    });
    let settings = EngineSettings { lease_ttl: seconds(1), ..EngineSettings::default() };
    let store = GuardedStore::new(Arc::new(slow), &settings, &Random::seeded(1));
    store.join(&holder()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_call_with_all_its_attempts_takes_no_longer_than_one() {
    let (_, store) = faulty();
    for time in [seconds(2), seconds(4), seconds(6)] {
        let before = store.clock.now();
        let answer = store.call("now", &store.usual, |_| async move {
            tokio::time::sleep(time).await;
            Err::<(), _>(StoreError::Unavailable("connection timed out".into()))
        });
        answer.await.unwrap_err();
        let took = store.clock.now().since(before);
        assert!(took <= seconds(10) + millis(5), "{took:?}");
        assert!(time < seconds(6) || took < seconds(7), "it was made again after {time:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_answer_is_an_answer() {
    let (_, store) = faulty();
    for _ in 0..20 {
        let slow = store.call("now", &store.usual, |_| async {
            tokio::time::sleep(millis(9_900)).await;
            Ok(())
        });
        assert!(slow.await.is_ok());
    }
}

#[tokio::test(start_paused = true)]
async fn an_insert_whose_answer_was_lost_is_sent_again_and_makes_one_job() {
    let (faulty, store) = faulty();
    put_kind(&store).await;
    let jobs = [new_job(&Random::seeded(3))];
    faulty.fail_next(Verb::Insert, Fault::After);
    let answers = store.insert(&Insert::new(&jobs)).await.unwrap();
    assert!(matches!(answers[..], [Inserted::Duplicate { job, .. }] if job == jobs[0].id));
    assert_eq!(store.books().await.unwrap().submitted, 1);
}

#[tokio::test(start_paused = true)]
async fn an_insert_is_sent_again_also_inside_another_retry_and_a_read_is_not() {
    let (faulty, store) = faulty();
    put_kind(&store).await;
    let (random, store) = (Random::seeded(3), &store);
    faulty.fail_next(Verb::Insert, Fault::After);
    let submitted = (|| {
        // As callers do: a new id each time.
        let jobs = [new_job(&random)];
        async move { store.insert(&Insert::new(&jobs)).await.map(|_| ()) }
    })
    .retry(Retry::fixed(millis(1)));
    submitted.await.unwrap();
    assert_eq!(store.books().await.unwrap().submitted, 1);

    faulty.fail_next(Verb::Now, Fault::Before);
    let attempts = AtomicU32::new(0);
    let read = (|| {
        attempts.fetch_add(1, Ordering::SeqCst);
        store.now()
    })
    .retry(Retry::fixed(millis(1)));
    read.await.unwrap();
    assert_eq!(attempts.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn what_may_have_been_written_is_not_said_to_be_not() {
    for rest in [Fault::Before, Fault::After] {
        let (faulty, store) = faulty();
        put_kind(&store).await;
        faulty.fail_next(Verb::Insert, Fault::After);
        (0..3).for_each(|_| faulty.fail_next(Verb::Insert, rest));
        let jobs = [new_job(&Random::seeded(3))];
        let error = store.insert(&Insert::new(&jobs)).await.unwrap_err();
        assert!(matches!(error, StoreError::Ambiguous(_)), "{error:?}");
    }
    let (faulty, store) = faulty();
    (0..4).for_each(|_| faulty.fail_next(Verb::Now, Fault::Before));
    assert!(matches!(store.now().await, Err(StoreError::Unavailable(_))));
}

/// An insert whose first attempt still runs when the second is made collides with it: the id exists already.
#[tokio::test(start_paused = true)]
async fn a_job_that_was_stored_is_not_said_to_be_rejected() {
    let (_, store) = faulty();
    let lost = || StoreError::Ambiguous("no answer".into());
    let taken = || StoreError::Rejected("the id is taken".into());
    let insert = async |said: &[&dyn Fn() -> StoreError]| {
        let attempts = AtomicU32::new(0);
        store
            .call("insert", &store.insert, |_| {
                let nth = attempts.fetch_add(1, Ordering::SeqCst);
                let answer = said.get(nth as usize).map_or(Ok(()), |error| Err(error()));
                std::future::ready(answer)
            })
            .await
    };
    // The third attempt finds the job.
    assert!(insert(&[&lost, &taken]).await.is_ok());
    let error = insert(&[&lost, &taken, &taken, &taken]).await.unwrap_err();
    assert!(matches!(error, StoreError::Ambiguous(_)), "{error:?}");
    // Without an attempt that may have stored it, the rejection is certain.
    let error = insert(&[&taken]).await.unwrap_err();
    assert!(matches!(error, StoreError::Rejected(_)), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn while_the_store_is_away_calls_do_not_reach_it_but_heartbeats_do() {
    let outage = Outage::new();
    let store = &outage.store;
    store.join(&holder()).await.unwrap();
    outage.goes_away().await;
    let before = outage.now();
    for _ in 0..1_000 {
        let error = store.get(new_job(&Random::thread()).id).await.unwrap_err();
        assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
    }
    assert_eq!((outage.reached(), outage.now().since(before)), (0, Duration::ZERO));
    for _ in 0..10 {
        store.renew(holder().id).await.unwrap_err();
    }
    assert_eq!(outage.reached(), 10);
}

#[tokio::test(start_paused = true)]
async fn one_call_a_second_finds_out_whether_the_store_is_back() {
    let outage = Outage::new();
    outage.goes_away().await;
    for _ in 0..600 {
        tokio::time::sleep(millis(100)).await;
        outage.store.now().await.unwrap_err();
    }
    let asked = outage.reached();
    assert!((54..=66).contains(&asked), "{asked} calls in a minute");
    outage.set(None);
    tokio::time::sleep(millis(1_001)).await;
    assert!(outage.store.now().await.is_ok() && outage.store.tally().await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_hangs_keeps_the_others_waiting_for_two_seconds_only() {
    let outage = Outage::new();
    outage.goes_away().await;
    outage.set(Some(Fault::NoAnswer));
    tokio::time::sleep(millis(1_001)).await;
    let meanwhile = async {
        tokio::time::sleep(millis(100)).await;
        outage.set(None);
        let refused = outage.store.tally().await;
        assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
        tokio::time::sleep(millis(1_901)).await;
        outage.store.tally().await.is_ok() && outage.store.books().await.is_ok()
    };
    let (hung, is_back) = tokio::join!(outage.store.now(), meanwhile);
    assert!(matches!(hung, Err(StoreError::Ambiguous(_))) && is_back);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_says_since_when_why_and_what_to_do() {
    let outage = Outage::new();
    outage.goes_away().await;
    tokio::time::sleep(seconds(90)).await;
    outage.store.now().await.unwrap_err();
    let text = outage.store.now().await.unwrap_err().with_causes();
    let wanted = "the store is unavailable: no call to the store succeeded for 1m30s: check that the \
                  store runs and is reachable; the engine retries every second and resumes by itself; \
                  last error: Now was to fail before";
    assert_eq!(text, wanted);
}

#[tokio::test(start_paused = true)]
async fn an_unwelcome_answer_is_an_answer() {
    let (_, store) = faulty();
    let made = AtomicU32::new(0);
    let broken = || StoreError::Broken { what: "run `rewheel migrate`".to_owned(), source: None };
    let answers: [&dyn Fn() -> StoreError; 5] = [
        &|| StoreError::Full("no space left on device".into()),
        &|| StoreError::Rejected("a bad row".into()),
        &|| StoreError::HolderDead(holder().id),
        &broken,
        &|| StoreError::Closed,
    ];
    for answer in answers {
        for count in 1..=20 {
            let call = store.call("now", &store.usual, |_| {
                made.fetch_add(1, Ordering::SeqCst);
                std::future::ready(Err::<(), _>(answer()))
            });
            let said = call.await.unwrap_err();
            assert_eq!(said.to_string(), answer().to_string());
            assert_eq!(made.load(Ordering::SeqCst), count, "{said} was asked for again");
            // Failures at the same time count once.
            tokio::time::sleep(millis(60)).await;
        }
        made.store(0, Ordering::SeqCst);
        assert!(store.now().await.is_ok(), "{} opened the breaker", answer());
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_that_goes_by_a_version_is_not_made_again() {
    let (faulty, store) = faulty();
    put_kind(&store).await;
    let jobs = [new_job(&Random::seeded(3))];
    store.insert(&Insert::new(&jobs)).await.unwrap();
    let (by, keep) = (Actor::new("test"), Retain::default());
    let pause = Change::new(jobs[0].id, ChangeVerb::Pause);
    let if_first = Change { if_version: Some(Version::new(1)), ..pause.clone() };
    faulty.fail_next(Verb::Change, Fault::After);
    let error = store.change(&[if_first], &by, keep).await.unwrap_err();
    assert!(matches!(error, StoreError::Ambiguous(_)), "{error:?}");
    faulty.fail_next(Verb::Change, Fault::After);
    assert!(store.change(&[pause], &by, keep).await.is_ok());
}

/// Otherwise the earnings would count twice.
#[tokio::test(start_paused = true)]
async fn a_grant_whose_answer_was_lost_is_not_asked_for_again() {
    let (faulty, store) = faulty();
    let kind = KindName::parse("work").unwrap();
    let floor = Floor { retries: 1, period: seconds(60) };
    let ask = [RetryAsk { kind, earned: RetryPool::RETRY, wanted: 0, floor }];
    faulty.fail_next(Verb::Grant, Fault::After);
    let error = store.grant(&ask).await.unwrap_err();
    assert!(matches!(error, StoreError::Ambiguous(_)), "{error:?}");
    let all = [RetryAsk { earned: 0, wanted: 100, ..ask[0].clone() }];
    assert_eq!(store.grant(&all).await.unwrap(), [11], "the ten of the beginning, and one");
}
