//! The telemetry API of a build without OTLP.

use super::{TelemetryError, TelemetrySettings};
use rewheel_engine::Engine;
use std::future::Future;
use tracing_subscriber::{Layer, Registry};

/// An empty type in a build without OTLP.
#[derive(Debug, Default)]
pub struct Telemetry;

impl Telemetry {
    /// Checks that no telemetry is configured.
    ///
    /// # Errors
    /// If a collector is configured.
    pub fn start(settings: &TelemetrySettings) -> Result<Telemetry, TelemetryError> {
        settings.check()?;
        if settings.target(|name| std::env::var(name).ok())?.is_some() {
            let why =
                "this build has no support for OTLP: build Rewheel with the feature `otlp`, or remove this setting".to_owned();
            return Err(TelemetryError::Setting { key: "otlp", why });
        }
        Ok(Telemetry)
    }

    /// Returns no layer.
    pub fn layer(&self) -> Option<Box<dyn Layer<Registry> + Send + Sync>> {
        None
    }
}

/// Waits for `stop`.
pub async fn while_exported(_: Engine, _: TelemetrySettings, stop: impl Future<Output = ()>) {
    stop.await;
}

pub(crate) async fn flush() {}
