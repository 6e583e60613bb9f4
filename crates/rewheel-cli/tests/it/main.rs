//! Tests of the command from outside, in one binary: linking one is faster than linking fifteen.
//!
//! Tests that measure time, which nothing may run beside, are in `alone`; those that break nodes for a minute are in `chaos`.

#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]

#[path = "support/shell.rs"]
mod shell;
#[path = "../chaos/node.rs"]
#[expect(dead_code, reason = "chaos also pauses nodes")]
mod node;
#[path = "support/fleet.rs"]
mod fleet;
#[path = "support/page.rs"]
mod page;
mod cli;
mod config;
mod service;
mod commands;
mod lab;
mod bench;
mod docs;
mod caps;
mod ceilings;
mod notify;
mod redrive;
mod tokens;
mod workers;
#[cfg(feature = "otlp")]
mod telemetry;
#[cfg(feature = "test-faults")]
mod engine_failure;
#[cfg(any(feature = "test-mysql", feature = "test-redis"))]
#[path = "support/demo.rs"]
mod demo;
#[cfg(feature = "test-mysql")]
#[path = "../chaos/mysql/server.rs"]
#[expect(dead_code, reason = "chaos also kills the server and its connections")]
mod mariadb;
#[cfg(feature = "test-mysql")]
mod mysql;
#[cfg(feature = "test-redis")]
mod redis;
mod attacks;
#[cfg(target_os = "linux")]
mod hostile;
