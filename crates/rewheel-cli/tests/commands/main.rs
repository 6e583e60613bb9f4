//! Tests the requests that commands send, and what they print of the responses.

#![expect(clippy::unwrap_used, reason = "test code")]

mod fake;
#[path = "../support/shell.rs"]
mod shell;

mod requests;
mod lists;
mod batch;
mod consent;
mod terminal;
mod passwords;
