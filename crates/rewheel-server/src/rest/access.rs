//! Checks which role may use which route.

use super::nearby;
use crate::app::App;
use crate::problem::{Code, Problem};
use crate::tokens::Caller;
use axum::Router;
use axum::extract::{FromRequestParts, MatchedPath, Request, State};
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::MethodRouter;
use rewheel_core::TokenRole;
use std::sync::Arc;

/// What a caller needs for a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Needs {
    /// Nothing.
    Nothing,
    /// A role; a token bound to a tenant sees and changes only that tenant's jobs.
    Role(TokenRole),
    /// A role, with a token for all tenants: the content of the route cannot be separated by
    /// tenant.
    Whole(TokenRole),
}

const NOTHING: Needs = Needs::Nothing;
const SUBMIT: Needs = Needs::Role(TokenRole::Submit);
const READ: Needs = Needs::Role(TokenRole::Read);
const OPERATE: Needs = Needs::Role(TokenRole::Operate);
const READ_ALL: Needs = Needs::Whole(TokenRole::Read);
const WORK_ALL: Needs = Needs::Whole(TokenRole::Work);
const OPERATE_ALL: Needs = Needs::Whole(TokenRole::Operate);
const ADMIN: Needs = Needs::Whole(TokenRole::Admin);

/// Every route. A route that is missing here requires the role `admin`.
pub(super) const TABLE: &[(&str, &str, Needs)] = &[
    ("POST", "/v1/jobs", SUBMIT),
    ("GET", "/v1/jobs", READ),
    ("POST", "/v1/jobs/batch", SUBMIT),
    ("POST", "/v1/jobs/cancel", OPERATE),
    ("POST", "/v1/jobs/pause", OPERATE),
    ("POST", "/v1/jobs/resume", OPERATE),
    ("POST", "/v1/jobs/retry", OPERATE),
    ("POST", "/v1/jobs/redrive", OPERATE),
    ("GET", "/v1/jobs/{id}", READ),
    ("PATCH", "/v1/jobs/{id}", OPERATE),
    ("POST", "/v1/jobs/{id}/cancel", OPERATE),
    ("POST", "/v1/jobs/{id}/pause", OPERATE),
    ("POST", "/v1/jobs/{id}/resume", OPERATE),
    ("POST", "/v1/jobs/{id}/retry", OPERATE),
    ("GET", "/v1/operations", READ),
    ("GET", "/v1/operations/{id}", READ),
    ("POST", "/v1/operations/{id}/abort", OPERATE),
    ("GET", "/v1/kinds", READ_ALL),
    ("GET", "/v1/kinds/{kind}", READ_ALL),
    ("PUT", "/v1/kinds/{kind}", ADMIN),
    ("PATCH", "/v1/kinds/{kind}", ADMIN),
    ("DELETE", "/v1/kinds/{kind}", ADMIN),
    ("POST", "/v1/kinds/{kind}/pause", OPERATE_ALL),
    ("POST", "/v1/kinds/{kind}/resume", OPERATE_ALL),
    ("POST", "/v1/kinds/{kind}/breaker/open", OPERATE_ALL),
    ("POST", "/v1/kinds/{kind}/breaker/close", OPERATE_ALL),
    ("POST", "/v1/kinds/{kind}/breaker/reset", OPERATE_ALL),
    ("GET", "/v1/incidents", READ),
    ("POST", "/v1/incidents/{id}/hold", OPERATE),
    ("POST", "/v1/incidents/{id}/release", OPERATE),
    ("POST", "/v1/incidents/{id}/redrive", OPERATE),
    ("POST", "/v1/workers/claim", WORK_ALL),
    ("POST", "/v1/workers/heartbeat", WORK_ALL),
    ("POST", "/v1/workers/settle", WORK_ALL),
    ("POST", "/v1/workers/extend", WORK_ALL),
    ("POST", "/v1/workers/checkpoint", WORK_ALL),
    ("POST", "/v1/workers/leave", WORK_ALL),
    ("GET", "/v1/holders", READ_ALL),
    ("GET", "/v1/stats", READ_ALL),
    // A token bound to a tenant must name one job: these entries do not contain a tenant.
    ("GET", "/v1/events", READ),
    ("GET", "/v1/audit", READ),
    ("GET", "/v1/tokens", ADMIN),
    ("POST", "/v1/tokens", ADMIN),
    ("POST", "/v1/tokens/{id}/revoke", ADMIN),
    // Process supervisors have no tokens, and learn nothing else here.
    ("GET", "/livez", NOTHING),
    ("GET", "/readyz", NOTHING),
    ("GET", "/health", READ_ALL),
    ("GET", "/metrics", READ_ALL),
    ("GET", "/openapi.json", NOTHING),
    ("GET", "/docs", NOTHING),
];

/// A builder of routes. It records their paths, so that tests can check the access table and the
/// OpenAPI document for completeness.
#[derive(Default)]
pub(super) struct Routes {
    routes: Vec<(&'static str, MethodRouter<Arc<App>>)>,
}

impl Routes {
    pub(super) fn route(mut self, path: &'static str, methods: MethodRouter<Arc<App>>) -> Routes {
        self.routes.push((path, methods));
        self
    }

    #[cfg(test)]
    pub(super) fn paths(&self) -> Vec<&'static str> {
        self.routes.iter().map(|(path, _)| *path).collect()
    }

    /// Returns the routes with an access check for each method. An unknown path needs no token to
    /// get a 404.
    pub(super) fn guarded(self, app: &Arc<App>) -> Router<Arc<App>> {
        self.routes.into_iter().fold(Router::new(), |router, (path, methods)| {
            let guard = from_fn_with_state(Arc::clone(app), admit);
            router.route(path, methods.route_layer(guard))
        })
    }
}

fn needs(method: &Method, path: &str) -> Needs {
    // A caller that may GET a resource may also send HEAD.
    let method = if method == Method::HEAD { "GET" } else { method.as_str() };
    let found = TABLE.iter().find(|(known, at, _)| *known == method && *at == path);
    found.map_or(ADMIN, |(_, _, needs)| *needs)
}

/// Authenticates a request, and passes it on with its caller.
async fn admit(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    let path = request.extensions().get::<MatchedPath>();
    let needs = path.map_or(ADMIN, |path| needs(request.method(), path.as_str()));
    let role = match needs {
        Needs::Nothing => return next.run(request).await,
        Needs::Role(role) | Needs::Whole(role) => role,
    };
    let bearer = bearer(request.headers());
    let store = app.engine().map(|engine| &**engine.store());
    // An unreadable header counts as an invalid token; routes that need no token ignore it.
    let admitted = app.tokens().admit(store, bearer.clone().unwrap_or(Some(""))).await;
    let admitted = admitted.map_err(|problem| match bearer {
        Err(unreadable) if problem.code == Code::Unauthorized => unreadable,
        Ok(_) | Err(_) => problem,
    });
    let checked = admitted.and_then(|caller| {
        if !caller.has_token() {
            nearby::check(request.uri(), request.headers())?;
        }
        check(&caller, needs, role).map(|()| caller)
    });
    match checked {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(problem) => problem.into_response(),
    }
}

fn check(caller: &Caller, needs: Needs, role: TokenRole) -> Result<(), Problem> {
    if !caller.roles().allow(role) {
        let why = format!("this request needs the role `{role}`; the token has {}", caller.roles());
        return Err(Problem::new(Code::Forbidden, why)
            .hint("an admin can create another token: `rewheel token create NAME --role …`"));
    }
    match needs {
        Needs::Whole(_) => caller.whole("use a token that is not bound to a tenant"),
        Needs::Nothing | Needs::Role(_) => Ok(()),
    }
}

/// Returns the token of a request.
fn bearer(headers: &HeaderMap) -> Result<Option<&str>, Problem> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let text = value.to_str().ok().filter(|_| values.next().is_none());
    let token = text.and_then(|text| text.split_once(' '));
    match token {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => Ok(Some(token.trim())),
        _ => Err(Problem::new(Code::Unauthorized, "the Authorization header is not valid")
            .hint("send one header `Authorization: Bearer rw_…`")),
    }
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Caller, Problem> {
        let caller = parts.extensions.get::<Caller>().cloned();
        caller.ok_or_else(|| Problem::new(Code::Internal, "the request was not authenticated"))
    }
}

#[cfg(test)]
mod tests;
