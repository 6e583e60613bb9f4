//! The REST interface: every route, and what holds for all of them.

mod answer;
mod body;
mod query;
mod submit;
mod jobs;
mod kinds;
mod audit;
mod incidents;
mod health;

use crate::app::App;
use crate::problem::{Code, Problem};
use axum::Router;
use axum::http::Uri;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodRouter, get, post};
use rewheel_core::{Actor, KindChange};
use serde::Serialize;
use std::sync::Arc;

/// Returns all routes.
pub(crate) fn router(app: Arc<App>) -> Router {
    Router::new()
        .route("/v1/jobs", post(submit::one).get(jobs::list))
        .route("/v1/jobs/batch", post(submit::batch))
        .route("/v1/jobs/{id}", get(jobs::show))
        .route("/v1/jobs/{id}/cancel", post(jobs::cancel))
        .route("/v1/jobs/{id}/retry", post(jobs::retry))
        .route("/v1/kinds", get(kinds::list))
        .route("/v1/kinds/{kind}", get(kinds::show).put(kinds::put))
        .route("/v1/kinds/{kind}/pause", change_kind(|| KindChange::Pause))
        .route("/v1/kinds/{kind}/resume", change_kind(|| KindChange::Resume))
        .route(
            "/v1/kinds/{kind}/breaker/open",
            change_kind(|| KindChange::Open { reason: format!("opened by {}", who()) }),
        )
        .route("/v1/kinds/{kind}/breaker/close", change_kind(|| KindChange::Close))
        .route("/v1/kinds/{kind}/breaker/reset", change_kind(|| KindChange::Reset))
        .route("/v1/incidents", get(incidents::list))
        .route("/v1/audit", get(audit::list))
        .route("/livez", get(health::livez))
        .route("/readyz", get(health::readyz))
        .fallback(nothing_here)
        .layer(from_fn_with_state(Arc::clone(&app), answer::finish))
        .with_state(app)
}

/// Changes the kind that the path names.
fn change_kind(change: fn() -> KindChange) -> MethodRouter<Arc<App>> {
    post(move |app, name, uri| kinds::change(app, name, uri, change()))
}

async fn nothing_here(uri: Uri) -> Problem {
    Problem::new(Code::NotFound, format!("there is nothing at {}", uri.path()))
}

/// One page of a list.
#[derive(Debug, Serialize)]
struct Page<T> {
    items: Vec<T>,
    next: Option<String>,
}

/// Who the audit log says it was.
fn who() -> Actor {
    Actor::new("rest")
}

#[cfg(test)]
mod tests;
