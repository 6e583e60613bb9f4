//! Calls over HTTP as parts of a trace. Without the feature `otel`, they are just calls.

use crate::classify::Class;
use crate::error::Error;
use crate::pipeline::Pipeline;
use crate::retry::Attempt;
use ::http::HeaderMap;
use std::future::Future;

/// Runs a call under a pipeline, in a span with the name of the pipeline.
pub(crate) async fn run<F, Fut, T, E, J>(
    pipeline: &Pipeline,
    operation: F,
    judge: J,
) -> Result<T, Error<E>>
where
    F: FnMut(Attempt) -> Fut,
    Fut: Future<Output = Result<T, E>>,
    J: FnMut(&Result<T, E>) -> Class,
{
    #[cfg(feature = "otel")]
    return pipeline.run_judged_traced(operation, judge).await;
    #[cfg(not(feature = "otel"))]
    pipeline.run(operation).judge(judge).await
}

/// Adds the headers of the trace that this code is part of, such as `traceparent`, as the program's propagator of OpenTelemetry writes
/// them. A header that the request has already stays.
#[cfg(feature = "otel")]
pub(crate) fn add_headers(headers: &mut HeaderMap) {
    use ::http::{HeaderName, HeaderValue};
    use opentelemetry::propagation::Injector;

    struct Headers<'a>(&'a mut HeaderMap);

    impl Injector for Headers<'_> {
        fn set(&mut self, name: &str, value: String) {
            if let (Ok(name), Ok(value)) =
                (HeaderName::try_from(name), HeaderValue::try_from(value))
            {
                self.0.entry(name).or_insert(value);
            }
        }
    }

    opentelemetry::global::get_text_map_propagator(|propagator| {
        propagator.inject(&mut Headers(headers));
    });
}

/// Adds nothing.
#[cfg(not(feature = "otel"))]
pub(crate) const fn add_headers(_: &mut HeaderMap) {}
