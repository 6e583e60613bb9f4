//! The route table: method, path, access, handler and description of every route, each declared once.
//!
//! The router, the access check, the OpenAPI document and the table in `docs/auth.md` come from it.

mod jobs;
mod bulk;
mod incidents;
mod kinds;
mod schedules;
mod fleet;
mod workers;
mod tokens;
mod server;

use super::access::{self, Access};
use crate::app::App;
use crate::openapi::Operation;
use axum::Router;
use axum::handler::Handler;
use axum::http::Method;
use axum::routing::{MethodFilter, MethodRouter, on};
use std::sync::Arc;

/// A method at a path.
pub(crate) struct Route {
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    pub(crate) access: Access,
    handler: MethodRouter<Arc<App>>,
    pub(crate) operation: Operation,
}

/// Routes about one subject: a tag of the OpenAPI document.
pub(crate) struct Group {
    pub(crate) tag: &'static str,
    pub(crate) description: &'static str,
    pub(crate) routes: Vec<Route>,
}

/// Returns every route, in the order in which the documentation lists them.
pub(crate) fn groups() -> [Group; 9] {
    [
        group("jobs", "Submit, read and change jobs.", jobs::routes()),
        group(
            "bulk",
            "Change many jobs with one request. If the node that runs an operation dies, another node continues the operation.",
            bulk::routes(),
        ),
        group("incidents", "Failed jobs grouped by cause.", incidents::routes()),
        group("kinds", "Kinds of jobs and their settings.", kinds::routes()),
        group(
            "schedules",
            "Submit jobs at the instants of a cron expression or a period.",
            schedules::routes(),
        ),
        group("fleet", "Holders, statistics, the audit log and live events.", fleet::routes()),
        group(
            "workers",
            "Run jobs in your own process, in any language. A worker claims jobs, sends heartbeats and reports results.",
            workers::routes(),
        ),
        group("tokens", "Access tokens and their roles.", tokens::routes()),
        group("server", "Health checks, metrics and the OpenAPI document.", server::routes()),
    ]
}

fn group(tag: &'static str, description: &'static str, routes: Vec<Route>) -> Group {
    Group { tag, description, routes }
}

/// Returns the router. Each handler is behind the access check of its route.
pub(super) fn router(app: &Arc<App>) -> Router<Arc<App>> {
    let routes = groups().into_iter().flat_map(|group| group.routes);
    routes.fold(Router::new(), |router, route| {
        router.route(route.path, access::guard(route.handler, route.access, app))
    })
}

fn get<H, T>(path: &'static str, access: Access, handler: H, operation: Operation) -> Route
where
    H: Handler<T, Arc<App>>,
    T: 'static,
{
    let handler = on(MethodFilter::GET, handler);
    Route { method: Method::GET, path, access, handler, operation }
}

fn post<H, T>(path: &'static str, access: Access, handler: H, operation: Operation) -> Route
where
    H: Handler<T, Arc<App>>,
    T: 'static,
{
    let handler = on(MethodFilter::POST, handler);
    Route { method: Method::POST, path, access, handler, operation }
}

fn put<H, T>(path: &'static str, access: Access, handler: H, operation: Operation) -> Route
where
    H: Handler<T, Arc<App>>,
    T: 'static,
{
    let handler = on(MethodFilter::PUT, handler);
    Route { method: Method::PUT, path, access, handler, operation }
}

fn patch<H, T>(path: &'static str, access: Access, handler: H, operation: Operation) -> Route
where
    H: Handler<T, Arc<App>>,
    T: 'static,
{
    let handler = on(MethodFilter::PATCH, handler);
    Route { method: Method::PATCH, path, access, handler, operation }
}

fn delete<H, T>(path: &'static str, access: Access, handler: H, operation: Operation) -> Route
where
    H: Handler<T, Arc<App>>,
    T: 'static,
{
    let handler = on(MethodFilter::DELETE, handler);
    Route { method: Method::DELETE, path, access, handler, operation }
}

#[cfg(test)]
mod tests;
