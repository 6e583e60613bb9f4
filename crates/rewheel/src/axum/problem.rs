//! Error responses as `application/problem+json` (RFC 9457).

use ::axum::body::Body;
use ::axum::http::{HeaderValue, Response, StatusCode, header};

/// An error response that tells the caller what to do differently.
#[derive(Clone, Copy, Debug)]
pub(super) struct Problem {
    pub(super) status: StatusCode,
    pub(super) code: &'static str,
    pub(super) title: &'static str,
    pub(super) detail: &'static str,
    /// Seconds to wait before a retry, if a retry may help.
    pub(super) retry_after: Option<u32>,
}

impl Problem {
    pub(super) const KEY_MISSING: Problem = Problem {
        status: StatusCode::BAD_REQUEST,
        code: "key_missing",
        title: "idempotency key missing",
        detail: "this route needs an Idempotency-Key header: send a new UUID, and send the same one when you repeat the request",
        retry_after: None,
    };
    pub(super) const KEY_INVALID: Problem = Problem {
        status: StatusCode::BAD_REQUEST,
        code: "key_invalid",
        title: "invalid idempotency key",
        detail: "Idempotency-Key must be sent once, with 1 to 255 visible ASCII characters, bare or in double quotes",
        retry_after: None,
    };
    pub(super) const KEY_REUSED: Problem = Problem {
        status: StatusCode::UNPROCESSABLE_ENTITY,
        code: "key_reused",
        title: "idempotency key reused",
        detail: "this Idempotency-Key was sent before with another method, path, query, content type or body: use a new key for a new request",
        retry_after: None,
    };
    pub(super) const IN_FLIGHT: Problem = Problem {
        status: StatusCode::CONFLICT,
        code: "key_in_flight",
        title: "request in flight",
        detail: "a request with this Idempotency-Key is still running: repeat the request later to get its response",
        retry_after: Some(1),
    };
    pub(super) const UNKNOWN: Problem = Problem {
        status: StatusCode::CONFLICT,
        code: "outcome_unknown",
        title: "outcome unknown",
        detail: "a request with this Idempotency-Key started and did not finish: check what the request did before you send it with a new key",
        retry_after: None,
    };
    pub(super) const NOT_KEPT: Problem = Problem {
        status: StatusCode::CONFLICT,
        code: "answer_not_kept",
        title: "response not stored",
        detail: "a request with this Idempotency-Key has run, but its response was too large to store: the request does not run again",
        retry_after: None,
    };
    pub(super) const CALLER_UNKNOWN: Problem = Problem {
        status: StatusCode::FORBIDDEN,
        code: "caller_unknown",
        title: "caller unknown",
        detail: "the server does not know who sent this request, so it cannot keep your keys apart from those of others: authenticate first",
        retry_after: None,
    };
    pub(super) const WORK_TIMED_OUT: Problem = Problem {
        status: StatusCode::GATEWAY_TIMEOUT,
        code: "work_timed_out",
        title: "work timed out",
        detail: "the request took longer than the server allows and was stopped: check what it did before you repeat it",
        retry_after: None,
    };
    pub(super) const TOO_LARGE: Problem = Problem {
        status: StatusCode::PAYLOAD_TOO_LARGE,
        code: "too_large",
        title: "request too large",
        detail: "the body is too large for a request with an Idempotency-Key on this route: send a smaller one",
        retry_after: None,
    };
    pub(super) const BODY_BROKEN: Problem = Problem {
        status: StatusCode::BAD_REQUEST,
        code: "body_broken",
        title: "body not readable",
        detail: "the server could not read the whole body: nothing was done, repeat the request",
        retry_after: None,
    };
    pub(super) const UNAVAILABLE: Problem = Problem {
        status: StatusCode::SERVICE_UNAVAILABLE,
        code: "store_unavailable",
        title: "store unavailable",
        detail: "the server cannot check whether this request ran before: nothing was done, repeat the request with the same Idempotency-Key",
        retry_after: Some(1),
    };
    pub(super) const FULL: Problem = Problem {
        status: StatusCode::SERVICE_UNAVAILABLE,
        code: "store_full",
        title: "store full",
        detail: "the idempotency store is full: nothing was done, repeat the request later with the same Idempotency-Key",
        retry_after: Some(60),
    };
    pub(super) const BROKEN: Problem = Problem {
        status: StatusCode::INTERNAL_SERVER_ERROR,
        code: "store_broken",
        title: "store broken",
        detail: "the idempotency store failed and needs operator action: nothing was done",
        retry_after: None,
    };

    /// All texts are constants without quotes or backslashes, so they need no escaping.
    pub(super) fn response(self) -> Response<Body> {
        let Problem { status, code, title, detail, retry_after } = self;
        let body = format!(
            "{{\"type\":\"urn:rewheel:problem:{code}\",\"title\":\"{title}\",\"status\":{},\"code\":\"{code}\",\"detail\":\"{detail}\"}}",
            status.as_u16()
        );
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = status;
        let json = HeaderValue::from_static("application/problem+json");
        response.headers_mut().insert(header::CONTENT_TYPE, json);
        if let Some(seconds) = retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
        }
        response
    }
}
