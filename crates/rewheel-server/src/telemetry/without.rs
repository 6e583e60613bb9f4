//! The telemetry API of a build without OTLP.

use super::{TelemetryError, TelemetrySettings};
use rewheel_engine::Engine;
use std::future::Future;
use tracing_subscriber::{Layer, Registry};

/// Nothing, in a build without OTLP.
#[derive(Debug, Default)]
pub struct Telemetry;

impl Telemetry {
    /// Makes sure that nobody expects any.
    ///
    /// # Errors
    /// If somebody does.
    pub fn start(settings: &TelemetrySettings) -> Result<Telemetry, TelemetryError> {
        settings.check()?;
        if settings.target(|name| std::env::var(name).ok())?.is_some() {
            let why =
                "this build does not support OTLP: build it with the feature `otlp`".to_owned();
            return Err(TelemetryError::Setting { key: "otlp", why });
        }
        Ok(Telemetry)
    }

    /// Returns nothing to install.
    pub fn layer(&self) -> Option<Box<dyn Layer<Registry> + Send + Sync>> {
        None
    }
}

/// Waits for `stop`.
pub async fn while_exported(_: Engine, _: TelemetrySettings, stop: impl Future<Output = ()>) {
    stop.await;
}

pub(crate) async fn flush() {}
