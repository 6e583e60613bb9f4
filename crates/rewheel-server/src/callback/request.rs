//! Builds the HTTP request of one attempt.

use super::callee_url::CalleeUrl;
use super::settings::Callback;
use super::template::{NoUrl, UrlTemplate};
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request};
use rewheel::{CallContext, Category, Retries};
use rewheel_core::{Failure, Job, Timestamp};
use std::fmt::Display;
use std::time::SystemTime;

/// The values of the current attempt.
#[derive(Clone, Copy, Debug)]
pub(super) struct Now {
    /// The number of the attempt.
    pub(super) attempt: u32,
    /// When it starts, by the wall clock.
    pub(super) at: SystemTime,
}

/// A request and its URL.
pub(super) struct Call {
    pub(super) url: CalleeUrl,
    pub(super) request: Request<Full<Bytes>>,
}

/// Builds the request, or returns a final failure if that is impossible: another attempt would fail
/// in the same way.
pub(super) fn request(
    callback: &Callback,
    url: &UrlTemplate,
    job: &Job,
    now: Now,
) -> Result<Call, Failure> {
    let url = url.render(job).map_err(|error| match error {
        NoUrl::BadPayload(why) => Failure::new(Category::BadPayload, None, &why),
        NoUrl::Rejected(why) => Failure::new(Category::Rejected, None, &why),
    })?;
    // A host name is checked when it is resolved; an IP address must be checked here.
    if let Some(address) = url.address() {
        callback
            .allow
            .check(address)
            .map_err(|refused| Failure::new(Category::Rejected, None, &refused.to_string()))?;
    }
    let uri = url.to_uri().map_err(|error| {
        Failure::new(
            Category::Rejected,
            None,
            &format!("the callback url of this job is not valid: {error}"),
        )
    })?;
    let mut headers = callback.headers.clone();
    add_headers(&mut headers, job, now);
    let mut body = Bytes::new();
    if callback.method != Method::GET {
        let json = HeaderValue::from_static("application/json");
        headers.entry(CONTENT_TYPE).or_insert(json);
        body = job.payload.clone().unwrap_or_default().into();
    }
    let seconds = i64::try_from(unix_seconds(now.at)).unwrap_or(i64::MAX);
    if let Some(signature) = callback.secrets.sign(&job.id.to_string(), seconds, &body) {
        headers.insert(HeaderName::from_static("webhook-signature"), signature);
    }
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = callback.method.clone();
    *request.uri_mut() = uri;
    *request.headers_mut() = headers;
    Ok(Call { url, request })
}

fn add_headers(headers: &mut HeaderMap, job: &Job, now: Now) {
    let mut add = |name: &'static str, value: &dyn Display| {
        // Names and keys have no control characters. A value that still cannot be a header is left
        // out, so that the job reaches its callee.
        if let Ok(value) = HeaderValue::try_from(value.to_string().into_bytes()) {
            headers.insert(HeaderName::from_static(name), value);
        }
    };
    add("webhook-id", &job.id);
    add("webhook-timestamp", &unix_seconds(now.at));
    match &job.key {
        Some(key) => add("idempotency-key", key),
        None => add("idempotency-key", &job.id),
    }
    add("rewheel-kind", &job.lane.kind);
    add("rewheel-attempt", &now.attempt);
    // Retries inside of the callee would multiply the attempts of the job.
    add(CallContext::RETRY, &Retries::Caller);
    add("rewheel-fence", &job.fence);
    if let Some(turn) = job.group.as_ref().and_then(|group| group.turn) {
        add("rewheel-turn", &turn);
    }
    if let Some(deadline) = job.deadline.and_then(rfc3339) {
        add("rewheel-deadline", &deadline);
    }
    if let Some(instant) = job.instant.and_then(rfc3339) {
        add("rewheel-instant", &instant);
    }
    if let Some(tenant) = &job.lane.tenant {
        add("rewheel-tenant", tenant);
    }
    if let Some(traceparent) = &job.traceparent {
        add("traceparent", traceparent);
    }
}

fn unix_seconds(at: SystemTime) -> u64 {
    at.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Returns `None` for a time outside the calendar's range.
fn rfc3339(at: Timestamp) -> Option<String> {
    let at = jiff::Timestamp::from_millisecond(at.as_millis()).ok()?;
    Some(format!("{at:.3}"))
}
