//! Serves jobs, and changes single jobs.

use super::body::{Body, SMALL_BYTES_MAX};
use super::cursor::List;
use super::if_match::{IfMatch, etag};
use super::query::{self, JobList, Parameters};
use super::{Page, body, job_result, schedules};
use crate::app::App;
use crate::job_document::JobDocument;
use crate::problem::{Code, FieldError, Problem};
use crate::submit::{over_ceiling, parse_edit};
use crate::tokens::Caller;
use axum::Json;
use axum::extract::{Path, State};
use axum::http::header::ETAG;
use axum::http::{HeaderMap, Uri};
use axum::response::{IntoResponse, Response};
use rewheel_core::store::{Change, ChangeVerb, Changed, StoreError};
use rewheel_core::{Holder, HolderId, Job, JobId, KindName, State as JobState, Timestamp, Version};
use rewheel_engine::KindSettings;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Maximum number of audit entries shown with a job: the latest.
const AUDIT_MAX: usize = 100;

/// `GET /v1/jobs`
pub(super) async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    uri: Uri,
) -> Result<Response, Problem> {
    let JobList { mut filter, page, schedule, holder } = query::jobs(&uri)?;
    caller.narrow(&mut filter)?;
    let engine = app.engine()?;
    if let Some(name) = holder {
        // A tenant must not learn which nodes there are.
        caller.whole("leave out `holder`")?;
        filter.holders = holders(engine.store().holders().await?, &name)?;
    }
    if let Some(name) = schedule {
        let found = engine.schedule(name.as_str()).await?;
        filter.parent = Some(found.ok_or_else(|| schedules::not_found(name.as_str()))?.id);
    }
    let listed = engine.store().list(&filter, &page).await;
    let page = listed.map_err(|error| not_listed(error, filter.key.is_some()))?;
    // Only documents of live jobs depend on the time.
    let is_live = |job: &Job| job.status.finished().is_none();
    let now = match page.items.iter().any(is_live) {
        true => app.now().await?,
        false => Timestamp::from_millis(0),
    };
    let held = engine.held(&page.items.iter().collect::<Vec<_>>(), now).await?;
    let mut kinds: BTreeMap<&KindName, KindSettings> = BTreeMap::new();
    let mut items = Vec::with_capacity(page.items.len());
    for (job, held) in page.items.iter().zip(held) {
        let name = &job.lane.kind;
        let kind = kinds.entry(name).or_insert_with(|| app.kind(name));
        items.push(JobDocument::new(job, kind, now).with_held(held));
    }
    let next = page.next.map(|cursor| List::Jobs.cursor(&cursor.to_string()));
    Ok(Json(Page { items, next }).into_response())
}

/// Returns the ids of the holders with this id or name, dead ones included: they may still have jobs.
fn holders(all: Vec<Holder>, wanted: &str) -> Result<Vec<HolderId>, Problem> {
    let is_wanted = |one: &Holder| one.name == wanted || one.id.to_string() == wanted;
    let found: Vec<HolderId> = all.into_iter().filter(is_wanted).map(|holder| holder.id).collect();
    if found.is_empty() {
        let why = format!("no holder has the id or name `{wanted}`");
        return Err(Problem::new(Code::NotFound, why).hint(
            "GET /v1/holders lists the holders; a holder is removed some time after its end",
        ));
    }
    Ok(found)
}

/// Turns a key search over too many lanes into a client error.
fn not_listed(error: StoreError, has_key: bool) -> Problem {
    if let (StoreError::Rejected(why), true) = (&error, has_key) {
        return Problem::of_fields(Code::BadQuery, vec![FieldError::new("/key", why)]);
    }
    error.into()
}

/// `GET /v1/jobs/{id}`
pub(super) async fn show(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    caller: Caller,
    uri: Uri,
) -> Result<Response, Problem> {
    let mut parameters = Parameters::read(&uri, &["wait"])?;
    let wait = parameters.wait();
    parameters.finish()?;
    let id = parse_id(&id)?;
    if let Some(time_max) = wait.filter(|wait| !wait.is_zero()) {
        job_result::wait(&app, &caller, id, time_max).await?;
    }
    let document = document(&app, &caller, id).await?.ok_or_else(|| not_found(id))?;
    let etag = etag(Version::new(document.version()));
    Ok(([(ETAG, etag)], Json(document)).into_response())
}

/// `POST /v1/jobs/{id}/{cancel,pause,resume,retry}`
pub(super) async fn change(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    caller: Caller,
    (uri, headers): (Uri, HeaderMap),
    body: Body,
    (what, done): (ChangeVerb, &str),
) -> Result<Response, Problem> {
    Parameters::read(&uri, &[])?.finish()?;
    let if_version = IfMatch::read(&headers)?.version();
    body::read_nothing(body).await?;
    let change = Change { if_version, ..Change::new(parse_id(&id)?, what) };
    obey(&app, &caller, change, done).await
}

/// `PATCH /v1/jobs/{id}`
pub(super) async fn edit(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    caller: Caller,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    Parameters::read(&uri, &[])?.finish()?;
    let bytes_max = app.engine_for_work()?.settings().payload_bytes_max;
    let text = body::read(body, bytes_max.saturating_add(SMALL_BYTES_MAX)).await?;
    let edit = parse_edit(&text, bytes_max)?;
    let if_version = IfMatch::read(&headers)?.version();
    let id = parse_id(&id)?;
    if let Some(attempts) = edit.attempts_max {
        check_attempts(&app, &caller, id, attempts).await?;
    }
    let change = Change { if_version, ..Change::new(id, ChangeVerb::Edit(Box::new(edit))) };
    obey(&app, &caller, change, "edited").await
}

/// Checks that an edit asks for no more attempts than a submit may.
async fn check_attempts(
    app: &App,
    caller: &Caller,
    id: JobId,
    attempts: u32,
) -> Result<(), Problem> {
    let job = app.engine()?.store().get(id).await?.filter(|job| caller.sees(job));
    let job = job.ok_or_else(|| not_found(id))?;
    let kind = &job.lane.kind;
    let checked = app.kind(kind).ceilings().check_attempts(attempts);
    checked.map_err(|over| over_ceiling("", kind, &over))
}

async fn obey(app: &App, caller: &Caller, change: Change, done: &str) -> Result<Response, Problem> {
    let id = change.job;
    let engine = app.engine_for_work()?;
    let before = document(app, caller, id).await?.ok_or_else(|| not_found(id))?;
    let state = match engine.change(change, caller.who()).await? {
        Changed::Applied { state, .. } | Changed::Unchanged { state, .. } => state,
        Changed::Wanted { .. } => JobState::Leased,
        Changed::WrongState(state) => return Err(wrong_state(done, state)),
        Changed::NeedsDeadline => {
            let why = "the deadline of the job is in the past, or before the job is due";
            return Err(Problem::new(Code::WrongState, why)
                .hint("first change the deadline with PATCH /v1/jobs/{id}: set a later time, or null to remove it"));
        }
        Changed::VersionChanged(version) => {
            let detail = format!("job {id} has changed: its version is now {version}");
            return Err(Problem::new(Code::VersionChanged, detail)
                .hint("read the job again, then send the request with its new ETag"));
        }
        Changed::TooLarge { bytes_max } => {
            let why = format!("is too large: the limit of the store is {bytes_max} bytes");
            return Err(Problem::of_fields(Code::TooLarge, vec![FieldError::new("/payload", why)]));
        }
        Changed::Reserved => return Err(reserved(id)),
        Changed::NotFound => return Err(not_found(id)),
    };
    // A job without retention is gone by now.
    let after = document(app, caller, id).await?.unwrap_or_else(|| before.ended_as(state));
    let etag = etag(Version::new(after.version()));
    Ok(([(ETAG, etag)], Json(after)).into_response())
}

/// Builds the document of a job with its history, if the caller may see it.
pub(super) async fn document(
    app: &App,
    caller: &Caller,
    id: JobId,
) -> Result<Option<JobDocument>, Problem> {
    let engine = app.engine()?;
    let store = engine.store();
    let job = store.get(id).await?.filter(|job| caller.sees(job));
    let Some(job) = job else { return Ok(None) };
    let attempts = store.attempts(id).await?;
    let result = match job.state() {
        JobState::Succeeded => store.result(id).await?,
        JobState::Scheduled
        | JobState::Leased
        | JobState::Paused
        | JobState::Failed
        | JobState::Dead
        | JobState::Cancelled => None,
    };
    let audit = store.audit(Some(id), None, AUDIT_MAX).await?;
    let now = app.now().await?;
    let held = engine.held(&[&job], now).await?.pop().flatten();
    let document = JobDocument::new(&job, &app.kind(&job.lane.kind), now).with_held(held);
    Ok(Some(document.with_history(&job, &attempts, &audit).with_result(result.as_ref())))
}

fn reserved(id: JobId) -> Problem {
    Problem::new(
        Code::Forbidden,
        format!("job {id} is an internal job of the server and cannot be changed"),
    )
    .hint("to stop a bulk operation, use POST /v1/operations/{id}/abort")
}

fn wrong_state(done: &str, state: JobState) -> Problem {
    let problem = Problem::new(Code::WrongState, format!("a job that is {state} cannot be {done}"));
    match state {
        JobState::Leased => {
            problem.hint("the job is running or will run soon: wait until the attempt ends, or pause the job first")
        }
        JobState::Succeeded | JobState::Failed | JobState::Cancelled => {
            problem.hint("the job has ended: submit a new job")
        }
        JobState::Scheduled | JobState::Paused | JobState::Dead => problem,
    }
}

/// An invalid id is reported as not found.
pub(super) fn parse_id(text: &str) -> Result<JobId, Problem> {
    text.parse().map_err(|error| Problem::new(Code::NotFound, error))
}

pub(super) fn not_found(id: JobId) -> Problem {
    Problem::new(Code::NotFound, format!("job {id} does not exist"))
        .hint("check the id; the job was never submitted, or was deleted after its retention")
}
