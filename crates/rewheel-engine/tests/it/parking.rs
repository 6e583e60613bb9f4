//! Tests of kinds whose dependency is down, with running engines.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "the time of a test is simulated"
)]

use crate::flood::{flood, with_slow_inserts};
use crate::still::store;
use rewheel::{Category, Verdict, millis, seconds};
use rewheel_core::store::{Insert, KindStore, LeaseStore, ReadStore, Store};
use rewheel_core::{Actor, Failure, Kind, KindChange, KindName, NewJob, Report, Tenant};
use rewheel_engine::{
    BreakerSettings, Engine, EngineBuilder, EngineSettings, JobContext, KindSettings, Reporting,
    Runner, RunnerKind, StartError,
};
use rewheel_stores::MemoryStore;
use rewheel_testkit::{Fault, FaultyStore, Verb};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

type Tested = Result<(), Box<dyn std::error::Error>>;

/// The dependency of a kind: up or down, and the number of calls.
#[derive(Clone, Default)]
struct Dependency {
    is_down: Arc<AtomicBool>,
    calls: Arc<AtomicUsize>,
}

impl Dependency {
    fn set_down(&self, is_down: bool) {
        self.is_down.store(is_down, Ordering::SeqCst);
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    async fn call(self) -> Report {
        self.calls.fetch_add(1, Ordering::SeqCst);
        tokio::time::sleep(millis(20)).await;
        if self.is_down.load(Ordering::SeqCst) {
            let failure = Failure::new(Category::Timeout, Some("504"), "no answer");
            Report::AttemptFailed { verdict: Verdict::Retry, failure }
        } else {
            Report::Done
        }
    }
}

fn settings() -> KindSettings {
    KindSettings {
        attempts_max: 100,
        breaker: Some(BreakerSettings {
            window: 10,
            open_for: seconds(5),
            ..BreakerSettings::default()
        }),
        ..KindSettings::default()
    }
}

fn builder(store: Arc<dyn Store>, name: &str, charge: &Dependency) -> EngineBuilder {
    let charge = charge.clone();
    let name = name.to_owned();
    Engine::builder(store)
        .settings(EngineSettings { name, concurrency: 20, ..EngineSettings::default() })
        .kind("charge", settings())
        .raw_handler("charge", move |_| charge.clone().call())
}

async fn engine(
    store: &Arc<MemoryStore>,
    name: &str,
    charge: &Dependency,
) -> Result<Engine, StartError> {
    builder(Arc::clone(store) as Arc<dyn Store>, name, charge).start().await
}

/// Another live engine that does not run the kind: beside it a single suspicion does not park the kind.
async fn bystander(store: &Arc<MemoryStore>) -> Result<Engine, StartError> {
    let named = EngineSettings { name: "other".to_owned(), ..EngineSettings::default() };
    Engine::builder(Arc::clone(store) as Arc<dyn Store>).settings(named).start().await
}

/// Parks a kind for all engines, with waiting jobs; its dependency is back by then.
async fn park(store: &MemoryStore, engine: &Engine, charge: &Dependency) -> Tested {
    charge.set_down(true);
    submit(engine, 50).await?;
    assert!(within(seconds(5), async || kind(store).await.parked.is_some()).await);
    charge.set_down(false);
    Ok(())
}

async fn submit(engine: &Engine, count: usize) -> Tested {
    for _ in 0..count {
        engine.submit_raw("charge", Vec::new()).await?;
    }
    Ok(())
}

async fn kind(store: &MemoryStore) -> Kind {
    store.kinds().await.unwrap().into_iter().find(|kind| kind.name.as_str() == "charge").unwrap()
}

/// Waits for a condition, up to a maximum time.
async fn within(most: Duration, mut is_so: impl AsyncFnMut() -> bool) -> bool {
    let until = tokio::time::Instant::now() + most;
    while tokio::time::Instant::now() < until {
        if is_so().await {
            return true;
        }
        tokio::time::sleep(millis(5)).await;
    }
    false
}

async fn is_drained(store: &MemoryStore) -> bool {
    store.books().await.unwrap().live == 0
}

#[tokio::test(start_paused = true)]
async fn a_dependency_that_is_down_is_left_alone_and_comes_back_slowly() -> Tested {
    let store = Arc::new(store());
    let charge = Dependency::default();
    charge.set_down(true);
    let engine = engine(&store, "one", &charge).await?;
    submit(&engine, 200).await?;
    assert!(within(seconds(2), async || kind(&store).await.parked.is_some()).await);
    let reason = kind(&store).await.parked.unwrap().reason;
    assert!(
        reason.contains("50% of the last 10 attempts") && reason.contains("no answer"),
        "{reason}"
    );
    tokio::time::sleep(seconds(1)).await;
    let calls = charge.calls();
    // In a two-minute outage there are about twenty probes, instead of constant retries of 200 jobs.
    tokio::time::sleep(seconds(120)).await;
    let probes = charge.calls() - calls;
    assert!((10..=30).contains(&probes), "{probes} calls while it was parked");

    charge.set_down(false);
    assert!(within(seconds(8), async || kind(&store).await.parked.is_none()).await);
    let back = charge.calls();
    tokio::time::sleep(millis(45)).await;
    let first = charge.calls() - back;
    assert!(first <= 7, "{first} calls at once when it was back");
    assert!(within(seconds(20), async || is_drained(&store).await).await);
    engine.shutdown(seconds(5)).await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn one_holder_whose_network_is_broken_parks_nothing_for_the_others() -> Tested {
    let store = Arc::new(store());
    let (broken, fine) = (Dependency::default(), Dependency::default());
    broken.set_down(true);
    let alone = engine(&store, "broken", &broken).await?;
    let others = [engine(&store, "a", &fine).await?, engine(&store, "b", &fine).await?];
    for _ in 0..10 {
        submit(&alone, 30).await?;
        tokio::time::sleep(seconds(1)).await;
        assert_eq!(kind(&store).await.parked, None);
    }
    assert!(within(seconds(30), async || is_drained(&store).await).await);
    // Its own breaker prevents most of them.
    assert!(broken.calls() < 60, "{} of its attempts failed", broken.calls());
    assert!(fine.calls() >= 300);
    alone.shutdown(seconds(5)).await;
    for other in others {
        other.shutdown(seconds(5)).await;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn where_a_prober_dies_another_probes_within_a_lease_life() -> Tested {
    let store = Arc::new(store());
    let charge = Dependency::default();
    charge.set_down(true);
    let engines = [engine(&store, "a", &charge).await?, engine(&store, "b", &charge).await?];
    submit(&engines[0], 100).await?;
    assert!(within(seconds(3), async || kind(&store).await.parked.is_some()).await);
    // A holder takes the right to probe, and disappears.
    let ghost = rewheel_core::HolderId::from_bytes([7; 16]);
    let lease_ttl = EngineSettings::default().lease_ttl;
    let joining = rewheel_core::NewHolder {
        id: ghost,
        name: "ghost".to_owned(),
        role: rewheel_core::Role::Engine,
        lease_ttl,
        format: rewheel_core::Format::CURRENT,
    };
    store.join(&joining).await?;
    let generation = kind(&store).await.generation;
    let name = KindName::parse("charge")?;
    let probe = KindChange::Probe { generation, holder: ghost };
    store.change_kind(&name, &probe, &Actor::new("test")).await?;
    assert_eq!(kind(&store).await.parked.unwrap().prober, Some(ghost));
    charge.set_down(false);
    assert!(within(lease_ttl + seconds(6), async || kind(&store).await.parked.is_none()).await);
    assert!(within(seconds(30), async || is_drained(&store).await).await);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn what_a_person_opens_stays_open_until_a_person_closes_it() -> Tested {
    let store = Arc::new(store());
    let charge = Dependency::default();
    let engine = engine(&store, "one", &charge).await?;
    let (name, by) = (KindName::parse("charge")?, Actor::new("test"));
    let open = KindChange::Open { reason: "maintenance".to_owned() };
    store.change_kind(&name, &open, &by).await?;
    submit(&engine, 10).await?;
    tokio::time::sleep(seconds(60)).await;
    assert_eq!(charge.calls(), 0);
    store.change_kind(&name, &KindChange::Reset, &by).await?;
    assert!(within(seconds(10), async || is_drained(&store).await).await);
    engine.shutdown(seconds(5)).await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn who_alone_left_a_kind_finds_out_by_itself_that_it_is_back() -> Tested {
    let store = Arc::new(store());
    let charge = Dependency::default();
    charge.set_down(true);
    let engine = engine(&store, "one", &charge).await?;
    let other = bystander(&store).await?;
    submit(&engine, 50).await?;
    tokio::time::sleep(seconds(20)).await;
    assert_eq!(kind(&store).await.parked, None);
    let calls = charge.calls();
    tokio::time::sleep(seconds(60)).await;
    let probes = charge.calls() - calls;
    assert!((4..=15).contains(&probes), "{probes} calls while it was left alone");
    charge.set_down(false);
    assert!(within(seconds(30), async || is_drained(&store).await).await);
    engine.shutdown(seconds(5)).await;
    other.shutdown(seconds(5)).await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_takes_its_time_finds_out_too() -> Tested {
    let store = Arc::new(store());
    let charge = Dependency::default();
    charge.set_down(true);
    let slow = charge.clone();
    let engine = Engine::builder(Arc::clone(&store) as Arc<dyn Store>)
        .settings(EngineSettings { concurrency: 20, ..EngineSettings::default() })
        .kind("charge", KindSettings { attempt_timeout: seconds(300), ..settings() })
        .raw_handler("charge", move |_| {
            let slow = slow.clone();
            async move {
                if !slow.is_down.load(Ordering::SeqCst) {
                    tokio::time::sleep(seconds(90)).await;
                }
                slow.call().await
            }
        })
        .start()
        .await?;
    let other = bystander(&store).await?;
    submit(&engine, 40).await?;
    tokio::time::sleep(seconds(20)).await;
    charge.set_down(false);
    // One after the other they would take an hour.
    assert!(within(seconds(900), async || is_drained(&store).await).await);
    engine.shutdown(seconds(5)).await;
    other.shutdown(seconds(5)).await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_right_to_probe_is_taken_from_who_lives_and_cannot() -> Tested {
    let store = Arc::new(store());
    let charge = Dependency::default();
    let engine = engine(&store, "one", &charge).await?;
    park(&store, &engine, &charge).await?;
    let other = bystander(&store).await?;
    let holders = store.holders().await?;
    let holder = holders.iter().find(|holder| holder.name == "other").unwrap().id;
    let name = KindName::parse("charge")?;
    let generation = kind(&store).await.generation;
    let probe = KindChange::Probe { generation, holder };
    store.change_kind(&name, &probe, &Actor::new("test")).await?;
    tokio::time::sleep(seconds(100)).await;
    assert_eq!(kind(&store).await.parked.unwrap().prober, Some(holder));
    assert!(within(seconds(100), async || kind(&store).await.parked.is_none()).await);
    assert!(within(seconds(30), async || is_drained(&store).await).await);
    engine.shutdown(seconds(5)).await;
    other.shutdown(seconds(5)).await;
    Ok(())
}

impl Runner for Dependency {
    fn run(&self, _: JobContext) -> Reporting {
        Box::pin(self.clone().call())
    }
}

#[tokio::test(start_paused = true)]
async fn a_parked_kind_that_is_left_to_workers_is_not_parked() -> Tested {
    let store = Arc::new(store());
    let charge = Dependency::default();
    let runs = charge.clone();
    let engine = Engine::builder(Arc::clone(&store) as Arc<dyn Store>)
        .kind("charge", settings())
        .runners(move |_, settings| {
            let runner: Arc<dyn Runner> = Arc::new(runs.clone());
            (settings.runner != RunnerKind::Worker).then_some(runner)
        })
        .start()
        .await?;
    park(&store, &engine, &charge).await?;
    let workers =
        KindSettings { runner: RunnerKind::Worker, breaker: None, ..KindSettings::default() };
    engine.put_kind(&KindName::parse("charge")?, &workers, &Actor::new("test")).await?;
    assert!(within(seconds(5), async || kind(&store).await.parked.is_none()).await);
    engine.shutdown(seconds(5)).await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn what_a_person_holds_closed_goes_on_whatever_fails() -> Tested {
    let store = Arc::new(store());
    let charge = Dependency::default();
    let engine = engine(&store, "one", &charge).await?;
    let (name, by) = (KindName::parse("charge")?, Actor::new("test"));
    // The same with earlier suspicions.
    park(&store, &engine, &charge).await?;
    charge.set_down(true);
    store.change_kind(&name, &KindChange::Close, &by).await?;
    assert!(within(seconds(10), async || charge.calls() > 100).await, "{}", charge.calls());
    assert_eq!(kind(&store).await.parked, None);
    charge.set_down(false);
    assert!(within(seconds(40), async || is_drained(&store).await).await);
    // After a reset, which every engine learns with its heartbeat, evidence parks it again.
    store.change_kind(&name, &KindChange::Reset, &by).await?;
    tokio::time::sleep(EngineSettings::default().lease_ttl).await;
    park(&store, &engine, &charge).await?;
    engine.shutdown(seconds(5)).await;
    Ok(())
}

/// The holder with the right to probe may be the only one that knows that the dependency is back.
#[tokio::test(start_paused = true)]
async fn a_probe_whose_result_the_store_does_not_hear_is_not_the_last_one() -> Tested {
    let (store, charge) = (Arc::new(store()), Dependency::default());
    let faulty = Arc::new(FaultyStore::new(Arc::clone(&store) as Arc<dyn Store>));
    let engine = builder(Arc::clone(&faulty) as Arc<dyn Store>, "one", &charge).start().await?;
    park(&store, &engine, &charge).await?;
    let has_prober = async || kind(&store).await.parked.is_some_and(|p| p.prober.is_some());
    assert!(within(seconds(10), has_prober).await);
    // More often than a call is retried.
    for _ in 0..4 {
        faulty.fail_next(Verb::ChangeKind, Fault::Before);
    }
    assert!(within(seconds(60), async || kind(&store).await.parked.is_none()).await);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_suspicion_that_the_store_does_not_hear_is_told_again() -> Tested {
    let (store, charge) = (Arc::new(store()), Dependency::default());
    let faulty = Arc::new(FaultyStore::new(Arc::clone(&store) as Arc<dyn Store>));
    let engine = builder(Arc::clone(&faulty) as Arc<dyn Store>, "one", &charge).start().await?;
    // More failures than there are attempts left that could trigger another check.
    for _ in 0..16 {
        faulty.fail_next(Verb::ChangeKind, Fault::Before);
    }
    charge.set_down(true);
    submit(&engine, 50).await?;
    assert!(within(seconds(15), async || kind(&store).await.parked.is_some()).await);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_probe_whose_claim_got_no_answer_is_not_the_last_one() -> Tested {
    let (store, charge) = (Arc::new(store()), Dependency::default());
    let faulty = Arc::new(FaultyStore::new(Arc::clone(&store) as Arc<dyn Store>));
    let engine = builder(Arc::clone(&faulty) as Arc<dyn Store>, "one", &charge).start().await?;
    park(&store, &engine, &charge).await?;
    tokio::time::sleep(seconds(1)).await;
    // The next claim is the probe's.
    faulty.fail_next(Verb::Claim, Fault::After);
    assert!(within(seconds(600), async || kind(&store).await.parked.is_none()).await);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn submits_do_not_keep_a_parked_kind_from_its_probe() -> Tested {
    let (store, charge) = (Arc::new(store()), Dependency::default());
    let slow = with_slow_inserts(Arc::clone(&store) as Arc<dyn Store>);
    let engine = builder(slow, "one", &charge).start().await?;
    park(&store, &engine, &charge).await?;
    let _submitters = flood(&engine, "charge", None, Duration::ZERO);
    assert!(within(seconds(40), async || kind(&store).await.parked.is_none()).await);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn other_kinds_do_not_keep_a_parked_kind_from_its_probe() -> Tested {
    let (store, charge) = (Arc::new(store()), Dependency::default());
    let busy = ["a", "b", "c"];
    let mut builder = builder(Arc::clone(&store) as Arc<dyn Store>, "one", &charge);
    for name in busy {
        builder = builder.raw_handler(name, |context| async move {
            // They end one after the other, so that there is never much free capacity.
            let odd = context.job().id.to_bytes()[15];
            tokio::time::sleep(millis(1_000 + u64::from(odd))).await;
            Report::Done
        });
    }
    let engine = builder.start().await?;
    park(&store, &engine, &charge).await?;
    for name in busy {
        // Of several tenants: a single one would leave the last fifth free.
        let (name, tenant) = (KindName::parse(name)?, Tenant::parse(name)?);
        let new = || {
            let mut job = NewJob::new(engine.new_id(), name.clone(), Vec::new());
            job.tenant = Some(tenant.clone());
            job
        };
        let jobs: Vec<NewJob> = std::iter::repeat_with(new).take(1_000).collect();
        engine.insert(&Insert::new(&jobs)).await?;
    }
    assert!(within(seconds(30), async || kind(&store).await.parked.is_none()).await);
    assert!(store.books().await?.live > 1_000, "the others had nothing to do any more");
    Ok(())
}

/// Attempts that hang since the dependency went down do not keep the kind parked when it is back.
#[tokio::test(start_paused = true)]
async fn attempts_that_hang_do_not_delay_the_way_back() -> Tested {
    let (store, charge) = (store(), Dependency::default());
    let dependency = charge.clone();
    let engine = Engine::builder(Arc::new(store.clone()))
        .settings(EngineSettings { concurrency: 20, ..EngineSettings::default() })
        .kind("charge", KindSettings { attempt_timeout: seconds(3_600), ..settings() })
        .raw_handler("charge", move |ctx: JobContext| {
            let dependency = dependency.clone();
            async move {
                if ctx.payload() == b"hangs" {
                    std::future::pending::<()>().await;
                }
                dependency.call().await
            }
        })
        .start()
        .await?;
    charge.set_down(true);
    // As many as one kind may have of the slots, and then enough that fail.
    for _ in 0..12 {
        engine.submit_raw("charge", b"hangs".to_vec()).await?;
    }
    for _ in 0..40 {
        engine.submit_raw("charge", b"fails".to_vec()).await?;
    }
    tokio::time::sleep(seconds(3)).await;
    let kind = KindName::parse("charge")?;
    let parked =
        |kinds: Vec<Kind>| kinds.into_iter().any(|one| one.name == kind && one.parked.is_some());
    assert!(parked(store.kinds().await?), "it is down");
    charge.set_down(false);
    tokio::time::sleep(seconds(120)).await;
    assert!(!parked(store.kinds().await?), "it is back, and an hour has not passed");
    let books = store.books().await?;
    assert_eq!((books.live, books.finished), (12, 40));
    engine.kill();
    Ok(())
}
