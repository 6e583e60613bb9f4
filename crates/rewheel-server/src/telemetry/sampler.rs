//! Decides which traces are kept.

use opentelemetry::trace::{Link, SpanKind, TraceContextExt as _, TraceId};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::trace::{Sampler, SamplingDecision, SamplingResult, ShouldSample};

/// Keeps what the parent was kept with; an attempt, if the submit was that it links to; of what begins here, a share.
#[derive(Clone, Debug)]
pub(super) struct Followed {
    share: Sampler,
}

impl Followed {
    pub(super) fn new(share: f64) -> Followed {
        Followed { share: Sampler::TraceIdRatioBased(share) }
    }
}

impl ShouldSample for Followed {
    fn should_sample(
        &self,
        parent: Option<&Context>,
        trace_id: TraceId,
        name: &str,
        kind: &SpanKind,
        attributes: &[KeyValue],
        links: &[Link],
    ) -> SamplingResult {
        let parent_span = parent.map(|parent| parent.span().span_context().clone());
        let parent_span = parent_span.filter(opentelemetry::trace::SpanContext::is_valid);
        let followed = parent_span.as_ref().or(links.first().map(|link| &link.span_context));
        let Some(followed) = followed else {
            return self.share.should_sample(parent, trace_id, name, kind, attributes, links);
        };
        let is_kept = followed.is_sampled();
        SamplingResult {
            decision: if is_kept {
                SamplingDecision::RecordAndSample
            } else {
                SamplingDecision::Drop
            },
            attributes: Vec::new(),
            trace_state: parent_span.map(|span| span.trace_state().clone()).unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Context, Followed, Link, SamplingDecision, ShouldSample, SpanKind, TraceId};
    use opentelemetry::trace::{SpanContext, SpanId, TraceContextExt as _, TraceFlags, TraceState};

    fn span(flags: TraceFlags) -> SpanContext {
        let (trace, span) = (TraceId::from_bytes([1; 16]), SpanId::from_bytes([2; 8]));
        SpanContext::new(trace, span, flags, true, TraceState::default())
    }

    #[track_caller]
    fn check(share: f64, parent: Option<TraceFlags>, link: Option<TraceFlags>, is_kept: bool) {
        let parent = parent.map(|flags| Context::new().with_remote_span_context(span(flags)));
        let links: Vec<Link> =
            link.map(|flags| Link::new(span(flags), Vec::new(), 0)).into_iter().collect();
        let (trace, kind) = (TraceId::from_bytes([7; 16]), SpanKind::Consumer);
        let result =
            Followed::new(share).should_sample(parent.as_ref(), trace, "a", &kind, &[], &links);
        assert_eq!(result.decision == SamplingDecision::RecordAndSample, is_kept);
    }

    #[test]
    fn a_trace_is_kept_as_a_whole_with_what_it_links_to() {
        let (kept, dropped) = (TraceFlags::SAMPLED, TraceFlags::NOT_SAMPLED);
        check(1.0, None, None, true);
        check(0.0, None, None, false);
        check(0.0, Some(kept), None, true);
        check(1.0, Some(dropped), None, false);
        check(0.0, None, Some(kept), true);
        check(1.0, None, Some(dropped), false);
        check(0.0, Some(kept), Some(dropped), true);
    }
}
