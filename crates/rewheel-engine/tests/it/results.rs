//! Tests of results of jobs, and of waiting for them.

use crate::still::store;
use rewheel::{Backoff, millis, seconds};
use rewheel_core::store::{AttemptEnd, ReadStore, Store};
use rewheel_core::{
    ContentType, DropReason, JobId, JobResult, KindName, Lease, Report, State, StoredResult,
    SuccessCode, WorkerOwner,
};
use rewheel_engine::{
    Engine, EngineBuilder, EngineSettings, JobContext, JobKind, KindSettings, ResultError,
    RunnerKind, WorkerResult,
};
use rewheel_stores::MemoryStore;
use rewheel_testkit::{FaultyStore, Verb};
use serde::{Deserialize, Serialize, Serializer};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

type Tested = Result<(), Box<dyn std::error::Error>>;

#[derive(Serialize, Deserialize)]
struct Charge {
    order: u64,
}

impl JobKind for Charge {
    const NAME: &'static str = "charge";
}

#[derive(Serialize, Deserialize, Debug, PartialEq)]
struct Paid {
    order: u64,
    note: String,
}

fn keeping() -> KindSettings {
    KindSettings {
        result: true,
        attempts_max: 2,
        backoff: Backoff::fixed(millis(50)),
        ..KindSettings::default()
    }
}

fn builder(store: &MemoryStore) -> EngineBuilder {
    Engine::builder(Arc::new(store.clone())).kind("charge", keeping())
}

async fn paid(_: JobContext, job: Charge) -> Result<Paid, Report> {
    match job.order {
        0 => Err(Report::dead("no order has the number 0")),
        order => Ok(Paid { order, note: "paid".to_owned() }),
    }
}

#[tokio::test(start_paused = true)]
async fn the_value_of_a_handler_is_the_result_of_its_job() -> Tested {
    let store = store();
    let engine = builder(&store).handler(paid).start().await?;
    let job = engine.submit(Charge { order: 17 }).await?;
    let result: Paid = job.result(seconds(30)).await?;
    assert_eq!(result, Paid { order: 17, note: "paid".to_owned() });
    let stored = store.result(job.id).await?.expect("it is kept");
    let body = br#"{"order":17,"note":"paid"}"#.to_vec();
    assert_eq!(stored, StoredResult::Kept(JobResult { content_type: ContentType::json(), body }));
    // A later reader gets it too, and another type says why not.
    let again: Paid = job.result(Duration::ZERO).await?;
    assert_eq!(again, result);
    let wrong = job.result::<u64>(Duration::ZERO).await.unwrap_err();
    assert!(matches!(wrong, ResultError::Unreadable { .. }), "{wrong}");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_job_that_fails_says_so_instead() -> Tested {
    let engine = builder(&store()).handler(paid).start().await?;
    let job = engine.submit(Charge { order: 0 }).await?;
    let error = job.result::<Paid>(seconds(30)).await.unwrap_err();
    let ResultError::Failed { job: id, state, failure } = error else { panic!("{error}") };
    assert_eq!((id, state), (job.id, State::Dead));
    assert_eq!(failure.expect("it failed").message(), "no order has the number 0");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_is_over_names_the_job_which_goes_on() -> Tested {
    let store = store();
    let slow = |_: JobContext, job: Charge| async move {
        tokio::time::sleep(seconds(20)).await;
        Ok::<u64, Report>(job.order)
    };
    let engine = builder(&store).handler(slow).start().await?;
    let job = engine.submit(Charge { order: 17 }).await?;
    let error = job.result::<u64>(seconds(5)).await.unwrap_err();
    let ResultError::TimedOut { job: id, state, .. } = error else { panic!("{error}") };
    assert_eq!((id, state), (job.id, State::Leased));
    assert_eq!(engine.result(id, seconds(30)).await?.body, b"17");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn without_a_result_the_reason_is_told() -> Tested {
    /// Cannot be written as JSON.
    struct Unwritable;
    impl Serialize for Unwritable {
        fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            Err(serde::ser::Error::custom("no words for it"))
        }
    }
    // A type without a size says nothing.
    struct Sized(#[expect(dead_code, reason = "only its size counts")] u8);
    impl Serialize for Sized {
        fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
            Unwritable.serialize(to)
        }
    }
    let large = |_: JobContext| async { Ok::<String, Report>("x".repeat(70_000)) };
    let store = store();
    let engine = Engine::builder(Arc::new(store.clone()))
        .kind("large", keeping())
        .kind("unwritable", keeping())
        .kind("silent", keeping())
        .kind("plain", KindSettings::default())
        .raw_handler("large", large)
        .raw_handler("unwritable", |_| async { Ok::<Sized, Report>(Sized(1)) })
        .raw_handler("silent", |_| async {})
        .raw_handler("plain", |_| async { Ok::<u64, Report>(17) })
        .start()
        .await?;
    for (kind, why) in [
        ("large", "the result has 70002 bytes; the limit is 65536"),
        ("unwritable", "it cannot be written as JSON: no words for it"),
        ("silent", "its handler returned no result"),
        ("plain", "its kind keeps no results: set `result` of the kind to true"),
    ] {
        let job = engine.submit_raw(kind, Vec::new()).await?;
        let error = job.result_bytes(seconds(30)).await.unwrap_err();
        let ResultError::NoResult { why: told, .. } = &error else { panic!("{error}") };
        assert_eq!(told, why);
        assert_eq!(store.get(job.id).await?.expect("kept").state(), State::Succeeded);
        let stored = store.result(job.id).await?;
        let dropped = (kind == "large" || kind == "unwritable")
            .then(|| StoredResult::Dropped(DropReason::new(why)));
        assert_eq!(stored, dropped);
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_fails_leaves_no_result_behind() -> Tested {
    let store = store();
    let handler = |ctx: JobContext| async move {
        ctx.set_result("text/plain", ctx.attempt().to_string().into_bytes())?;
        ctx.set_code(if ctx.attempt() == 1 { "500" } else { "201" });
        if ctx.attempt() == 1 { Err(Report::retry("once more")) } else { Ok(()) }
    };
    let engine = builder(&store).raw_handler("charge", handler).start().await?;
    let job = engine.submit_raw("charge", Vec::new()).await?;
    assert_eq!(job.result_bytes(seconds(30)).await?.body, b"2");
    let attempts = store.attempts(job.id).await?;
    assert_eq!(attempts.len(), 2, "{attempts:?}");
    assert_eq!(attempts[1].ended, AttemptEnd::Succeeded(SuccessCode::new("201")));
    assert_eq!((attempts[1].attempt, attempts[1].decision.as_str()), (2, "succeed"));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_worker_sends_a_result() -> Tested {
    let store = store();
    let settings = KindSettings { runner: RunnerKind::Worker, ..keeping() };
    let engine = Engine::builder(Arc::new(store.clone()))
        .kind("charge", settings.clone())
        .kind("plain", KindSettings { result: false, ..settings })
        .start()
        .await?;
    let worker = engine.worker_joins("py-1", WorkerOwner::NoToken).await?;
    let send = async |kind: &str, bytes: usize| -> Result<JobId, Box<dyn std::error::Error>> {
        let id = engine.submit_raw(kind, Vec::new()).await?.id;
        let claimed = worker.claim(&[KindName::parse(kind)?], 1).await?;
        let lease: Lease = claimed[0].lease();
        let result = JobResult { content_type: ContentType::bytes(), body: vec![7; bytes] };
        let (result, code) = (Some(result), SuccessCode::new("ok"));
        let (report, took, follow_ups) = (Report::Done, seconds(1), Vec::new());
        worker.settle(vec![WorkerResult { lease, report, took, follow_ups, result, code }]).await?;
        Ok(id)
    };
    let id = send("charge", 65_536).await?;
    assert!(matches!(store.result(id).await?, Some(StoredResult::Kept(_))));
    let attempts = store.attempts(id).await?;
    assert_eq!(attempts[0].ended, AttemptEnd::Succeeded(SuccessCode::new("ok")));
    assert_eq!(attempts[0].holder, worker.id());
    let id = send("charge", 65_537).await?;
    assert!(matches!(store.result(id).await?, Some(StoredResult::Dropped(_))));
    assert_eq!(store.get(id).await?.expect("kept").state(), State::Succeeded);
    let id = send("plain", 1).await?;
    assert_eq!(store.result(id).await?, None);
    Ok(())
}

/// Counts the calls of `ended`.
fn counting(store: &MemoryStore) -> (Arc<dyn Store>, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&asked);
    let counted = FaultyStore::with_faults(Arc::new(store.clone()), move |verb| {
        if verb == Verb::Ended {
            counter.fetch_add(1, Ordering::SeqCst);
        }
        Box::pin(async { None })
    });
    (Arc::new(counted), asked)
}

#[tokio::test(start_paused = true)]
async fn any_number_of_waiters_asks_the_store_four_times_in_a_second() -> Tested {
    let mut counts = Vec::new();
    for waiters in [1, 5_000] {
        let (store, asked) = counting(&store());
        let engine = Engine::builder(store)
            .kind("charge", KindSettings { runner: RunnerKind::Worker, ..keeping() })
            .start()
            .await?;
        let mut ids = Vec::with_capacity(waiters);
        for job in engine.submit_many((1..=waiters as u64).map(|order| Charge { order })).await {
            ids.push(job?.id);
        }
        let mut ends = Vec::with_capacity(waiters);
        for id in &ids {
            ends.push(engine.wait_for(*id)?);
        }
        tokio::time::sleep(seconds(10)).await;
        counts.push(asked.load(Ordering::SeqCst));
        drop(ends);
    }
    assert!((39..=41).contains(&counts[0]), "{counts:?}");
    assert!((39..=41).contains(&counts[1]), "{counts:?}");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_end_in_another_engine_is_noticed_by_the_shared_query() -> Tested {
    let store = store();
    let waiting =
        Engine::builder(Arc::new(store.clone())).kind("charge", keeping()).start().await?;
    let job = waiting.submit(Charge { order: 17 }).await?;
    let running = builder(&store).handler(paid).start().await?;
    let result: Paid = job.result(seconds(30)).await?;
    assert_eq!(result.order, 17);
    running.shutdown(seconds(1)).await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_end_in_this_engine_needs_no_query() -> Tested {
    let (store, asked) = counting(&store());
    let engine = Engine::builder(store).kind("charge", keeping()).handler(paid).start().await?;
    for order in 1..=20 {
        let _: Paid = engine.submit(Charge { order }).await?.result(seconds(30)).await?;
    }
    assert_eq!(asked.load(Ordering::SeqCst), 0);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn waiters_are_limited_and_a_place_becomes_free() -> Tested {
    let settings = EngineSettings { waiters_max: 2, ..EngineSettings::default() };
    let engine = builder(&store()).settings(settings).start().await?;
    let job = engine.submit_raw("charge", Vec::new()).await?;
    let (first, second) = (engine.wait_for(job.id)?, engine.wait_for(job.id)?);
    let full = engine.wait_for(job.id).map(drop).unwrap_err();
    assert_eq!(full.waiters_max, 2);
    let error = job.result::<Paid>(seconds(1)).await.unwrap_err();
    assert!(matches!(error, ResultError::TooManyWaiters(_)), "{error}");
    drop(first);
    let third = engine.wait_for(job.id)?;
    drop((second, third));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_ends_all_waits() -> Tested {
    let engine = builder(&store()).start().await?;
    let job = engine.submit_raw("charge", Vec::new()).await?;
    let (waited, ()) = tokio::join!(job.result::<Paid>(seconds(60)), async {
        tokio::time::sleep(seconds(1)).await;
        engine.shutdown(seconds(1)).await;
    });
    assert!(matches!(waited.unwrap_err(), ResultError::ShutDown { .. }));
    let late = job.result::<Paid>(seconds(60)).await.unwrap_err();
    assert!(matches!(late, ResultError::ShutDown { .. } | ResultError::TimedOut { .. }), "{late}");
    drop(engine);
    let gone = job.result::<Paid>(seconds(60)).await.unwrap_err();
    assert!(matches!(gone, ResultError::ShutDown { .. }), "{gone}");
    Ok(())
}

#[test]
fn results_need_jobs_that_are_kept() {
    let settings = KindSettings { keep_succeeded: Duration::ZERO, ..keeping() };
    let error = settings.check().unwrap_err().to_string();
    assert_eq!(
        error,
        "result: needs succeeded jobs to be kept: set keep_succeeded, or remove result"
    );
    for bytes in [0, 1_048_577] {
        let settings = EngineSettings { result_bytes_max: bytes, ..EngineSettings::default() };
        let error = settings.check().unwrap_err().to_string();
        assert_eq!(error, "result_bytes_max: must be 1 to 1048576");
    }
}
