//! The REST interface: the router, and what holds for all routes.

mod routes;
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
mod job_result;
mod kinds;
mod schedules;
mod fleet;
mod history;
mod events;
mod workers;
mod audit;
mod incidents;
mod operations;
mod health;
mod metrics;
mod tokens;
mod docs;

pub(crate) use self::body::BodyMemory;
pub(crate) use self::routes::{Group, groups};

use crate::app::App;
use crate::problem::{Code, Problem};
use axum::Router;
use axum::http::Uri;
use axum::middleware::{from_fn, from_fn_with_state};
use serde::Serialize;
use std::sync::Arc;

/// Returns all routes.
pub(crate) fn router(app: Arc<App>) -> Router {
    layered(routes::router(&app), app)
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

async fn nothing_here(uri: Uri) -> Problem {
    Problem::new(Code::NotFound, format!("the path {} does not exist", uri.path()))
}

/// One page of a list.
#[derive(Debug, Serialize)]
struct Page<T> {
    items: Vec<T>,
    next: Option<String>,
}

#[cfg(test)]
mod tests;
