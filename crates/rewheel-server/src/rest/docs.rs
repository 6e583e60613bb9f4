//! Serves the API documentation, as OpenAPI and as a page.

use crate::openapi;
use axum::body::Bytes;
use axum::http::HeaderName;
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use std::sync::LazyLock;

/// The page contains its own style, and loads nothing else.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";

const JSON: [(HeaderName, &str); 1] = [(CONTENT_TYPE, "application/json")];
const PAGE: [(HeaderName, &str); 2] =
    [(CONTENT_TYPE, "text/html; charset=utf-8"), (CONTENT_SECURITY_POLICY, POLICY)];

static DOCUMENT: LazyLock<Bytes> =
    LazyLock::new(|| serde_json::to_vec(&openapi::document()).unwrap_or_default().into());
static HTML: LazyLock<Bytes> = LazyLock::new(|| openapi::html(&openapi::document()).into());

/// `GET /openapi.json`
pub(super) async fn document() -> Response {
    (JSON, DOCUMENT.clone()).into_response()
}

/// `GET /docs`
pub(super) async fn page() -> Response {
    (PAGE, HTML.clone()).into_response()
}
