//! Judges the response of a callback.

use super::address::RefusedAddress;
use super::callee_url::CalleeUrl;
use super::client::{ConnectTimeout, Unresolved};
use super::settings::Callback;
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};
use hyper::header::{DATE, HeaderMap, HeaderName, LOCATION, RETRY_AFTER};
use hyper::{Response, StatusCode};
use hyper_util::client::legacy;
use rewheel::{Category, Class, Classify, RetryAfter, Verdict, duration};
use rewheel_core::{Failure, JobResult, Report};
use std::error::Error;
use std::fmt::Write;
use std::io::{self, ErrorKind};
use std::time::{Duration, SystemTime};

/// Maximum number of bytes of a response body that are recorded.
const BODY_SHOWN_BYTES_MAX: usize = 1_000;

/// Maximum number of bytes read from a body. A connection can only be reused once the response was read; up to about this size, reading
/// costs less than a new connection.
const BODY_READ_BYTES_MAX: usize = 64 * 1024;

/// Maximum time to read a body: a slow response must not keep a slot busy.
const BODY_READ_TIMEOUT: Duration = Duration::from_secs(2);

/// What a call came to.
pub(super) struct Judged {
    pub(super) report: Report,
    /// If the call succeeded.
    pub(super) answer: Option<Answer>,
}

/// The response to a call that succeeded.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    /// Its body, or why it cannot be kept. `None` if it is empty, or not kept.
    pub(super) result: Option<Result<JobResult, String>>,
}

impl From<Report> for Judged {
    fn from(report: Report) -> Judged {
        Judged { report, answer: None }
    }
}

/// Judges the response to a call made at `at`, with `left` remaining of the attempt. Keeps a body of at most `keep` bytes.
pub(super) async fn judge(
    callback: &Callback,
    mut response: Response<Incoming>,
    url: &CalleeUrl,
    (at, left): (SystemTime, Duration),
    keep: Option<usize>,
) -> Judged {
    let status = response.status();
    let class = classify(callback, status, response.headers(), at);
    if let (Verdict::Done, Some(bytes_max)) = (class.verdict, keep) {
        let result = super::result_body::read(&mut response, left / 2, bytes_max).await;
        return Judged { report: Report::Done, answer: Some(Answer { status, result }) };
    }
    let body = read_body(response.body_mut(), BODY_READ_TIMEOUT.min(left / 2)).await;
    match class.verdict {
        Verdict::Done => {
            Judged { report: Report::Done, answer: Some(Answer { status, result: None }) }
        }
        verdict @ (Verdict::Retry | Verdict::RetryAfter(_) | Verdict::Stop) => {
            let mut message = match leads_to(&response, url) {
                Some(to) => format!(
                    "{status}: Rewheel does not follow the redirect to {to}; if that address is correct, set it as callback.url"
                ),
                None => message(status, &body),
            };
            message = callback.echo.masked(message);
            if callback.urls.has_failover() {
                // Name the URL that responded.
                message = format!("{}: {message}", url.origin());
            }
            let failure = Failure::of(&class, &message);
            Report::AttemptFailed { verdict, failure }.into()
        }
    }
}

fn classify(callback: &Callback, status: StatusCode, headers: &HeaderMap, at: SystemTime) -> Class {
    let status = status.as_u16();
    if callback.success.contains(status) {
        return Class::DONE;
    }
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    // Prefer the callee's own clock, if it sends one: then both dates come from the same clock.
    let now = text(DATE).and_then(RetryAfter::parse_date).unwrap_or(at);
    let class = Class::of_response(status, text(RETRY_AFTER), now);
    match (class.verdict, callback.retry_after_max) {
        // A redirect, or a success status that this kind does not accept: the callee would respond in the same way again.
        (Verdict::Done, _) => Class::stop(Category::Rejected).with_code(status),
        (Verdict::RetryAfter(delay), Some(max)) => {
            Class { verdict: Verdict::RetryAfter(delay.min(max)), ..class }
        }
        (Verdict::Retry | Verdict::RetryAfter(_) | Verdict::Stop, _) => class,
    }
}

/// Returns the beginning of the body. An error only ends the read: the status matters most, and must be reported before the attempt ends.
pub(crate) async fn read_body(body: &mut Incoming, most: Duration) -> Vec<u8> {
    let mut shown = Vec::new();
    if body.is_end_stream() {
        return shown;
    }
    let mut bytes = 0;
    let reading = async {
        while let Some(Ok(frame)) = body.frame().await {
            let Ok(chunk) = frame.into_data() else { break };
            let room = BODY_SHOWN_BYTES_MAX - shown.len();
            shown.extend_from_slice(&chunk[..chunk.len().min(room)]);
            bytes += chunk.len();
            if bytes > BODY_READ_BYTES_MAX {
                break;
            }
        }
    };
    // After a timeout, the bytes read so far are enough.
    let _ = tokio::time::timeout(most, reading).await;
    shown
}

/// Returns the target of a redirect.
fn leads_to(response: &Response<Incoming>, url: &CalleeUrl) -> Option<CalleeUrl> {
    let location = response.headers().get(LOCATION).filter(|_| response.status().is_redirection());
    url.join(location?.to_str().ok()?)
}

fn message(status: StatusCode, body: &[u8]) -> String {
    let body = String::from_utf8_lossy(body);
    match body.trim() {
        "" => status.to_string(),
        body => format!("{status}: {body}"),
    }
}

/// Judges a call without a response.
pub(super) fn judge_error(callback: &Callback, error: &legacy::Error, url: &CalleeUrl) -> Report {
    let origin = url.origin();
    if let Some(refused) = cause::<RefusedAddress>(error) {
        let failure = Failure::new(Category::Rejected, None, &format!("{origin}: {refused}"));
        return Report::AttemptFailed { verdict: Verdict::Stop, failure };
    }
    let io = cause::<io::Error>(error);
    let is_late = cause::<ConnectTimeout>(error).is_some()
        || io.is_some_and(|error| error.kind() == ErrorKind::TimedOut);
    let failure = if is_late && error.is_connect() {
        let message = format!("connection to {origin} timed out");
        Failure::new(Category::Timeout, None, &message)
    } else {
        let code = code(error, io);
        let category = if is_late { Category::Timeout } else { Category::Io };
        // In HTTP/2 a callee can send its own text when it closes a connection.
        let message = format!("no response from {origin}: {}", callback.echo.masked(reason(error)));
        Failure::new(category, code.as_deref(), &message)
    };
    Report::AttemptFailed { verdict: Verdict::Retry, failure }
}

/// Returns an error code that rules can match; the operating system's code for I/O errors.
fn code(error: &legacy::Error, io: Option<&io::Error>) -> Option<String> {
    if cause::<Unresolved>(error).is_some() {
        return Some("dns".to_owned());
    }
    match io.and_then(of_tls) {
        Some(rustls::Error::InvalidCertificate(_)) => Some("certificate".to_owned()),
        Some(_) => Some("tls".to_owned()),
        None => io.and_then(|error| error.classify().code).map(|code| code.to_string()),
    }
}

/// Finds the TLS error: it is wrapped once or twice, and not linked through `source`.
fn of_tls(error: &io::Error) -> Option<&rustls::Error> {
    let inner = error.get_ref()?;
    inner.downcast_ref().or_else(|| inner.downcast_ref().and_then(of_tls))
}

/// Judges a call without a response within the attempt timeout.
pub(super) fn none_within(ends_in: Duration, url: &CalleeUrl) -> Report {
    let message = format!("no response from {} within {}", url.origin(), duration::text(ends_in));
    let failure = Failure::new(Category::Timeout, None, &message);
    Report::AttemptFailed { verdict: Verdict::Retry, failure }
}

/// Finds an error of one type among the causes of another.
fn cause<'a, T: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a T> {
    chain(error).find_map(|error| error.downcast_ref())
}

fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

/// Joins the causes into one line, the outermost first. Skips causes that repeat the previous one, and the outermost error, which only
/// says that there was one.
pub(crate) fn reason(error: &legacy::Error) -> String {
    let mut line = String::new();
    for cause in chain(error).skip(usize::from(error.source().is_some())) {
        let text = cause.to_string();
        if line.ends_with(&text) {
            continue;
        }
        let separator = if line.is_empty() { "" } else { ": " };
        // Writing to a string cannot fail.
        let _ = write!(line, "{separator}{text}");
    }
    line
}
