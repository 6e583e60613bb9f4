//! Serves results of jobs, and waits for the end of a job.

use super::jobs::{not_found, parse_id};
use super::query::Parameters;
use crate::app::App;
use crate::problem::{Code, Problem};
use crate::tokens::{Caller, bad_token};
use axum::extract::{Path, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderName, HeaderValue, Uri};
use axum::response::{IntoResponse, Response};
use rewheel_core::{ContentType, Job, JobId, JobResult, State as JobState, StoredResult};
use std::sync::Arc;
use std::time::Duration;

/// Tells browsers how to treat the bytes: a callee or a worker wrote them, and chose their type. Nothing in them may run on the
/// origin of this server, and no other type may be guessed.
const UNTRUSTED: [(HeaderName, &str); 5] = [
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (CONTENT_DISPOSITION, "attachment"),
    (CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (CACHE_CONTROL, "private, no-store"),
];

/// `GET /v1/jobs/{id}/result`
pub(super) async fn result(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    caller: Caller,
    uri: Uri,
) -> Result<Response, Problem> {
    Parameters::read(&uri, &[])?.finish()?;
    let id = parse_id(&id)?;
    let store = app.engine()?.store();
    let Some(job) = seen(&app, &caller, id).await? else {
        // A caller that may not see the job must not learn that it existed.
        let sees_all = caller.tenant().is_none();
        return match store.result(id).await? {
            Some(StoredResult::Pruned) if sees_all => Err(pruned(id)),
            Some(_) | None => Err(not_found(id)),
        };
    };
    match job.state() {
        state @ (JobState::Scheduled | JobState::Leased | JobState::Paused) => {
            let detail = format!("job {id} is {state}: it has no result yet");
            Err(Problem::new(Code::WrongState, detail)
                .hint("wait for its end with GET /v1/jobs/{id}?wait=30s"))
        }
        state @ (JobState::Failed | JobState::Dead | JobState::Cancelled) => Err(Problem::new(
            Code::NoResult,
            format!("job {id} ended as {state}: only a job that succeeded has a result"),
        )),
        JobState::Succeeded => match store.result(id).await? {
            Some(StoredResult::Kept(result)) => Ok(response(result)),
            Some(StoredResult::Dropped(why)) => {
                let detail = format!("the result of job {id} was dropped: {}", why.as_str());
                Err(Problem::new(Code::NoResult, detail))
            }
            Some(StoredResult::Pruned) => Err(pruned(id)),
            None => {
                Err(Problem::new(Code::NoResult, format!("job {id} succeeded without a result"))
                    .hint("results are kept if the kind has the setting `result = true`"))
            }
        },
    }
}

fn response(result: JobResult) -> Response {
    let content_type = HeaderValue::from_str(result.content_type.as_str())
        .unwrap_or_else(|_| HeaderValue::from_static("application/octet-stream"));
    debug_assert!(ContentType::parse(result.content_type.as_str()).is_ok());
    let mut response = result.body.into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, content_type);
    for (name, value) in UNTRUSTED {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

fn pruned(id: JobId) -> Problem {
    Problem::new(
        Code::ResultPruned,
        format!("the result of job {id} was deleted with the job, after its retention"),
    )
    .hint("raise keep_succeeded of the kind to keep results longer")
}

/// Reads a job without its payload, if the caller may see it.
async fn seen(app: &App, caller: &Caller, id: JobId) -> Result<Option<Job>, Problem> {
    let found = app.engine()?.store().find(&[id]).await?;
    Ok(found.into_iter().find(|job| job.id == id).filter(|job| caller.sees(job)))
}

/// Waits until a job has ended, the time is over or the server stops.
pub(super) async fn wait(
    app: &App,
    caller: &Caller,
    id: JobId,
    time_max: Duration,
) -> Result<(), Problem> {
    let job = seen(app, caller, id).await?.ok_or_else(|| not_found(id))?;
    if !job.state().is_live() {
        return Ok(());
    }
    let engine = app.engine()?;
    let mut end = engine.wait_for(id).map_err(|full| {
        Problem::new(Code::Throttled, full).hint("raise engine.waiters_max in the config")
    })?;
    // Again, after the wait has begun: the job may have ended in between.
    let job = seen(app, caller, id).await?;
    if job.is_none_or(|job| !job.state().is_live()) {
        return Ok(());
    }
    let mut stopping = app.stopping();
    tokio::select! {
        _ = end.wait(time_max) => Ok(()),
        _ = stopping.wait_for(|is_stopping| *is_stopping) => Ok(()),
        () = app.tokens().dismissed(&**engine.store(), caller) => Err(bad_token()),
    }
}
