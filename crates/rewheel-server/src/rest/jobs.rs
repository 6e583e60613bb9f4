//! Shows jobs, and changes one for a person.

use super::query::{self, Parameters};
use super::{Page, body, who};
use crate::app::App;
use crate::job_document::JobDocument;
use crate::problem::{Code, Problem};
use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::Uri;
use axum::http::header::ETAG;
use axum::response::{IntoResponse, Response};
use rewheel_core::store::{Change, Changed, What};
use rewheel_core::{JobId, Keep, KindName, State as JobState, Timestamp};
use rewheel_engine::KindSettings;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Entries of the audit log that are shown with a job: the latest.
const AUDIT_MAX: usize = 100;

/// `GET /v1/jobs`
pub(super) async fn list(State(app): State<Arc<App>>, uri: Uri) -> Result<Response, Problem> {
    let (filter, page) = query::jobs(&uri)?;
    let engine = app.engine()?;
    let page = engine.store().list(&filter, &page).await?;
    // Only whether a leased job has started depends on the time.
    let is_leased = page.items.iter().any(|job| job.state() == JobState::Leased);
    let now = if is_leased { app.now().await? } else { Timestamp::from_millis(0) };
    let mut kinds: BTreeMap<&KindName, KindSettings> = BTreeMap::new();
    let mut items = Vec::with_capacity(page.items.len());
    for job in &page.items {
        let name = &job.lane.kind;
        let kind = kinds.entry(name).or_insert_with(|| app.kind(name));
        items.push(JobDocument::new(job, kind, now));
    }
    let next = page.next.map(|cursor| cursor.to_string());
    Ok(Json(Page { items, next }).into_response())
}

/// `GET /v1/jobs/{id}`
pub(super) async fn show(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    uri: Uri,
) -> Result<Response, Problem> {
    Parameters::read(&uri, &[])?.finish()?;
    let id = parse_id(&id)?;
    let document = document(&app, id).await?.ok_or_else(|| not_found(id))?;
    let etag = format!("\"{}\"", document.version());
    Ok(([(ETAG, etag)], Json(document)).into_response())
}

/// `POST /v1/jobs/{id}/cancel`
pub(super) async fn cancel(
    state: State<Arc<App>>,
    id: Path<String>,
    uri: Uri,
    body: Body,
) -> Result<Response, Problem> {
    change(state, id, &uri, body, (What::Cancel, "cancelled")).await
}

/// `POST /v1/jobs/{id}/retry`
pub(super) async fn retry(
    state: State<Arc<App>>,
    id: Path<String>,
    uri: Uri,
    body: Body,
) -> Result<Response, Problem> {
    change(state, id, &uri, body, (What::Retry, "retried")).await
}

async fn change(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    uri: &Uri,
    body: Body,
    (what, done): (What, &str),
) -> Result<Response, Problem> {
    Parameters::read(uri, &[])?.finish()?;
    body::read_nothing(body).await?;
    let id = parse_id(&id)?;
    let engine = app.engine_for_work()?;
    let before = document(&app, id).await?.ok_or_else(|| not_found(id))?;
    let keep = Keep { job: engine.settings().keep_ended, key: engine.settings().keep_keys };
    let changed = engine.store().change(&[Change::new(id, what)], &who(), keep).await?;
    let state = match changed.first() {
        Some(Changed::Applied { state, .. } | Changed::Unchanged { state, .. }) => *state,
        Some(Changed::Wanted { .. }) => JobState::Leased,
        Some(Changed::WrongState(state)) => return Err(wrong_state(done, *state)),
        Some(Changed::NeedsDeadline) => {
            return Err(Problem::new(Code::WrongState, "its deadline has passed")
                .hint("submit it again with a later deadline"));
        }
        Some(Changed::NotFound) => return Err(not_found(id)),
        Some(Changed::VersionChanged(_) | Changed::TooLarge { .. }) | None => {
            return Err(Problem::new(Code::Internal, "the store did not say what became of it"));
        }
    };
    // A job that is not kept after its end is gone by now.
    let after = document(&app, id).await?.unwrap_or_else(|| before.ended_as(state));
    Ok(Json(after).into_response())
}

/// Describes a job with its history.
pub(super) async fn document(app: &App, id: JobId) -> Result<Option<JobDocument>, Problem> {
    let store = app.engine()?.store();
    let Some(job) = store.get(id).await? else { return Ok(None) };
    let attempts = store.attempts(id).await?;
    let audit = store.audit(Some(id), None, AUDIT_MAX).await?;
    let document = JobDocument::new(&job, &app.kind(&job.lane.kind), app.now().await?);
    Ok(Some(document.with_history(&job, &attempts, &audit)))
}

fn wrong_state(done: &str, state: JobState) -> Problem {
    let problem = Problem::new(Code::WrongState, format!("a job that is {state} cannot be {done}"));
    match state {
        JobState::Leased => problem.hint("it runs, or is about to: let it end first"),
        JobState::Succeeded | JobState::Failed | JobState::Cancelled => {
            problem.hint("it has ended: submit another")
        }
        JobState::Scheduled | JobState::Paused | JobState::Dead => problem,
    }
}

/// An id that is none is that of no job.
fn parse_id(text: &str) -> Result<JobId, Problem> {
    text.parse().map_err(|error| Problem::new(Code::NotFound, error))
}

fn not_found(id: JobId) -> Problem {
    Problem::new(Code::NotFound, format!("there is no job {id}"))
        .hint("it was never submitted, or it ended and is not kept any more")
}
