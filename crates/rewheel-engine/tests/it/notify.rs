//! Tests of notifications.

#![expect(clippy::unwrap_used, reason = "test code")]

mod support;
mod letters;
mod fleet;
mod trouble;
mod durable;
mod jobs;
