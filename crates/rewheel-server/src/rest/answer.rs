//! Turns every error response into a problem document.

use crate::app::App;
use crate::config::PublicUrl;
use crate::problem::{Code, MEDIA_TYPE, Problem};
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{
    CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderName, ORIGIN, RETRY_AFTER, WWW_AUTHENTICATE,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use rewheel_core::redact;
use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Maximum length of a request id: enough for a proxy's id, and harmless in logs.
const REQUEST_ID_BYTES_MAX: usize = 128;

/// The id of a request, in its response and in the log.
#[derive(Clone, Debug)]
pub(crate) struct RequestId(pub(crate) String);

/// Marks an error response that is not a problem document.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AsItIs;

impl IntoResponse for Problem {
    /// Passes the problem to `finish`, which knows the request's id.
    fn into_response(self) -> Response {
        let status = status(self.code);
        let mut response = status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

/// Sets the request id, and writes problems as documents, both those of handlers and those of the router.
pub(super) async fn finish(
    State(app): State<Arc<App>>,
    mut request: Request,
    next: Next,
) -> Response {
    let id = request_id(request.headers()).unwrap_or_else(|| app.request_id());
    request.extensions_mut().insert(RequestId(id.clone()));
    let public = app.config().server.public_url.as_ref().map(PublicUrl::origin);
    let mut response = match check_origin(request.headers(), public) {
        Ok(()) => match AssertUnwindSafe(next.run(request)).catch_unwind().await {
            Ok(response) => response,
            Err(panic) => panicked(&*panic, &id).into_response(),
        },
        Err(problem) => problem.into_response(),
    };
    if !response.status().is_success() && response.extensions().get::<AsItIs>().is_none() {
        let problem = response
            .extensions_mut()
            .remove::<Problem>()
            .unwrap_or_else(|| of_status(response.status()));
        write(&mut response, &problem, &id);
    }
    if let Ok(value) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    response
}

/// Returns the response for a handler that panicked. The panic message may concern other requests: it only goes to the log.
fn panicked(panic: &(dyn Any + Send), request_id: &str) -> Problem {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    let panic = redact(text.unwrap_or("no message"));
    tracing::error!(request_id, %panic, "a request handler panicked; this is a bug in the server");
    Problem::new(Code::Internal, "internal server error")
        .hint("report this as a bug, with the line of the server log that has this request_id")
}

/// Rejects requests that a web page of another site makes a browser send: a server on loopback is reachable from every page that its user
/// opens.
///
/// A proxy may change `Host`: the origin of `server.public_url` is accepted, too.
fn check_origin(headers: &HeaderMap, public: Option<&str>) -> Result<(), Problem> {
    let Some(origin) = headers.get(ORIGIN) else { return Ok(()) };
    if public.is_some_and(|public| origin.as_bytes() == public.as_bytes()) {
        return Ok(());
    }
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let origin = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
    match (origin, host) {
        (Some((_, authority)), Some(host)) if authority == host => Ok(()),
        _ => Err(Problem::new(
            Code::Forbidden,
            "the request comes from a web page of another origin: the Origin header differs from the Host header",
        )),
    }
}

fn request_id(headers: &HeaderMap) -> Option<String> {
    let id = headers.get(REQUEST_ID)?.to_str().ok()?;
    let is_fit = !id.is_empty() && id.len() <= REQUEST_ID_BYTES_MAX;
    is_fit.then(|| id.to_owned())
}

fn write(response: &mut Response, problem: &Problem, id: &str) {
    let (request_id, code, detail) = (id, problem.code.as_str(), &problem.detail);
    if problem.code == Code::Internal {
        tracing::warn!(request_id, code, detail, "request failed");
    } else if problem.code.status() >= 500 {
        // An unavailable store or a shutdown is logged once elsewhere, and readiness checks repeat all the time.
        tracing::debug!(request_id, code, detail, "request failed");
    }
    let document = serde_json::to_vec(&problem.document(id)).unwrap_or_default();
    *response.status_mut() = status(problem.code);
    let headers = response.headers_mut();
    headers.remove(CONTENT_LENGTH);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
    if problem.code == Code::Unauthorized {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"rewheel\""));
    }
    if let Some(seconds) = problem.code.retry_after() {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    *response.body_mut() = Body::from(document);
}

/// Returns the problem for a bare status of the router.
fn of_status(status: StatusCode) -> Problem {
    match status {
        StatusCode::NOT_FOUND => Problem::new(Code::NotFound, "not found"),
        StatusCode::METHOD_NOT_ALLOWED => {
            Problem::new(Code::MethodNotAllowed, "this path does not support this method")
                .hint("use one of the methods in the `allow` header of this response")
        }
        StatusCode::PAYLOAD_TOO_LARGE => Problem::new(Code::TooLarge, "the body is too large"),
        status if status.is_client_error() => {
            Problem::new(Code::BadQuery, "the path or the query parameters are not valid")
        }
        _ => Problem::new(Code::Internal, "internal server error"),
    }
}

fn status(code: Code) -> StatusCode {
    StatusCode::from_u16(code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

#[cfg(test)]
mod tests;
