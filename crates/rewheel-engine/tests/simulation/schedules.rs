//! A schedule in a simulation: fired by all nodes, paused and resumed, and checked at the end.

use crate::model::Model;
use crate::worker::caught;
use rewheel::seconds;
use rewheel_core::store::{
    Change, ChangeScope, ChangeVerb, Filter, OperateStore, PageRequest, ReadStore,
};
use rewheel_core::{Actor, Job, KindName, Retain, State};
use rewheel_engine::{Engine, FollowUp, Overlap, Schedule, ScheduleChange};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::timeout;

const NAME: &str = "tick";

/// An operator puts the schedule, pauses it or resumes it.
pub(crate) async fn disturb(model: &Model, engine: Option<Engine>, dice: u64) {
    let Some(engine) = engine else { return };
    let by = Actor::new("person");
    let change = match dice {
        0 => Some(ScheduleChange::Pause),
        1 => Some(ScheduleChange::Resume),
        _ => None,
    };
    let done = async {
        match change {
            Some(change) => engine.change_schedule(NAME, change, None, &by).await.is_ok(),
            None => engine.put_schedule(NAME, &tick(dice), &by).await.is_ok(),
        }
    };
    // Without a response in time the change may not be made.
    let answer = timeout(Duration::from_secs(5), caught(done)).await;
    model.tell(&format!("schedule changed: {change:?} {answer:?}"));
}

/// Another timing computes the next instant anew. It must not be one that has fired, even if the store's clock was set back.
fn tick(dice: u64) -> Schedule {
    let job = FollowUp::raw("work", Vec::new());
    let period = if dice == 2 { seconds(20) } else { seconds(10) };
    Schedule::every(period, job).expect("a good period").overlap(Overlap::Allow)
}

async fn all(model: &Model) -> Vec<Job> {
    let kind = KindName::parse("rewheel.schedule").expect("a good name");
    let filter = Filter { kinds: vec![kind], ..Filter::default() };
    list(model, &filter).await
}

async fn list(model: &Model, filter: &Filter) -> Vec<Job> {
    let page = model.store.list(filter, &PageRequest::first(1_000)).await;
    page.expect("the store itself never fails").items
}

/// Removes the schedule, so that the simulation ends.
pub(crate) async fn stop(model: &Model) {
    for job in all(model).await.iter().filter(|job| job.state().is_live()) {
        let change = Change::new(job.id, ChangeVerb::Cancel);
        let change = [Change { scope: ChangeScope::Engine, ..change }];
        let by = Actor::new("person");
        let _ = model.store.change(&change, &by, Retain::default()).await;
    }
}

/// Checks that each instant submitted one job, and that the counters say so.
pub(crate) async fn check(model: &Model) {
    for schedule in all(model).await {
        let filter = Filter { parent: Some(schedule.id), ..Filter::default() };
        let mut instants = BTreeMap::<_, u32>::new();
        let jobs = list(model, &filter).await;
        for job in &jobs {
            model.count("jobs of schedules");
            *instants.entry(job.instant).or_default() += 1;
        }
        for (instant, count) in instants.iter().filter(|(_, count)| **count > 1) {
            model.complain(format!("{count} jobs of the same instant {instant:?}"));
        }
        let stored = model.store.get(schedule.id).await.expect("the store itself never fails");
        let payload = stored.and_then(|job| job.payload).unwrap_or_default();
        let document: serde_json::Value = serde_json::from_slice(&payload).unwrap_or_default();
        if document["fired"] != jobs.len() {
            let fired = &document["fired"];
            model.complain(format!("{} jobs of a schedule that counts {fired}", jobs.len()));
        }
        if schedule.state() == State::Dead {
            model.complain(format!("the schedule died: {:?}", schedule.failure));
        }
    }
}
