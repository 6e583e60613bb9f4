//! Builds error responses: problem documents by RFC 9457.

use rewheel_core::store::StoreError;
use serde::Serialize;
use std::fmt::{Display, Write as _};

/// The media type of every error response.
pub const MEDIA_TYPE: &str = "application/problem+json";

/// Maximum number of field errors in one problem. A batch may have ten thousand invalid entries,
/// but a reader fixes the first few.
const ERRORS_MAX: usize = 100;

/// The code of a problem, by which clients decide what to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// The body is not JSON, or has the wrong structure.
    BadJson,
    /// A query parameter is invalid.
    BadQuery,
    /// The token is missing or invalid.
    Unauthorized,
    /// The caller may not do this, or the request comes from a forbidden origin.
    Forbidden,
    /// The resource does not exist.
    NotFound,
    /// The job has no result.
    NoResult,
    /// The result was deleted with its job.
    ResultPruned,
    /// The path exists, but not for this method.
    MethodNotAllowed,
    /// The request did not arrive in time.
    TooSlow,
    /// The job's state does not allow this.
    WrongState,
    /// The key belongs to a job with another payload.
    KeyReused,
    /// The kind is defined in the config file.
    ManagedByConfig,
    /// The worker's lease has expired.
    HolderExpired,
    /// The version has changed since the client read it.
    VersionChanged,
    /// The body, the payload or the batch is larger than the limit.
    TooLarge,
    /// The path with its parameters is longer than the limit.
    UrlTooLong,
    /// The server does not support the encoding of the body.
    UnknownEncoding,
    /// There are too many headers, or they are too long.
    HeadersTooLarge,
    /// The request is not valid HTTP.
    BadRequest,
    /// A field is missing, unknown or has a bad value.
    InvalidField,
    /// The kind does not exist.
    UnknownKind,
    /// The tenant is at its limit of live jobs, or the node at its limit of callers that wait for a job.
    Throttled,
    /// The server is at its limit of clients.
    Overloaded,
    /// An internal error of the server.
    Internal,
    /// The store is unavailable.
    StoreUnavailable,
    /// The server is shutting down.
    ShuttingDown,
    /// The store has no disk space left.
    DiskFull,
}

impl Code {
    /// Returns the name used in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Code::BadJson => "bad_json",
            Code::BadQuery => "bad_query",
            Code::Unauthorized => "unauthorized",
            Code::Forbidden => "forbidden",
            Code::NotFound => "not_found",
            Code::NoResult => "no_result",
            Code::ResultPruned => "result_pruned",
            Code::MethodNotAllowed => "method_not_allowed",
            Code::TooSlow => "too_slow",
            Code::WrongState => "wrong_state",
            Code::KeyReused => "key_reused",
            Code::ManagedByConfig => "managed_by_config",
            Code::HolderExpired => "holder_expired",
            Code::VersionChanged => "version_changed",
            Code::TooLarge => "too_large",
            Code::UrlTooLong => "url_too_long",
            Code::UnknownEncoding => "unknown_encoding",
            Code::HeadersTooLarge => "headers_too_large",
            Code::BadRequest => "bad_request",
            Code::InvalidField => "invalid_field",
            Code::UnknownKind => "unknown_kind",
            Code::Throttled => "throttled",
            Code::Overloaded => "overloaded",
            Code::Internal => "internal",
            Code::StoreUnavailable => "store_unavailable",
            Code::ShuttingDown => "shutting_down",
            Code::DiskFull => "disk_full",
        }
    }

    /// Returns the HTTP status.
    pub const fn status(self) -> u16 {
        match self {
            Code::BadRequest | Code::BadJson | Code::BadQuery => 400,
            Code::Unauthorized => 401,
            Code::Forbidden => 403,
            Code::NotFound | Code::NoResult => 404,
            Code::MethodNotAllowed => 405,
            Code::TooSlow => 408,
            Code::WrongState | Code::KeyReused | Code::ManagedByConfig => 409,
            Code::HolderExpired | Code::ResultPruned => 410,
            Code::VersionChanged => 412,
            Code::TooLarge => 413,
            Code::UrlTooLong => 414,
            Code::UnknownEncoding => 415,
            Code::InvalidField | Code::UnknownKind => 422,
            Code::Throttled => 429,
            Code::HeadersTooLarge => 431,
            Code::Internal => 500,
            Code::Overloaded | Code::StoreUnavailable | Code::ShuttingDown => 503,
            Code::DiskFull => 507,
        }
    }

    /// Returns after how many seconds a retry may succeed.
    pub const fn retry_after(self) -> Option<u32> {
        match self {
            Code::Overloaded | Code::StoreUnavailable | Code::Throttled => Some(1),
            // A restart, or the switch to another node behind the same address, takes some seconds.
            Code::ShuttingDown => Some(5),
            Code::BadRequest
            | Code::BadJson
            | Code::BadQuery
            | Code::Unauthorized
            | Code::Forbidden
            | Code::NotFound
            | Code::NoResult
            | Code::ResultPruned
            | Code::MethodNotAllowed
            | Code::TooSlow
            | Code::WrongState
            | Code::KeyReused
            | Code::ManagedByConfig
            | Code::HolderExpired
            | Code::VersionChanged
            | Code::TooLarge
            | Code::UrlTooLong
            | Code::UnknownEncoding
            | Code::HeadersTooLarge
            | Code::InvalidField
            | Code::UnknownKind
            | Code::Internal
            | Code::DiskFull => None,
        }
    }
}

/// An error in one field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FieldError {
    /// The location in the request, as a JSON pointer.
    pub field: String,
    /// What it must be.
    pub message: String,
}

impl FieldError {
    /// Creates an error for a field.
    pub fn new(field: impl Into<String>, message: impl Display) -> FieldError {
        FieldError { field: field.into(), message: message.to_string() }
    }
}

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The sort of problem.
    pub code: Code,
    /// What happened this time.
    pub detail: String,
    /// The invalid fields.
    pub errors: Vec<FieldError>,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Problem {
    /// Creates a problem.
    pub fn new(code: Code, detail: impl Display) -> Problem {
        Problem { code, detail: detail.to_string(), errors: Vec::new(), hint: None }
    }

    /// Creates a problem about fields. The detail describes the first of them.
    pub fn of_fields(code: Code, mut errors: Vec<FieldError>) -> Problem {
        let mut detail = String::new();
        if let Some(first) = errors.first() {
            let name = first.field.trim_start_matches('/');
            detail = format!("{name} {}", first.message).trim_start().to_owned();
        }
        if errors.len() > 1 {
            let _ = write!(detail, "; {} other fields are also invalid", errors.len() - 1);
        }
        errors.truncate(ERRORS_MAX);
        Problem { code, detail, errors, hint: None }
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Problem {
        self.hint = Some(hint.into());
        self
    }

    /// Returns the JSON document for the client.
    pub fn document<'a>(&'a self, request_id: &'a str) -> Document<'a> {
        let code = self.code.as_str();
        Document {
            kind: format!("urn:rewheel:problem:{code}"),
            title: code.replace('_', " "),
            status: self.code.status(),
            code,
            detail: &self.detail,
            errors: &self.errors,
            hint: self.hint.as_deref(),
            request_id,
        }
    }
}

/// A problem as JSON.
#[derive(Debug, Serialize)]
pub struct Document<'a> {
    #[serde(rename = "type")]
    kind: String,
    title: String,
    status: u16,
    code: &'static str,
    detail: &'a str,
    errors: &'a [FieldError],
    hint: Option<&'a str>,
    request_id: &'a str,
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Problem {
        let code = match error {
            StoreError::Unavailable(_)
            | StoreError::Ambiguous(_)
            | StoreError::HolderDead(_)
            | StoreError::Broken { .. }
            | StoreError::Closed => Code::StoreUnavailable,
            StoreError::Full(_) => Code::DiskFull,
            StoreError::Rejected(_) => Code::InvalidField,
        };
        let hint = match error {
            StoreError::Unavailable(_) => "nothing was stored; send the request again in a moment",
            StoreError::Ambiguous(_) => {
                "the change may have been stored; send the request again (a submit with the same key creates no second job)"
            }
            StoreError::Full(_) => {
                "make space in the store (on its disk, or in the memory of Redis); the server then accepts jobs again without a restart"
            }
            StoreError::Rejected(_) => {
                "the store cannot store the data of this request; change the request as the detail says"
            }
            StoreError::HolderDead(_) => {
                "the server is registering again with the store; send the request again in a moment"
            }
            StoreError::Broken { .. } => {
                "the store needs operator action; the server log has the details"
            }
            StoreError::Closed => {
                "the server is stopping; send the request again in a moment, or to another server"
            }
        };
        Problem::new(code, error.with_causes()).hint(hint)
    }
}

#[cfg(test)]
mod tests {
    use super::{Code, ERRORS_MAX, FieldError, Problem};
    use rewheel_core::store::StoreError;

    #[test]
    fn a_document_has_every_field_of_the_wire() {
        let problem = Problem::of_fields(
            Code::InvalidField,
            vec![FieldError::new("/priority", "must be 0..9")],
        );
        let document = serde_json::to_value(problem.hint("9 runs first").document("r-1")).unwrap();
        let wanted = serde_json::json!({
            "type": "urn:rewheel:problem:invalid_field", "title": "invalid field", "status": 422,
            "code": "invalid_field", "detail": "priority must be 0..9",
            "errors": [{"field": "/priority", "message": "must be 0..9"}],
            "hint": "9 runs first", "request_id": "r-1",
        });
        assert_eq!(document, wanted);
    }

    #[test]
    fn a_long_list_of_errors_is_cut_but_counted() {
        let errors = (0..500).map(|n| FieldError::new(format!("/jobs/{n}"), "is bad")).collect();
        let problem = Problem::of_fields(Code::InvalidField, errors);
        assert_eq!(problem.errors.len(), ERRORS_MAX);
        assert_eq!(problem.detail, "jobs/0 is bad; 499 other fields are also invalid");
    }

    #[track_caller]
    fn check(error: StoreError, code: Code, detail: &str) {
        let problem = Problem::from(error);
        assert_eq!((problem.code, problem.detail.as_str()), (code, detail));
    }

    #[test]
    fn a_store_error_is_told_with_its_cause() {
        let unavailable = "the store is unavailable: disk on fire";
        check(StoreError::Unavailable("disk on fire".into()), Code::StoreUnavailable, unavailable);
        check(
            StoreError::Closed,
            Code::StoreUnavailable,
            "the store is closed: this process has shut it down",
        );
        let broken = StoreError::Broken { what: "the schema is newer".to_owned(), source: None };
        check(broken, Code::StoreUnavailable, "the schema is newer");
        let rejected = "the store rejected the request: no";
        check(StoreError::Rejected("no".into()), Code::InvalidField, rejected);
        assert_eq!(Problem::from(StoreError::Full("x".into())).code, Code::DiskFull);
    }
}
