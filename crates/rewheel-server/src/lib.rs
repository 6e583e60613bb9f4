//! Rewheel for every language.

pub mod callback;
