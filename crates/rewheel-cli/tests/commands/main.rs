//! What the commands ask a server for, and what they print of its answers.

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
