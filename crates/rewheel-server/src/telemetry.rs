//! Sends spans and metrics to the configured collector.

#[cfg(feature = "otlp")]
mod otlp;
#[cfg(feature = "otlp")]
mod sampler;
#[cfg(feature = "otlp")]
mod watched;
mod settings;
#[cfg(not(feature = "otlp"))]
mod without;

pub use self::settings::{Protocol, TelemetrySettings};

#[cfg(feature = "otlp")]
pub use self::otlp::Telemetry;
#[cfg(not(feature = "otlp"))]
pub use self::without::Telemetry;

#[cfg(feature = "otlp")]
pub use self::otlp::while_exported;
#[cfg(not(feature = "otlp"))]
pub use self::without::while_exported;

#[cfg(feature = "otlp")]
pub(crate) use self::otlp::flush;
#[cfg(not(feature = "otlp"))]
pub(crate) use self::without::flush;

/// Telemetry could not be started.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// A setting is invalid.
    #[error("telemetry.{key}: {why}")]
    Setting {
        /// The setting.
        key: &'static str,
        /// What to do about it.
        why: String,
    },
    /// Telemetry was already started in this process.
    #[error("telemetry is already started in this process")]
    Again,
}
