//! Serves incidents: failures grouped by cause.

use super::cursor::{self, List, largest_first};
use super::query::Parameters;
use crate::app::App;
use crate::conditions::Conditions;
use crate::problem::{Code, Problem};
use crate::rfc3339;
use crate::tokens::Caller;
use axum::Json;
use axum::extract::{Path, State};
use axum::http::Uri;
use axum::response::{IntoResponse, Response};
use rewheel_core::{Incident, KindName, Tenant};
use serde::Serialize;
use std::sync::Arc;

/// A page of the incidents that were found.
#[derive(Debug, Serialize)]
struct Answer {
    items: Vec<Document>,
    next: Option<String>,
    /// Whether every job was read; otherwise only the newest were.
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
    /// Whether every job was read. A list says it once for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    complete: Option<bool>,
}

/// `GET /v1/incidents`: from a limited number of the newest jobs.
pub(super) async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    uri: Uri,
) -> Result<Response, Problem> {
    let mut parameters = Parameters::read(&uri, &["limit", "cursor", "kind", "tenant"])?;
    let (limit, after) = (parameters.limit(), parameters.after(List::Incidents));
    let mut kinds = parameters.all("kind", KindName::parse);
    let mut tenant = parameters.one("tenant", Tenant::parse);
    parameters.finish()?;
    caller.claim(&mut tenant)?;
    kinds.sort();
    kinds.dedup();
    let found = app.incidents().ask(&**app.engine()?.store(), (kinds, tenant)).await?;
    // The largest first. An incident that grows or shrinks between two pages moves.
    let position = |incident: &&Incident| {
        let seen = u64::try_from(incident.last_seen.as_millis()).unwrap_or(0);
        let size = [incident.dead, incident.jobs, seen].map(largest_first).join(" ");
        format!("{size} {}", incident.id)
    };
    let all: Vec<&Incident> = found.incidents.iter().collect();
    let (page, next) = cursor::cut(all, position, after.as_deref(), limit);
    let items = page.into_iter().cloned().map(Document::new).collect();
    let next = next.map(|position| List::Incidents.cursor(&position));
    Ok(Json(Answer { items, next, complete: found.complete }).into_response())
}

/// `GET /v1/incidents/{id}`: from the same limited number of jobs as the list.
pub(super) async fn show(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    caller: Caller,
    uri: Uri,
) -> Result<Response, Problem> {
    Parameters::read(&uri, &[])?.finish()?;
    let mut tenant = None;
    caller.claim(&mut tenant)?;
    let found = app.incidents().ask(&**app.engine()?.store(), (Vec::new(), tenant)).await?;
    let incident = found.incidents.iter().find(|incident| incident.id == id);
    let incident = incident.ok_or_else(|| not_found(&id, found.complete))?;
    let complete = Some(found.complete);
    Ok(Json(Document { complete, ..Document::new(incident.clone()) }).into_response())
}

fn not_found(id: &str, is_complete: bool) -> Problem {
    let problem =
        Problem::new(Code::NotFound, format!("no failed job belongs to an incident `{id}`"));
    if is_complete {
        return problem
            .hint("its jobs succeeded, failed again for another reason, or were deleted");
    }
    problem.hint(
        "only the newest failed jobs were read: GET /v1/jobs?incident=ID also finds older ones",
    )
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
            complete: None,
        }
    }
}
