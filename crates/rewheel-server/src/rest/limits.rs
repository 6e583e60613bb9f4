//! Rejects requests that exceed the server's limits.

use super::body::Share;
use crate::app::App;
use crate::config::PublicUrl;
use crate::problem::{Code, Problem};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use std::sync::Arc;

/// Paths without the limit on concurrent requests: operators must be able to monitor the server, and requests that wait have their own
/// limits.
const ALWAYS: [&str; 6] =
    ["/livez", "/readyz", "/health", "/metrics", "/v1/events", "/v1/workers/claim"];

/// Admits a request whose URL is short enough, if a slot is free.
///
/// The memory of its body counts against `bodies_bytes_max` until the handler ends: the jobs parsed from a body live longer than the
/// body.
pub(super) async fn keep(
    State(app): State<Arc<App>>,
    mut request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let limits = &app.config().server.limits;
    let uri = request.uri();
    let bytes = uri.path().len() + uri.query().map_or(0, |query| query.len() + 1);
    if bytes > limits.url_bytes_max {
        let detail = format!("the path with its query has {bytes} bytes");
        let hint = format!(
            "the limit is {} bytes: make the URL shorter, or raise server.limits.url_bytes_max in the config",
            limits.url_bytes_max
        );
        return Err(Problem::new(Code::UrlTooLong, detail).hint(hint));
    }
    let base = app.config().server.public_url.as_ref().map_or("", PublicUrl::path);
    // Some proxies do not remove the base path.
    let path = uri.path().strip_prefix(base).unwrap_or_else(|| uri.path());
    let is_always = ALWAYS.contains(&path);
    let share = Share::new(app.bodies());
    request.extensions_mut().insert(share.clone());
    if is_always {
        return Ok(next.run(request).await);
    }
    let Some(_room) = app.request() else {
        let detail =
            format!("the server is at its limit of {} concurrent requests", limits.requests_max);
        return Err(Problem::new(Code::Overloaded, detail)
            .hint("send the request again in a moment; the limit is server.limits.requests_max"));
    };
    Ok(next.run(request).await)
}

#[cfg(test)]
mod tests;
