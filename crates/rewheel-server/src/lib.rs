//! Rewheel for every language.

#![warn(missing_docs)]

pub mod config;
pub mod problem;
pub mod rfc3339;
mod fields;
pub mod submit;
