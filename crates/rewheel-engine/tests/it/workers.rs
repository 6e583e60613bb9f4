//! Tests of remote workers.

#![expect(clippy::disallowed_methods, reason = "the time of a test is simulated")]

use crate::still::store;
use rewheel::{Category, millis, seconds};
use rewheel_core::store::{Insert, KindStore, LeaseStore, Leased, ReadStore, SubmitStore};
use rewheel_core::{
    Failure, KindName, Lease, NewJob, Report, State, Tenant, TokenId, When, WorkerOwner,
};
use rewheel_engine::{
    BreakerSettings, BudgetSettings, Engine, EngineSettings, KindSettings, RunnerKind,
    TenantSettings, WorkerError, WorkerResult, WorkerSettled,
};
use rewheel_stores::MemoryStore;
use rewheel_testkit::{Fault, FaultyStore, Verb};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

type Tested = Result<(), Box<dyn std::error::Error>>;

const OWNER: WorkerOwner = WorkerOwner::NoToken;

async fn engine(store: &MemoryStore) -> Result<Engine, Box<dyn std::error::Error>> {
    let kind = KindSettings { runner: RunnerKind::Worker, ..KindSettings::default() };
    Ok(Engine::builder(Arc::new(store.clone())).kind("mail", kind).start().await?)
}

fn mail() -> Result<Vec<KindName>, Box<dyn std::error::Error>> {
    Ok(vec![KindName::parse("mail")?])
}

/// Many tenants whose jobs are due later do not hide the one whose job is due now.
#[tokio::test(start_paused = true)]
async fn a_due_job_behind_many_lanes_is_found() -> Tested {
    let store = store();
    let engine = engine(&store).await?;
    let of = |tenant: String, delay: Duration| -> Result<NewJob, Box<dyn std::error::Error>> {
        let tenant = Some(Tenant::parse(&tenant)?);
        let due = When::In(delay);
        let job = NewJob::new(engine.new_id(), KindName::parse("mail")?, b"1".to_vec());
        Ok(NewJob { tenant, due, ..job })
    };
    let mut jobs = Vec::new();
    for number in 0..2_500 {
        jobs.push(of(format!("tenant-{number:05}"), seconds(3_600))?);
    }
    jobs.push(of("zebra".to_owned(), Duration::ZERO)?);
    let zebra = jobs[2_500].id;
    store.insert(&Insert::new(&jobs)).await?;
    let worker = engine.worker_joins("w", OWNER).await?;
    let claimed = worker.claim(&mail()?, 10).await?;
    assert_eq!(claimed.iter().map(|one| one.job.id).collect::<Vec<_>>(), [zebra]);
    // The next claims begin where this one stopped, and find the next due job in any lane.
    let first = of("tenant-00000".to_owned(), Duration::ZERO)?;
    store.insert(&Insert::new(std::slice::from_ref(&first))).await?;
    let claimed = worker.claim(&mail()?, 10).await?;
    assert_eq!(claimed.iter().map(|one| one.job.id).collect::<Vec<_>>(), [first.id]);
    assert!(worker.claim(&mail()?, 10).await?.is_empty());
    engine.shutdown(seconds(1)).await;
    Ok(())
}

/// Settling many results takes a handful of store calls, in whatever state the jobs are.
#[tokio::test(start_paused = true)]
async fn many_results_are_settled_together() -> Tested {
    let (calls, store) = (Arc::new(AtomicUsize::new(0)), store());
    let counted = Arc::clone(&calls);
    let counting = FaultyStore::with_faults(Arc::new(store.clone()), move |verb| {
        let is_background = matches!(verb, Verb::Renew | Verb::WatchedHolders | Verb::KindsSince);
        counted.fetch_add(usize::from(!is_background), Ordering::SeqCst);
        Box::pin(std::future::ready(None))
    });
    let kind = KindSettings { runner: RunnerKind::Worker, ..KindSettings::default() };
    let engine = Engine::builder(Arc::new(counting)).kind("mail", kind).start().await?;
    for _ in 0..100 {
        engine.submit_raw("mail", b"1".to_vec()).deadline_in(seconds(60)).await?;
    }
    let worker = engine.worker_joins("w", OWNER).await?;
    let leased = worker.claim(&mail()?, 100).await?;
    assert_eq!(leased.len(), 100);
    let done = |lease: Lease| WorkerResult {
        lease,
        report: Report::Done,
        took: Duration::ZERO,
        follow_ups: Vec::new(),
        result: None,
        code: None,
    };
    let results: Vec<_> = leased.iter().map(|one| done(one.lease())).collect();
    let calls = || calls.swap(0, Ordering::SeqCst);
    calls();
    let settled = worker.settle(results.clone()).await?;
    assert!(settled.iter().all(|one| *one == WorkerSettled::Settled(State::Succeeded)));
    assert!(calls() <= 5, "new results");
    assert_eq!(worker.settle(results).await?, settled, "an answer that was lost");
    assert!(calls() <= 5, "repeated results");
    let unknown = || done(Lease { job: engine.new_id(), ..leased[0].lease() });
    let lost = worker.settle((0..100).map(|_| unknown()).collect()).await?;
    assert_eq!(lost, [WorkerSettled::Lost; 100]);
    assert!(calls() <= 5, "results of unknown jobs");
    engine.shutdown(seconds(1)).await;
    Ok(())
}

/// Only the caller that created a worker can use it.
#[tokio::test(start_paused = true)]
async fn a_worker_is_found_by_its_owner_only() -> Tested {
    let store = store();
    let (engine, other) = (engine(&store).await?, engine(&store).await?);
    let owner = WorkerOwner::Token(TokenId::new(7));
    let id = engine.worker_joins("w", owner).await?.id();
    let strangers = [
        WorkerOwner::NoToken,
        WorkerOwner::Config,
        WorkerOwner::Unknown,
        WorkerOwner::Token(TokenId::new(8)),
    ];
    for node in [&engine, &other, &other] {
        assert_eq!(node.worker(id, owner).await?.id(), id);
        for stranger in strangers {
            let refused = node.worker(id, stranger).await;
            assert!(matches!(refused, Err(WorkerError::NotOwner(_))), "{stranger}: {refused:?}");
        }
        let own = node.worker(node.status().holder, owner).await;
        assert!(matches!(own, Err(WorkerError::NotOwner(_))), "an engine is not a worker: {own:?}");
    }
    other.worker(id, owner).await?.leave().await?;
    assert!(store.holder(id).await?.is_some_and(|holder| holder.died.is_some()));
    let gone = engine.worker(id, owner).await?.heartbeat(&Default::default(), None).await;
    assert!(matches!(gone, Err(WorkerError::Expired(_))), "{gone:?}");
    assert_eq!(store.books().await?.live, 0);
    engine.shutdown(seconds(1)).await;
    other.shutdown(seconds(1)).await;
    Ok(())
}

/// Creates an engine with a kind for workers with these settings.
async fn engine_with(
    store: &MemoryStore,
    settings: KindSettings,
    tenant: TenantSettings,
) -> Result<Engine, Box<dyn std::error::Error>> {
    let kind = KindSettings { runner: RunnerKind::Worker, ..settings };
    let builder = Engine::builder(Arc::new(store.clone())).kind("mail", kind);
    Ok(builder.tenant("acme", tenant).start().await?)
}

async fn submit(engine: &Engine, tenant: Option<&str>, count: usize) -> Tested {
    for _ in 0..count {
        let job = engine.submit_raw("mail", b"1".to_vec());
        match tenant {
            Some(tenant) => job.tenant(tenant).await?,
            None => job.await?,
        };
    }
    Ok(())
}

fn result(leased: &Leased, report: Report) -> WorkerResult {
    WorkerResult {
        lease: leased.lease(),
        report,
        took: Duration::ZERO,
        follow_ups: Vec::new(),
        result: None,
        code: None,
    }
}

fn down() -> Report {
    Report::retry(Failure::new(Category::Io, None, "connection refused"))
}

/// Waits until the kind is parked or unparked.
async fn becomes(store: &MemoryStore, parked: bool) -> Tested {
    for _ in 0..2_000 {
        if store.kinds().await?[0].parked.is_some() == parked {
            return Ok(());
        }
        tokio::time::sleep(millis(50)).await;
    }
    Err(format!("the kind is not {}", if parked { "parked" } else { "back" }).into())
}

#[tokio::test(start_paused = true)]
async fn a_kind_of_workers_is_parked_probed_by_one_and_comes_back() -> Tested {
    let store = store();
    let breaker = BreakerSettings { window: 4, open_for: seconds(5), ..Default::default() };
    let settings = KindSettings {
        breaker: Some(breaker),
        attempts_max: 100,
        backoff: rewheel::Backoff::fixed(millis(10)),
        ..KindSettings::default()
    };
    let engine = engine_with(&store, settings, TenantSettings::default()).await?;
    submit(&engine, None, 20).await?;
    let worker = engine.worker_joins("w", OWNER).await?;
    let leased = worker.claim(&mail()?, 8).await?;
    worker.settle(leased.iter().map(|one| result(one, down())).collect()).await?;
    becomes(&store, true).await?;
    assert!(worker.claim(&mail()?, 8).await?.is_empty(), "it is parked");
    // One worker at a time gets one job, and the first one fails.
    let mut probes = Vec::new();
    for report in [down(), Report::Done] {
        let mut probe = Vec::new();
        for _ in 0..60 {
            tokio::time::sleep(millis(500)).await;
            worker.heartbeat(&std::collections::BTreeSet::new(), None).await?;
            probe = worker.claim(&mail()?, 8).await?;
            if !probe.is_empty() {
                break;
            }
        }
        assert_eq!(probe.len(), 1);
        assert!(worker.claim(&mail()?, 8).await?.is_empty(), "one probe at a time");
        worker.settle(vec![result(&probe[0], report)]).await?;
        probes.push(tokio::time::Instant::now());
    }
    assert!(probes[1] - probes[0] >= seconds(5));
    becomes(&store, false).await?;
    // It comes back slowly, for all workers together.
    let other = engine.worker_joins("other", OWNER).await?;
    let first = worker.claim(&mail()?, 8).await?;
    assert_eq!(first.len(), 1);
    assert!(other.claim(&mail()?, 8).await?.is_empty());
    worker.settle(vec![result(&first[0], Report::Done)]).await?;
    assert_eq!(other.claim(&mail()?, 8).await?.len(), 2);
    engine.shutdown(seconds(1)).await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_workers_claim_keeps_the_limits_of_tenants_and_of_the_fleet() -> Tested {
    let store = store();
    let tenant = TenantSettings {
        concurrency_max: Some(3),
        fleet_concurrency_max: Some(4),
        ..TenantSettings::default()
    };
    let engine = engine_with(&store, KindSettings::default(), tenant).await?;
    submit(&engine, Some("acme"), 20).await?;
    let (one, other) =
        (engine.worker_joins("a", OWNER).await?, engine.worker_joins("b", OWNER).await?);
    let first = one.claim(&mail()?, 10).await?;
    assert_eq!(first.len(), 3, "as many as one worker may have");
    assert!(one.claim(&mail()?, 10).await?.is_empty());
    assert_eq!(other.claim(&mail()?, 10).await?.len(), 1, "as many as the fleet may have");
    one.settle(vec![result(&first[0], Report::Done), result(&first[1], Report::Done)]).await?;
    assert_eq!(other.claim(&mail()?, 10).await?.len(), 2);
    engine.shutdown(seconds(1)).await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_workers_retries_are_paid_for() -> Tested {
    let store = store();
    let budget = BudgetSettings { ratio: 0.0, floor: "1/m".parse()? };
    let settings = KindSettings {
        retry_budget: Some(budget),
        backoff: rewheel::Backoff::fixed(millis(10)),
        attempts_max: 100,
        ..KindSettings::default()
    };
    let engine = engine_with(&store, settings, TenantSettings::default()).await?;
    submit(&engine, None, 50).await?;
    let worker = engine.worker_joins("w", OWNER).await?;
    let (mut firsts, mut retries) = (0, 0);
    for _ in 0..120 {
        let leased = worker.claim(&mail()?, 100).await?;
        retries += leased.iter().filter(|one| one.job.attempt > 0).count();
        firsts += leased.iter().filter(|one| one.job.attempt == 0).count();
        worker.settle(leased.iter().map(|one| result(one, down())).collect()).await?;
        tokio::time::sleep(millis(500)).await;
        worker.heartbeat(&std::collections::BTreeSet::new(), None).await?;
    }
    assert_eq!(firsts, 50);
    assert!((1..=12).contains(&retries), "{retries} retries in a minute, at one a minute");
    engine.shutdown(seconds(1)).await;
    Ok(())
}

/// A job that crashed two workers may crash a third: it must not be blamed for another job's crash.
#[tokio::test(start_paused = true)]
async fn a_job_with_one_life_left_runs_alone_in_a_worker() -> Tested {
    let store = store();
    let settings = KindSettings { takeovers_max: 2, ..KindSettings::default() };
    let engine = engine_with(&store, settings, TenantSettings::default()).await?;
    submit(&engine, None, 3).await?;
    // The first worker dies with all of them: each becomes a suspect job. The second dies with one.
    for claims in [3, 1] {
        let worker = engine.worker_joins("dies", OWNER).await?;
        let mut died = 0;
        while died < claims {
            died += worker.claim(&mail()?, claims - died).await?.len();
            tokio::time::sleep(seconds(3)).await;
            worker.heartbeat(&std::collections::BTreeSet::new(), None).await?;
        }
        tokio::time::sleep(seconds(60)).await;
    }
    let worker = engine.worker_joins("lives", OWNER).await?;
    let mut done = 0;
    for _ in 0..200 {
        let leased = worker.claim(&mail()?, 10).await?;
        let is_last = |one: &Leased| one.job.takeovers_counted + 1 >= 2;
        let (last, all) = (leased.iter().filter(|one| is_last(one)).count(), leased.len());
        assert!(last == 0 || all == 1, "{all} suspects beside one that must run alone");
        done += all;
        worker.settle(leased.iter().map(|one| result(one, Report::Done)).collect()).await?;
        tokio::time::sleep(millis(500)).await;
        worker.heartbeat(&std::collections::BTreeSet::new(), None).await?;
    }
    assert_eq!(done, 3);
    engine.shutdown(seconds(1)).await;
    Ok(())
}

/// The limit of a worker counts all its jobs, also those that one read of the store does not return.
#[tokio::test(start_paused = true)]
async fn a_worker_with_thousands_of_jobs_keeps_its_limit() -> Tested {
    let store = store();
    let settings = KindSettings { concurrency_max: Some(1_500), ..KindSettings::default() };
    let engine = engine_with(&store, settings, TenantSettings::default()).await?;
    submit(&engine, None, 2_500).await?;
    let worker = engine.worker_joins("w", OWNER).await?;
    let mut has = 0;
    for _ in 0..5 {
        has += worker.claim(&mail()?, 1_000).await?.len();
    }
    assert_eq!(has, 1_500);
    engine.shutdown(seconds(1)).await;
    Ok(())
}

/// Jobs that a worker did not get, because the store failed halfway, do not use up the rate of their kind.
#[tokio::test(start_paused = true)]
async fn a_claim_that_fails_halfway_returns_its_starts() -> Tested {
    let store = store();
    let is_away = Arc::new(AtomicBool::new(false));
    let away = Arc::clone(&is_away);
    let faulty = FaultyStore::with_faults(Arc::new(store.clone()), move |verb| {
        let fails = verb == Verb::Start && away.load(Ordering::SeqCst);
        Box::pin(async move { fails.then_some(Fault::Before) })
    });
    let kind = KindSettings {
        runner: RunnerKind::Worker,
        rate: Some("100/s".parse()?),
        ..KindSettings::default()
    };
    // A store that is away is given up at once: the rate gains little meanwhile.
    let settings = EngineSettings { statement_timeout: millis(2), ..EngineSettings::default() };
    let builder = Engine::builder(Arc::new(faulty)).settings(settings).kind("mail", kind);
    let engine = builder.start().await?;
    tokio::time::sleep(seconds(3)).await;
    submit(&engine, None, 10).await?;
    // Jobs whose worker died are suspect: their start is recorded, which is what fails.
    let dies = engine.worker_joins("dies", OWNER).await?;
    assert_eq!(dies.claim(&mail()?, 100).await?.len(), 10, "the burst of the rate");
    tokio::time::sleep(seconds(60)).await;
    let worker = engine.worker_joins("w", OWNER).await?;
    is_away.store(true, Ordering::SeqCst);
    let failed = worker.claim(&mail()?, 100).await;
    assert!(matches!(failed, Err(WorkerError::Store(_))), "{failed:?}");
    is_away.store(false, Ordering::SeqCst);
    let claimed = worker.claim(&mail()?, 100).await?.len();
    assert!(claimed >= 8, "{claimed}: nothing was started, so the rate allows as many as before");
    engine.shutdown(seconds(1)).await;
    Ok(())
}
