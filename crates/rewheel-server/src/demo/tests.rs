//! Tests that the demo shows what it promises.

use super::kinds::{ALL, drawn};
use super::narrate::Narrator;
use super::start;
use crate::callback::{Callback, CallbackRunner, Clients};
use rewheel::{Category, Clock, ManualClock, millis, seconds};
use rewheel_core::State;
use rewheel_engine::{Engine, Runner};
use std::sync::Arc;
use std::time::Duration;

async fn engine(demo: &super::Demo) -> Engine {
    let clients = Clients::new();
    let store = rewheel_stores::connect("memory://").await.unwrap();
    let mut builder = Engine::builder(store).runners(move |kind, settings| {
        let callback = Callback::parse(settings.callback.as_ref()?).unwrap();
        let runner = CallbackRunner::new(kind.clone(), callback, &clients).unwrap();
        Some(Arc::new(runner) as Arc<dyn Runner>)
    });
    for (kind, settings) in &demo.kinds {
        builder = builder.kind(kind.as_str(), settings.clone());
    }
    builder.start().await.unwrap()
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
