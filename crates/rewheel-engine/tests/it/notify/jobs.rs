//! Checks that dead letters submit jobs.

use super::support::{
    Mood, Person, Tested, all_announced, builder, kind, pass, store, unannounced,
};
use rewheel::seconds;
use rewheel_core::store::{
    Change, ChangeVerb, Count, Filter, Insert, PageRequest, ReadStore as _, SubmitStore as _,
};
use rewheel_core::{
    Actor, Job, JobId, KindEdit, KindEditVerb, KindEdited, NewJob, Report, State, When,
};
use rewheel_engine::notify::{Event, NotifySettings, Route};
use rewheel_engine::{Engine, EngineBuilder, EngineSettings, KindSettings};
use rewheel_stores::MemoryStore;
use rewheel_testkit::{Fault, FaultyStore, Verb};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// An engine whose charges die and are refunded.
fn refunding(store: Arc<dyn rewheel_core::store::Store>) -> EngineBuilder {
    Engine::builder(store)
        .raw_handler("charge", |_| async { Report::dead("the card was stolen") })
        .raw_handler("refund", |_| async { Report::Done })
        .dead_letter_job("refunds", Route::default(), kind("refund"))
}

async fn children(store: &MemoryStore, parent: JobId) -> Vec<Job> {
    let filter = Filter { parent: Some(parent), ..Filter::default() };
    let mut found = Vec::new();
    for job in store.list(&filter, &PageRequest::first(100)).await.unwrap().items {
        found.extend(store.get(job.id).await.unwrap());
    }
    found
}

/// Waits until the charges are dead, and announced.
async fn told(store: &MemoryStore) {
    pass(5).await;
    all_announced(store).await;
}

#[tokio::test(start_paused = true)]
async fn a_dead_letter_submits_one_job_with_its_document() -> Tested {
    let store = store();
    let engine = refunding(Arc::new(store.clone())).start().await?;
    let payload = br#"{"order":17,"cents":12345678901234567890123}"#.to_vec();
    let id = engine.submit_raw("charge", payload).tenant("shop").key("order-17").await?.id;
    told(&store).await;
    pass(1).await;
    let refunds = children(&store, id).await;
    assert_eq!(refunds.len(), 1);
    let refund = &refunds[0];
    assert_eq!((refund.lane.kind.as_str(), refund.state()), ("refund", State::Succeeded));
    assert_eq!(refund.lane.tenant.as_ref().map(|tenant| tenant.as_str()), Some("shop"));
    assert_eq!(refund.key.as_ref().unwrap().as_str(), format!("dead-letter:{id}"));
    let text = String::from_utf8(refund.payload.clone().unwrap())?;
    // The payload is there byte for byte: parsed, its large number would have changed.
    let end = r#","payload_left_out":null,"payload":{"order":17,"cents":12345678901234567890123}}"#;
    assert!(text.ends_with(end), "{text}");
    let document: serde_json::Value = serde_json::from_str(&text)?;
    assert_eq!(document["id"], id.to_string());
    assert_eq!((&document["kind"], &document["tenant"]), (&"charge".into(), &"shop".into()));
    assert_eq!((&document["key"], &document["attempts"]), (&"order-17".into(), &1.into()));
    assert_eq!(document["failure"]["message"], "the card was stolen");
    Ok(())
}

/// None is summed up, however many there are.
#[tokio::test(start_paused = true)]
async fn each_of_many_dead_letters_submits_its_job() -> Tested {
    let (store, person) = (store(), Person::new(Mood::Takes));
    let engine = refunding(Arc::new(store.clone()))
        .notifier("person", Route::default(), person.clone())
        .settings(EngineSettings { concurrency: 1_000, ..EngineSettings::default() })
        .notify_settings(NotifySettings { queue_max: 10, ..NotifySettings::default() })
        .start()
        .await?;
    for _ in 0..900 {
        engine.submit_raw("charge", b"{}".to_vec()).await?;
    }
    told(&store).await;
    let refunds = Filter { kinds: vec![kind("refund")], ..Filter::default() };
    let refunds = store.list(&refunds, &PageRequest::first(1_000)).await?.items;
    assert_eq!(refunds.len(), 900);
    assert!(person.told().len() <= 51, "others are told of fifty and a summary");
    Ok(())
}

/// The mark is written after the job: if it gets lost, the letter is announced again.
#[tokio::test(start_paused = true)]
async fn a_lost_mark_makes_no_second_job() -> Tested {
    let store = store();
    let fails = Arc::new(AtomicBool::new(true));
    let failing = Arc::clone(&fails);
    let faulty = FaultyStore::with_faults(Arc::new(store.clone()), move |verb| {
        let fails = verb == Verb::Announce && failing.load(Ordering::SeqCst);
        Box::pin(async move { fails.then_some(Fault::Before) })
    });
    let engine = refunding(Arc::new(faulty)).start().await?;
    let id = engine.submit_raw("charge", b"{}".to_vec()).await?.id;
    while children(&store, id).await.is_empty() {
        pass(1).await;
    }
    engine.kill();
    fails.store(false, Ordering::SeqCst);
    // The next engine finds the letter unannounced, and waits for its turn.
    let _next = refunding(Arc::new(store.clone())).start().await?;
    told(&store).await;
    assert_eq!(children(&store, id).await.len(), 1);
    Ok(())
}

/// One charge is refunded once, also if it dies again.
#[tokio::test(start_paused = true)]
async fn a_second_death_makes_no_second_job() -> Tested {
    let store = store();
    let engine = refunding(Arc::new(store.clone())).start().await?;
    let id = engine.submit_raw("charge", b"{}".to_vec()).await?.id;
    told(&store).await;
    pass(1).await;
    let redrive = ChangeVerb::Redrive { deadline: None };
    engine.change(Change::new(id, redrive), &Actor::new("ops")).await?;
    told(&store).await;
    assert_eq!(store.get(id).await?.unwrap().attempt, 2);
    assert_eq!(children(&store, id).await.len(), 1);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_job_that_was_submitted_for_a_dead_letter_submits_none_when_it_dies() -> Tested {
    let store = store();
    let engine = Engine::builder(Arc::new(store.clone()))
        .raw_handler("charge", |_| async { Report::dead("stolen") })
        .raw_handler("refund", |_| async { Report::dead("no such account") })
        .dead_letter_job("refunds", Route::default(), kind("refund"))
        .dead_letter_job("charges", Route::default(), kind("charge"))
        .start()
        .await?;
    let id = engine.submit_raw("charge", b"{}".to_vec()).await?.id;
    told(&store).await;
    pass(60).await;
    told(&store).await;
    let all = store.list(&Filter::default(), &PageRequest::first(100)).await?.items;
    let mut kinds: Vec<&str> = all.iter().map(|job| job.lane.kind.as_str()).collect();
    kinds.sort_unstable();
    assert_eq!(kinds, ["charge", "refund"]);
    assert_eq!(children(&store, id).await.len(), 1);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_payload_that_does_not_fit_is_left_out() -> Tested {
    let store = store();
    let settings = EngineSettings { payload_bytes_max: 2_000, ..EngineSettings::default() };
    let engine = refunding(Arc::new(store.clone())).settings(settings).start().await?;
    let large = engine.submit_raw("charge", format!("\"{}\"", "x".repeat(1_900)).into()).await?.id;
    let binary = engine.submit_raw("charge", vec![0xff, 0xfe]).await?.id;
    told(&store).await;
    for (id, why) in [(large, "too_large"), (binary, "not_json")] {
        let refund = children(&store, id).await.remove(0);
        let document: serde_json::Value = serde_json::from_slice(&refund.payload.unwrap())?;
        assert_eq!(
            (&document["payload_left_out"], &document["payload"]),
            (&why.into(), &().into())
        );
    }
    Ok(())
}

/// Letters that wait for a kind that was deleted take no room from others, and get their jobs when it is back.
#[tokio::test(start_paused = true)]
async fn letters_for_a_deleted_kind_delay_no_others() -> Tested {
    const LETTERS: usize = 10_500;
    let (store, person) = (store(), Person::new(Mood::Takes));
    let engine = builder(Arc::new(store.clone()))
        .kind("idle", KindSettings::default())
        .kind("refund", KindSettings::default())
        .dead_letter_job("refunds", Route::default(), kind("refund"))
        .notifier("person", Route::default(), person.clone())
        .start()
        .await?;
    let by = Actor::new("ops");
    let delete = KindEdit { name: kind("refund"), what: KindEditVerb::Delete, if_version: None };
    assert!(matches!(engine.edit_kind(&delete, &by).await?, KindEdited::Done(_)));
    // They die together when their deadline passes.
    let new = |_| NewJob {
        due: When::In(seconds(60)),
        deadline: Some(When::In(seconds(61))),
        ..NewJob::new(engine.new_id(), kind("idle"), b"{}".to_vec())
    };
    let jobs: Vec<NewJob> = (0..LETTERS).map(new).collect();
    for part in jobs.chunks(500) {
        store.insert(&Insert::new(part)).await?;
    }
    pass(600).await;
    assert_eq!(unannounced(&store).await, LETTERS);
    let id = engine.submit_raw("work", b"{}".to_vec()).await?.id;
    pass(120).await;
    let is_told = || person.of(Event::DeadLetter).iter().any(|notice| notice.job == Some(id));
    assert!(is_told(), "others are told of it");
    engine.put_kind(&kind("refund"), &KindSettings::default(), &by).await?;
    pass(180).await;
    all_announced(&store).await;
    let refunds = Filter { kinds: vec![kind("refund")], ..Filter::default() };
    let refunds = store.count(&refunds, usize::MAX).await?;
    assert_eq!(refunds, Count::Exactly(LETTERS as u64 + 1));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_route_to_a_kind_that_does_not_exist_is_an_error_at_start() {
    let started = Engine::builder(Arc::new(store()))
        .dead_letter_job("refunds", Route::default(), kind("refund"))
        .start()
        .await;
    let error = started.err().unwrap().to_string();
    assert!(error.contains("of the kind `refund`, which does not exist"), "{error}");
}
