//! Tests of engine metrics.

use crate::still::store;
use rewheel::{Category, Verdict, millis, seconds};
use rewheel_core::{Actor, Failure, KindChange, KindName, Report};
use rewheel_engine::meters::{Build, Distribution, Value};
use rewheel_engine::{BreakerSettings, Engine, EngineSettings, KindSettings};
use rewheel_stores::MemoryStore;
use rewheel_testkit::{Fault, FaultyStore, Verb};
use std::sync::Arc;

type Tested = Result<(), Box<dyn std::error::Error>>;

/// Finds one value; `None` if there is no such sample.
fn value(engine: &Engine, name: &str, labels: &[&str]) -> Option<Value> {
    let readings = engine.meters(None);
    let reading = readings.iter().find(|reading| reading.meter.name == name).expect("a meter");
    let sample = reading.samples.iter().find(|sample| sample.labels == labels);
    sample.map(|sample| sample.value.clone())
}

fn count(engine: &Engine, name: &str, labels: &[&str]) -> u64 {
    match value(engine, name, labels) {
        Some(Value::Count(count)) => count,
        None => 0,
        other => panic!("{name} is {other:?}"),
    }
}

fn distribution(engine: &Engine, name: &str, labels: &[&str]) -> Distribution {
    match value(engine, name, labels) {
        Some(Value::Distribution(read)) => read,
        other => panic!("{name} is {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn an_attempt_is_counted_with_its_time_and_its_result() -> Tested {
    let engine = Engine::builder(Arc::new(store()))
        .kind("work", KindSettings { attempts_max: 2, ..KindSettings::default() })
        .raw_handler("work", |_| async {
            tokio::time::sleep(millis(300)).await;
            let failure = Failure::new(Category::Io, None, "connection reset");
            Report::AttemptFailed { verdict: Verdict::Retry, failure }
        })
        .start()
        .await?;
    engine.submit_raw("work", Vec::new()).await?;
    tokio::time::sleep(seconds(10)).await;
    assert_eq!(count(&engine, "rewheel.jobs.submitted", &["work", "created"]), 1);
    assert_eq!(count(&engine, "rewheel.jobs.started", &["work"]), 1);
    assert_eq!(count(&engine, "rewheel.attempts", &["work"]), 2);
    assert_eq!(count(&engine, "rewheel.jobs.settled", &["work", "retry", "io"]), 1);
    assert_eq!(count(&engine, "rewheel.jobs.settled", &["work", "dead", "io"]), 1);
    assert_eq!(count(&engine, "rewheel.jobs.dead", &["work", "io"]), 1);
    let took = distribution(&engine, "rewheel.attempt.duration", &["work"]);
    assert_eq!((took.count, took.buckets[7], took.buckets[8]), (2, (0.25, 0), (0.5, 2)));
    assert_eq!(distribution(&engine, "rewheel.attempt.lateness", &["work"]).count, 2);
    let attempts = distribution(&engine, "rewheel.job.attempts", &["work"]);
    assert_eq!((attempts.count, attempts.buckets[0], attempts.buckets[1]), (1, (1.0, 0), (2.0, 1)));
    assert_eq!(count(&engine, "rewheel.concurrency.free", &[]), 256);
    assert!(count(&engine, "rewheel.lease.renewals", &["renewed"]) >= 2);
    assert!(count(&engine, "rewheel.store.calls", &["settle", "ok"]) >= 2);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn what_waits_is_counted_where_it_waits() -> Tested {
    let engine = Engine::builder(Arc::new(store()))
        .settings(EngineSettings {
            concurrency: 4,
            horizon: seconds(60),
            ..EngineSettings::default()
        })
        .raw_handler("work", |_| async {
            tokio::time::sleep(seconds(600)).await;
            Report::Done
        })
        .start()
        .await?;
    engine.submit_raw("work", Vec::new()).await?;
    engine.submit_raw("work", Vec::new()).delay(seconds(50)).await?;
    tokio::time::sleep(seconds(5)).await;
    let seen = ["rewheel.concurrency.max", "rewheel.concurrency.free", "rewheel.wheel.jobs"];
    assert_eq!(seen.map(|name| count(&engine, name, &[])), [4, 3, 1]);
    assert!(distribution(&engine, "rewheel.claim.batch", &[]).count >= 1);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_parking_counts_once_however_many_probes_fail() -> Tested {
    let breaker = BreakerSettings { window: 10, open_for: seconds(5), ..Default::default() };
    let settings = KindSettings { attempts_max: 100, breaker: Some(breaker), ..Default::default() };
    let engine = Engine::builder(Arc::new(store()))
        .kind("work", settings)
        .raw_handler("work", |_| async {
            let failure = Failure::new(Category::Timeout, Some("504"), "no answer");
            Report::AttemptFailed { verdict: Verdict::Retry, failure }
        })
        .start()
        .await?;
    for _ in 0..50 {
        engine.submit_raw("work", Vec::new()).await?;
    }
    tokio::time::sleep(seconds(4)).await;
    let before = count(&engine, "rewheel.attempts", &["work"]);
    assert_eq!(count(&engine, "rewheel.kind.parkings", &["work"]), 1);
    tokio::time::sleep(seconds(30)).await;
    assert!(count(&engine, "rewheel.attempts", &["work"]) > before, "no probe ran");
    assert_eq!(count(&engine, "rewheel.kind.parkings", &["work"]), 1);
    assert_eq!(distribution(&engine, "rewheel.job.attempts", &["work"]).count, 0);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn the_build_is_a_label() -> Tested {
    let plain = Engine::builder(Arc::new(store())).start().await?;
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(count(&plain, "rewheel.build_info", &[version, "unknown"]), 1);
    let build = Build { version: "2.1.0", commit: "4f2a9c1" };
    let named = Engine::builder(Arc::new(store())).built_from(build).start().await?;
    assert_eq!(count(&named, "rewheel.build_info", &["2.1.0", "4f2a9c1"]), 1);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_job_that_was_due_while_its_kind_was_parked_is_counted_once_it_starts() -> Tested {
    let engine = Engine::builder(Arc::new(store()))
        .raw_handler("work", |_| async { Report::Done })
        .start()
        .await?;
    let (kind, by) = (KindName::parse("work")?, Actor::new("ops"));
    let reason = "the bank is down".to_owned();
    engine.change_kind(&kind, &KindChange::Open { reason }, &by).await?;
    engine.submit_raw("work", Vec::new()).await?;
    tokio::time::sleep(seconds(9)).await;
    assert_eq!(count(&engine, "rewheel.attempts", &["work"]), 0);
    engine.change_kind(&kind, &KindChange::Close, &by).await?;
    tokio::time::sleep(seconds(9)).await;
    engine.submit_raw("work", Vec::new()).await?;
    tokio::time::sleep(seconds(9)).await;
    assert_eq!(count(&engine, "rewheel.attempts", &["work"]), 2);
    assert_eq!(count(&engine, "rewheel.jobs.delayed_by_parking", &["work"]), 1);
    let late = distribution(&engine, "rewheel.attempt.lateness", &["work"]);
    assert_eq!((late.buckets[11], late.buckets[12]), ((5.0, 1), (10.0, 2)));
    Ok(())
}

async fn one_of_two(store: &MemoryStore) -> Result<Engine, Box<dyn std::error::Error>> {
    let forever = |_| async {
        tokio::time::sleep(seconds(3_600)).await;
        Report::Done
    };
    let settings = EngineSettings { lease_ttl: seconds(3), ..EngineSettings::default() };
    let builder = Engine::builder(Arc::new(store.clone())).settings(settings);
    Ok(builder.raw_handler("work", forever).start().await?)
}

#[tokio::test(start_paused = true)]
async fn what_the_dead_had_is_counted_by_who_took_it_over() -> Tested {
    let store = store();
    let dying = one_of_two(&store).await?;
    dying.submit_raw("work", Vec::new()).await?;
    tokio::time::sleep(seconds(1)).await;
    let other = one_of_two(&store).await?;
    dying.kill();
    tokio::time::sleep(seconds(30)).await;
    assert_eq!(count(&other, "rewheel.takeovers", &["work"]), 1);
    assert_eq!(count(&dying, "rewheel.takeovers", &["work"]), 0);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_call_of_the_store_that_failed_is_counted_as_that() -> Tested {
    let faulty = Arc::new(FaultyStore::new(Arc::new(store())));
    let engine = Engine::builder(Arc::clone(&faulty) as Arc<_>)
        .raw_handler("work", |_| async { Report::Done })
        .start()
        .await?;
    faulty.fail_next(Verb::Renew, Fault::Before);
    tokio::time::sleep(seconds(20)).await;
    assert_eq!(count(&engine, "rewheel.store.calls", &["renew", "error"]), 1);
    assert_eq!(count(&engine, "rewheel.lease.renewals", &["failed"]), 1);
    let took = distribution(&engine, "rewheel.store.call.duration", &["renew"]);
    assert_eq!(took.count, 1 + count(&engine, "rewheel.store.calls", &["renew", "ok"]));
    Ok(())
}
