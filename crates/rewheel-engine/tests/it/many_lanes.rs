//! Tests of an engine with thousands of tenants: it reads the lanes that change, not all of them.

#![expect(clippy::unwrap_used, reason = "test code")]

use crate::still::store;
use rewheel::seconds;
use rewheel_core::store::{Insert, ReadStore, SubmitStore, WorkStore};
use rewheel_core::{KindName, NewJob, Report, Tenant, When, WorkerOwner};
use rewheel_engine::{Engine, KindSettings, RunnerKind};
use rewheel_stores::MemoryStore;
use rewheel_testkit::{FaultyStore, Verb};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

type Tested = Result<(), Box<dyn std::error::Error>>;

/// Five full pages of lanes, and one more.
const TENANTS: usize = 5_100;
const PAGES: usize = 6;

const IN_AN_HOUR: Duration = Duration::from_secs(3_600);

/// The number of calls of each verb.
#[derive(Clone, Default)]
struct Calls(Arc<Mutex<HashMap<Verb, usize>>>);

impl Calls {
    fn of(&self, verb: Verb) -> usize {
        self.0.lock().unwrap().get(&verb).copied().unwrap_or_default()
    }

    fn reset(&self) {
        self.0.lock().unwrap().clear();
    }

    fn store(&self, inner: &MemoryStore) -> FaultyStore {
        let counts = Arc::clone(&self.0);
        FaultyStore::with_faults(Arc::new(inner.clone()), move |verb| {
            *counts.lock().unwrap().entry(verb).or_default() += 1;
            Box::pin(async { None })
        })
    }
}

fn job(engine: &Engine, tenant: usize, delay: Duration) -> NewJob {
    let kind = KindName::parse("mail").unwrap();
    let job = NewJob::new(engine.new_id(), kind, b"1".to_vec());
    let tenant = Tenant::parse(&format!("tenant-{tenant:05}")).ok();
    NewJob { tenant, due: When::In(delay), ..job }
}

/// Stores a job of each tenant that is due later.
async fn fill(store: &MemoryStore, engine: &Engine, delay: Duration) -> Tested {
    let jobs: Vec<NewJob> = (0..TENANTS).map(|tenant| job(engine, tenant, delay)).collect();
    for jobs in jobs.chunks(1_000) {
        store.insert(&Insert::new(jobs)).await?;
    }
    Ok(())
}

async fn runs(store: &MemoryStore, job: NewJob, within: Duration) -> Tested {
    store.insert(&Insert::new(std::slice::from_ref(&job))).await?;
    tokio::time::sleep(within).await;
    let found = store.get(job.id).await?.ok_or("it was stored")?;
    assert!(found.state().is_final(), "{found:?}");
    Ok(())
}

/// An idle engine reads one page of lanes with each poll, and one lane when a job wakes it.
#[tokio::test(start_paused = true)]
async fn an_engine_reads_what_changed() -> Tested {
    let (store, calls) = (store(), Calls::default());
    let builder = Engine::builder(Arc::new(calls.store(&store)));
    let engine = builder.raw_handler("mail", |_| async { Report::Done }).start().await?;
    fill(&store, &engine, IN_AN_HOUR).await?;
    tokio::time::sleep(seconds(30)).await;

    calls.reset();
    tokio::time::sleep(seconds(100)).await;
    let pages = calls.of(Verb::Lanes);
    assert!((90..=110).contains(&pages), "{pages} pages in a hundred polls");
    assert_eq!(calls.of(Verb::LaneHeads), 0);

    for tenant in [17, TENANTS - 1, TENANTS + 17] {
        calls.reset();
        runs(&store, job(&engine, tenant, Duration::ZERO), rewheel::millis(500)).await?;
        assert!(calls.of(Verb::Lanes) <= 1, "{} pages for one job", calls.of(Verb::Lanes));
        assert!(calls.of(Verb::LaneHeads) <= 2, "{} reads", calls.of(Verb::LaneHeads));
    }
    engine.shutdown(seconds(1)).await;
    Ok(())
}

/// Jobs of all tenants that become due at the same time all run, without a listing of lanes for each claim.
#[tokio::test(start_paused = true)]
async fn all_lanes_that_become_due_have_their_turn() -> Tested {
    let (store, calls) = (store(), Calls::default());
    let builder = Engine::builder(Arc::new(calls.store(&store)));
    let engine = builder.raw_handler("mail", |_| async { Report::Done }).start().await?;
    fill(&store, &engine, seconds(60)).await?;
    tokio::time::sleep(seconds(50)).await;
    calls.reset();
    tokio::time::sleep(seconds(20)).await;
    let kinds = [KindName::parse("mail")?];
    assert_eq!(store.lanes(&kinds, None, 10).await?, [], "every tenant had its turn");
    let (pages, claims) = (calls.of(Verb::Lanes), calls.of(Verb::Claim));
    assert!(pages <= 25 + PAGES, "{pages} pages for {claims} claims");
    engine.shutdown(seconds(1)).await;
    Ok(())
}

/// Without wake-ups, as behind a connection pooler, an engine lists all lanes with each poll rather than miss jobs.
#[tokio::test(start_paused = true)]
async fn without_wake_ups_jobs_are_found_by_a_poll() -> Tested {
    let (store, calls) = (store(), Calls::default());
    let silent = calls.store(&store).silent();
    let builder = Engine::builder(Arc::new(silent));
    let engine = builder.raw_handler("mail", |_| async { Report::Done }).start().await?;
    fill(&store, &engine, IN_AN_HOUR).await?;
    tokio::time::sleep(seconds(30)).await;
    for tenant in [17, TENANTS - 1] {
        runs(&store, job(&engine, tenant, Duration::ZERO), seconds(2)).await?;
    }
    engine.shutdown(seconds(1)).await;
    Ok(())
}

/// Many waiting workers read lanes together, as one engine does.
#[tokio::test(start_paused = true)]
async fn workers_share_what_was_read() -> Tested {
    let (store, calls) = (store(), Calls::default());
    let kind = KindSettings { runner: RunnerKind::Worker, ..KindSettings::default() };
    let builder = Engine::builder(Arc::new(calls.store(&store)));
    let engine = builder.kind("mail", kind).start().await?;
    fill(&store, &engine, IN_AN_HOUR).await?;
    let mail = [KindName::parse("mail")?];
    let mut workers = Vec::new();
    for number in 0..50 {
        workers.push(engine.worker_joins(&format!("w{number}"), WorkerOwner::NoToken).await?);
    }
    assert!(workers[0].claim(&mail, 10).await?.is_empty());
    calls.reset();
    let new = job(&engine, 17, Duration::ZERO);
    store.insert(&Insert::new(std::slice::from_ref(&new))).await?;
    let mut got = 0;
    for worker in &workers {
        got += worker.claim(&mail, 10).await?.len();
    }
    assert_eq!(got, 1);
    assert!(calls.of(Verb::Lanes) <= 1, "{} pages", calls.of(Verb::Lanes));
    assert!(calls.of(Verb::LaneHeads) <= 2, "{} reads", calls.of(Verb::LaneHeads));
    engine.shutdown(seconds(1)).await;
    Ok(())
}
