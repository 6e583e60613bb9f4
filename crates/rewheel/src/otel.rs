//! OpenTelemetry: a `tracing` span for each call, metrics for policies.
//!
//! [`Metrics`] is an [`Observer`](crate::Observer): give it to whatever should be counted.
//! [`Call::traced`](crate::Call::traced), [`Call::call_traced`](crate::Call::call_traced) and
//! [`Pipeline::run_traced`](crate::Pipeline::run_traced) make a span of a call, with one below it for
//! each attempt. OpenTelemetry gets them from the layer of `tracing-opentelemetry`. Without a
//! subscriber that wants them, calls are as they were.

mod metrics;
mod spans;

pub use self::metrics::{Meter, Metrics};
pub use self::spans::TARGET;

/// Runs the examples of telemetry as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/telemetry.md")]
struct TelemetryPage;
