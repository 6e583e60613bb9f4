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

pub(crate) use self::answer::{AsItIs, RequestId};
pub(crate) use self::body::BodyMemory;
pub(crate) use self::cursor::searched_until;
pub(crate) use self::nearby::check as check_nearby;
pub(crate) use self::routes::{Group, groups};

use crate::app::App;
use crate::config::PublicUrl;
use crate::problem::{Code, Problem};
use crate::ui;
use axum::Router;
use axum::extract::{FromRequest, Request};
use axum::http::Uri;
use axum::middleware::{from_fn, from_fn_with_state};
use serde::Serialize;
use std::sync::Arc;

/// Returns all routes, with those of the dashboard.
pub(crate) fn router(app: Arc<App>) -> Router {
    let routes = routes::router(&app).merge(ui::routes(&app));
    let base = app.config().server.public_url.as_ref().map_or("", PublicUrl::path);
    // Some proxies remove the base path, others do not.
    let routes = if base.is_empty() { routes } else { routes.clone().nest(base, routes) };
    layered(routes, app)
}

/// Returns the routes of REST for callers in this process, without the limits that their own request already passed.
pub(crate) fn inner(app: &Arc<App>) -> Router {
    routes::router(app)
        .fallback(nothing_here)
        .layer(from_fn_with_state(Arc::clone(app), answer::finish))
        .with_state(Arc::clone(app))
}

/// Returns the cursor of a list of jobs at a position.
#[cfg(test)]
pub(crate) fn cursor_of_jobs(position: &str) -> String {
    cursor::List::Jobs.cursor(position)
}

/// Reads the body of a form.
pub(crate) async fn form(request: Request, app: &Arc<App>) -> Result<String, Problem> {
    let body = body::Body::from_request(request, app).await?;
    let bytes_max = app.config().engine.payload_bytes_max.saturating_mul(4);
    let text = body::read(body, bytes_max.saturating_add(body::SMALL_BYTES_MAX)).await?;
    Ok(text.to_owned())
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
