//! Tests that the cost of schedules and bulk operations does not depend on other jobs.

use crate::still::store;
use rewheel::{Random, minutes};
use rewheel_core::store::{Filter, Insert, PageRequest, SubmitStore as _};
use rewheel_core::{Actor, JobId, KindName, NewJob, Report, Tenant, Timestamp, When};
use rewheel_engine::{
    Bulk, BulkVerb, Engine, EngineBuilder, FollowUp, Schedule, ScheduleError, Selection,
};
use rewheel_stores::MemoryStore;
use std::sync::Arc;

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
