//! Test support: a notifier that records notices, and engines that use it.

use async_trait::async_trait;
use rewheel::{Category, Verdict, millis, seconds};
use rewheel_core::store::{OperateStore, Store};
use rewheel_core::{Failure, KindName, Report};
use rewheel_engine::notify::{Event, Notice, Notifier, NotifyCounts, NotifyError, Route};
use rewheel_engine::{Engine, EngineBuilder, KindSettings};
use rewheel_stores::MemoryStore;
use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub(super) use crate::still::store;

pub(super) type Tested = Result<(), Box<dyn std::error::Error>>;

/// What a notifier does with a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mood {
    Takes,
    TakesAfter(Duration),
    Fails,
    Refuses,
    Hangs,
    Panics,
}

/// A notifier with the notices it received; clones share them.
#[derive(Clone)]
pub(super) struct Person {
    told: Arc<Mutex<Vec<Notice>>>,
    mood: Arc<Mutex<Mood>>,
    calls: Arc<Mutex<u64>>,
}

impl Person {
    pub(super) fn new(mood: Mood) -> Person {
        Person { told: Arc::default(), mood: Arc::new(Mutex::new(mood)), calls: Arc::default() }
    }

    pub(super) fn set(&self, mood: Mood) {
        *self.mood.lock().unwrap() = mood;
    }

    pub(super) fn told(&self) -> Vec<Notice> {
        self.told.lock().unwrap().clone()
    }

    pub(super) fn calls(&self) -> u64 {
        *self.calls.lock().unwrap()
    }

    /// Returns its notices of an event, without summaries.
    pub(super) fn of(&self, event: Event) -> Vec<Notice> {
        self.told().into_iter().filter(|notice| notice.event == event).collect()
    }

    /// Waits until it has received this many notices.
    pub(super) async fn hears(&self, count: usize) -> Vec<Notice> {
        for _ in 0..100_000 {
            if self.told().len() >= count {
                return self.told();
            }
            tokio::time::sleep(millis(10)).await;
        }
        panic!("it was told {} of {count}", self.told().len());
    }
}

#[async_trait]
impl Notifier for Person {
    async fn notify(&self, notice: &Notice) -> Result<(), NotifyError> {
        *self.calls.lock().unwrap() += 1;
        let mood = *self.mood.lock().unwrap();
        match mood {
            Mood::Takes => {}
            Mood::TakesAfter(time) => tokio::time::sleep(time).await,
            Mood::Fails => return Err(NotifyError::retry("503")),
            Mood::Refuses => return Err(NotifyError::stop("404")),
            Mood::Hangs => pending().await,
            Mood::Panics => panic!("the notifier is broken"),
        }
        self.told.lock().unwrap().push(notice.clone());
        Ok(())
    }
}

/// An engine whose jobs of the kind `work` become dead letters at once.
pub(super) fn builder(store: Arc<dyn Store>) -> EngineBuilder {
    Engine::builder(store).raw_handler("work", |_| async {
        Report::Dead(Failure::new(Category::Io, Some("ECONNRESET"), "reset; password=hunter2"))
    })
}

/// Like [`builder`], with a notifier that receives everything.
pub(super) fn telling(store: &MemoryStore, person: &Person) -> EngineBuilder {
    builder(Arc::new(store.clone())).notifier("person", Route::default(), person.clone())
}

/// Settings of a kind whose jobs get one attempt.
pub(super) fn one_attempt() -> KindSettings {
    KindSettings { attempts_max: 1, ..KindSettings::default() }
}

pub(super) fn failing(message: &str) -> Report {
    let failure = Failure::new(Category::Io, None, message);
    Report::AttemptFailed { verdict: Verdict::Retry, failure }
}

pub(super) async fn submit(engine: &Engine, count: usize) {
    for _ in 0..count {
        engine.submit_raw("work", Vec::new()).await.unwrap();
    }
}

/// Waits until all dead letters are announced.
pub(super) async fn all_announced(store: &MemoryStore) {
    for _ in 0..100_000 {
        if store.unannounced(1).await.unwrap().is_empty() {
            return;
        }
        tokio::time::sleep(millis(10)).await;
    }
    panic!("something is unannounced: {:?}", store.unannounced(1).await.unwrap());
}

pub(super) async fn unannounced(store: &MemoryStore) -> usize {
    store.unannounced(100_000).await.unwrap().len()
}

pub(super) fn counts(engine: &Engine) -> NotifyCounts {
    engine.notify_counts().remove(0)
}

pub(super) fn kind(name: &str) -> KindName {
    KindName::parse(name).unwrap()
}

pub(super) async fn pass(time: u64) {
    tokio::time::sleep(seconds(time)).await;
}
