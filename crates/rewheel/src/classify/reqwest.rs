//! Classifies errors of reqwest.

use super::matcher::{chain, find};
use super::{Category, Class, Classify, RetryAfter};
use std::error::Error as _;
use std::fmt::Write as _;
use std::io::{self, ErrorKind};
use std::time::SystemTime;

/// Classifies by the part of the request that failed, which is also the code.
///
/// | failed | code | verdict | category |
/// |---|---|---|---|
/// | URL, header or body of the request is invalid | `builder` | stop | `rejected` |
/// | too many redirects, or a redirect in a circle | `redirect` | stop | `rejected` |
/// | name lookup | `dns` | retry | `io` |
/// | connection | `connect` | retry | `io` |
/// | connection: no answer in time | `connect_timeout` | retry | `timeout` |
/// | TLS: certificate or version was rejected | `tls` | stop | `io` |
/// | TLS: connection broke or is garbled | `tls` | retry | `io` |
/// | no response in time | `timeout` | retry | `timeout` |
/// | connection broke, or the response is garbled | `request` | retry | `io` |
/// | connection broke inside the body | `body` | retry | `io` |
/// | the body is not valid JSON | `decode` | stop | `rejected` |
/// | status ([`error_for_status`](reqwest::Response::error_for_status)) | the status | as [`Class::of_status`] | |
///
/// ```
/// use rewheel::{Category, Class, Classify};
///
/// let error = reqwest::Client::new().get("no url").build().unwrap_err();
/// assert_eq!(error.classify(), Class::stop(Category::Rejected).with_code("builder"));
/// ```
impl Classify for reqwest::Error {
    fn classify(&self) -> Class {
        if let Some(status) = self.status() {
            return Class::of_status(status.as_u16());
        }
        if self.is_builder() {
            return Class::stop(Category::Rejected).with_code("builder");
        }
        if self.is_redirect() {
            return Class::stop(Category::Rejected).with_code("redirect");
        }
        match (self.is_timeout(), self.is_connect()) {
            (true, true) => return Class::retry(Category::Timeout).with_code("connect_timeout"),
            (true, false) => return Class::retry(Category::Timeout).with_code("timeout"),
            (false, true) => return of_connect(self),
            (false, false) => {}
        }
        if chain(self).any(|error| find::<serde_json::Error>(error).is_some()) {
            return Class::stop(Category::Rejected).with_code("decode");
        }
        let code = if self.is_body() || self.is_decode() { "body" } else { "request" };
        Class::retry(Category::Io).with_code(code)
    }
}

fn of_connect(error: &reqwest::Error) -> Class {
    if error.is_dns() {
        return Class::retry(Category::Io).with_code("dns");
    }
    // Each TLS library reports what it does not understand as invalid data.
    let is_tls = chain(error)
        .filter_map(find::<io::Error>)
        .any(|error| error.kind() == ErrorKind::InvalidData);
    if !is_tls {
        return Class::retry(Category::Io).with_code("connect");
    }
    let mut text = String::new();
    for cause in chain(error) {
        // Writing to a string fails only if the `Display` of the error does.
        let _ = write!(text, "{cause} ");
    }
    // The peer would say the same to the next attempt. Anything else may be damage on the way.
    let is_verdict =
        ["certificate", "alert", "incompatible"].iter().any(|word| text.contains(word));
    let class = if is_verdict { Class::stop(Category::Io) } else { Class::retry(Category::Io) };
    class.with_code("tls")
}

impl Class {
    /// Classifies a response of reqwest by its status and its `Retry-After` header; see [`Class::of_response`]. `now` matters
    /// only for a `Retry-After` that is a date, in a response without a `Date`.
    #[cfg_attr(docsrs, doc(cfg(feature = "reqwest")))]
    pub fn of_reqwest(response: &reqwest::Response, now: SystemTime) -> Class {
        let header =
            |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
        let now = header("date").and_then(RetryAfter::parse_date).unwrap_or(now);
        Class::of_response(response.status().as_u16(), header("retry-after"), now)
    }
}

/// Returns the text of an error with its causes: reqwest's own text is only "error sending request".
pub(crate) fn text_with_causes(error: &reqwest::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        // Writing to a string fails only if the `Display` of the error does.
        let _ = write!(text, ": {error}");
        cause = error.source();
    }
    text
}
