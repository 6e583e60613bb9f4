//! Tests of an engine with thousands of kinds.

use rewheel_core::store::Store;
use rewheel_core::{Actor, KindChange, KindName, Report};
use rewheel_engine::{Engine, KindSettings};
use rewheel_stores::MemoryStore;
use rewheel_testkit::{FaultyStore, Verb};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// All kinds are read when an engine starts, and only changes after that, also while one is parked.
#[tokio::test(start_paused = true)]
async fn kinds_are_read_once_and_then_only_what_changed() {
    let store = Arc::new(MemoryStore::new());
    let asked = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&asked);
    let inner: Arc<dyn Store> = Arc::<MemoryStore>::clone(&store);
    let counted = FaultyStore::with_faults(inner, move |verb| {
        noted.lock().unwrap().push(verb);
        Box::pin(async { None })
    });
    let mut builder =
        Engine::builder(Arc::new(counted)).raw_handler("work", |_| async { Report::Done });
    for n in 0..2_500 {
        builder = builder.kind(&format!("kind-{n}"), KindSettings::default());
    }
    let engine = builder.start().await.unwrap();
    let calls = |verb: Verb| asked.lock().unwrap().iter().filter(|one| **one == verb).count();
    assert!(calls(Verb::PutKinds) <= 3 && calls(Verb::Kinds) <= 1, "{:?}", asked.lock());
    asked.lock().unwrap().clear();
    // An operator on another node has decided: this node checks again and again whether that still applies.
    let kind = KindName::parse("work").unwrap();
    let open = KindChange::Open { reason: "maintenance".to_owned() };
    let person: Arc<dyn Store> = store;
    person.change_kind(&kind, &open, &Actor::new("ops")).await.unwrap();
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(calls(Verb::Kinds), 0);
    assert!(calls(Verb::KindsSince) > 100, "{}", calls(Verb::KindsSince));
    person.change_kind(&kind, &KindChange::Close, &Actor::new("ops")).await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    let receipt = engine.submit_raw("work", Vec::new()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    let job = person.get(receipt.id).await.unwrap().unwrap();
    assert!(job.state().is_final(), "{job:?}");
}
