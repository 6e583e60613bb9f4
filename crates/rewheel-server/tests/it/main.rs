//! Tests of the server from outside, in one binary: linking one is faster than linking four.

#![expect(clippy::unwrap_used, reason = "test code")]

mod rest;
mod callback;
mod failover;
mod notify;
mod monitoring;
