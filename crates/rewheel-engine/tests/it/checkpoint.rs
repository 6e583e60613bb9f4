//! Tests of checkpoints.

#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]
#![expect(clippy::disallowed_methods, reason = "it ends with the test")]

use crate::still::store;
use rewheel::{millis, seconds};
use rewheel_core::store::{ReadStore, Store};
use rewheel_core::{Job, JobId, Report, State};
use rewheel_engine::{CheckpointError, Engine, EngineSettings, JobContext};
use rewheel_stores::MemoryStore;
use std::sync::{Arc, Mutex};

type Tested = Result<(), Box<dyn std::error::Error>>;

/// The payload that each attempt began with.
type Seen = Arc<Mutex<Vec<Vec<u8>>>>;

async fn ended(store: &MemoryStore, id: JobId) -> Job {
    loop {
        let job = store.get(id).await.expect("memory").expect("it is kept");
        if !job.state().is_live() {
            return job;
        }
        tokio::time::sleep(millis(20)).await;
    }
}

/// Counts to three, one in each attempt: by retries, then by a node that hangs.
async fn count(context: JobContext, seen: Seen, hangs: bool) -> Result<(), Report> {
    let payload = context.payload().to_vec();
    seen.lock().unwrap().push(payload.clone());
    let next = payload[0] + 1;
    context.checkpoint_raw(vec![next]).await?;
    match next {
        3 => Ok(()),
        2 if hangs => std::future::pending().await,
        _ => Err(Report::retry("not yet")),
    }
}

async fn engine(store: &MemoryStore, name: &str, seen: &Seen, hangs: bool) -> Engine {
    let seen = Arc::clone(seen);
    Engine::builder(Arc::new(store.clone()) as Arc<dyn Store>)
        .settings(EngineSettings { name: name.to_owned(), ..EngineSettings::default() })
        .raw_handler("count", move |context| count(context, Arc::clone(&seen), hangs))
        .start()
        .await
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn retries_go_on_from_there() -> Tested {
    let (store, seen) = (store(), Seen::default());
    let engine = engine(&store, "one", &seen, false).await;
    let job = engine.submit_raw("count", vec![0]).await?;
    let job = ended(&store, job.id).await;
    assert_eq!((job.state(), job.attempt), (State::Succeeded, 3));
    assert_eq!(*seen.lock().unwrap(), [[0], [1], [2]]);
    assert_eq!(job.payload, Some(vec![3]));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn another_node_goes_on_from_there() -> Tested {
    let (store, seen) = (store(), Seen::default());
    let first = engine(&store, "first", &seen, true).await;
    let job = first.submit_raw("count", vec![0]).await?;
    while store.get(job.id).await?.unwrap().payload != Some(vec![2]) {
        tokio::time::sleep(millis(20)).await;
    }
    let _second = engine(&store, "second", &seen, false).await;
    first.kill();
    assert_eq!(ended(&store, job.id).await.state(), State::Succeeded);
    assert_eq!(*seen.lock().unwrap(), [[0], [1], [2]]);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_kept_is_said() -> Tested {
    let store = store();
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let engine = Engine::builder(Arc::new(store.clone()) as Arc<dyn Store>)
        .settings(EngineSettings { payload_bytes_max: 10, ..EngineSettings::default() })
        .raw_handler("work", move |context: JobContext| {
            let tell = tell.clone();
            async move {
                let _ = tell.send(context.checkpoint_raw(vec![0; 11]).await);
                // The context outlives its attempt.
                tokio::spawn(async move {
                    tokio::time::sleep(seconds(1)).await;
                    let _ = tell.send(context.checkpoint_raw(vec![0; 10]).await);
                });
                Report::Done
            }
        })
        .start()
        .await?;
    let job = engine.submit_raw("work", b"{}".to_vec()).await?;
    let large = told.recv().await.unwrap().unwrap_err();
    let text = "failed to write the checkpoint: the new payload has 11 bytes; the limit is 10 (engine.payload_bytes_max)";
    assert_eq!(large.to_string(), text);
    let late = told.recv().await.unwrap();
    assert!(matches!(late, Err(CheckpointError::Lost)), "{late:?}");
    assert_eq!(ended(&store, job.id).await.payload.as_deref(), Some(&b"{}"[..]));
    Ok(())
}
