//! Tests of the library from outside, in one binary: linking one is faster than linking eight.

#[cfg(feature = "axum")]
mod net;
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
#[cfg(all(feature = "axum", feature = "reqwest"))]
mod reqwest;
#[cfg(feature = "axum")]
mod http;
#[cfg(all(feature = "axum", feature = "tonic"))]
mod tonic;
mod examples;
mod database;
#[cfg(feature = "axum")]
mod fence;
#[cfg(all(feature = "otel", feature = "cache"))]
mod otel;
#[cfg(feature = "otel")]
mod telemetry_page;
