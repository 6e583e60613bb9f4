//! The Rewheel server: REST, callbacks, configuration, notifications and telemetry.
//!
//! A [`Server`] serves REST on top of an engine and its store; [`config`] holds the settings.
//! [`submit`] parses jobs, [`problem`] builds error responses, [`openapi`] describes the interface,
//! and [`callback`] runs jobs by HTTP calls.

#![warn(missing_docs)]

pub mod config;
pub mod problem;
pub mod rfc3339;
mod fields;
mod conditions;
mod payload;
mod signature;
mod metrics;
pub mod telemetry;
mod log_fields;
mod bulk;
pub mod submit;
pub mod job_document;
mod operation_document;
pub mod kind_document;
pub mod callback;
pub mod notify;
mod runners;
pub mod tokens;
mod tls;
mod workers;
mod incident_desk;
pub mod openapi;
mod app;
mod rest;
mod connections;
pub mod demo;
mod serve;

pub use self::log_fields::log_fields;
pub use self::serve::{Said, ServeError, Server, Show, serve};
pub use self::tls::TlsError;
