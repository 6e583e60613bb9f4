//! Tests that the cost of schedules and bulk operations does not depend on other jobs.

use crate::still::store;
use rewheel::{Random, millis, minutes, seconds};
use rewheel_core::store::{Filter, Insert, PageRequest, SubmitStore as _};
use rewheel_core::{Actor, JobId, KindName, NewJob, Report, Tenant, Timestamp, When};
use rewheel_engine::{
    Bulk, BulkVerb, Engine, EngineBuilder, EngineSettings, FollowUp, Overlap, Schedule,
    ScheduleError, Selection,
};
use rewheel_stores::MemoryStore;
use rewheel_testkit::{FaultyStore, Verb};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

type Tested = Result<(), Box<dyn std::error::Error>>;

fn ops() -> Actor {
    Actor::new("ops")
}

fn builder(store: &MemoryStore) -> EngineBuilder {
    Engine::builder(Arc::new(store.clone())).raw_handler("report", |_| async { Report::Done })
}

fn each_minute() -> Result<Schedule, ScheduleError> {
    Schedule::every(minutes(1), FollowUp::raw("report", b"{}".to_vec()))
}

/// Stores jobs whose ids are newer than all others.
async fn store_newer(store: &MemoryStore) -> Tested {
    let random = Random::seeded(1);
    let mut jobs = Vec::new();
    for _ in 0..50 {
        let id = JobId::new(Timestamp::from_millis(4_000_000_000_000), &random);
        let due = When::In(minutes(600));
        jobs.push(NewJob { due, ..NewJob::new(id, KindName::parse("report")?, Vec::new()) });
    }
    store.insert(&Insert::new(&jobs)).await?;
    Ok(())
}

/// A page reads few rows, and still has every schedule.
#[tokio::test(start_paused = true)]
async fn newer_jobs_hide_no_schedule() -> Tested {
    let store = store();
    let engine = builder(&store).start().await?;
    for nth in 0..40 {
        engine.put_schedule(&format!("report-{nth}"), &each_minute()?, &ops()).await?;
    }
    store_newer(&store).await?;
    let page = PageRequest { scan_max: 45, ..PageRequest::first(100) };
    let listed = engine.schedules(&page).await?;
    assert_eq!((listed.items.len(), listed.next), (40, None));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn newer_jobs_hide_no_operation() -> Tested {
    let store = store();
    let engine = builder(&store).start().await?;
    let order = |tenant: &str| -> Result<Bulk, Box<dyn std::error::Error>> {
        let tenant = Some(Tenant::parse(tenant)?);
        let selection = Selection::from(Filter { tenant, ..Filter::default() });
        Ok(Bulk::new(BulkVerb::Redrive, selection))
    };
    for nth in 0..40 {
        let tenant = if nth % 2 == 0 { "acme" } else { "other" };
        engine.operate(&order(tenant)?, &ops()).await?;
    }
    store_newer(&store).await?;
    let page = PageRequest { scan_max: 45, ..PageRequest::first(20) };
    let first = engine.operations(&page, None).await?;
    assert_eq!(first.items.len(), 20);
    let rest = engine.operations(&PageRequest { cursor: first.next, ..page }, None).await?;
    assert_eq!((rest.items.len(), rest.next), (20, None));
    let acme = Tenant::parse("acme")?;
    let own = engine.operations(&page, Some(&acme)).await?;
    assert_eq!(own.items.len(), 20);
    assert!(own.items.iter().all(|one| one.tenant.as_ref() == Some(&acme)));
    Ok(())
}

/// A schedule asks for its latest job, however many it has submitted.
#[tokio::test(start_paused = true)]
async fn an_instant_lists_no_earlier_jobs() -> Tested {
    let calls: Arc<Mutex<BTreeMap<String, usize>>> = Arc::default();
    let counted = Arc::clone(&calls);
    let counting = FaultyStore::with_faults(Arc::new(store()), move |verb| {
        if let Ok(mut calls) = counted.lock() {
            *calls.entry(format!("{verb:?}")).or_default() += 1;
        }
        Box::pin(std::future::ready(None))
    });
    let engine = Engine::builder(Arc::new(counting))
        .raw_handler("report", |_| async { Report::Done })
        .start()
        .await?;
    engine.put_schedule("minutely", &each_minute()?.overlap(Overlap::Skip), &ops()).await?;
    if let Ok(mut calls) = calls.lock() {
        calls.clear();
    }
    tokio::time::sleep(minutes(20)).await;
    let (lists, asked) = match calls.lock() {
        Ok(calls) => (calls.get("List").copied(), calls.get("Ended").copied()),
        Err(_) => (None, None),
    };
    // Nothing else asks: no client waits for a job.
    assert_eq!((lists, asked), (None, Some(19)), "{:?}: {:?}", Verb::List, Verb::Ended);
    let status = engine.schedule("minutely").await?.ok_or("it was put")?;
    assert_eq!((status.fired, status.skipped), (20, 0));
    Ok(())
}

/// Such a job could be submitted by hand, but not together with the result of the schedule's own job.
#[tokio::test(start_paused = true)]
async fn a_job_that_is_too_large_to_fire_is_refused() -> Tested {
    let store = store();
    let settings = EngineSettings { payload_bytes_max: 400 * 1024, ..EngineSettings::default() };
    let engine = builder(&store).settings(settings).start().await?;
    let of = |bytes| Schedule::every(minutes(1), FollowUp::raw("report", vec![b'1'; bytes]));
    let refused = engine.put_schedule("large", &of(256 * 1024 + 1)?, &ops()).await;
    let Err(ScheduleError::Field { field, why }) = &refused else { panic!("{refused:?}") };
    assert_eq!(*field, "job.payload");
    assert_eq!(why, "has 262145 bytes: the limit for the job of a schedule is 262144");
    assert_eq!(engine.schedule("large").await?, None);
    engine.put_schedule("large", &of(256 * 1024)?, &ops()).await?;
    tokio::time::sleep(minutes(2)).await;
    let status = engine.schedule("large").await?.ok_or("it was put")?;
    assert_eq!((status.fired, status.failure), (2, None));
    Ok(())
}

/// Schedules that are due at the same instant all fire, in a store that writes to a disk: no instant has two jobs. Each asks whether its
/// latest job has ended.
#[tokio::test]
async fn many_schedules_fire_at_one_instant_in_a_file() -> Tested {
    const SCHEDULES: usize = 200;
    let folder = tempfile::tempdir()?;
    let url = format!("sqlite://{}?synchronous=normal", folder.path().join("rewheel.db").display());
    let store = rewheel_stores::connect(&url).await?;
    let builder =
        || Engine::builder(Arc::clone(&store)).raw_handler("report", |_| async { Report::Done });
    let engines = [builder().start().await?, builder().start().await?];
    let each_second = Schedule::every(seconds(1), FollowUp::raw("report", b"{}".to_vec()))?;
    assert_eq!(each_second.overlap, Overlap::Skip, "the default");
    let mut ids = Vec::new();
    for nth in 0..SCHEDULES {
        let engine = &engines[nth % 2];
        ids.push(engine.put_schedule(&format!("tick-{nth}"), &each_second, &ops()).await?.id);
    }
    let page = PageRequest::first(1_000);
    loop {
        let all = engines[0].schedules(&page).await?.items;
        assert_eq!(all.len(), SCHEDULES);
        if all.iter().all(|one| one.fired >= 2) {
            break;
        }
        tokio::time::sleep(millis(100)).await;
    }
    for engine in &engines {
        engine.shutdown(seconds(10)).await;
    }
    for id in ids {
        let filter = Filter { parent: Some(id), ..Filter::default() };
        let jobs = store.list(&filter, &page).await?.items;
        let instants: BTreeSet<Option<Timestamp>> = jobs.iter().map(|job| job.instant).collect();
        assert_eq!(instants.len(), jobs.len(), "two jobs of one instant");
    }
    Ok(())
}
