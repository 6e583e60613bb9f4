//! Tests that the demo shows what it promises.

use super::kinds::{ALL, drawn};
use super::narrate::Narrator;
use super::{start, start_at};
use crate::callback::{Callback, CallbackRunner, Clients};
use rewheel::{Category, Clock, ManualClock, millis, seconds};
use rewheel_core::State;
use rewheel_core::store::{Filter, PageRequest};
use rewheel_engine::{Engine, Runner};
use std::sync::Arc;
use std::time::Duration;

async fn engine(demo: &super::Demo) -> Engine {
    let clients = Clients::new();
    let store = rewheel_stores::connect("memory://").await.unwrap();
    let builder = Engine::builder(store).runners(move |kind, settings| {
        let callback = Callback::parse(settings.callback.as_ref()?).unwrap();
        let runner = CallbackRunner::new(kind.clone(), callback, &clients).unwrap();
        Some(Arc::new(runner) as Arc<dyn Runner>)
    });
    demo.prepare(builder).start().await.unwrap()
}

/// Waits until this holds.
async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    let mut looks = tokio::time::interval(millis(10));
    let waiting = async {
        while !holds().await {
            looks.tick().await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(120), waiting).await;
    waited.unwrap_or_else(|_| panic!("not in time: {what}"));
}

async fn is_parked(engine: &Engine, kind: &str) -> bool {
    let kinds = engine.store().kinds().await.unwrap();
    kinds.iter().any(|one| one.name.as_str() == kind && one.parked.is_some())
}

#[tokio::test]
async fn an_outage_parks_its_kind_and_the_jobs_go_on_after_it() {
    let clock = ManualClock::new();
    let begin = Clock::from(&clock).now();
    let demo = start_at(Clock::from(&clock), begin).await.unwrap();
    let engine = engine(&demo).await;
    clock.advance(seconds(20));
    for order in 0..12 {
        let payload = format!(r#"{{"order":{order}}}"#);
        engine.submit_raw("demo-outage", payload.into_bytes()).await.unwrap();
    }
    until("parked", async || is_parked(&engine, "demo-outage").await).await;
    assert!(!is_parked(&engine, "demo-fast").await);
    clock.advance(seconds(20));
    until("goes on", async || !is_parked(&engine, "demo-outage").await).await;
    let succeeded = async || {
        let filter = Filter { states: vec![State::Succeeded], ..Filter::default() };
        engine.store().list(&filter, &PageRequest::first(100)).await.unwrap().items.len() == 12
    };
    until("all jobs succeeded", succeeded).await;
    engine.shutdown(seconds(5)).await;
}

#[tokio::test]
async fn a_shop_that_is_closed_delays_only_its_own_jobs() {
    let clock = ManualClock::new();
    let begin = Clock::from(&clock).now();
    let demo = start_at(Clock::from(&clock), begin).await.unwrap();
    let engine = engine(&demo).await;
    clock.advance(seconds(45));
    let (open, closed) = (demo.hosts[0], *demo.hosts.last().unwrap());
    if open == closed {
        return; // This system has one address.
    }
    for order in 0..16 {
        let host = if order % 2 == 0 { open } else { closed };
        let payload = format!(r#"{{"order":{order},"host":"{host}"}}"#);
        engine.submit_raw("demo-shops", payload.into_bytes()).await.unwrap();
    }
    let count = async |state| {
        let filter = Filter { states: vec![state], ..Filter::default() };
        engine.store().list(&filter, &PageRequest::first(100)).await.unwrap().items.len()
    };
    until("the open shop is served", async || count(State::Succeeded).await == 8).await;
    let skipped = async || {
        let filter = Filter { states: vec![State::Scheduled], ..Filter::default() };
        let waiting = engine.store().list(&filter, &PageRequest::first(100)).await.unwrap().items;
        waiting
            .iter()
            .any(|job| job.failure.as_ref().is_some_and(|why| why.message().contains("is skipped")))
    };
    until("the closed shop is skipped", skipped).await;
    assert!(!is_parked(&engine, "demo-shops").await);
    clock.advance(seconds(25));
    until("the other shop is served", async || count(State::Succeeded).await == 16).await;
    engine.shutdown(seconds(5)).await;
}

#[tokio::test]
async fn the_schedule_of_the_demo_ends_with_it() {
    let demo = start().await.unwrap();
    let engine = engine(&demo).await;
    super::put_schedule(&engine).await.unwrap();
    assert!(engine.schedule(super::SCHEDULE).await.unwrap().is_some());
    super::delete_schedule(&engine).await;
    assert!(engine.schedule(super::SCHEDULE).await.unwrap().is_none());
    engine.shutdown(seconds(5)).await;
}

/// Polls until a line contains `text`; returns all lines.
async fn told(narrator: &mut Narrator<Vec<u8>>, clock: &ManualClock, text: &str) -> Vec<String> {
    let mut looks = tokio::time::interval(millis(10));
    let waiting = async {
        loop {
            looks.tick().await;
            clock.advance(seconds(1));
            narrator.tick().await;
            let lines = String::from_utf8(narrator.out().clone()).unwrap();
            if lines.contains(text) {
                return lines.lines().map(str::to_owned).collect();
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(120), waiting)
        .await
        .expect("it was not logged in time")
}

#[tokio::test]
async fn a_broken_callee_makes_dead_letters_and_says_so() {
    let demo = start().await.unwrap();
    let engine = engine(&demo).await;
    let clock = ManualClock::new();
    let store = Arc::clone(engine.store());
    let mut narrator = Narrator::new(store, Vec::new(), false, Clock::from(&clock));
    narrator.tick().await;

    let backoff = rewheel::Backoff::fixed(millis(20));
    let job = br#"{"order":17}"#.to_vec();
    let submit = engine.submit_raw("demo-broken", job).key("order-17").backoff(backoff);
    let receipt = submit.await.unwrap();

    let lines = told(&mut narrator, &clock, "dead letter").await;
    let lines: Vec<&str> = lines.iter().map(|line| &line[10..]).collect();
    let retry = "demo-broken  order-17          retry        attempt 1 failed, transient 500; ";
    assert!(lines.iter().any(|line| line.starts_with(retry)), "{lines:#?}");
    let dead = "demo-broken  order-17          dead letter  after 4 attempts, transient 500";
    assert!(lines.contains(&dead), "{lines:#?}");

    let job = engine.store().get(receipt.id).await.unwrap().unwrap();
    assert_eq!(job.state(), State::Dead);
    let failure = job.failure.unwrap();
    assert_eq!(failure.category(), Category::Transient);
    assert!(failure.message().contains("column \"total\" does not exist"), "{failure}");
    engine.shutdown(seconds(5)).await;
}

#[tokio::test]
async fn a_fast_callee_makes_no_noise() {
    let demo = start().await.unwrap();
    let engine = engine(&demo).await;
    let clock = ManualClock::new();
    let store = Arc::clone(engine.store());
    let mut narrator = Narrator::new(store, Vec::new(), false, Clock::from(&clock));
    for order in 0..20 {
        let payload = format!(r#"{{"order":{order}}}"#);
        engine.submit_raw("demo-fast", payload.into_bytes()).await.unwrap();
    }
    let lines = told(&mut narrator, &clock, "20 submitted = 20 done + 0 live + 0 dead").await;
    assert!(lines.iter().all(|line| line.contains("submitted = ")), "{lines:#?}");
    engine.shutdown(seconds(5)).await;
}

#[test]
fn every_kind_gets_its_share() {
    assert_eq!(ALL.iter().map(|kind| kind.share).sum::<u64>(), 100);
    for kind in ALL {
        let count = (0..100).filter(|number| drawn(*number).name == kind.name).count();
        assert_eq!(count as u64, kind.share, "{}", kind.name);
    }
}

#[tokio::test]
async fn the_settings_of_every_kind_can_work() {
    let demo = start().await.unwrap();
    for (kind, settings) in &demo.kinds {
        settings.check().unwrap();
        Callback::parse(settings.callback.as_ref().unwrap()).unwrap();
        assert!(demo.to_string().contains(kind.as_str()));
    }
}
