//! The span of one call, as OpenTelemetry's conventions for HTTP clients have it.

use super::request::Call;
use hyper::StatusCode;
use hyper::header::{HeaderName, HeaderValue};
use rewheel_core::Report;
use rewheel_engine::trace::{TARGET, traceparent};
use tracing::field::Empty;
use tracing::{Span, debug_span};
use url::Url;

/// Begins the span of a call below the attempt's, and tells the callee of it.
pub(super) fn begin(Call { url, request }: &mut Call, attempt: u32) -> Span {
    if Span::current().is_none() {
        // The attempt is not followed: its call would be a trace without a beginning.
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
    span.record("url.full", shown(url).as_str());
    span.record("server.address", url.host_str().unwrap_or_default());
    if let Some(port) = url.port_or_known_default() {
        span.record("server.port", i64::from(port));
    }
    if attempt > 1 {
        span.record("http.request.resend_count", i64::from(attempt - 1));
    }
    span
}

/// Notes what the callee answered.
pub(super) fn answered(span: &Span, status: StatusCode) {
    span.record("http.response.status_code", i64::from(status.as_u16()));
    if status.is_client_error() || status.is_server_error() {
        span.record("error.type", status.as_str());
        span.record("otel.status_code", "error");
    }
}

/// Notes that there was no answer.
pub(super) fn unanswered(span: &Span, report: &Report) {
    if let Report::Failed { failure, .. } = report {
        span.record("error.type", failure.code().unwrap_or(failure.category().as_str()));
        span.record("otel.status_code", "error");
    }
}

/// The URL without what may be secret in it.
pub(super) fn shown(url: &Url) -> Url {
    let mut url = url.clone();
    // Only a URL that has no host can refuse.
    let _ = url.set_username("").and_then(|()| url.set_password(None));
    if url.query().is_some() {
        url.set_query(Some("REDACTED"));
    }
    url.set_fragment(None);
    url
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[track_caller]
    fn check(url: &str, expected: &str) {
        assert_eq!(shown(&url.parse().unwrap()).as_str(), expected);
    }

    #[test]
    fn what_may_be_secret_is_not_shown() {
        check("https://a:b@pay.example/hook?token=1#x", "https://pay.example/hook?REDACTED");
        check("http://127.0.0.1:80/hook", "http://127.0.0.1/hook");
    }
}
