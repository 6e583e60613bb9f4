//! Serves remote workers: they claim, settle and extend jobs over REST.

use super::body::{self, Body};
use super::query::Parameters;
use crate::app::App;
use crate::payload;
use crate::problem::{Code, FieldError, Problem};
use crate::rfc3339;
use crate::submit::refused;
use crate::tokens::{Caller, bad_token};
use crate::workers::{
    CheckpointRequest, ClaimRequest, ExtendRequest, HeartbeatRequest, LeaveRequest, SettleRequest,
};
use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use axum::response::{IntoResponse, Response};
use rewheel::{Clock, duration};
use rewheel_core::KindName;
use rewheel_core::store::{Leased, StoreChange, Watch};
use rewheel_engine::{
    Engine, RemoteWorker, RunnerKind, SubmitError, WorkerError, WorkerResult, WorkerSettled,
};
use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// A job leased to a worker.
#[derive(Debug, Serialize)]
struct WorkDocument {
    id: String,
    kind: String,
    payload: Box<RawValue>,
    key: Option<String>,
    tenant: Option<String>,
    attempt: u32,
    fence: u64,
    group_key: Option<String>,
    turn: Option<u64>,
    deadline: Option<String>,
    attempt_timeout: String,
    traceparent: Option<String>,
    instant: Option<String>,
}

/// The response to a claim.
#[derive(Debug, Serialize)]
struct ClaimedDocument {
    holder: String,
    lease_ttl: String,
    jobs: Vec<WorkDocument>,
}

/// `POST /v1/workers/claim`
pub(super) async fn claim(
    State(app): State<Arc<App>>,
    caller: Caller,
    uri: Uri,
    body: Body,
) -> Result<Response, Problem> {
    let text = text(&app, &uri, body).await?;
    let request = ClaimRequest::parse(&text)?;
    // A claim may wait for a minute, and keeps only a few names.
    text.release();
    let engine = app.engine_for_work()?;
    check_kinds(engine, &request.kinds)?;
    app.workers().asks(&request.kinds);
    let worker = match request.holder {
        Some(holder) => {
            let worker = engine.worker(holder, caller.owner()).await?;
            renew(&worker).await?;
            worker
        }
        None => engine.worker_joins(&request.name, caller.owner()).await?,
    };
    let leased = wait(&app, &caller, &worker, &request).await?;
    // Not through a JSON value: payloads stay as they are.
    let document = ClaimedDocument {
        holder: worker.id().to_string(),
        lease_ttl: duration::text(engine.settings().lease_ttl).to_string(),
        jobs: leased.iter().map(|leased| WorkDocument::new(engine, leased)).collect(),
    };
    Ok(Json(document).into_response())
}

/// Reads the body of a worker's request, which has no parameters.
async fn text(app: &App, uri: &Uri, body: Body) -> Result<body::Text, Problem> {
    Parameters::read(uri, &[])?.finish()?;
    body::read(body, app.config().server.body_bytes_max).await
}

/// Claims until there is a job, or the wait is over. A waiting worker counts as alive.
async fn wait(
    app: &App,
    caller: &Caller,
    worker: &RemoteWorker<'_>,
    request: &ClaimRequest,
) -> Result<Vec<Leased>, Problem> {
    let engine = app.engine_for_work()?;
    let dismissed = app.tokens().dismissed(&**engine.store(), caller);
    tokio::pin!(dismissed);
    let clock = Clock::system();
    let (until, mut watch) = (clock.now().plus(request.wait), engine.store().watch());
    let mut stopping = app.stopping();
    let renew_every = engine.settings().lease_ttl / 3;
    let mut renewed = clock.now();
    loop {
        let leased = worker.claim(&request.kinds, request.max).await?;
        let left = until.since(clock.now());
        if !leased.is_empty() || left.is_zero() || *stopping.borrow() {
            return Ok(leased);
        }
        if clock.now().since(renewed) >= renew_every {
            renew(worker).await?;
            renewed = clock.now();
        }
        let rest = left.min(engine.settings().poll).min(renew_every);
        tokio::select! {
            () = may_have_jobs(&mut *watch, &request.kinds) => {}
            () = clock.sleep(rest) => {}
            _ = stopping.wait_for(|is_stopping| *is_stopping) => {}
            () = &mut dismissed => return Err(bad_token()),
        }
    }
}

/// Waits until one of these kinds may have jobs. A wake-up for other kinds costs a waiting worker nothing.
async fn may_have_jobs(watch: &mut dyn Watch, kinds: &[KindName]) {
    loop {
        match watch.changed().await {
            StoreChange::Lanes(lanes) if lanes.is_empty() => return,
            StoreChange::Lanes(lanes) if lanes.iter().any(|lane| kinds.contains(&lane.kind)) => {
                return;
            }
            StoreChange::Lanes(_) => {}
            StoreChange::AnyLane | StoreChange::Replaced => return,
        }
    }
}

async fn renew(worker: &RemoteWorker<'_>) -> Result<(), WorkerError> {
    worker.heartbeat(&BTreeSet::new(), None).await.map(drop)
}

impl From<WorkerError> for Problem {
    fn from(error: WorkerError) -> Problem {
        let hint = "stop all running jobs of this worker, then claim again with \"holder\":null";
        match error {
            WorkerError::Expired(holder) => Problem::new(
                Code::HolderExpired,
                format!("the lease of holder {holder} has expired"),
            )
            .hint(hint),
            WorkerError::NotOwner(holder) => {
                let why = format!(
                    "holder {holder} belongs to another token, or is a node and not a worker"
                );
                Problem::new(Code::Forbidden, why).hint(hint)
            }
            WorkerError::Store(error) => error.into(),
        }
    }
}

fn check_kinds(engine: &Engine, kinds: &[KindName]) -> Result<(), Problem> {
    for (place, kind) in kinds.iter().enumerate() {
        let blame = |code, message: String| {
            let errors = vec![FieldError::new(format!("/kinds/{place}"), message)];
            Problem::of_fields(code, errors)
        };
        match engine.kind_settings(kind) {
            Some(settings) if settings.runner == RunnerKind::Worker => {}
            Some(settings) => {
                let runner = match settings.runner {
                    RunnerKind::Callback => "callback",
                    RunnerKind::Handler | RunnerKind::Worker => "handler",
                };
                let message = format!(
                    "`{kind}` has the runner `{runner}`: workers can claim only kinds with the runner `worker`"
                );
                return Err(blame(Code::InvalidField, message));
            }
            None => {
                return Err(blame(Code::UnknownKind, format!("`{kind}` does not exist"))
                    .hint("create the kind with the runner `worker`: in the config under [kinds], or with PUT /v1/kinds/{kind}"));
            }
        }
    }
    Ok(())
}

impl WorkDocument {
    fn new(engine: &Engine, leased: &Leased) -> WorkDocument {
        let job = &leased.job;
        let kind = engine.kind_settings(&job.lane.kind).unwrap_or_default();
        WorkDocument {
            id: job.id.to_string(),
            kind: job.lane.kind.to_string(),
            payload: payload::raw(job.payload.as_deref().unwrap_or_default()),
            key: job.key.as_ref().map(ToString::to_string),
            tenant: job.lane.tenant.as_ref().map(ToString::to_string),
            attempt: job.attempt + 1,
            fence: job.fence.get(),
            group_key: job.group.as_ref().map(|group| group.key.to_string()),
            turn: job.group.as_ref().and_then(|group| group.turn).map(rewheel_core::Turn::get),
            deadline: job.deadline.map(rfc3339::text),
            attempt_timeout: duration::text(kind.attempt_timeout_of(job)).to_string(),
            traceparent: job.traceparent.clone(),
            instant: job.instant.map(rfc3339::text),
        }
    }
}

/// `POST /v1/workers/heartbeat`
pub(super) async fn heartbeat(
    State(app): State<Arc<App>>,
    caller: Caller,
    uri: Uri,
    body: Body,
) -> Result<Response, Problem> {
    let request = HeartbeatRequest::parse(&text(&app, &uri, body).await?)?;
    let engine = app.engine_for_work()?;
    let lease_ttl = engine.settings().lease_ttl;
    let holder = request.holder;
    let worker = engine.worker(holder, caller.owner()).await?;
    // A job that was leased before the previous heartbeat and is missing in this one was lost by the worker. If another server received
    // that heartbeat, use the lease duration.
    let since = app.workers().heartbeat(holder, lease_ttl).unwrap_or(lease_ttl);
    let since = since.max(Duration::from_millis(1));
    let heard = worker.heartbeat(&request.jobs, Some(since)).await;
    let heard = heard.inspect_err(|_| app.workers().forget(holder))?;
    let cancel: Vec<_> = heard.cancel.iter().map(ToString::to_string).collect();
    let lease_ttl = duration::text(lease_ttl).to_string();
    Ok(Json(json!({ "lease_ttl": lease_ttl, "cancel": cancel })).into_response())
}

/// `POST /v1/workers/settle`
pub(super) async fn settle(
    State(app): State<Arc<App>>,
    caller: Caller,
    uri: Uri,
    body: Body,
) -> Result<Response, Problem> {
    let text = text(&app, &uri, body).await?;
    // A server that shuts down still accepts results: the work is done.
    let engine = app.engine()?;
    let bytes_max = engine.settings().payload_bytes_max;
    let request = SettleRequest::parse(&text, &|| engine.new_id(), bytes_max)?;
    let worker = engine.worker(request.holder, caller.owner()).await?;
    check_follow_ups(&worker, &request.results).await?;
    let ids: Vec<String> =
        request.results.iter().map(|result| result.lease.job.to_string()).collect();
    let settled = worker.settle(request.results).await?;
    let results: Vec<_> = ids
        .iter()
        .zip(settled)
        .map(|(id, settled)| match settled {
            WorkerSettled::Settled(state) => {
                json!({ "id": id, "settled": true, "state": state.as_str() })
            }
            WorkerSettled::Lost => json!({ "id": id, "settled": false, "reason": "fence_lost" }),
        })
        .collect();
    Ok(Json(json!({ "results": results })).into_response())
}

/// Checks the jobs that results submit, before any result is settled.
async fn check_follow_ups(
    worker: &RemoteWorker<'_>,
    results: &[WorkerResult],
) -> Result<(), Problem> {
    for (place, result) in results.iter().enumerate() {
        for (nth, job) in result.follow_ups.iter().enumerate() {
            let at = format!("/results/{place}/submit/{nth}");
            match worker.check_follow_up(job).await {
                Ok(()) => {}
                Err(SubmitError::Refused(why)) => return Err(refused(&at, job, &why)),
                Err(SubmitError::Field { field, why }) => {
                    let error = FieldError::new(format!("{at}/{field}"), why);
                    return Err(Problem::of_fields(Code::InvalidField, vec![error]));
                }
                Err(SubmitError::Store(error)) => return Err(error.into()),
                Err(SubmitError::ShutDown) => {
                    return Err(Problem::new(Code::ShuttingDown, "the server is shutting down"));
                }
            }
        }
    }
    Ok(())
}

/// `POST /v1/workers/extend`
pub(super) async fn extend(
    State(app): State<Arc<App>>,
    caller: Caller,
    uri: Uri,
    body: Body,
) -> Result<Response, Problem> {
    let request = ExtendRequest::parse(&text(&app, &uri, body).await?)?;
    let worker = app.engine()?.worker(request.holder, caller.owner()).await?;
    // A worker that asks for more time is alive; an expired worker gets an error.
    renew(&worker).await?;
    let id = request.lease.job.to_string();
    let document = match worker.extend(request.lease, request.timeout).await? {
        Some(overdue) => json!({ "id": id, "extended": true, "overdue": rfc3339::text(overdue) }),
        None => json!({ "id": id, "extended": false, "reason": "fence_lost" }),
    };
    Ok(Json(document).into_response())
}

/// `POST /v1/workers/checkpoint`
pub(super) async fn checkpoint(
    State(app): State<Arc<App>>,
    caller: Caller,
    uri: Uri,
    body: Body,
) -> Result<Response, Problem> {
    let bytes_max = app.engine()?.settings().payload_bytes_max;
    let request = CheckpointRequest::parse(&text(&app, &uri, body).await?, bytes_max)?;
    let worker = app.engine()?.worker(request.holder, caller.owner()).await?;
    // A worker that writes checkpoints is alive; an expired worker gets an error.
    renew(&worker).await?;
    let id = request.lease.job.to_string();
    let document = match worker.checkpoint(request.lease, &request.payload).await? {
        true => json!({ "id": id, "kept": true }),
        false => json!({ "id": id, "kept": false, "reason": "fence_lost" }),
    };
    Ok(Json(document).into_response())
}

/// `POST /v1/workers/leave`
pub(super) async fn leave(
    State(app): State<Arc<App>>,
    caller: Caller,
    uri: Uri,
    body: Body,
) -> Result<Response, Problem> {
    let request = LeaveRequest::parse(&text(&app, &uri, body).await?)?;
    let worker = app.engine()?.worker(request.holder, caller.owner()).await?;
    app.workers().forget(request.holder);
    let given_back = worker.leave().await?;
    Ok(Json(json!({ "given_back": given_back })).into_response())
}
