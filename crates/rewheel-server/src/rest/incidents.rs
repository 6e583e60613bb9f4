//! Shows what fails, by its cause.

use super::query::Parameters;
use crate::app::App;
use crate::conditions::Conditions;
use crate::problem::Problem;
use crate::rfc3339;
use crate::tokens::Caller;
use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use axum::response::{IntoResponse, Response};
use rewheel_core::store::{Filter, PageRequest, Store, StoreError};
use rewheel_core::{Incident, Incidents, KindName, Limits, State as JobState, Tenant};
use serde::Serialize;
use std::sync::Arc;

/// Jobs that are looked at, dead ones and live ones each: the answer should take a moment, not a minute.
const LOOKED_AT_MAX: usize = 50_000;

/// Every incident that was found.
#[derive(Debug, Serialize)]
struct Answer {
    items: Vec<Document>,
    next: Option<String>,
    /// Whether every job was looked at; otherwise the newest were.
    complete: bool,
}

#[derive(Debug, Serialize)]
struct Document {
    id: String,
    kind: String,
    category: &'static str,
    code: Option<String>,
    message: String,
    count: u64,
    dead: u64,
    first_seen: String,
    last_seen: String,
    examples: Vec<String>,
}

/// `GET /v1/incidents`
pub(super) async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    uri: Uri,
) -> Result<Response, Problem> {
    let mut parameters = Parameters::read(&uri, &["limit", "kind", "tenant"])?;
    let limit = parameters.limit();
    let kinds = parameters.all("kind", KindName::parse);
    let mut tenant = parameters.one("tenant", Tenant::parse);
    parameters.finish()?;
    caller.claim(&mut tenant)?;
    let store = app.engine()?.store();
    let mut incidents = Incidents::default();
    let mut complete = true;
    for states in
        [vec![JobState::Dead], vec![JobState::Scheduled, JobState::Leased, JobState::Paused]]
    {
        let filter =
            Filter { states, kinds: kinds.clone(), tenant: tenant.clone(), ..Filter::default() };
        complete &= add(&**store, &filter, &mut incidents).await?;
    }
    let items = incidents.into_list().into_iter().take(limit).map(Document::new).collect();
    Ok(Json(Answer { items, next: None, complete }).into_response())
}

/// Adds the jobs that a filter lets through. Returns whether that were all.
async fn add(
    store: &dyn Store,
    filter: &Filter,
    incidents: &mut Incidents,
) -> Result<bool, StoreError> {
    let mut request = PageRequest::first(Limits::PAGE_MAX);
    let mut looked_at = 0;
    while looked_at < LOOKED_AT_MAX {
        let page = store.list(filter, &request).await?;
        page.items.iter().for_each(|job| incidents.add(job));
        // A short page was read as far as a full one.
        looked_at += Limits::PAGE_MAX;
        match page.next {
            Some(next) => request = PageRequest { cursor: Some(next), ..request },
            None => return Ok(true),
        }
    }
    Ok(false)
}

impl Document {
    fn new(incident: Incident) -> Document {
        Document {
            id: incident.id,
            kind: incident.kind.to_string(),
            category: incident.category.as_str(),
            code: incident.code,
            message: incident.message,
            count: incident.jobs,
            dead: incident.dead,
            first_seen: rfc3339::text(incident.first_seen),
            last_seen: rfc3339::text(incident.last_seen),
            examples: incident.examples.iter().map(ToString::to_string).collect(),
        }
    }
}
