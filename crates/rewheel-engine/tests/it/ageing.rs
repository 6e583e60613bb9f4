//! Tests that low-priority jobs still run beside many urgent ones.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "the time of a test is simulated"
)]

use rewheel::{millis, seconds};
use rewheel_core::store::{Insert, Store};
use rewheel_core::{KindName, Limits, NewJob, Priority, Report, Tenant};
use rewheel_engine::{Engine, EngineSettings, TenantSettings};
use rewheel_stores::MemoryStore;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;

type Tested = Result<(), Box<dyn std::error::Error>>;

/// The tenants of the started jobs, in order.
type Starts = Arc<Mutex<Vec<String>>>;

/// An engine with four slots, whose attempts take `each`.
async fn engine(each: Duration, starts: &Starts) -> Result<Engine, Box<dyn std::error::Error>> {
    let seen = Arc::clone(starts);
    let engine = Engine::builder(Arc::new(MemoryStore::new()) as Arc<dyn Store>)
        .settings(EngineSettings { concurrency: 4, ..EngineSettings::default() })
        .tenant("heavy", TenantSettings { weight: 3, ..TenantSettings::default() })
        .raw_handler("work", move |context| {
            let tenant = context.job().lane.tenant.as_ref().unwrap().to_string();
            let nth = {
                let mut seen = seen.lock().unwrap();
                seen.push(tenant);
                seen.len()
            };
            // Slots become free one by one.
            let each = each * u32::try_from(nth % 7 + 4).unwrap() / 7;
            async move {
                tokio::time::sleep(each).await;
                Report::Done
            }
        })
        .start()
        .await?;
    Ok(engine)
}

async fn submit(engine: &Engine, tenant: &str, priority: u8, count: usize) -> Tested {
    let (kind, tenant) = (KindName::parse("work")?, Tenant::parse(tenant)?);
    let priority = Priority::new(priority)?;
    let new = |_| NewJob {
        tenant: Some(tenant.clone()),
        priority,
        ..NewJob::new(engine.new_id(), kind.clone(), Vec::new())
    };
    let jobs: Vec<NewJob> = (0..count).map(new).collect();
    for part in jobs.chunks(Limits::SUBMIT_MAX) {
        engine.insert(&Insert::new(part)).await?;
    }
    Ok(())
}

fn count(starts: &Starts, tenant: &str) -> usize {
    starts.lock().unwrap().iter().filter(|one| *one == tenant).count()
}

/// Forty urgent jobs start each second, and there is always another: the last job still starts within seconds, not only after the
/// flood. This holds for short attempts and for attempts longer than an engine keeps waiting jobs.
#[tokio::test(start_paused = true)]
async fn a_flood_of_urgent_jobs_does_not_starve_the_others() -> Tested {
    for (each, wait_max) in [(millis(100), seconds(3)), (seconds(20), seconds(300))] {
        let starts = Starts::default();
        let engine = engine(each, &starts).await?;
        submit(&engine, "urgent", 9, 50_000).await?;
        tokio::time::sleep(seconds(1)).await;
        let submitted = Instant::now();
        submit(&engine, "patient", 0, 2).await?;
        while count(&starts, "patient") < 2 {
            assert!(submitted.elapsed() < wait_max, "{each:?}: {:?}", submitted.elapsed());
            tokio::time::sleep(millis(10)).await;
        }
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn urgent_jobs_have_most_of_the_places() -> Tested {
    let starts = Starts::default();
    let engine = engine(millis(100), &starts).await?;
    submit(&engine, "patient", 0, 5_000).await?;
    submit(&engine, "urgent", 9, 5_000).await?;
    tokio::time::sleep(seconds(60)).await;
    let (urgent, patient) = (count(&starts, "urgent"), count(&starts, "patient"));
    assert!(patient * 4 < urgent && patient * 20 > urgent, "{urgent} beside {patient}");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_tenant_is_given_its_weights_share_of_the_places() -> Tested {
    let starts = Starts::default();
    let engine = engine(millis(100), &starts).await?;
    submit(&engine, "heavy", 5, 5_000).await?;
    submit(&engine, "light", 5, 5_000).await?;
    tokio::time::sleep(seconds(60)).await;
    let (heavy, light) = (count(&starts, "heavy"), count(&starts, "light"));
    let ratio = heavy as f64 / light as f64;
    assert!((2.7..=3.3).contains(&ratio), "{heavy} beside {light}");
    Ok(())
}
