//! Judges what a callee answered.

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
use rewheel_core::{Failure, Report};
use std::error::Error;
use std::fmt::Write;
use std::io::{self, ErrorKind};
use std::time::{Duration, SystemTime};

/// What a person needs to see of an answer.
const BODY_SHOWN_BYTES_MAX: usize = 1_000;

/// A connection can only be used again once the answer was read. Reading on costs less than a new
/// connection up to about here.
const BODY_READ_BYTES_MAX: usize = 64 * 1024;

/// A callee that answered does not hold a place while it trickles out the rest.
const BODY_READ_TIMEOUT: Duration = Duration::from_secs(2);

/// Judges the answer to a call that was made at `at`, when `left` was left of the attempt.
pub(super) async fn judge(
    callback: &Callback,
    mut response: Response<Incoming>,
    url: &CalleeUrl,
    at: SystemTime,
    left: Duration,
) -> Report {
    let status = response.status();
    let class = classify(callback, status, response.headers(), at);
    let body = read_body(response.body_mut(), BODY_READ_TIMEOUT.min(left / 2)).await;
    match class.verdict {
        Verdict::Done => Report::Done,
        verdict @ (Verdict::Retry | Verdict::RetryAfter(_) | Verdict::Stop) => {
            let mut message = match leads_to(&response, url) {
                Some(to) => format!(
                    "{status}: redirect to {to} not followed; set the new address as callback url if it is right"
                ),
                None => message(status, &body),
            };
            message = callback.echo.masked(message);
            if callback.urls.has_failover() {
                // Which of them said so.
                message = format!("{}: {message}", url.origin());
            }
            let failure = Failure::of(&class, &message);
            Report::AttemptFailed { verdict, failure }
        }
    }
}

fn classify(callback: &Callback, status: StatusCode, headers: &HeaderMap, at: SystemTime) -> Class {
    let status = status.as_u16();
    if callback.success.contains(status) {
        return Class::DONE;
    }
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    // The callee's own clock, where it tells it: both dates then come from one.
    let now = text(DATE).and_then(RetryAfter::parse_date).unwrap_or(at);
    let class = Class::of_response(status, text(RETRY_AFTER), now);
    match (class.verdict, callback.retry_after_max) {
        // A redirect, or a success that this kind does not count as one: the callee would say the
        // same again.
        (Verdict::Done, _) => Class::stop(Category::Rejected).with_code(status),
        (Verdict::RetryAfter(delay), Some(max)) => {
            Class { verdict: Verdict::RetryAfter(delay.min(max)), ..class }
        }
        (Verdict::Retry | Verdict::RetryAfter(_) | Verdict::Stop, _) => class,
    }
}

/// Returns the beginning of the body. An error only ends it: the status has said what matters, and
/// must be told before the attempt is cut.
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
    // What was read until then is enough.
    let _ = tokio::time::timeout(most, reading).await;
    shown
}

/// Where a redirect leads.
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

/// Judges a call that got no answer.
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
        // HTTP/2 lets a callee say why it leaves, in its own words.
        let message = format!("no response from {origin}: {}", callback.echo.masked(reason(error)));
        Failure::new(category, code.as_deref(), &message)
    };
    Report::AttemptFailed { verdict: Verdict::Retry, failure }
}

/// What went wrong, in a word that rules can be made for: the operating system's, where it was the operating system.
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

/// Finds what is wrong with the encryption: it is wrapped once or twice, and none is the other's source.
fn of_tls(error: &io::Error) -> Option<&rustls::Error> {
    let inner = error.get_ref()?;
    inner.downcast_ref().or_else(|| inner.downcast_ref().and_then(of_tls))
}

/// Judges a call that nobody answered while the attempt lasted.
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

/// Puts the causes into one line, the outermost first. Some repeat what they were caused by; the error itself only says
/// that there was one.
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
