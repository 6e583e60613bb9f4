//! The reqwest client against a real server, behind a proxy with faults.

#![expect(clippy::unwrap_used, reason = "test code")]

mod classes;
mod requests;
mod policies;
