//! Tests of notifications.

#![expect(clippy::unwrap_used, reason = "test code")]

#[path = "support/still.rs"]
mod still;
mod notify {
    mod support;
    mod letters;
    mod fleet;
    mod trouble;
    mod durable;
}
