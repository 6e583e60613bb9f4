//! Rewheel for every language.

pub mod callback;
pub mod demo;
