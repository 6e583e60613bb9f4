//! Answers to requests that a layer rejects.

use super::body::TextBody;
use ::http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use std::time::Duration;

/// Why a layer answers a request itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    DeadlinePassed,
    RateLimited(Option<Duration>),
    Overloaded(Option<Duration>),
}

impl Refusal {
    const fn status(self) -> StatusCode {
        match self {
            Refusal::DeadlinePassed => StatusCode::GATEWAY_TIMEOUT,
            Refusal::RateLimited(_) => StatusCode::TOO_MANY_REQUESTS,
            Refusal::Overloaded(_) => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// The number of the gRPC status.
    const fn grpc(self) -> &'static str {
        match self {
            Refusal::DeadlinePassed => "4",
            Refusal::RateLimited(_) => "8",
            Refusal::Overloaded(_) => "14",
        }
    }

    const fn code(self) -> &'static str {
        match self {
            Refusal::DeadlinePassed => "deadline_passed",
            Refusal::RateLimited(_) => "rate_limited",
            Refusal::Overloaded(_) => "overloaded",
        }
    }

    const fn title(self) -> &'static str {
        match self {
            Refusal::DeadlinePassed => "deadline passed",
            Refusal::RateLimited(_) => "rate limit reached",
            Refusal::Overloaded(_) => "too many concurrent requests",
        }
    }

    const fn detail(self) -> &'static str {
        match self {
            Refusal::DeadlinePassed => {
                "the time in the header rewheel-deadline is over: send the request with more time"
            }
            Refusal::RateLimited(_) => {
                "nothing was done: repeat the request after the time in the header Retry-After"
            }
            Refusal::Overloaded(_) => {
                "the server is at its limit, and nothing was done: repeat the request after the time in the header Retry-After"
            }
        }
    }

    const fn retry_in(self) -> Option<Duration> {
        match self {
            Refusal::DeadlinePassed => None,
            Refusal::RateLimited(retry_in) | Refusal::Overloaded(retry_in) => retry_in,
        }
    }

    /// Returns the answer: a problem document, or a gRPC status.
    pub(super) fn response<B: TextBody>(self, is_grpc: bool) -> Response<B> {
        if is_grpc { self.grpc_response() } else { self.http_response() }
    }

    fn http_response<B: TextBody>(self) -> Response<B> {
        let (status, code) = (self.status().as_u16(), self.code());
        // All texts are constants without quotes or backslashes, so they need no escaping.
        let text = format!(
            "{{\"type\":\"urn:rewheel:problem:{code}\",\"title\":\"{}\",\"status\":{status},\"code\":\"{code}\",\"detail\":\"{}\"}}",
            self.title(),
            self.detail(),
        );
        let mut response = Response::new(B::of_text(text));
        *response.status_mut() = self.status();
        let json = HeaderValue::from_static("application/problem+json");
        response.headers_mut().insert(header::CONTENT_TYPE, json);
        if let Some(retry_in) = self.retry_in() {
            // Rounded up: an earlier request would be rejected again.
            let seconds = retry_in.as_millis().div_ceil(1_000).max(1);
            let seconds = u64::try_from(seconds).unwrap_or(u64::MAX);
            response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
        }
        response
    }

    fn grpc_response<B: TextBody>(self) -> Response<B> {
        let mut response = Response::new(B::of_text(String::new()));
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        headers.insert("grpc-status", HeaderValue::from_static(self.grpc()));
        headers.insert("grpc-message", HeaderValue::from_static(self.title()));
        if let Some(retry_in) = self.retry_in() {
            let millis = u64::try_from(retry_in.as_millis()).unwrap_or(u64::MAX);
            headers.insert("grpc-retry-pushback-ms", millis.into());
        }
        response
    }
}

/// Returns whether a request is one of gRPC.
pub(super) fn is_grpc(headers: &HeaderMap) -> bool {
    let content_type = headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    content_type.is_some_and(|value| value.starts_with(b"application/grpc"))
}
