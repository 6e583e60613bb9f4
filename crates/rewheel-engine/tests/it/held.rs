//! Tests of the reported reason why a job waits.

use crate::still::store;
use rewheel::{Backoff, Category, millis, seconds};
use rewheel_core::store::{Change, ChangeVerb, Filter, PageRequest, Store};
use rewheel_core::{
    Actor, DueReason, Failure, Job, JobId, KindChange, KindName, Report, Status, WorkerOwner,
};
use rewheel_engine::{
    BudgetSettings, Engine, EngineSettings, HeldJob, HeldReason, KindSettings, RunnerKind,
    TenantSettings,
};
use std::sync::Arc;

type Tested = Result<(), Box<dyn std::error::Error>>;

/// An engine with two slots, whose attempts take an hour.
async fn engine(settings: KindSettings) -> Result<Engine, Box<dyn std::error::Error>> {
    let tenant = TenantSettings { concurrency_max: Some(1), ..TenantSettings::default() };
    let builder = Engine::builder(Arc::new(store()) as Arc<dyn Store>)
        .settings(EngineSettings { concurrency: 2, ..EngineSettings::default() })
        .kind("pay", settings.clone())
        .tenant("acme", tenant);
    let builder = match settings.runner {
        RunnerKind::Worker => builder,
        RunnerKind::Handler | RunnerKind::Callback => builder.raw_handler("pay", |_| async {
            tokio::time::sleep(seconds(3_600)).await;
            Report::Done
        }),
    };
    Ok(builder.start().await?)
}

async fn held(engine: &Engine, job: JobId) -> Result<Option<HeldJob>, Box<dyn std::error::Error>> {
    let job = engine.store().get(job).await?.ok_or("the job is gone")?;
    let now = engine.store().now().await?;
    Ok(engine.held(&[&job], now).await?.pop().flatten())
}

/// Submits jobs, and returns why the last one waits.
async fn last_of(
    engine: &Engine,
    tenant: Option<&str>,
    count: usize,
) -> Result<Option<HeldJob>, Box<dyn std::error::Error>> {
    let mut last = None;
    for _ in 0..count {
        let submit = engine.submit_raw("pay", Vec::new());
        let submit = match tenant {
            Some(tenant) => submit.tenant(tenant),
            None => submit,
        };
        last = Some(submit.await?.id);
        tokio::time::sleep(millis(300)).await;
    }
    held(engine, last.ok_or("none was submitted")?).await
}

fn reason(held: Option<&HeldJob>) -> Option<HeldReason> {
    held.map(|held| held.because)
}

#[tokio::test(start_paused = true)]
async fn all_slots_are_taken() -> Tested {
    let engine = engine(KindSettings::default()).await?;
    assert_eq!(last_of(&engine, None, 1).await?, None, "it runs");
    let held = last_of(&engine, None, 6).await?;
    assert_eq!(reason(held.as_ref()), Some(HeldReason::Concurrency));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_tenant_has_reached_its_limit() -> Tested {
    let engine = engine(KindSettings::default()).await?;
    let held = last_of(&engine, Some("acme"), 4).await?;
    assert_eq!(reason(held.as_ref()), Some(HeldReason::TenantLimit));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_rate_is_used_up_until_a_time() -> Tested {
    let engine =
        engine(KindSettings { rate: "1/h".parse().ok(), ..KindSettings::default() }).await?;
    let held = last_of(&engine, None, 2).await?.ok_or("it waits")?;
    assert_eq!(held.because, HeldReason::RateLimit);
    let left = held.until.ok_or("until when")?.since(engine.store().now().await?);
    assert!(left > seconds(3_590) && left <= seconds(3_600), "{left:?}");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn the_slots_of_the_fleet_are_taken() -> Tested {
    let settings = KindSettings { fleet_concurrency_max: Some(1), ..KindSettings::default() };
    let engine = engine(settings).await?;
    let held = last_of(&engine, None, 2).await?.ok_or("it waits")?;
    assert_eq!(held.because, HeldReason::Concurrency);
    assert_eq!(held.text, "the kind is at its limit of 1 running jobs in all nodes together");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_person_has_paused_or_parked_it() -> Tested {
    let engine = engine(KindSettings::default()).await?;
    let (kind, ops) = (KindName::parse("pay")?, Actor::new("ops"));
    engine.change_kind(&kind, &KindChange::Pause, &ops).await?;
    let waiting = engine.submit_raw("pay", Vec::new()).delay(seconds(60)).await?.id;
    assert_eq!(reason(held(&engine, waiting).await?.as_ref()), Some(HeldReason::Paused));
    engine.change_kind(&kind, &KindChange::Resume, &ops).await?;
    assert_eq!(held(&engine, waiting).await?, None, "it is not due yet, which is another reason");
    let open = KindChange::Open { reason: "the bank is closed".to_owned() };
    engine.change_kind(&kind, &open, &ops).await?;
    let parked = held(&engine, waiting).await?.ok_or("it waits")?;
    assert_eq!(parked.because, HeldReason::Parked);
    assert!(parked.text.contains("the bank is closed"), "{}", parked.text);
    engine.change(Change::new(waiting, ChangeVerb::Pause), &ops).await?;
    assert_eq!(reason(held(&engine, waiting).await?.as_ref()), Some(HeldReason::Hold));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn no_worker_is_there() -> Tested {
    let settings = KindSettings { runner: RunnerKind::Worker, ..KindSettings::default() };
    let engine = engine(settings).await?;
    let job = engine.submit_raw("pay", Vec::new()).await?.id;
    assert_eq!(reason(held(&engine, job).await?.as_ref()), Some(HeldReason::NoRunner));
    engine.worker_joins("w", WorkerOwner::NoToken).await?;
    assert_eq!(held(&engine, job).await?, None);
    Ok(())
}

/// Lists the jobs that wait in the store for a retry budget.
async fn put_off(engine: &Engine) -> Result<Vec<Job>, Box<dyn std::error::Error>> {
    let page = PageRequest { scan_max: 1_000, ..PageRequest::first(100) };
    let jobs = engine.store().list(&Filter::default(), &page).await?.items;
    let now = engine.store().now().await?;
    let waits = |job: &Job| job.because == DueReason::RetryBudget && job.due > now;
    let jobs = jobs.into_iter().filter(|job| matches!(job.status, Status::Scheduled));
    Ok(jobs.filter(waits).collect())
}

#[tokio::test(start_paused = true)]
async fn a_retry_budget_is_used_up() -> Tested {
    let budget = BudgetSettings { ratio: 0.0, floor: "1/m".parse()? };
    let settings = KindSettings {
        retry_budget: Some(budget),
        backoff: Backoff::fixed(millis(10)),
        attempts_max: 100,
        ..KindSettings::default()
    };
    let failure = || Failure::new(Category::Io, None, "connection refused");
    let engine = Engine::builder(Arc::new(store()) as Arc<dyn Store>)
        .kind("pay", settings)
        .raw_handler("pay", move |_| async move { Report::retry(failure()) })
        .start()
        .await?;
    for _ in 0..50 {
        engine.submit_raw("pay", Vec::new()).await?;
    }
    let mut waiting = Vec::new();
    for _ in 0..200 {
        tokio::time::sleep(millis(100)).await;
        waiting = put_off(&engine).await?;
        if !waiting.is_empty() {
            break;
        }
    }
    let job = waiting.first().ok_or("no retry was put off")?;
    let now = engine.store().now().await?;
    let held = engine.held(&[job], now).await?.remove(0).ok_or("it waits")?;
    assert_eq!((held.because, held.until), (HeldReason::Budget, Some(job.due)));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn another_node_may_run_its_kind() -> Tested {
    let store: Arc<dyn Store> = Arc::new(store());
    let alone = Engine::builder(Arc::clone(&store)).kind("pay", KindSettings::default());
    let alone = alone.start().await?;
    let job = alone.submit_raw("pay", Vec::new()).await?.id;
    let text = held(&alone, job).await?.map(|held| held.text);
    assert_eq!(text.as_deref(), Some("no node can run jobs of this kind"));
    let other = Engine::builder(store).start().await?;
    let text = held(&alone, job).await?.map(|held| held.text);
    assert_eq!(
        text.as_deref(),
        Some("this node cannot run jobs of this kind; another node may run the job")
    );
    drop(other);
    Ok(())
}

/// A job that an engine has claimed and cannot start yet waits as much as one in the store.
#[tokio::test(start_paused = true)]
async fn a_job_that_an_engine_has_claimed_waits_too() -> Tested {
    let shared: Arc<dyn Store> = Arc::new(store());
    let slow = |_| async {
        tokio::time::sleep(seconds(3_600)).await;
        Report::Done
    };
    let builder = || {
        let settings = EngineSettings { concurrency: 2, ..EngineSettings::default() };
        Engine::builder(Arc::clone(&shared)).settings(settings)
    };
    let engine = builder().raw_handler("pay", slow).start().await?;
    let other = builder().start().await?;
    let mut jobs = Vec::new();
    for _ in 0..3 {
        jobs.push(engine.submit_raw("pay", Vec::new()).await?.id);
        tokio::time::sleep(millis(300)).await;
    }
    let [running, _, waiting] = jobs[..] else { return Err("three jobs".into()) };
    for job in [running, waiting] {
        let job = shared.get(job).await?.ok_or("the job is gone")?;
        assert!(matches!(job.status, Status::Leased { .. }), "{job:?}");
    }
    assert_eq!(held(&engine, running).await?, None, "it runs");
    let found = held(&engine, waiting).await?;
    assert_eq!(reason(found.as_ref()), Some(HeldReason::Concurrency), "{found:?}");
    assert_eq!(held(&other, waiting).await?, None, "only its engine knows why it waits");
    let kind = KindName::parse("pay")?;
    engine.change_kind(&kind, &KindChange::Pause, &Actor::new("test")).await?;
    let found = held(&engine, waiting).await?;
    assert_eq!(reason(found.as_ref()), Some(HeldReason::Paused), "{found:?}");
    Ok(())
}
