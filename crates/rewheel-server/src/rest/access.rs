//! Checks whether the token of a request may use the route.

use super::nearby;
use crate::app::App;
use crate::problem::{Code, Problem};
use crate::tokens::Caller;
use axum::extract::{FromRequestParts, Request, State};
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::MethodRouter;
use rewheel_core::TokenRole;
use std::sync::Arc;

/// What a route asks of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// No token.
    Open,
    /// A role. A token that is bound to a tenant sees and changes the jobs of that tenant only.
    Tenant(TokenRole),
    /// A role. A token that is bound to a tenant has to name one of its jobs in `job`: entries do not say whose they are.
    TenantJob(TokenRole),
    /// A role, and a token that is not bound to a tenant: the route is about all tenants.
    AllTenants(TokenRole),
}

pub(super) const OPEN: Access = Access::Open;
pub(super) const SUBMIT: Access = Access::Tenant(TokenRole::Submit);
pub(super) const READ: Access = Access::Tenant(TokenRole::Read);
pub(super) const OPERATE: Access = Access::Tenant(TokenRole::Operate);
pub(super) const READ_JOB: Access = Access::TenantJob(TokenRole::Read);
pub(super) const READ_ALL: Access = Access::AllTenants(TokenRole::Read);
pub(super) const WORK_ALL: Access = Access::AllTenants(TokenRole::Work);
pub(super) const OPERATE_ALL: Access = Access::AllTenants(TokenRole::Operate);
pub(super) const ADMIN: Access = Access::AllTenants(TokenRole::Admin);

impl Access {
    /// Returns the role that a token needs.
    pub(super) fn role(self) -> Option<TokenRole> {
        match self {
            Access::Open => None,
            Access::Tenant(role) | Access::TenantJob(role) | Access::AllTenants(role) => Some(role),
        }
    }
}

/// Puts the access check of a route before its handler. Methods that the route does not have answer 405 without a token.
pub(super) fn guard(
    handler: MethodRouter<Arc<App>>,
    access: Access,
    app: &Arc<App>,
) -> MethodRouter<Arc<App>> {
    handler.route_layer(from_fn_with_state((Arc::clone(app), access), admit))
}

/// Passes a request on to its route, together with its caller.
async fn admit(
    State((app, access)): State<(Arc<App>, Access)>,
    mut request: Request,
    next: Next,
) -> Response {
    let Some(role) = access.role() else { return next.run(request).await };
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
        check(&caller, access, role).map(|()| caller)
    });
    match checked {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(problem) => problem.into_response(),
    }
}

fn check(caller: &Caller, access: Access, role: TokenRole) -> Result<(), Problem> {
    if !caller.roles().allow(role) {
        let why = format!("this request needs the role `{role}`; the token has {}", caller.roles());
        return Err(Problem::new(Code::Forbidden, why)
            .hint(format!("use a token with the role `{role}`; an admin can create one: `rewheel token create NAME --role {role}`")));
    }
    match access {
        Access::AllTenants(_) => caller.whole("use a token that is not limited to a tenant"),
        Access::Open | Access::Tenant(_) | Access::TenantJob(_) => Ok(()),
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
            .hint("send exactly one header of the form `Authorization: Bearer rw_…`")),
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
