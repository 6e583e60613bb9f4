//! The Rewheel server: REST, callbacks, configuration, notifications and telemetry.
//!
//! A [`Server`] serves REST requests with an engine and its store. [`config`] contains all
//! settings, [`submit`] parses submitted jobs, [`problem`] contains the error responses,
//! [`openapi`] describes the interface, and [`callback`] runs jobs by HTTP.
//!
//! # Where to find what
//!
//! | subject | module |
//! | --- | --- |
//! | run a server | [`serve`], [`Server`] |
//! | every setting | [`config`] |
//! | submits and documents of jobs and kinds | [`submit`], [`job_document`], [`kind_document`] |
//! | errors of requests | [`problem`] |
//! | description for programs, page for people | [`openapi`] |
//! | jobs that run by HTTP | [`callback`] |
//! | tokens | [`tokens`] |
//! | notifications | [`notify`](mod@notify) |
//! | OpenTelemetry | [`telemetry`] |
//! | the demo | [`demo`] |

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
mod schedule;
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
mod disk;
mod rest;
mod ui;
pub mod job_explanation;
mod connections;
pub mod demo;
mod systemd;
mod serve;

pub use self::disk::disk_space;
pub use self::log_fields::log_fields;
pub use self::serve::{ServeError, ServeOptions, Server, ServerEvent, Show, StartMode, serve};
pub use self::tls::TlsError;

/// Runs the example of this crate's README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct CrateReadme;
