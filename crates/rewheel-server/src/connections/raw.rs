//! Writes responses to connections that never reach a request handler.

use crate::problem::{Code, MEDIA_TYPE, Problem};
use rewheel::Random;

/// Maximum size of hyper's own response to an invalid request.
const OWN_BYTES_MAX: usize = 256;

/// Returns a response as raw bytes. The connection is closed after it.
pub(super) fn answer(problem: &Problem) -> Vec<u8> {
    let id = format!("{:016x}", Random::thread().next());
    let document = serde_json::to_vec(&problem.document(&id)).unwrap_or_default();
    let status = axum::http::StatusCode::from_u16(problem.code.status()).unwrap_or_default();
    let reason = status.canonical_reason().unwrap_or_default();
    let wait = problem.code.retry_after();
    let wait = wait.map(|seconds| format!("retry-after: {seconds}\r\n")).unwrap_or_default();
    let head = format!(
        "HTTP/1.1 {} {reason}\r\ncontent-type: {MEDIA_TYPE}\r\ncontent-length: {}\r\n{wait}\
         connection: close\r\nx-request-id: {id}\r\n\r\n",
        status.as_u16(),
        document.len(),
    );
    [head.into_bytes(), document].concat()
}

/// Recognizes hyper's empty response to an invalid request, and returns a problem document instead.
///
/// All our responses have a request id, so a response without one is hyper's.
pub(super) fn instead_of(written: &[u8]) -> Option<Vec<u8>> {
    let is_whole = written.len() <= OWN_BYTES_MAX && written.ends_with(b"\r\n\r\n");
    let status = written.strip_prefix(b"HTTP/1.1 ").or(written.strip_prefix(b"HTTP/1.0 "))?;
    let has_id = written.windows(12).any(|bytes| bytes.eq_ignore_ascii_case(b"x-request-id"));
    if !is_whole || has_id {
        return None;
    }
    Some(answer(&match status.get(..3)? {
        b"400" => Problem::new(Code::BadRequest, "the request is not valid HTTP/1.1")
            .hint("correct the request line and headers, and send the request on a new connection; the server has closed the current connection"),
        b"414" => Problem::new(Code::UrlTooLong, "the path with its query string is too long")
            .hint("make the URL shorter, or raise server.limits.url_bytes_max in the config"),
        b"431" => {
            Problem::new(Code::HeadersTooLarge, "the request has too many headers, or they are too long")
                .hint("send fewer or shorter headers, or raise server.limits.headers_max or server.limits.head_bytes_max in the config")
        }
        _ => return None,
    }))
}

#[cfg(test)]
mod tests {
    use super::instead_of;

    #[track_caller]
    fn check(written: &str, code: Option<&str>) {
        let answer = instead_of(written.as_bytes()).map(|bytes| String::from_utf8(bytes).unwrap());
        match code {
            None => assert_eq!(answer, None),
            Some(code) => assert!(answer.unwrap().contains(&format!("\"code\":\"{code}\""))),
        }
    }

    #[test]
    fn only_answers_that_no_handler_wrote_are_replaced() {
        let rest = "connection: close\r\ncontent-length: 0\r\ndate: now\r\n\r\n";
        check(&format!("HTTP/1.1 400 Bad Request\r\n{rest}"), Some("bad_request"));
        check(&format!("HTTP/1.1 414 URI Too Long\r\n{rest}"), Some("url_too_long"));
        check(&format!("HTTP/1.1 431 Too Large\r\n{rest}"), Some("headers_too_large"));
        check(&format!("HTTP/1.1 400 Bad Request\r\nx-request-id: 1\r\n{rest}"), None);
        check("HTTP/1.1 100 Continue\r\n\r\n", None);
        check(&format!("HTTP/1.1 400 Bad Request\r\n{rest}{{}}"), None);
    }
}
