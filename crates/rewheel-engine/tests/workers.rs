//! Workers in other processes, as an engine serves them.

#[path = "support/still.rs"]
mod still;

use self::still::store;
use rewheel::seconds;
use rewheel_core::store::{Insert, LeaseStore, ReadStore, SubmitStore};
use rewheel_core::{KindName, Lease, NewJob, Report, State, Tenant, TokenId, When, WorkerOwner};
use rewheel_engine::{Engine, KindSettings, RunnerKind, WorkerError, WorkerResult, WorkerSettled};
use rewheel_stores::MemoryStore;
use std::sync::Arc;
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
    // The next claims begin where this one stopped, and find the next due job wherever it is.
    let first = of("tenant-00000".to_owned(), Duration::ZERO)?;
    store.insert(&Insert::new(std::slice::from_ref(&first))).await?;
    let claimed = worker.claim(&mail()?, 10).await?;
    assert_eq!(claimed.iter().map(|one| one.job.id).collect::<Vec<_>>(), [first.id]);
    assert!(worker.claim(&mail()?, 10).await?.is_empty());
    engine.shutdown(seconds(1)).await;
    Ok(())
}

/// A settle of many is a handful of calls of the store, whatever the jobs are by then.
#[tokio::test(start_paused = true)]
async fn many_results_are_settled_together() -> Tested {
    let store = store();
    let engine = engine(&store).await?;
    for _ in 0..100 {
        engine.submit_raw("mail", b"1".to_vec()).deadline_in(seconds(60)).await?;
    }
    let worker = engine.worker_joins("w", OWNER).await?;
    let leased = worker.claim(&mail()?, 100).await?;
    assert_eq!(leased.len(), 100);
    let done = |lease: Lease| WorkerResult { lease, report: Report::Done, took: Duration::ZERO };
    let results: Vec<_> = leased.iter().map(|one| done(one.lease())).collect();
    let settled = worker.settle(results.clone()).await?;
    assert!(settled.iter().all(|one| *one == WorkerSettled::Settled(State::Succeeded)));
    assert_eq!(worker.settle(results).await?, settled, "an answer that was lost");
    let other = Lease { job: engine.new_id(), ..leased[0].lease() };
    assert_eq!(worker.settle(vec![done(other)]).await?, [WorkerSettled::Lost]);
    engine.shutdown(seconds(1)).await;
    Ok(())
}

/// Only the caller that created a worker gets hold of it.
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
