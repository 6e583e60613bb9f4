//! OpenTelemetry: a `tracing` span for each call, metrics for policies.
//!
//! [`Metrics`] is an [`Observer`](crate::Observer): pass it to every policy to be counted. [`Call::traced`](crate::Call::traced),
//! [`Call::call_traced`](crate::Call::call_traced) and [`Pipeline::run_traced`](crate::Pipeline::run_traced) create a span for a
//! call, with a child span for each attempt. The client of the feature `reqwest` and `HttpPipelineLayer` of the feature `http` create
//! these spans themselves, and pass the trace on to the called service, in the headers that the propagator of the program writes
//! (`opentelemetry::global::set_text_map_propagator`). The layer of `tracing-opentelemetry` passes them to OpenTelemetry. Without a
//! subscriber for these spans, calls run unchanged.

mod names;
mod metrics;
mod spans;

pub use self::metrics::{Meter, Metrics};
pub use self::spans::TARGET;

/// Runs the examples of the telemetry documentation as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/telemetry.md")]
struct TelemetryPage;
