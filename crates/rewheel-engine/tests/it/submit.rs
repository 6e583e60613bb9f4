//! Submits: many at once, and after a shutdown.

use crate::still::store;
use rewheel::seconds;
use rewheel_engine::store::{ReadStore, Store};
use rewheel_engine::{
    Engine, EngineSettings, IfRefused, Insert, Inserted, JobContext, JobKind, Refusal, State,
    StoreError, SubmitError, TenantSettings,
};
use rewheel_stores::MemoryStore;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

type Tested = Result<(), Box<dyn std::error::Error>>;

#[derive(Serialize, Deserialize)]
struct Mail {
    number: u64,
}

impl JobKind for Mail {
    const NAME: &'static str = "mail";
}

fn shared(store: &MemoryStore) -> Arc<dyn Store> {
    Arc::new(store.clone())
}

#[tokio::test(start_paused = true)]
async fn many_jobs_are_stored_in_order_with_one_result_each() -> Tested {
    let store = store();
    let engine = Engine::builder(shared(&store))
        .handler(|_: JobContext, _: Mail| async {})
        .tenant("acme", TenantSettings { jobs_max: Some(1), ..TenantSettings::default() })
        .start()
        .await?;
    let results = engine.submit_many((0..2_500).map(|number| Mail { number })).await;
    assert_eq!(results.len(), 2_500);
    for (number, result) in results.into_iter().enumerate() {
        let job = store.get(result?.id).await?.expect("it is kept");
        assert_eq!(job.payload.as_deref(), Some(format!(r#"{{"number":{number}}}"#).as_bytes()));
    }
    let mail = |number| engine.submit(Mail { number });
    let jobs = [
        mail(1).tenant("acme").delay(seconds(9)),
        mail(2).priority(10),
        mail(3).tenant("acme").delay(seconds(9)),
        mail(4),
    ];
    let results = engine.submit_many(jobs).await;
    let texts: Vec<_> =
        results.into_iter().map(|result| result.err().map(|e| e.to_string())).collect();
    assert_eq!(texts[0], None);
    assert_eq!(texts[1].as_deref(), Some("priority must be 0..9"));
    assert!(texts[2].as_deref().is_some_and(|text| text.contains("limit of 1 live jobs")));
    assert_eq!(texts[3], None);
    assert!(engine.submit_many(Vec::<Mail>::new()).await.is_empty());
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_returns_nothing_has_succeeded() -> Tested {
    let store = store();
    let engine = Engine::builder(shared(&store)).raw_handler("work", |_| async {}).start().await?;
    let job = engine.submit_raw("work", Vec::new()).await?;
    while store.get(job.id).await?.is_some_and(|job| job.state().is_live()) {
        tokio::task::yield_now().await;
    }
    assert_eq!(store.get(job.id).await?.map(|job| job.state()), Some(State::Succeeded));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_submit_after_a_shutdown_fails_and_stores_nothing() -> Tested {
    let store = store();
    let engine =
        Engine::builder(shared(&store)).handler(|_: JobContext, _: Mail| async {}).start().await?;
    engine.shutdown(seconds(1)).await;
    let error = engine.submit(Mail { number: 1 }).await.unwrap_err();
    assert!(matches!(error, SubmitError::ShutDown), "{error:?}");
    assert!(error.to_string().contains("has shut down"), "{error}");
    let results = engine.submit_many([Mail { number: 2 }, Mail { number: 3 }]).await;
    assert!(results.iter().all(|result| matches!(result, Err(SubmitError::ShutDown))));
    let job = engine.submit(Mail { number: 4 }).into_job()?;
    let inserted = engine.insert(&Insert::new(&[job])).await;
    assert!(matches!(inserted, Err(StoreError::Closed)));
    assert_eq!(store.books().await?.submitted, 0);
    Ok(())
}

/// A handler that is about to finish must not fail because its engine is asked to stop.
#[tokio::test(start_paused = true)]
async fn a_handler_can_submit_while_a_shutdown_waits_for_it() -> Tested {
    let store = store();
    let (started, mut starts) = tokio::sync::mpsc::unbounded_channel::<()>();
    let handle: Arc<std::sync::OnceLock<Engine>> = Arc::default();
    let known = Arc::clone(&handle);
    let engine = Engine::builder(shared(&store))
        .handler(|_: JobContext, _: Mail| async {})
        .raw_handler("slow", move |_| {
            let (started, engine) = (started.clone(), known.get().cloned());
            async move {
                let _ = started.send(());
                tokio::time::sleep(seconds(5)).await;
                let engine = engine.expect("set before the submit");
                engine.submit(Mail { number: 1 }).key("follow-up").await.expect("it is stored");
            }
        })
        .start()
        .await?;
    assert!(handle.set(engine.clone()).is_ok());
    let slow = engine.submit_raw("slow", Vec::new()).await?;
    starts.recv().await;
    assert_eq!(engine.shutdown(seconds(30)).await.finished, 1);
    assert_eq!(store.get(slow.id).await?.map(|job| job.state()), Some(State::Succeeded));
    assert_eq!(store.books().await?.submitted, 2);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn no_way_in_takes_a_payload_above_the_limit() -> Tested {
    let store = store();
    let settings = EngineSettings { payload_bytes_max: 4, ..EngineSettings::default() };
    let engine = Engine::builder(shared(&store))
        .settings(settings)
        .raw_handler("work", |_| async {})
        .start()
        .await?;
    let text = "the payload has 5 bytes; the limit is 4 (engine.payload_bytes_max)";
    let large = || engine.submit_raw("work", b"12345".to_vec());
    let errors = [
        large().await.map(|_| ()),
        large().into_job().map(|_| ()),
        engine.submit_many([large()]).await.remove(0).map(|_| ()),
    ];
    for error in errors.map(Result::unwrap_err) {
        assert_eq!(error.to_string(), format!("the job was not accepted: {text}"));
    }
    let small = || engine.submit_raw("work", b"1234".to_vec()).into_job();
    let mut jobs = [small()?, small()?, small()?];
    jobs[1].payload = b"12345".to_vec();
    let refused = Inserted::Refused(Refusal::AbovePayloadLimit { bytes: 5, bytes_max: 4 });
    let together = Insert { if_refused: IfRefused::StoreNothing, ..Insert::new(&jobs) };
    let answers = engine.insert(&together).await?;
    assert_eq!(answers, [Inserted::LeftOut, refused.clone(), Inserted::LeftOut]);
    assert_eq!(store.books().await?.submitted, 0);
    let answers = engine.insert(&Insert::new(&jobs)).await?;
    assert_eq!(answers[1], refused);
    for (place, stored) in [(0, true), (1, false), (2, true)] {
        assert_eq!(store.get(jobs[place].id).await?.is_some(), stored, "{place}");
        assert_eq!(matches!(answers[place], Inserted::Created { .. }), stored);
    }
    Ok(())
}
