//! The tracing span of one callback, by OpenTelemetry's conventions for HTTP clients.

use super::request::Call;
use hyper::StatusCode;
use hyper::header::{HeaderName, HeaderValue};
use rewheel_core::Report;
use rewheel_engine::trace::{TARGET, traceparent};
use tracing::field::Empty;
use tracing::{Span, debug_span};

/// The placeholder for secrets in OpenTelemetry's conventions.
const REDACTED: &str = "REDACTED";

/// Begins the span of a call below the attempt's span, and adds the trace context to the request.
pub(super) fn begin(Call { url, request }: &mut Call, attempt: u32) -> Span {
    if Span::current().is_none() {
        // The attempt is not sampled: the call would be a trace without a root.
        return Span::none();
    }
    let span = debug_span!(
        target: TARGET,
        "callback",
        otel.name = request.method().as_str(),
        otel.kind = "client",
        otel.status_code = Empty,
        http.request.method = Empty,
        http.request.resend_count = Empty,
        http.response.status_code = Empty,
        url.full = Empty,
        server.address = Empty,
        server.port = Empty,
        error.type = Empty,
    );
    if span.is_disabled() {
        return span;
    }
    let told = traceparent(&span);
    let is_dropped = told.as_deref().is_some_and(|told| told.ends_with("-00"));
    if let Some(header) = told.and_then(|told| HeaderValue::try_from(told).ok()) {
        request.headers_mut().insert(HeaderName::from_static("traceparent"), header);
    }
    if is_dropped {
        return span;
    }
    span.record("http.request.method", request.method().as_str());
    span.record("url.full", url.shown(REDACTED));
    span.record("server.address", url.host());
    if let Some(port) = url.port_or_default() {
        span.record("server.port", i64::from(port));
    }
    if attempt > 1 {
        span.record("http.request.resend_count", i64::from(attempt - 1));
    }
    span
}

/// Records the response status.
pub(super) fn answered(span: &Span, status: StatusCode) {
    span.record("http.response.status_code", i64::from(status.as_u16()));
    if status.is_client_error() || status.is_server_error() {
        span.record("error.type", status.as_str());
        span.record("otel.status_code", "error");
    }
}

/// Records that there was no response.
pub(super) fn unanswered(span: &Span, report: &Report) {
    if let Report::AttemptFailed { failure, .. } = report {
        span.record("error.type", failure.code().unwrap_or(failure.category().as_str()));
        span.record("otel.status_code", "error");
    }
}
