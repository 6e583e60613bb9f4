//! The router of the REST interface, with the layers that apply to all routes.

mod access;
mod nearby;
mod answer;
mod body;
mod limits;
mod gzip;
mod query;
mod cursor;
mod if_match;
mod submit;
mod jobs;
mod kinds;
mod fleet;
mod events;
mod workers;
mod audit;
mod incidents;
mod operations;
mod health;
mod metrics;
mod tokens;
mod docs;

pub(crate) use self::body::BodyRoom;

use self::access::Routes;
use crate::app::App;
use crate::problem::{Code, Problem};
use axum::Router;
use axum::http::Uri;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{MethodRouter, get, post};
use rewheel_core::store::What;
use rewheel_core::{Actor, KindChange};
use rewheel_engine::BulkVerb;
use serde::Serialize;
use std::sync::Arc;

/// Returns all routes.
pub(crate) fn router(app: Arc<App>) -> Router {
    layered(routes().guarded(&app), app)
}

/// Adds the layers that apply to all routes.
fn layered(routes: Router<Arc<App>>, app: Arc<App>) -> Router {
    routes
        .fallback(nothing_here)
        .layer(from_fn_with_state(Arc::clone(&app), limits::keep))
        .layer(from_fn_with_state(Arc::clone(&app), answer::finish))
        .layer(from_fn(gzip::compress))
        .with_state(app)
}

/// The table in `access` defines the role of each route.
fn routes() -> Routes {
    Routes::default()
        .route("/v1/jobs", post(submit::one).get(jobs::list))
        .route("/v1/jobs/batch", post(submit::batch))
        .route("/v1/jobs/cancel", order(BulkVerb::Cancel))
        .route("/v1/jobs/pause", order(BulkVerb::Pause))
        .route("/v1/jobs/resume", order(BulkVerb::Resume))
        .route("/v1/jobs/retry", order(BulkVerb::Retry))
        .route("/v1/jobs/redrive", order(BulkVerb::Redrive))
        .route("/v1/jobs/{id}", get(jobs::show).patch(jobs::edit))
        .route("/v1/jobs/{id}/cancel", change(|| What::Cancel, "cancelled"))
        .route("/v1/jobs/{id}/pause", change(|| What::Pause, "paused"))
        .route("/v1/jobs/{id}/resume", change(|| What::Resume, "resumed"))
        .route("/v1/jobs/{id}/retry", change(|| What::Retry, "retried"))
        .route("/v1/operations", get(operations::list))
        .route("/v1/operations/{id}", get(operations::show))
        .route("/v1/operations/{id}/abort", post(operations::abort))
        .route("/v1/kinds", get(kinds::list))
        .route(
            "/v1/kinds/{kind}",
            get(kinds::show).put(kinds::put).patch(kinds::patch).delete(kinds::delete),
        )
        .route("/v1/kinds/{kind}/pause", change_kind(|_| KindChange::Pause))
        .route("/v1/kinds/{kind}/resume", change_kind(|_| KindChange::Resume))
        .route(
            "/v1/kinds/{kind}/breaker/open",
            change_kind(|who| KindChange::Open { reason: format!("opened by {who}") }),
        )
        .route("/v1/kinds/{kind}/breaker/close", change_kind(|_| KindChange::Close))
        .route("/v1/kinds/{kind}/breaker/reset", change_kind(|_| KindChange::Reset))
        .route("/v1/incidents", get(incidents::list))
        .route("/v1/incidents/{id}/hold", order_incident(BulkVerb::Pause))
        .route("/v1/incidents/{id}/release", order_incident(BulkVerb::Resume))
        .route("/v1/incidents/{id}/redrive", order_incident(BulkVerb::Redrive))
        .route("/v1/workers/claim", post(workers::claim))
        .route("/v1/workers/heartbeat", post(workers::heartbeat))
        .route("/v1/workers/settle", post(workers::settle))
        .route("/v1/workers/extend", post(workers::extend))
        .route("/v1/workers/checkpoint", post(workers::checkpoint))
        .route("/v1/workers/leave", post(workers::leave))
        .route("/v1/holders", get(fleet::holders))
        .route("/v1/stats", get(fleet::stats))
        .route("/v1/events", get(events::listen))
        .route("/v1/audit", get(audit::list))
        .route("/v1/tokens", get(tokens::list).post(tokens::create))
        .route("/v1/tokens/{id}/revoke", post(tokens::revoke))
        .route("/livez", get(health::livez))
        .route("/readyz", get(health::readyz))
        .route("/health", get(health::health))
        .route("/metrics", get(metrics::metrics))
        .route("/openapi.json", get(docs::document))
        .route("/docs", get(docs::page))
}

/// Changes the job in the path.
fn change(what: fn() -> What, done: &'static str) -> MethodRouter<Arc<App>> {
    post(move |app, id, caller, uri, headers, body| {
        jobs::change(app, id, caller, (uri, headers), body, (what(), done))
    })
}

/// Changes the jobs that the body selects.
fn order(verb: BulkVerb) -> MethodRouter<Arc<App>> {
    post(move |app, caller, uri, body| operations::order(app, caller, uri, body, verb))
}

/// Changes the jobs of the incident in the path.
fn order_incident(verb: BulkVerb) -> MethodRouter<Arc<App>> {
    post(move |app, id, caller, uri, body| {
        operations::order_incident(app, id, caller, uri, body, verb)
    })
}

/// Changes the kind in the path.
fn change_kind(change: fn(&Actor) -> KindChange) -> MethodRouter<Arc<App>> {
    post(move |app, name, caller, uri, headers| {
        kinds::change(app, name, caller, (uri, headers), change)
    })
}

/// Returns the path of every route.
#[cfg(test)]
pub(crate) fn paths() -> Vec<&'static str> {
    routes().paths()
}

async fn nothing_here(uri: Uri) -> Problem {
    Problem::new(Code::NotFound, format!("no route for {}", uri.path()))
}

/// One page of a list.
#[derive(Debug, Serialize)]
struct Page<T> {
    items: Vec<T>,
    next: Option<String>,
}

#[cfg(test)]
mod tests;
