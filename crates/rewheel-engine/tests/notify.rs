//! Notices, as the people who get them see it.

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
