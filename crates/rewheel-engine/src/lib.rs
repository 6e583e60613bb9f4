//! The moving parts of a durable retry engine.
//!
//! [`wheel`]: in which a job waits for its millisecond.

#![warn(missing_docs)]

mod settings;
mod runner;
pub mod wheel;

pub use self::runner::{Codec, IntoReport, JobContext, JobKind, Json, Reporting, Runner};
pub use self::settings::{EngineSettings, KindSettings, RunnerKind, SettingError};
