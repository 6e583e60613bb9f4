//! Tests of the library from outside, in one binary: linking one is faster than linking eight.

mod durations;
mod regressions;
mod reviewed;
mod observing;
mod page;
mod pipeline_waits;
#[cfg(feature = "cache")]
mod thousand;
#[cfg(feature = "tower")]
mod tower;
#[cfg(feature = "axum")]
mod idempotency;
#[cfg(all(feature = "otel", feature = "cache"))]
mod otel;
#[cfg(feature = "otel")]
mod telemetry_page;
