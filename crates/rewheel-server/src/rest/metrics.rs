//! Shows meters to whoever collects them.

use super::query::Parameters;
use crate::app::App;
use crate::metrics::{Meter, Text};
use crate::problem::Problem;
use axum::extract::State;
use axum::http::Uri;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use rewheel_core::store::{StoreError, Tally};
use rewheel_core::{Kind, State as JobState};
use rewheel_engine::Engine;
use std::sync::Arc;

/// The media type of the classic text format.
const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// `GET /metrics`: what the fleet has, and what this server did since it started. Without its store it still tells the latter.
pub(super) async fn metrics(State(app): State<Arc<App>>, uri: Uri) -> Result<Response, Problem> {
    Parameters::read(&uri, &[])?.finish()?;
    let engine = app.engine()?;
    let mut text = Text::default();
    here(engine, &mut text);
    let is_there = fleet(engine, &mut text).await.is_ok();
    let help = "Whether the store answered this request.";
    text.meter(Meter::Gauge, "rewheel_store_up", help).add(&[], u8::from(is_there));
    Ok(([(CONTENT_TYPE, MEDIA_TYPE)], text.into_string()).into_response())
}

fn here(engine: &Engine, text: &mut Text) {
    let status = engine.status();
    let mut gauge = |name: &str, help: &str, value: usize| {
        text.meter(Meter::Gauge, name, help).add(&[], value);
    };
    gauge("rewheel_places", "Attempts that may run at the same time here.", status.places);
    gauge("rewheel_places_free", "Attempts that could run at once here.", status.places_free);
    gauge("rewheel_waiting_jobs", "Jobs that wait here for their time or a place.", status.waiting);
    let doubtful = "Whether the lease of this engine is in doubt, so that it starts nothing new.";
    gauge("rewheel_lease_doubtful", doubtful, usize::from(status.doubtful));
    let help = "Results settled here, by decision and category of failure.";
    let mut settled = text.meter(Meter::Counter, "rewheel_settled_total", help);
    for one in engine.decisions() {
        let category = one.category.map_or("none", rewheel::Category::as_str);
        settled.add(&[("decision", one.decision), ("category", category)], one.count);
    }
    let help = "Notices of this engine, by notifier and what became of them.";
    let mut notices = text.meter(Meter::Counter, "rewheel_notices_total", help);
    for one in engine.notify_counts() {
        let outcomes = [("sent", one.sent), ("suppressed", one.suppressed), ("failed", one.failed)];
        for (outcome, count) in outcomes {
            notices.add(&[("notifier", &one.name), ("outcome", outcome)], count);
        }
    }
}

async fn fleet(engine: &Engine, text: &mut Text) -> Result<(), StoreError> {
    let store = engine.store();
    let (tallies, kinds) = (store.tally().await?, store.kinds().await?);
    let holders = store.holders().await?;
    jobs(&tallies, text);
    let help = "Whether a kind is parked: its dependency is taken to be down.";
    let mut parked = text.meter(Meter::Gauge, "rewheel_kind_parked", help);
    let flags = |kind: &Kind| (u8::from(kind.parked.is_some()), u8::from(kind.paused));
    for kind in &kinds {
        parked.add(&[("kind", kind.name.as_str())], flags(kind).0);
    }
    let help = "Whether a person paused a kind.";
    let mut paused = text.meter(Meter::Gauge, "rewheel_kind_paused", help);
    for kind in &kinds {
        paused.add(&[("kind", kind.name.as_str())], flags(kind).1);
    }
    let help = "Holders that are alive, by role.";
    let mut alive = text.meter(Meter::Gauge, "rewheel_holders", help);
    for role in ["engine", "worker"] {
        let is_one = |holder: &&rewheel_core::Holder| {
            holder.died.is_none() && !holder.expired && holder.role.as_str() == role
        };
        alive.add(&[("role", role)], holders.iter().filter(is_one).count());
    }
    Ok(())
}

fn jobs(tallies: &[Tally], text: &mut Text) {
    let help = "Jobs that live or are dead letters, by kind and state.";
    let mut jobs = text.meter(Meter::Gauge, "rewheel_jobs", help);
    let states = [JobState::Scheduled, JobState::Leased, JobState::Paused, JobState::Dead];
    for tally in tallies {
        for state in states {
            let count = tally.jobs.get(&state).copied().unwrap_or_default();
            jobs.add(&[("kind", tally.kind.as_str()), ("state", state.as_str())], count);
        }
    }
    let help = "When the first scheduled job of a kind is due, in seconds since 1970.";
    let mut due = text.meter(Meter::Gauge, "rewheel_oldest_due_timestamp_seconds", help);
    for tally in tallies {
        if let Some(oldest) = tally.oldest_due {
            let seconds = oldest.as_millis() as f64 / 1_000.0;
            due.add(&[("kind", tally.kind.as_str())], seconds);
        }
    }
}
