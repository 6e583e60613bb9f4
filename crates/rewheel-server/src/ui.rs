//! The dashboard: pages for people under `/ui`.
//!
//! Each page is a client of REST in the same process ([`rest_client`]): it sends requests to the route table of REST, with the token of its
//! visitor. So access, audit and limits cannot differ from those of REST. Every page and every action works without JavaScript.

mod base;
mod visitor;
mod secret;
mod rest_client;
mod refusal;
mod form;
mod frame;
mod finish;
mod assets;
mod documents;
mod shown;
mod json_text;
mod filter_box;
mod chart;
mod sign_in;
mod overview;
mod jobs;
mod job;
mod outlook;
mod job_edit;
mod job_change;
mod confirm;
mod incidents;
mod differs;
mod kinds;
mod bulk;
mod ladder;
mod operations;
mod schedules;
mod fleet;
mod audit;
mod tokens;
mod preferences;
mod live;

use self::base::Base;
use crate::app::App;
use axum::Router;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::ACCEPT;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use std::sync::Arc;

/// What all pages share.
#[derive(Debug)]
struct Ui {
    app: Arc<App>,
    base: Base,
    /// The routes of REST, for requests of pages.
    rest: Router,
    streams: live::Streams,
}

/// Returns the routes of the dashboard.
pub(crate) fn routes(app: &Arc<App>) -> Router<Arc<App>> {
    over(app, crate::rest::inner(app))
}

/// Returns the routes of a dashboard that shows the answers of these routes of REST.
fn over(app: &Arc<App>, rest: Router) -> Router<Arc<App>> {
    let server = &app.config().server;
    let base = Base::new(server.public_url.as_ref(), server.tls.is_some());
    let ui = Arc::new(Ui { app: Arc::clone(app), base, rest, streams: live::Streams::default() });
    let pages = looking()
        .merge(changing())
        .fallback(refusal::no_page)
        .layer(from_fn_with_state(Arc::clone(&ui), finish::finish))
        .route("/assets/{hash}/{name}", get(assets::serve));
    Router::new()
        .route("/", get(home))
        .route("/ui", get(overview_redirect))
        .nest("/ui/", pages)
        .with_state(ui)
}

/// Pages that change nothing.
fn looking() -> Router<Arc<Ui>> {
    Router::new()
        .route("/", get(overview::page))
        .route("/jobs", get(jobs::page))
        .route("/jobs/{id}", get(job::page))
        .route("/incidents", get(incidents::list))
        .route("/incidents/{id}", get(incidents::page))
        .route("/incidents/{id}/differs", get(differs::page))
        .route("/kinds", get(kinds::list))
        .route("/kinds/{kind}", get(kinds::page))
        .route("/kinds/{kind}/settings", get(kinds::settings))
        .route("/operations", get(operations::list))
        .route("/operations/{id}", get(operations::page))
        .route("/schedules", get(schedules::list))
        .route("/fleet", get(fleet::page))
        .route("/audit", get(audit::page))
        .route("/live", get(live::listen))
        .route("/help", get(preferences::help))
}

/// Pages that ask for a change, and the changes.
fn changing() -> Router<Arc<Ui>> {
    Router::new()
        .route("/sign-in", get(sign_in::page).post(sign_in::sign_in))
        .route("/sign-out", post(sign_in::sign_out))
        .route("/preferences", get(preferences::page).post(preferences::save))
        .route("/jobs/ticked", post(job_change::ticked))
        .route("/jobs/{id}/edit", get(job_edit::page).post(job_edit::save))
        .route("/jobs/{id}/{verb}", get(job_change::ask).post(job_change::change))
        .route("/kinds/{kind}/{verb}", get(kinds::ask).post(kinds::change))
        .route("/bulk/{verb}", get(bulk::preview).post(bulk::start))
        .route("/operations/{id}/abort", get(operations::ask).post(operations::abort))
        .route("/schedules/{name}/{verb}", get(schedules::ask).post(schedules::change))
        .route("/tokens", get(tokens::list).post(tokens::create))
        .route("/tokens/{id}/revoke", get(tokens::ask).post(tokens::revoke))
}

/// `GET /`: browsers get the dashboard. Programs get the same answer as for every other unknown path.
async fn home(State(ui): State<Arc<Ui>>, headers: HeaderMap) -> Response {
    let accepted = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok());
    if accepted.is_some_and(|accept| accept.contains("text/html")) {
        return finish::redirect(&ui.base.link("/"));
    }
    let detail = "the path / does not exist";
    crate::problem::Problem::new(crate::problem::Code::NotFound, detail).into_response()
}

async fn overview_redirect(State(ui): State<Arc<Ui>>) -> Response {
    finish::redirect(&ui.base.link("/"))
}

#[cfg(test)]
mod tests;
