//! `tracing` spans of an engine.
//!
//! All spans have the target [`TARGET`] and the level debug: a log does not show them by default, and without a subscriber for
//! them they cost almost nothing. With the feature `otel` and the layer of `tracing-opentelemetry`, the span that submits a job
//! is stored with the job, and each attempt links to this span.

use rewheel::Category;
use rewheel_core::store::Settlement;
use rewheel_core::{Decision, Failure, Job, NewJob};
use std::sync::OnceLock;
use tracing::field::Empty;
use tracing::{Level, Span, debug_span};

/// The target of Rewheel's spans, for filters.
pub const TARGET: &str = "rewheel::trace";

/// Returns whether a text is a `traceparent` by the rules of W3C Trace Context.
///
/// ```
/// use rewheel_engine::trace::is_traceparent;
///
/// assert!(is_traceparent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"));
/// assert!(!is_traceparent("00-00000000000000000000000000000000-b7ad6b7169203331-01"));
/// ```
pub fn is_traceparent(text: &str) -> bool {
    parts(text).is_some()
}

/// Returns trace, span and flags as text.
fn parts(text: &str) -> Option<[&str; 3]> {
    let mut parts = text.split('-');
    let [version, trace, span, flags] =
        [parts.next()?, parts.next()?, parts.next()?, parts.next()?];
    let is_hex = |part: &str, length: usize| {
        part.len() == length && part.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
    };
    // A later version may have more fields after the flags; version 00 may not.
    let is_version =
        is_hex(version, 2) && version != "ff" && (version != "00" || parts.next().is_none());
    let is_set = |part: &str| part.bytes().any(|b| b != b'0');
    let is_whole = is_hex(trace, 32) && is_hex(span, 16) && is_hex(flags, 2);
    (is_version && is_whole && is_set(trace) && is_set(span)).then_some([trace, span, flags])
}

/// Decides whether a trace begins here; for an attempt it receives whether the submit that it would link to was sampled.
type Gate = dyn Fn(Option<bool>) -> bool + Send + Sync;

static GATE: OnceLock<Box<Gate>> = OnceLock::new();

/// Sets the function `gate`, which decides for the whole process whether a new trace begins. For an attempt, its argument says
/// whether the linked submit was sampled, if there is a linked submit. If it returns false, no span is created, which costs less
/// than a span that a sampler drops. Returns whether this is the first gate.
///
/// ```
/// assert!(rewheel_engine::trace::begin_only_if(|linked| linked != Some(false)));
/// ```
pub fn begin_only_if(gate: impl Fn(Option<bool>) -> bool + Send + Sync + 'static) -> bool {
    GATE.set(Box::new(gate)).is_ok()
}

fn begins(linked: Option<&str>) -> bool {
    let Some(gate) = GATE.get() else { return true };
    gate(linked.map(is_kept))
}

/// Returns whether the sender of a traceparent samples the trace.
fn is_kept(traceparent: &str) -> bool {
    let flags = parts(traceparent).and_then(|[_, _, flags]| u8::from_str_radix(flags, 16).ok());
    flags.is_some_and(|flags| flags & 1 == 1)
}

/// Returns the `traceparent` of a span for another process; `None` if spans are not propagated across processes.
///
/// ```
/// let span = tracing::Span::current();
/// assert_eq!(rewheel_engine::trace::traceparent(&span), None);
/// ```
pub fn traceparent(span: &Span) -> Option<String> {
    if span.is_disabled() {
        return None;
    }
    across::traceparent(span)
}

/// Begins the span of a submit: a child of the span that the jobs carry, otherwise of the current one.
pub(crate) fn submit(jobs: &[NewJob]) -> Span {
    let [first, ..] = jobs else { return Span::none() };
    if !tracing::enabled!(target: TARGET, Level::DEBUG) {
        return Span::none();
    }
    let is_wanted = match &first.traceparent {
        // The process that began the trace has decided.
        Some(parent) if GATE.get().is_some() => is_kept(parent),
        Some(_) => true,
        None if Span::current().is_none() => begins(None),
        None => true,
    };
    if !is_wanted {
        return Span::none();
    }
    let span = debug_span!(
        target: TARGET,
        "submit",
        otel.name = %format_args!("submit {}", first.kind),
        otel.kind = "producer",
        otel.status_code = Empty,
        messaging.system = "rewheel",
        messaging.operation.type = "send",
        messaging.operation.name = "submit",
        messaging.destination.name = Empty,
        messaging.message.id = Empty,
        messaging.batch.message_count = Empty,
        error.type = Empty,
    );
    if span.is_disabled() {
        return span;
    }
    if let Some(parent) = &first.traceparent {
        across::set_parent(&span, parent);
    }
    if across::is_dropped(&span) {
        return span;
    }
    span.record("messaging.destination.name", first.kind.as_str());
    if jobs.len() == 1 {
        span.record("messaging.message.id", first.id.to_string());
    } else {
        span.record("messaging.batch.message_count", number(jobs.len()));
    }
    span
}

/// Returns the jobs to store: each with the span that submits it.
pub(crate) fn submitted_by(span: &Span, jobs: &[NewJob]) -> Option<Vec<NewJob>> {
    Some(below(&traceparent(span)?, jobs))
}

/// Makes jobs children of the span of their batch, which continues the trace of the first job: jobs of other traces stay
/// unchanged.
fn below(traceparent: &str, jobs: &[NewJob]) -> Vec<NewJob> {
    let mut below = jobs.to_vec();
    let trace = jobs.first().and_then(|first| first.traceparent.clone());
    for job in below.iter_mut().filter(|job| job.traceparent == trace) {
        job.traceparent = Some(traceparent.to_owned());
    }
    below
}

/// Ends a submit that failed as a whole.
pub(crate) fn submit_failed(span: &Span) {
    span.record("otel.status_code", "error");
    span.record("error.type", "store");
}

/// Begins the span of an attempt: a separate trace, since the submit may be long ago, with a link to it.
pub(crate) fn attempt(job: &Job, attempts_max: u32) -> Span {
    let is_asked_for = tracing::enabled!(target: TARGET, Level::DEBUG);
    if !is_asked_for || !begins(job.traceparent.as_deref()) {
        return Span::none();
    }
    let span = debug_span!(
        target: TARGET,
        parent: None,
        "attempt",
        otel.name = %format_args!("attempt {}", job.lane.kind),
        otel.kind = "consumer",
        otel.status_code = Empty,
        otel.status_description = Empty,
        messaging.system = "rewheel",
        messaging.operation.type = "process",
        messaging.operation.name = "attempt",
        messaging.destination.name = Empty,
        messaging.message.id = Empty,
        rewheel.tenant = Empty,
        rewheel.fence = Empty,
        rewheel.decision = Empty,
        rewheel.delay_ms = Empty,
        rewheel.duration_ms = Empty,
        retry.max_attempts = Empty,
        retry.current_attempt = Empty,
        retry.success = Empty,
        retry.last_error = Empty,
        retry.error_classification = Empty,
        error.type = Empty,
    );
    if span.is_disabled() {
        return span;
    }
    if let Some(submitter) = &job.traceparent {
        across::link(&span, submitter);
    }
    if across::is_dropped(&span) {
        return span;
    }
    let kind = &job.lane.kind;
    span.record("messaging.destination.name", kind.as_str());
    span.record("messaging.message.id", job.id.to_string());
    if let Some(tenant) = &job.lane.tenant {
        span.record("rewheel.tenant", tenant.as_str());
    }
    span.record("rewheel.fence", number(job.fence.get()));
    span.record("retry.max_attempts", number(attempts_max));
    let attempt = job.attempt.saturating_sub(job.attempts_before) + 1;
    span.record("retry.current_attempt", number(attempt));
    span
}

/// Records an attempt that a worker made elsewhere, when it is settled, with the duration that the worker reports.
pub(crate) fn settled(job: &Job, attempts_max: u32, settlement: &Settlement) {
    let span = attempt(job, attempts_max);
    span.record("rewheel.duration_ms", number(settlement.ran.duration.as_millis()));
    decided(&span, &settlement.decision, settlement.failure.as_ref());
}

/// Ends the span of an attempt with its decision.
pub(crate) fn decided(span: &Span, decision: &Decision, failure: Option<&Failure>) {
    if span.is_disabled() || across::is_dropped(span) {
        return;
    }
    span.record("rewheel.decision", decision.as_str());
    span.record("retry.success", matches!(decision, Decision::Succeed));
    if let Some((wait, _)) = decision.wait() {
        span.record("rewheel.delay_ms", number(wait.as_millis()));
    }
    if let Some(failure) = decision.failure().or(failure) {
        let (category, text) = (Category::as_str(failure.category()), failure.to_string());
        span.record("retry.error_classification", category);
        span.record("error.type", failure.code().unwrap_or(category));
        span.record("retry.last_error", text.as_str());
        span.record("otel.status_code", "error");
        span.record("otel.status_description", text.as_str());
    }
}

/// OpenTelemetry numbers are signed; an unsigned one would be sent as text.
fn number(number: impl TryInto<i64>) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}

/// Functions of spans that only OpenTelemetry has.
#[cfg(feature = "otel")]
mod across {
    use super::{Span, parts};
    use opentelemetry::Context;
    use opentelemetry::trace::{
        SpanContext, SpanId, TraceContextExt, TraceFlags, TraceId, TraceState,
    };
    use tracing_opentelemetry::OpenTelemetrySpanExt;

    fn context(traceparent: &str) -> Option<SpanContext> {
        let [trace, span, flags] = parts(traceparent)?;
        let (trace, span) = (TraceId::from_hex(trace).ok()?, SpanId::from_hex(span).ok()?);
        let flags = TraceFlags::new(u8::from_str_radix(flags, 16).ok()?) & TraceFlags::SAMPLED;
        Some(SpanContext::new(trace, span, flags, true, TraceState::default()))
    }

    pub(super) fn traceparent(span: &Span) -> Option<String> {
        let context = span.context();
        let span = context.span();
        let context = span.span_context();
        let flags = context.trace_flags().to_u8();
        let text = format!("00-{}-{}-{flags:02x}", context.trace_id(), context.span_id());
        context.is_valid().then_some(text)
    }

    /// Returns whether a sampler dropped the span: most of the cost of a span is its attributes.
    pub(super) fn is_dropped(span: &Span) -> bool {
        let context = span.context();
        let span = context.span();
        span.span_context().is_valid() && !span.span_context().is_sampled()
    }

    pub(super) fn set_parent(span: &Span, traceparent: &str) {
        if let Some(parent) = context(traceparent) {
            // Without the layer there is no trace to be a part of.
            let _ = span.set_parent(Context::new().with_remote_span_context(parent));
        }
    }

    pub(super) fn link(span: &Span, traceparent: &str) {
        if let Some(linked) = context(traceparent) {
            span.add_link(linked);
        }
    }
}

#[cfg(not(feature = "otel"))]
mod across {
    use super::Span;

    pub(super) fn traceparent(_: &Span) -> Option<String> {
        None
    }

    pub(super) fn is_dropped(_: &Span) -> bool {
        false
    }

    pub(super) fn set_parent(_: &Span, _: &str) {}

    pub(super) fn link(_: &Span, _: &str) {}
}

#[cfg(test)]
mod tests {
    use super::{below, is_traceparent};
    use rewheel_core::{JobId, KindName, NewJob};

    #[test]
    fn a_job_of_another_trace_stays_in_it() {
        let kind = KindName::parse("mail").unwrap();
        let job = |of: Option<&str>| NewJob {
            traceparent: of.map(str::to_owned),
            ..NewJob::new(JobId::from_bytes([1; 16]), kind.clone(), Vec::new())
        };
        let told = |jobs: &[NewJob]| -> Vec<Option<String>> {
            below("span", jobs).into_iter().map(|job| job.traceparent).collect()
        };
        let span = Some("span".to_owned());
        assert_eq!(told(&[job(None), job(None)]), [span.clone(), span.clone()]);
        let other = Some("other".to_owned());
        assert_eq!(
            told(&[job(Some("one")), job(Some("other")), job(Some("one"))]),
            [span.clone(), other.clone(), span.clone()]
        );
        assert_eq!(told(&[job(None), job(Some("other"))]), [span, other]);
    }

    #[track_caller]
    fn check(text: &str, is_one: bool) {
        assert_eq!(is_traceparent(text), is_one, "{text}");
    }

    #[test]
    fn only_a_whole_traceparent_is_one() {
        let good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        check(good, true);
        check(&good.replace("-01", "-00"), true);
        check(&format!("cc{}-what-comes-later", &good[2..]), true);
        check(&format!("{good}-more"), false);
        check(&format!("ff{}", &good[2..]), false);
        check(&good.to_uppercase(), false);
        check(&good.replace("b7ad6b7169203331", "0000000000000000"), false);
        check(&good.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32)), false);
        for bad in ["", "00", "00-0af7-b7ad-01", &good[1..], &good[..54], "00-é-b-01"] {
            check(bad, false);
        }
    }
}
