//! Accepts new jobs.

use super::answer::RequestId;
use super::body::{self, Body, SMALL_BYTES_MAX};
use super::query::Parameters;
use crate::app::App;
use crate::conditions::Conditions;
use crate::fields::pointer;
use crate::job_document::JobDocument;
use crate::problem::{Code, FieldError, Problem};
use crate::submit::{self, check_duplicates, parse, parse_batch, refused};
use crate::tokens::Caller;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use rewheel::axum::idempotency_key;
use rewheel_core::store::{IfRefused, Insert, Inserted};
use rewheel_core::{Fence, Job, JobId, Key, Limits, NewJob, Status, Timestamp, TokenRole, When};
use rewheel_engine::Engine;
use rewheel_engine::trace::is_traceparent;
use serde_json::{Value, json};
use std::sync::Arc;

const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// `POST /v1/jobs`
pub(super) async fn one(
    State(app): State<Arc<App>>,
    caller: Caller,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    Parameters::read(&uri, &[])?.finish()?;
    let engine = app.engine_for_work()?;
    let bytes_max = engine.settings().payload_bytes_max;
    let text = body::read(body, bytes_max.saturating_add(SMALL_BYTES_MAX));
    let text = text.await.map_err(|problem| blame_payload(problem, bytes_max))?;
    let mut job = parse(&text, engine.new_id(), bytes_max)?;
    take_key(&mut job, &headers)?;
    check_duplicates("", &job)?;
    bind("", &mut job, &caller)?;
    check_ceilings(engine, "", &job)?;
    job.traceparent = traceparent(&headers);
    let answers = insert(engine, Insert::new(std::slice::from_ref(&job))).await?;
    match answers.into_iter().next() {
        Some(Inserted::Created { due, leased }) => {
            let stored = stored(&app, &job, due, leased).await?;
            let document = JobDocument::new(&stored, &app.kind(&job.kind), due.max(stored.created));
            let document = document.with_history(&stored, &[], &[]).with_duplicate(false);
            Ok((StatusCode::CREATED, Json(document)).into_response())
        }
        Some(Inserted::Duplicate { job: id, state }) => {
            duplicate(&app, &caller, &job, Known { id, state, replaced: false }).await
        }
        Some(Inserted::Replaced { job: id, state }) => {
            duplicate(&app, &caller, &job, Known { id, state, replaced: true }).await
        }
        Some(Inserted::Refused(why)) => Err(refused("", &job, &why)),
        Some(Inserted::LeftOut) | None => Err(no_answer()),
    }
}

/// The job that has the key of a submit.
#[derive(Clone, Copy)]
struct Known {
    id: JobId,
    state: rewheel_core::State,
    /// Whether the submit replaced what it will run.
    replaced: bool,
}

/// Answers with the job that has the key.
async fn duplicate(
    app: &App,
    caller: &Caller,
    job: &NewJob,
    known: Known,
) -> Result<Response, Problem> {
    if !caller.roles().allow(TokenRole::Read) {
        return receipt(app, job, known).await;
    }
    let document = existing(app, caller, job, known).await?;
    let is_new = known.id == job.id;
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    let document = document.with_duplicate(!is_new).with_replaced(known.replaced);
    Ok((status, Json(document)).into_response())
}

/// `POST /v1/jobs/batch`
pub(super) async fn batch(
    State(app): State<Arc<App>>,
    caller: Caller,
    Extension(id): Extension<RequestId>,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let mut parameters = Parameters::read(&uri, &["partial"])?;
    let is_partial = parameters.one("partial", |text| match text {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err("must be true or false"),
    });
    parameters.finish()?;
    if headers.contains_key(IDEMPOTENCY_KEY) {
        let message = "cannot be combined with the Idempotency-Key header, which is for a single job: set `key` in each job instead";
        let errors = vec![FieldError::new("/jobs", message)];
        return Err(Problem::of_fields(Code::InvalidField, errors));
    }
    let engine = app.engine_for_work()?;
    let text = body::read(body, app.config().server.body_bytes_max).await?;
    let mut entries = parse_batch(&text, || engine.new_id(), engine.settings().payload_bytes_max)?;
    drop(text);
    for (place, entry) in entries.iter_mut().enumerate() {
        let checked = entry.as_mut().map(|job| {
            let at = format!("/jobs/{place}");
            bind(&at, job, &caller).and_then(|()| check_ceilings(engine, &at, job))
        });
        if let Ok(Err(problem)) = checked {
            *entry = Err(problem);
        }
    }
    if let Some(traceparent) = traceparent(&headers) {
        for job in entries.iter_mut().flatten() {
            job.traceparent = Some(traceparent.clone());
        }
    }
    if is_partial == Some(true) {
        let results = store_others(engine, entries, &id).await?;
        Ok((StatusCode::OK, Json(json!({ "results": results }))).into_response())
    } else {
        let results = store_all(engine, entries).await?;
        Ok((StatusCode::CREATED, Json(json!({ "results": results }))).into_response())
    }
}

/// Sets the tenant of a job, if the token is bound to one.
fn bind(at: &str, job: &mut NewJob, caller: &Caller) -> Result<(), Problem> {
    caller.claim(&mut job.tenant).map_err(|problem| {
        let errors = vec![FieldError::new(pointer(at, "tenant"), &problem.detail)];
        Problem { errors, ..problem }
    })
}

/// Checks a job against the limits of its kind. The store decides about kinds that this node does not know.
fn check_ceilings(engine: &Engine, at: &str, job: &NewJob) -> Result<(), Problem> {
    match engine.kind_settings(&job.kind) {
        Some(kind) => submit::check_ceilings(at, job, &kind),
        None => Ok(()),
    }
}

/// Stores all entries, or none.
async fn store_all(
    engine: &Engine,
    entries: Vec<Result<NewJob, Problem>>,
) -> Result<Vec<Value>, Problem> {
    let (mut jobs, mut problems) = (Vec::with_capacity(entries.len()), Vec::new());
    for entry in entries {
        match entry {
            Ok(job) => jobs.push(job),
            Err(problem) => problems.push(problem),
        }
    }
    if let Some(problem) = together(problems) {
        return Err(problem);
    }
    let if_refused = IfRefused::StoreNothing;
    let answers = insert(engine, Insert { if_refused, ..Insert::new(&jobs) }).await?;
    let mut results = Vec::with_capacity(jobs.len());
    let mut problems = Vec::new();
    for (place, (job, answer)) in jobs.iter().zip(answers).enumerate() {
        match result(place, job, answer) {
            Ok(result) => results.push(result),
            Err(Some(problem)) => problems.push(problem),
            Err(None) => {}
        }
    }
    match together(problems) {
        Some(problem) => Err(problem),
        None => Ok(results),
    }
}

/// Stores the valid entries, and reports the errors of the others.
async fn store_others(
    engine: &Engine,
    entries: Vec<Result<NewJob, Problem>>,
    id: &RequestId,
) -> Result<Vec<Value>, Problem> {
    let jobs: Vec<NewJob> =
        entries.iter().filter_map(|entry| entry.as_ref().ok()).cloned().collect();
    let mut answers = insert(engine, Insert::new(&jobs)).await?.into_iter();
    let entries = entries.into_iter().enumerate();
    let results = entries.map(|(place, entry)| {
        let stored = entry.map_err(Some).and_then(|job| match answers.next() {
            Some(answer) => result(place, &job, answer),
            None => Err(None),
        });
        stored.unwrap_or_else(
            |problem| json!({ "problem": problem.unwrap_or_else(no_answer).document(&id.0) }),
        )
    });
    Ok(results.collect())
}

/// Returns the result of one entry; an entry that was only left out has no error of its own.
fn result(place: usize, job: &NewJob, answer: Inserted) -> Result<Value, Option<Problem>> {
    match answer {
        Inserted::Created { .. } => Ok(json!({ "id": job.id.to_string(), "duplicate": false })),
        Inserted::Duplicate { job: id, .. } => {
            Ok(json!({ "id": id.to_string(), "duplicate": id != job.id }))
        }
        Inserted::Replaced { job: id, .. } => {
            Ok(json!({ "id": id.to_string(), "duplicate": true, "replaced": true }))
        }
        Inserted::Refused(why) => Err(Some(refused(&format!("/jobs/{place}"), job, &why))),
        Inserted::LeftOut => Err(None),
    }
}

/// Combines the problems of several entries: with the code of the first, and the fields of all.
fn together(problems: Vec<Problem>) -> Option<Problem> {
    let mut problems = problems.into_iter();
    let mut first = problems.next()?;
    let rest: Vec<FieldError> = problems.flat_map(|problem| problem.errors).collect();
    if !rest.is_empty() {
        first.errors.extend(rest);
        let hint = first.hint.take();
        first = Problem { hint, ..Problem::of_fields(first.code, first.errors) };
    }
    Some(first)
}

/// Stores jobs. The engine retries after a lost response, which is safe because the ids are fixed.
async fn insert(engine: &Engine, insert: Insert<'_>) -> Result<Vec<Inserted>, Problem> {
    debug_assert!(insert.jobs.len() <= Limits::SUBMIT_MAX, "the parser limits the size of a batch");
    Ok(engine.insert(&insert).await?)
}

/// Names the payload as the cause: no other field can make a body so large.
fn blame_payload(problem: Problem, bytes_max: usize) -> Problem {
    if problem.code != Code::TooLarge {
        return problem;
    }
    let message = format!("is too large: the limit is {bytes_max} bytes");
    Problem { errors: vec![FieldError::new("/payload", message)], ..problem }
}

/// Takes the key from the header, if the body has none.
fn take_key(job: &mut NewJob, headers: &HeaderMap) -> Result<(), Problem> {
    let header = idempotency_key(headers).map_err(|why| {
        let detail = format!("the Idempotency-Key header is not valid: the key {why}");
        Problem::new(Code::BadQuery, detail)
    })?;
    let Some(header) = header else { return Ok(()) };
    let wrong = |message: String| {
        let errors = vec![FieldError::new(pointer("", "key"), message)];
        Err(Problem::of_fields(Code::InvalidField, errors))
    };
    match (Key::parse(&header), &job.key) {
        (Ok(key), None) => job.key = Some(key),
        (Ok(key), Some(own)) if key == *own => {}
        (Ok(_), Some(_)) => {
            return wrong(
                "differs from the Idempotency-Key header: send only one of the two".to_owned(),
            );
        }
        (Err(why), _) => return wrong(format!("(from the Idempotency-Key header) {why}")),
    }
    Ok(())
}

/// Returns the trace context of the request. By the standard, an invalid one is ignored.
fn traceparent(headers: &HeaderMap) -> Option<String> {
    let text = headers.get("traceparent")?.to_str().ok()?;
    is_traceparent(text).then(|| text.to_owned())
}

/// Builds the document of a new job without reading it back: it may have ended by now.
async fn stored(
    app: &App,
    job: &NewJob,
    due: Timestamp,
    leased: Option<Fence>,
) -> Result<Job, Problem> {
    let created = match job.due {
        When::In(delay) => {
            let delay = i64::try_from(delay.as_nanos().div_ceil(1_000_000)).unwrap_or(i64::MAX);
            Timestamp::from_millis(due.as_millis().saturating_sub(delay))
        }
        When::At(_) => app.now().await?,
    };
    let status = match leased {
        Some(_) => {
            let holder = app.engine()?.status().holder;
            Status::Leased { holder, overdue: due, wanted: None }
        }
        None => Status::Scheduled,
    };
    let mut job = Job { due, status, fence: leased.unwrap_or_default(), ..job.to_job(created) };
    // Only the store knows whether the job is the first of its group.
    if job.group.is_some()
        && let Some(found) = app.engine()?.store().get(job.id).await?
    {
        job.group = found.group;
    }
    Ok(job)
}

/// Returns what a caller without read permission learns about the job that has its key: that it exists, and what the caller itself sent.
async fn receipt(app: &App, job: &NewJob, known: Known) -> Result<Response, Problem> {
    let Known { id, state, replaced } = known;
    if id == job.id {
        // The caller's own insert, whose response was lost: the job as it was stored.
        let now = app.now().await?;
        let stored = stored(app, job, now, None).await?;
        let document = JobDocument::new(&stored, &app.kind(&job.kind), now);
        let document = document.with_history(&stored, &[], &[]).with_duplicate(false);
        return Ok((StatusCode::CREATED, Json(document)).into_response());
    }
    let mut receipt = json!({
        "id": id.to_string(), "duplicate": true, "kind": job.kind.as_str(),
        "key": job.key.as_ref().map(Key::as_str),
        "tenant": job.tenant.as_ref().map(rewheel_core::Tenant::as_str), "state": state.as_str(),
    });
    if replaced {
        receipt["replaced"] = true.into();
    }
    Ok((StatusCode::OK, Json(receipt)).into_response())
}

/// Returns the job that has the key. If it was deleted, only its id and final state are known.
async fn existing(
    app: &App,
    caller: &Caller,
    job: &NewJob,
    known: Known,
) -> Result<JobDocument, Problem> {
    if let Some(document) = super::jobs::document(app, caller, known.id).await? {
        return Ok(document);
    }
    let now = app.now().await?;
    let gone = stored(app, &NewJob { id: known.id, ..job.clone() }, now, None).await?;
    let document = JobDocument::new(&gone, &app.kind(&job.kind), now);
    Ok(document.with_history(&gone, &[], &[]).ended_as(known.state))
}

fn no_answer() -> Problem {
    Problem::new(Code::Internal, "the store returned no result for the job")
}
